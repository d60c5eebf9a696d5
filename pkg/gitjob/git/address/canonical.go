package address

import (
	"net/url"
	"path"
	"strings"
)

// Canonical returns what all addresses of one repository have in common: the host in lower case,
// without port, and the path in lower case, without slashes at its ends and without ".git". Web, SSH
// and HTTP addresses of the known hosting products come out equal. It answers whether a push may
// concern a repository; it is not fit for authorization.
func Canonical(raw string) (host, repository string, err error) {
	a, err := Parse(raw)
	if err != nil {
		return "", "", err
	}
	host = strings.ToLower(strings.TrimSuffix(a.Hostname(), "."))
	repository = a.Path
	if a.Scheme == "ssh" {
		if decoded, err := url.PathUnescape(repository); err == nil {
			repository = decoded
		}
	}
	repository = strings.Trim(path.Clean("/"+strings.ToLower(repository)), "/")
	repository = strings.TrimSuffix(repository, ".git")
	if alias, isAlias := sshHosts[host]; isAlias {
		host = alias
	}
	if isAzure(host) {
		host, repository = canonicalAzure(host, repository)
		return host, repository, nil
	}
	return host, canonicalServer(repository), nil
}

// sshHosts are the names under which hosting products serve SSH on port 443.
var sshHosts = map[string]string{
	"ssh.github.com":       "github.com",
	"altssh.gitlab.com":    "gitlab.com",
	"altssh.bitbucket.org": "bitbucket.org",
}

func isAzure(host string) bool {
	return host == "dev.azure.com" || host == "ssh.dev.azure.com" || strings.HasSuffix(host, ".visualstudio.com")
}

// canonicalAzure brings the five forms of Azure DevOps to organization/project/repository:
//
//	https://dev.azure.com/org/project/_git/repo
//	git@ssh.dev.azure.com:v3/org/project/repo
//	https://org.visualstudio.com/[DefaultCollection/]project/_git/repo
//	org@vs-ssh.visualstudio.com:v3/org/project/repo
//	https://dev.azure.com/org/_git/repo, for a project and a repository of the same name
func canonicalAzure(host, repository string) (string, string) {
	parts := strings.Split(repository, "/")
	organization, isOld := strings.CutSuffix(host, ".visualstudio.com")
	switch {
	case parts[0] == "v3":
		parts = parts[1:]
	case isOld:
		if parts[0] == "defaultcollection" {
			parts = parts[1:]
		}
		parts = append([]string{organization}, parts...)
	}
	kept := parts[:0:0]
	for _, part := range parts {
		if part != "_git" {
			kept = append(kept, part)
		}
	}
	if len(kept) == 2 {
		kept = append(kept, kept[1])
	}
	return "dev.azure.com", strings.Join(kept, "/")
}

// canonicalServer brings the forms of Bitbucket Server, scm/PROJECT/repo and
// projects/PROJECT/repos/repo[/browse], to the one that SSH uses, project/repo.
func canonicalServer(repository string) string {
	parts := strings.Split(repository, "/")
	switch {
	case len(parts) == 3 && parts[0] == "scm":
		return parts[1] + "/" + parts[2]
	case len(parts) >= 4 && parts[0] == "projects" && parts[2] == "repos":
		return parts[1] + "/" + parts[3]
	case len(parts) >= 4 && parts[0] == "users" && parts[2] == "repos":
		return "~" + parts[1] + "/" + parts[3]
	}
	return repository
}
