package address

import (
	"net"
	"net/url"
	"path"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// ReasonInvalidURL is the reason of every error of this package.
const ReasonInvalidURL = "InvalidURL"

// Address is where a repository is. The zero value is not an address; Parse makes one.
type Address struct {
	// Scheme is http, https or ssh.
	Scheme string
	// Username and Password are from the user part of the address; Username of an SSH address is the
	// login, and never empty.
	Username, Password string
	// Host is the host with its port, if one was written; IPv6 addresses are in brackets.
	Host string
	// Path is the path of the repository as the server wants it: with a slash in front, except in the
	// form user@host:path, where it is relative to the login's home folder.
	Path string
	// Query is the part behind a question mark, without it.
	Query string
}

// Parse reads an address. The error is a stalled one, says which forms are read, and holds no password.
func Parse(raw string) (Address, error) {
	if raw == "" {
		return Address{}, fault.New(fault.Stalled, ReasonInvalidURL, "repository address is empty")
	}
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return Address{}, fault.New(fault.Stalled, ReasonInvalidURL, "repository address holds a space or control character; remove it")
	}
	if helper, _, found := strings.Cut(raw, "::"); found && isWord(helper) {
		return Address{}, refuse(raw, "transport helpers are not served")
	}
	if strings.Contains(raw, "://") {
		return parseURL(raw)
	}
	return parseSCP(raw)
}

func isWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		isLetter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !isLetter && (r < '0' || r > '9') && !strings.ContainsRune("+.-", r)
	})
}

func refuse(raw, why string) error {
	return fault.New(fault.Stalled, ReasonInvalidURL,
		"repository address %q: %s; write https://host/path, ssh://user@host/path or user@host:path", redact(raw), why)
}

func parseURL(raw string) (Address, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of url.Parse repeats the address with its password.
		return Address{}, refuse(raw, "it is not a URL")
	}
	a := Address{Scheme: strings.ToLower(u.Scheme), Host: u.Host, Path: u.Path, Query: u.RawQuery}
	switch a.Scheme {
	case "http", "https":
	case "ssh", "git+ssh", "ssh+git":
		a.Scheme = "ssh"
	default:
		return Address{}, refuse(raw, "scheme "+a.Scheme+" is not served")
	}
	if u.User != nil {
		a.Username = u.User.Username()
		a.Password, _ = u.User.Password()
	}
	if a.Scheme == "ssh" {
		// ssh://host/~user/repo means a folder in that user's home.
		if strings.HasPrefix(a.Path, "/~") {
			a.Path = a.Path[1:]
		}
		a.Query = ""
	}
	return a.checked(raw)
}

// parseSCP reads [user@]host:path, where no slash stands before the colon.
func parseSCP(raw string) (Address, error) {
	login, rest, hasLogin := strings.Cut(raw, "@")
	if !hasLogin || strings.ContainsAny(login, "/:") {
		login, rest = "", raw
	}
	host, repository, found := cutHost(rest)
	if !found || strings.Contains(host, "/") {
		return Address{}, refuse(raw, "it is a local path")
	}
	return Address{Scheme: "ssh", Username: login, Host: host, Path: repository}.checked(raw)
}

func cutHost(s string) (host, rest string, found bool) {
	if strings.HasPrefix(s, "[") {
		inside, rest, found := strings.Cut(s[1:], "]:")
		return "[" + inside + "]", rest, found
	}
	return strings.Cut(s, ":")
}

func (a Address) checked(raw string) (Address, error) {
	if a.Scheme == "ssh" && a.Username == "" {
		a.Username = "git"
	}
	switch {
	case a.Hostname() == "" || strings.HasPrefix(a.Host, "-"):
		return Address{}, refuse(raw, "it names no host")
	case strings.Trim(a.Path, "/") == "":
		return Address{}, refuse(raw, "it names no repository")
	case strings.HasPrefix(a.Path, "-") || strings.HasPrefix(a.Username, "-"):
		// The server's shell would read it as an option.
		return Address{}, refuse(raw, "its path or user starts with a dash")
	case strings.ContainsFunc(a.Path+a.Username+a.Password+a.Host, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return Address{}, refuse(raw, "it holds an escaped control character")
	}
	return a, nil
}

// Hostname returns the host without port and brackets.
func (a Address) Hostname() string {
	return (&url.URL{Host: a.Host}).Hostname()
}

// HostPort returns host and port for dialing; the port is the scheme's own where none was written.
func (a Address) HostPort() string {
	port := (&url.URL{Host: a.Host}).Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "ssh": "22"}[a.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(a.Hostname()), port)
}

// URL returns the address as a URL without user and password; for http and https only.
func (a Address) URL() *url.URL {
	return &url.URL{Scheme: a.Scheme, Host: a.Host, Path: a.Path, RawQuery: a.Query}
}

// String returns the address for people: without password, and without user over HTTP.
func (a Address) String() string {
	if a.Scheme != "ssh" {
		return a.URL().String()
	}
	if strings.HasPrefix(a.Path, "/") {
		return "ssh://" + a.Username + "@" + a.Host + a.Path
	}
	if (&url.URL{Host: a.Host}).Port() != "" {
		return "ssh://" + a.Username + "@" + a.Host + "/" + a.Path
	}
	return a.Username + "@" + a.Host + ":" + a.Path
}

// redact returns raw without user and password, for messages about addresses that do not parse.
func redact(raw string) string {
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		scheme, rest = "", raw
	}
	// Passwords may hold slashes and at signs, wrongly, so everything up to the last sign goes.
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	if found {
		return scheme + "://" + rest
	}
	return rest
}

// Join returns the address that a submodule's URL means inside the repository at a: relative ones,
// starting with ./ or ../, are relative to the repository itself.
func (a Address) Join(reference string) (Address, error) {
	if !strings.HasPrefix(reference, "./") && !strings.HasPrefix(reference, "../") {
		return Parse(reference)
	}
	joined := a
	joined.Path = path.Join(a.Path, reference)
	if strings.HasPrefix(joined.Path, "..") || path.IsAbs(a.Path) && path.Clean(a.Path+"/"+reference) == "/" {
		return Address{}, refuse(reference, "it leaves the host")
	}
	return joined.checked(reference)
}
