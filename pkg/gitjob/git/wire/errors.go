package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Reasons of the errors of this package, fit for conditions.
const (
	ReasonAuthenticationFailed = "AuthenticationFailed"
	ReasonHostKeyChanged       = "HostKeyChanged"
	ReasonHostKeyUnknown       = "HostKeyUnknown"
	ReasonInvalidKnownHosts    = "InvalidKnownHosts"
	ReasonNotSupported         = "NotSupported"
	ReasonProtocolFailed       = "ProtocolFailed"
	ReasonRateLimited          = "RateLimited"
	ReasonRepositoryNotFound   = "RepositoryNotFound"
	ReasonServerFailed         = "ServerFailed"
	ReasonTLSFailed            = "TLSFailed"
	ReasonTimeout              = "Timeout"
	ReasonUnreachable          = "Unreachable"
)

// ErrNotServed says that the server refuses a commit because no reference points to it.
var ErrNotServed = errors.New("the server does not serve this commit, because no branch or tag points to it")

var (
	errTooLarge     = errors.New("it sent more references than are read")
	errObjectFormat = errors.New("its objects are named by SHA-256, and only SHA-1 is supported")
	errBundle       = errors.New("caBundle holds no certificate in PEM form")
	errAppScheme    = errors.New("a GitHub App needs an address with https://")
	errNoKey        = errors.New("an SSH address needs a Secret of type kubernetes.io/ssh-auth")
)

// Scope says how much of a host an error concerns.
type Scope string

// An error of the host stops everything on it; one of the repository only that repository as seen
// with that credential.
const (
	ScopeHost       Scope = "Host"
	ScopeRepository Scope = "Repository"
)

// Failure is the error of every exchange with a server. It wraps a fault.Error.
type Failure struct {
	Scope Scope
	// RetryAfter is how long the server asked to be left alone; zero when it did not say.
	RetryAfter time.Duration

	err error
}

// Error says what failed, where, and what to do.
func (f *Failure) Error() string { return f.err.Error() }

// Unwrap returns the classified error.
func (f *Failure) Unwrap() error { return f.err }

// failure translates a foreign error. The context tells silence of the server from the caller's own
// giving up, which is returned as it is.
func (r *Remote) failure(ctx context.Context, verb string, err error) error {
	var ready *fault.Error
	if errors.As(err, &ready) {
		return &Failure{Scope: ScopeRepository, err: fmt.Errorf("%s %s: %w", verb, r.options.Address, err)}
	}
	var sink *sinkError
	if errors.As(err, &sink) {
		return fmt.Errorf("%s %s: %w", verb, r.options.Address, sink.Unwrap())
	}
	if ctx.Err() != nil {
		if !errors.Is(context.Cause(ctx), errSilent) {
			return fmt.Errorf("%s %s: %w", verb, r.options.Address, context.Cause(ctx))
		}
		err = errSilent
	}
	d := r.diagnose(err)
	message := fmt.Errorf("%s %s: %s", verb, r.options.Address, d.text)
	if errors.Is(err, ErrNotServed) {
		message = fmt.Errorf("%s %s: %w", verb, r.options.Address, ErrNotServed)
	}
	return &Failure{Scope: d.scope, RetryAfter: d.retryAfter, err: fault.Wrap(d.class, d.reason, message)}
}

// diagnosed is what an error turned out to be.
type diagnosed struct {
	class      fault.Class
	reason     string
	scope      Scope
	text       string
	retryAfter time.Duration
}

func stalled(reason, text string) diagnosed {
	return diagnosed{class: fault.Stalled, reason: reason, scope: ScopeRepository, text: text}
}

func transient(reason, text string) diagnosed {
	return diagnosed{class: fault.Transient, reason: reason, scope: ScopeHost, text: text}
}

func (r *Remote) diagnose(err error) diagnosed {
	var status *statusError
	var server *serverErr
	var notGit *notGitError
	var hostKey *hostKeyError
	var hosts *knownHostsError
	var redirect *redirectError
	switch {
	case errors.Is(err, errSilent):
		return transient(ReasonTimeout, fmt.Sprintf("the server was silent for %s", r.options.Timeout))
	case errors.As(err, &status):
		return r.diagnoseStatus(status)
	case errors.As(err, &server):
		return r.diagnoseServer(server)
	case errors.As(err, &notGit):
		return stalled(ReasonRepositoryNotFound, fmt.Sprintf("no git repository answers there (Content-Type %q); check the address", notGit.contentType))
	case errors.As(err, &hostKey):
		return hostKey.diagnose()
	case errors.As(err, &hosts):
		return stalled(ReasonInvalidKnownHosts, "known_hosts cannot be read: "+hosts.text)
	case errors.As(err, &redirect):
		return stalled(ReasonRepositoryNotFound, redirect.why+"; use the address where the repository is")
	case errors.Is(err, errObjectFormat):
		return stalled(ReasonNotSupported, err.Error())
	case errors.Is(err, errBundle):
		return stalled(ReasonTLSFailed, err.Error())
	case errors.Is(err, errNoKey), errors.Is(err, errAppScheme):
		return stalled(ReasonAuthenticationFailed, err.Error())
	}
	return r.diagnoseConnection(err)
}

