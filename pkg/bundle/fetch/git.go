package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/bundle/charts"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// GitRef names a commit of a git repository that holds a chart, and who asks for it.
type GitRef struct {
	// URL is an http, https or ssh URL without credentials.
	URL string
	// Ref is a branch, tag or commit; empty means the default.
	Ref string
	// The credentials are empty unless they are bound to the URL.
	Username, Password    string
	SSHKey                []byte
	KnownHosts            string
	CABundle              []byte
	InsecureSkipTLSVerify bool
}

// hosts are known by name in chart references without a scheme.
var hosts = []string{"github.com", "gitlab.com", "bitbucket.org"}

// isGit says that an address names a git repository: by its scheme, its host or its name.
func isGit(address string) bool {
	plain, _, _ := strings.Cut(address, "?")
	scheme, _, _ := strings.Cut(plain, "://")
	return strings.HasPrefix(address, "git::") || scheme == "ssh" || scheme == "git" || strings.HasPrefix(address, "git@") ||
		strings.HasSuffix(plain, ".git") || strings.Contains(plain, ".git//") ||
		slices.ContainsFunc(hosts, func(host string) bool { return strings.HasPrefix(address, host+"/") })
}

// parseGit splits an address into the repository, the folder in it and the ref.
func parseGit(address string) (*url.URL, string, string, error) {
	shown := redact(strings.TrimPrefix(address, "git::"))
	text := strings.TrimPrefix(address, "git::")
	if !strings.Contains(text, "://") {
		if user, rest, scp := strings.Cut(text, ":"); scp && strings.Contains(user, "@") {
			text = "ssh://" + user + "/" + strings.TrimPrefix(rest, "/")
		} else {
			text = "https://" + text
		}
	}
	target, err := url.Parse(text)
	if err != nil || target.Host == "" || !slices.Contains([]string{"https", "http", "ssh"}, target.Scheme) {
		return nil, "", "", fault.New(fault.Stalled, ReasonInvalidURL, "%s is no URL of a git repository that can be read", shown)
	}
	query := target.Query()
	if query.Has("sshkey") {
		return nil, "", "", fault.New(fault.Stalled, ReasonNotSupported, "%s: a key in a URL is not used; put it into the Helm credentials", shown)
	}
	repository, folder, _ := strings.Cut(target.Path, "//")
	target.Path, target.RawPath, target.RawQuery = repository, "", ""
	cleaned, err := tree.Clean(path.Join(".", folder))
	if err != nil {
		return nil, "", "", err
	}
	return target, cleaned, query.Get("ref"), nil
}

// fromGit packs a folder of a git repository as a chart.
func (s *Source) fromGit(ctx context.Context, address string, credentials Credentials) (*charts.Chart, error) {
	target, folder, ref, err := parseGit(address)
	if err != nil {
		return nil, err
	}
	shown := redact(target.String())
	if s.options.Git == nil {
		return nil, fault.New(fault.Stalled, ReasonNotSupported, "chart %s: charts from git cannot be fetched here", shown)
	}
	bound, err := credentials.boundTo(target)
	if err != nil {
		return nil, err
	}
	asked := GitRef{Ref: ref, KnownHosts: credentials.KnownHosts, CABundle: credentials.CABundle, InsecureSkipTLSVerify: credentials.InsecureSkipTLSVerify}
	if bound {
		asked.Username, asked.Password, asked.SSHKey = credentials.Username, credentials.Password, credentials.SSHKey
	}
	if user := target.User; user != nil && target.Scheme != "ssh" {
		asked.Username = user.Username()
		asked.Password, _ = user.Password()
		target.User = nil
	}
	asked.URL = target.String()
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	files, err := s.options.Git(ctx, asked)
	if err != nil {
		return nil, err
	}
	if closer, ok := files.(io.Closer); ok {
		defer func() { _ = closer.Close() }()
	}
	if !tree.New(files).IsDir(folder) {
		return nil, fault.New(fault.Stalled, ReasonChartNotFound, "%s has no folder %s", shown, folder)
	}
	packed := &packer{limit: s.options.MaxArchive}
	packed.zipped = gzip.NewWriter(&packed.out)
	packed.archive = tar.NewWriter(packed.zipped)
	if err := tree.New(files).Walk(folder, packed); err != nil {
		return nil, err
	}
	data, err := packed.finish()
	return &charts.Chart{Archive: data}, err
}

// packer is the visitor that packs a folder; equal folders give equal archives.
type packer struct {
	limit   int64
	out     bytes.Buffer
	zipped  *gzip.Writer
	archive *tar.Writer
}

// Enter packs every folder.
func (p *packer) Enter(tree.Folder) (bool, error) { return true, nil }

// Wants leaves out hidden entries.
func (p *packer) Wants(_ tree.Folder, name string, _ bool) bool {
	return !strings.HasPrefix(path.Base(name), ".")
}

// File packs a file.
func (p *packer) File(name string, data []byte) error {
	if int64(p.out.Len()) > p.limit {
		return tooLarge("the chart's folder", p.limit)
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatPAX}
	if err := p.archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := p.archive.Write(data)
	return err
}

// Large packs a file, whose size is written before it.
func (p *packer) Large(name string, _ int64, content io.Reader) error {
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return p.File(name, data)
}

func (p *packer) finish() ([]byte, error) {
	if err := p.archive.Close(); err != nil {
		return nil, err
	}
	err := p.zipped.Close()
	return p.out.Bytes(), err
}
