package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Types and keys of Secrets, as Kubernetes and Fleet define them.
const (
	TypeBasicAuth = "kubernetes.io/basic-auth"
	TypeSSHAuth   = "kubernetes.io/ssh-auth"

	keyUsername   = "username"
	keyPassword   = "password"
	keySSH        = "ssh-privatekey"
	keyKnownHosts = "known_hosts"
)

// Reasons of the errors of this package; all are stalled.
const (
	ReasonInvalidCredential = "InvalidCredential"
)

// Auth is what a git server is shown, and what it must show. The zero value is an anonymous client
// that trusts no SSH host.
type Auth struct {
	// Username and Password are for HTTP.
	Username, Password string
	// App gives tokens for HTTP in place of Username and Password; nil means none.
	App *App
	// SSHKey is a private key in PEM form.
	SSHKey []byte
	// KnownHosts are the SSH host keys to trust, in OpenSSH's known_hosts format.
	KnownHosts string
	// InsecureSkipHostKeyChecks trusts any SSH host; for installations that ask for it.
	InsecureSkipHostKeyChecks bool
}

// HostKeys says which SSH hosts are trusted where a Secret does not say it.
type HostKeys struct {
	// KnownHosts is used when the Secret has no known_hosts of its own; the two are not merged, as
	// in Fleet.
	KnownHosts string
	// InsecureSkip trusts any SSH host.
	InsecureSkip bool
}

// Anonymous is the Auth of a repository without a Secret.
func Anonymous(hosts HostKeys) Auth {
	return Auth{KnownHosts: hosts.KnownHosts, InsecureSkipHostKeyChecks: hosts.InsecureSkip}
}

// FromSecret reads a Secret of type kubernetes.io/basic-auth or kubernetes.io/ssh-auth, or one of another type
// that holds a GitHub App. A basic-auth
// Secret without user name is a token, which becomes the user name. Errors are stalled ones.
func FromSecret(secretType string, data map[string][]byte, hosts HostKeys) (Auth, error) {
	auth := Anonymous(hosts)
	switch secretType {
	case TypeBasicAuth:
		return basicAuth(auth, data)
	case TypeSSHAuth:
		return sshAuth(auth, data)
	}
	if isApp(data) {
		return appAuth(auth, data)
	}
	return Auth{}, fault.New(fault.Stalled, ReasonInvalidCredential,
		"the Secret has type %q; git needs type %s or %s, or a GitHub App (%s, %s, %s)",
		secretType, TypeBasicAuth, TypeSSHAuth, keyAppID, keyAppInstallation, keyAppPrivateKey)
}

func basicAuth(auth Auth, data map[string][]byte) (Auth, error) {
	// A line break at the end comes from the editor that made the Secret; no server accepts it.
	auth.Username = strings.TrimRight(string(data[keyUsername]), "\r\n")
	auth.Password = strings.TrimRight(string(data[keyPassword]), "\r\n")
	if auth.Username == "" {
		auth.Username = auth.Password
	}
	if auth.Username == "" {
		return Auth{}, fault.New(fault.Stalled, ReasonInvalidCredential,
			"the Secret of type %s has neither %s nor %s", TypeBasicAuth, keyUsername, keyPassword)
	}
	if strings.ContainsAny(auth.Username+auth.Password, "\r\n") {
		return Auth{}, fault.New(fault.Stalled, ReasonInvalidCredential,
			"%s or %s of the Secret holds a line break", keyUsername, keyPassword)
	}
	return auth, nil
}

func sshAuth(auth Auth, data map[string][]byte) (Auth, error) {
	auth.SSHKey = data[keySSH]
	if len(auth.SSHKey) == 0 {
		return Auth{}, fault.New(fault.Stalled, ReasonInvalidCredential,
			"the Secret of type %s has no %s", TypeSSHAuth, keySSH)
	}
	if _, err := auth.Signer(); err != nil {
		return Auth{}, err
	}
	if own := string(data[keyKnownHosts]); strings.TrimSpace(own) != "" {
		auth.KnownHosts = own
	}
	return auth, nil
}

// Signer returns the SSH key ready to sign; the error is stalled and says what is wrong with the key.
func (a Auth) Signer() (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(a.SSHKey)
	if err == nil {
		return signer, nil
	}
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return nil, fault.New(fault.Stalled, ReasonInvalidCredential,
			"%s is protected by a passphrase; store a key without one", keySSH)
	}
	return nil, fault.New(fault.Stalled, ReasonInvalidCredential,
		"%s is not a private key in PEM form that OpenSSH writes", keySSH)
}

// Identity returns a digest that two Auths share only when a server sees no difference between them.
// It must not leave the process: it is made from the secret.
func (a Auth) Identity() string {
	digest := sha256.New()
	for _, part := range []string{a.Username, a.Password, string(a.SSHKey), a.App.identity(), a.KnownHosts, strconv.FormatBool(a.InsecureSkipHostKeyChecks)} {
		digest.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// String keeps secrets out of logs.
func (a Auth) String() string {
	switch {
	case len(a.SSHKey) > 0:
		return "SSH key"
	case a.App != nil:
		return "GitHub App"
	case a.Username != "":
		return "user and password"
	}
	return "anonymous"
}

// GoString keeps secrets out of %#v.
func (a Auth) GoString() string { return "credential.Auth{" + a.String() + "}" }