func (r *Remote) diagnoseConnection(err error) diagnosed {
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var notTLS tls.RecordHeaderError
	var network net.Error
	var protocol *protocolErr
	switch {
	case errors.As(err, &authority):
		return stalled(ReasonTLSFailed, "the server's certificate is signed by an authority that is not trusted; put the authority into caBundle")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		// The library's own text holds the time of day.
		return stalled(ReasonTLSFailed, fmt.Sprintf("the server's certificate is valid from %s to %s, which is not now; renew it there",
			invalid.Cert.NotBefore.Format(time.DateOnly), invalid.Cert.NotAfter.Format(time.DateOnly)))
	case errors.As(err, &hostname), errors.As(err, &certificate):
		return stalled(ReasonTLSFailed, "the server's certificate is not accepted: "+r.clean(err.Error()))
	case errors.As(err, &notTLS), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return stalled(ReasonTLSFailed, "the server does not speak TLS on this port")
	case strings.Contains(err.Error(), "unable to authenticate"):
		return stalled(ReasonAuthenticationFailed, "the server does not accept the SSH key; add its public half there, or use another key")
	case strings.Contains(err.Error(), "no common algorithm for host key"):
		return stalled(ReasonHostKeyChanged, "the server has no host key of a type that known_hosts has for it; add the server's current key, after checking it, to known_hosts")
	case errors.As(err, &protocol):
		d := transient(ReasonProtocolFailed, "the server does not follow git's protocol: "+r.clean(protocol.text))
		d.scope = ScopeRepository
		return d
	case errors.Is(err, errTooLarge):
		return stalled(ReasonProtocolFailed, err.Error())
	case errors.As(err, &network) && network.Timeout():
		return transient(ReasonTimeout, "the server does not answer: "+r.clean(cause(err)))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return transient(ReasonUnreachable, "the server ended the connection")
	}
	return transient(ReasonUnreachable, "the server cannot be reached: "+r.clean(cause(err)))
}

// cause returns what a network error says without the addresses in it: a local port, or one of a
// host's many addresses, is another one each time, and the text ends up in a status.
func cause(err error) string {
	var lookup *net.DNSError
	if errors.As(err, &lookup) {
		return "lookup " + lookup.Name + ": " + lookup.Err
	}
	var operation *net.OpError
	if !errors.As(err, &operation) || operation.Err == nil {
		return err.Error()
	}
	return operation.Op + ": " + cause(operation.Err)
}

// statusError is an HTTP answer other than 200.
type statusError struct {
	code   int
	header http.Header
	body   string
}

func newStatusError(response *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	text := ""
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain") {
		text = string(body)
	}
	return &statusError{code: response.StatusCode, header: response.Header, body: text}
}

func (e *statusError) Error() string { return "HTTP status " + strconv.Itoa(e.code) }

func (r *Remote) diagnoseStatus(e *statusError) diagnosed {
	what := e.Error()
	if said := r.clean(e.body); said != "" {
		what += ": " + said
	}
	retryAfter := r.retryAfter(e.header)
	isLimit := e.code == http.StatusTooManyRequests ||
		e.code == http.StatusForbidden && (retryAfter > 0 || e.header.Get("X-RateLimit-Remaining") == "0")
	switch {
	case isLimit:
		d := transient(ReasonRateLimited, "the server limits the rate of requests ("+what+")")
		d.retryAfter = retryAfter
		return d
	case e.code == http.StatusUnauthorized:
		return stalled(ReasonAuthenticationFailed, r.unauthorized()+" ("+what+")")
	case e.code == http.StatusForbidden:
		return stalled(ReasonAuthenticationFailed, "the credential may not read this repository ("+what+")")
	case e.code == http.StatusNotFound, e.code == http.StatusGone:
		return stalled(ReasonRepositoryNotFound, "there is no such repository, or the credential may not see it ("+what+")")
	case e.code == http.StatusProxyAuthRequired:
		return stalled(ReasonAuthenticationFailed, "the proxy asks for a credential ("+what+")")
	case e.code >= 500 || e.code == http.StatusRequestTimeout:
		d := transient(ReasonServerFailed, "the server failed ("+what+")")
		d.retryAfter = retryAfter
		if e.code == http.StatusInternalServerError {
			// One broken repository is no reason to leave its neighbours alone.
			d.scope = ScopeRepository
		}
		return d
	}
	return stalled(ReasonRepositoryNotFound, "no git repository answers there ("+what+"); check the address")
}

