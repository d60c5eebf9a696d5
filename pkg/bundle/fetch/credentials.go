package fetch

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Credentials say who asks, and how servers are trusted.
type Credentials struct {
	Username, Password string
	// URLRegex binds user name, password and key to the repositories it matches; empty binds them to none,
	// unless AnyURL is set. It must match from the start of the URL to the end of the host, at least.
	URLRegex string
	// AnyURL binds the credentials to the repository that is asked for, whichever it is: they were given
	// for a path of the tree and not for a URL.
	AnyURL bool
	// SSHKey is for charts from git; it is bound like the password. KnownHosts are the host keys to trust.
	SSHKey     []byte
	KnownHosts string
	// CABundle is PEM, trusted beside the system's authorities.
	CABundle []byte
	// InsecureSkipTLSVerify turns certificate checks off.
	InsecureSkipTLSVerify bool
	// BasicHTTP talks to registries without TLS, and allows credentials in the clear.
	BasicHTTP bool
}

// CredentialsFromSecret reads the data of a Helm Secret: username, password, ssh-privatekey, cacerts,
// insecureSkipVerify and basicHTTP. The URL regex is the owner's and not in the Secret.
func CredentialsFromSecret(data map[string][]byte) (Credentials, error) {
	c := Credentials{
		Username: strings.TrimSpace(string(data["username"])),
		Password: strings.TrimSuffix(string(data["password"]), "\n"),
		SSHKey:   data["ssh-privatekey"],
		CABundle: data["cacerts"],
	}
	for key, field := range map[string]*bool{"insecureSkipVerify": &c.InsecureSkipTLSVerify, "basicHTTP": &c.BasicHTTP} {
		text := strings.TrimSpace(string(data[key]))
		if text == "" {
			continue
		}
		value, err := strconv.ParseBool(text)
		if err != nil {
			return Credentials{}, fault.New(fault.Stalled, ReasonCredentials, "the Secret's key %s is neither true nor false", key)
		}
		*field = value
	}
	return c, nil
}

// pathEntry is an entry of secrets-path.yaml.
type pathEntry struct {
	Username           string `json:"username"`
	Password           string `json:"password"`
	CABundle           string `json:"caBundle"`
	SSHPrivateKey      string `json:"sshPrivateKey"`
	SSHKnownHosts      string `json:"sshKnownHosts"`
	InsecureSkipVerify bool   `json:"insecureSkipVerify"`
	BasicHTTP          bool   `json:"basicHTTP"`
}

// CredentialsByPath reads the document secrets-path.yaml: credentials by folder or pattern. The result
// looks for the exact folder first, then for patterns in lexical order; no match gives none.
func CredentialsByPath(document []byte) (func(path string) Credentials, error) {
	entries := map[string]pathEntry{}
	if err := yaml.Unmarshal(document, &entries); err != nil {
		// The parser's message may repeat parts of the document.
		return nil, fault.New(fault.Stalled, ReasonCredentials, "secrets-path.yaml does not parse as a mapping of paths to credentials")
	}
	for pattern := range entries {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, fault.New(fault.Stalled, ReasonCredentials, "secrets-path.yaml: %q is no valid pattern", pattern)
		}
	}
	patterns := slices.Sorted(maps.Keys(entries))
	return func(folder string) Credentials {
		if entry, ok := entries[folder]; ok {
			return entry.credentials()
		}
		for _, pattern := range patterns {
			if matched, err := path.Match(pattern, folder); err == nil && matched {
				return entries[pattern].credentials()
			}
		}
		return Credentials{}
	}, nil
}

func (e pathEntry) credentials() Credentials {
	return Credentials{
		Username: e.Username, Password: e.Password, AnyURL: true, CABundle: []byte(e.CABundle),
		SSHKey: []byte(e.SSHPrivateKey), KnownHosts: e.SSHKnownHosts,
		InsecureSkipTLSVerify: e.InsecureSkipVerify, BasicHTTP: e.BasicHTTP,
	}
}

// identity stands for the credentials in keys; it does not reveal them.
func (c Credentials) identity() string {
	all := fmt.Appendf(nil, "%q %q %q %t %q %q %q %t %t", c.Username, c.Password, c.URLRegex, c.AnyURL, c.SSHKey, c.KnownHosts, c.CABundle, c.InsecureSkipTLSVerify, c.BasicHTTP)
	return digestOf(all)
}

// boundTo says that user name, password and key may go to the repository.
func (c Credentials) boundTo(target *url.URL) (bool, error) {
	if c.Username == "" && c.Password == "" && len(c.SSHKey) == 0 {
		return false, nil
	}
	if c.AnyURL || c.URLRegex == "" {
		return c.AnyURL, nil
	}
	pattern, err := regexp.Compile(`^(?:` + c.URLRegex + `)`)
	if err != nil {
		return false, fault.New(fault.Stalled, ReasonCredentials, "helmRepoURLRegex is no valid expression: %v", err)
	}
	pattern.Longest()
	origin := target.Scheme + "://" + target.Host
	// A match that ends inside the host would bind to every host that starts like it.
	end := pattern.FindStringIndex(origin + target.EscapedPath())
	return end != nil && end[1] >= len(origin), nil
}
