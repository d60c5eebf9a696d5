package charts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fairlead-dev/fairlead/pkg/bundle/fetch"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

// Flags say how charts are fetched.
type Flags struct {
	username, passwordFile, caFile, sshKeyFile string
	urlRegex                                   string
	basicHTTP, insecureSkipTLS                 bool
	byPathFile                                 string
}

// Add adds the flags, with upstream's names.
func (c *Flags) Add(set *pflag.FlagSet, env session.Environment) {
	set.StringVar(&c.username, "username", env.HelmUsername, "user name for chart repositories (HELM_USERNAME); needs --password-file")
	set.StringVar(&c.passwordFile, "password-file", "", "file with the password for chart repositories")
	set.StringVar(&c.caFile, "cacerts-file", "", "PEM file with authorities to trust for chart repositories")
	set.StringVar(&c.sshKeyFile, "ssh-privatekey-file", "", "private key for charts from git")
	set.StringVar(&c.urlRegex, "helm-repo-url-regex", "", "repositories that may get user name and password; empty means none")
	set.BoolVar(&c.basicHTTP, "helm-basic-http", false, "talk to registries without TLS")
	set.BoolVar(&c.insecureSkipTLS, "helm-insecure-skip-tls", false, "do not check certificates of chart repositories")
	set.StringVar(&c.byPathFile, "helm-credentials-by-path-file", "", "file with credentials by folder; takes the place of the flags above")
}

// credentials returns those for a bundle's folder. Files that do not exist are ignored, as in upstream:
// they are mounted from Secrets that may be missing.
func (c *Flags) credentials(env session.Environment) (func(path string) fetch.Credentials, error) {
	byPath, err := optionalFile(c.byPathFile)
	if err != nil {
		return nil, err
	}
	if byPath != nil {
		return fetch.CredentialsByPath(byPath)
	}
	credentials := fetch.Credentials{KnownHosts: env.KnownHosts, URLRegex: c.urlRegex, BasicHTTP: c.basicHTTP, InsecureSkipTLSVerify: c.insecureSkipTLS}
	password, err := optionalFile(c.passwordFile)
	if err != nil {
		return nil, err
	}
	if c.username != "" && password != nil {
		credentials.Username, credentials.Password = c.username, strings.TrimSuffix(string(password), "\n")
	}
	if credentials.CABundle, err = optionalFile(c.caFile); err != nil {
		return nil, err
	}
	if credentials.SSHKey, err = optionalFile(c.sshKeyFile); err != nil {
		return nil, err
	}
	return func(string) fetch.Credentials { return credentials }, nil
}

func optionalFile(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	return data, nil
}

// Source returns where charts come from. Close it.
func (c *Flags) Source(env session.Environment) (*Source, error) {
	credentials, err := c.credentials(env)
	if err != nil {
		return nil, err
	}
	checkouts := &checkouts{}
	fetcher := fetch.New(fetch.Options{Proxy: env.Proxy, Git: checkouts.open})
	return &Source{Source: fetcher.Source(credentials), git: checkouts}, nil
}