func (r *Remote) unauthorized() string {
	auth := httpAuth(r.options)
	switch {
	case auth.Username != "" || auth.Password != "":
		return "the server does not accept the user name and password or token"
	case len(auth.SSHKey) > 0:
		return "the server asks for a user name and password or token, and the Secret holds an SSH key"
	}
	return "the server asks for a credential; name a Secret of type kubernetes.io/basic-auth in clientSecretName"
}

// maxRetryAfter keeps a confused server from stopping a repository for days.
const maxRetryAfter = time.Hour

// retryAfter reads the header in both forms of RFC 9110, seconds and a date.
func (r *Remote) retryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil && seconds > 0 {
		return min(time.Duration(min(seconds, 86400))*time.Second, maxRetryAfter)
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, min(date.Sub(r.options.Now()), maxRetryAfter))
	}
	return 0
}

// serverErr is what a git server said was wrong.
type serverErr struct{ text string }

func serverError(message []byte) error { return &serverErr{strings.TrimSpace(string(message))} }

func (e *serverErr) Error() string { return e.text }

// Is makes a refused commit recognizable, in the words of git, JGit and Gitea.
func (e *serverErr) Is(target error) bool {
	if target != ErrNotServed {
		return false
	}
	isWant := strings.Contains(e.text, "want ") && strings.Contains(e.text, "not valid")
	return isWant || strings.Contains(e.text, "not our ref") || strings.Contains(e.text, "unadvertised object")
}

// notFoundWords are how hosting products say, beside the protocol, that there is no such repository.
var notFoundWords = []string{
	"not appear to be a git repository", "repository not found", "does not exist", "no such repository",
	"could not be found", "access denied", "not have access", "permission denied", "not a git repository",
}

func (r *Remote) diagnoseServer(e *serverErr) diagnosed {
	lower := strings.ToLower(e.text)
	for _, words := range notFoundWords {
		if strings.Contains(lower, words) {
			return stalled(ReasonRepositoryNotFound, "there is no such repository, or the credential may not see it: "+r.clean(e.text))
		}
	}
	d := transient(ReasonServerFailed, "the server says: "+r.clean(e.text))
	// It answered for this repository; its neighbours may be well.
	d.scope = ScopeRepository
	return d
}

type protocolErr struct{ text string }

func protocolError(format string, args ...any) error {
	return &protocolErr{fmt.Sprintf(format, args...)}
}

func (e *protocolErr) Error() string { return e.text }

type notGitError struct{ contentType string }

func (e *notGitError) Error() string { return "not a git server: " + e.contentType }

type redirectError struct{ why string }

func (e *redirectError) Error() string { return e.why }

type knownHostsError struct{ text string }

func (e *knownHostsError) Error() string { return e.text }

// sinkError marks an error of where the pack is written, which is not the server's doing.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return e.err.Error() }
func (e *sinkError) Unwrap() error { return e.err }

// hostKeyError is a host key that known_hosts does not vouch for.
type hostKeyError struct {
	fingerprint, line, known string
	revoked                  bool
}

func (e *hostKeyError) Error() string { return "host key is not known: " + e.fingerprint }

func (e *hostKeyError) diagnose() diagnosed {
	switch {
	case e.revoked:
		return stalled(ReasonHostKeyChanged, "the server offered the host key "+e.fingerprint+", which known_hosts marks as revoked")
	case e.known != "":
		return stalled(ReasonHostKeyChanged, fmt.Sprintf(
			"the server offered the host key %s, but known_hosts has %s: somebody may be impersonating it; if its key was changed on purpose, replace the line in known_hosts by: %s",
			e.fingerprint, e.known, e.line))
	}
	return stalled(ReasonHostKeyUnknown, fmt.Sprintf(
		"the host key %s is not in known_hosts; if that is the server's own fingerprint, add this line to known_hosts of the Secret: %s",
		e.fingerprint, e.line))
}

// clean makes foreign text fit for a condition: one line, short, printable, without the credential.
func (r *Remote) clean(text string) string {
	auth := httpAuth(r.options)
	secrets := []string{auth.Password}
	if auth.Password == "" {
		// A user name alone is a token.
		secrets = append(secrets, auth.Username)
	}
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	text = strings.Join(strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }), " ")
	if runes := []rune(text); len(runes) > 240 {
		text = string(runes[:240]) + "…"
	}
	return text
}
