package gitserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Options configure a server; only Dir is needed.
type Options struct {
	// Dir is an existing folder for repositories and scratch files; it is not removed by Close.
	Dir string
	// Address is where plain HTTP listens; empty means a free port of 127.0.0.1.
	Address string
}

// Server is a running git server. Its methods may be called from several goroutines.
type Server struct {
	dir        string
	git        string
	backend    string
	uploadPack string

	http, https, ssh net.Listener
	servers          []*http.Server
	authority        *authority
	hostSigner       ssh.Signer
	clientKey        []byte
	clientSigner     ssh.Signer

	stop    chan struct{}
	running sync.WaitGroup

	mu     sync.Mutex
	counts Counts
	fault  Fault
	access map[string]access
	conns  map[net.Conn]struct{}
}

// access is what a repository demands of HTTP clients.
type access struct{ username, password string }

// Counts says how often clients asked for what.
type Counts struct {
	// InfoRefs counts reference listings over HTTP, whatever the answer was.
	InfoRefs int
	// UploadPack counts requests for objects over HTTP.
	UploadPack int
	// SSH counts git-upload-pack commands over SSH: each lists, and may then fetch.
	SSH int
	// Refused counts HTTP requests turned away for want of credentials.
	Refused int
}

// Fault makes the server misbehave until it is set to the zero Fault.
type Fault struct {
	// Status, when set, answers every HTTP request with this status.
	Status int
	// RetryAfter, when set, is sent as the Retry-After header beside Status.
	RetryAfter string
	// Hang accepts connections and requests, over HTTP and SSH, and never answers.
	Hang bool
	// Body is the text beside Status.
	Body string
}

// Start starts a server with HTTP, HTTPS and SSH, each on a port of its own.
func Start(options Options) (*Server, error) {
	s := &Server{dir: options.Dir, stop: make(chan struct{}), access: map[string]access{}, conns: map[net.Conn]struct{}{}}
	if err := s.findGit(); err != nil {
		return nil, err
	}
	for _, folder := range []string{s.root(), s.home()} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, fmt.Errorf("make folder of git server: %w", err)
		}
	}
	if err := s.makeKeys(); err != nil {
		return nil, err
	}
	if err := s.listen(options.Address); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) findGit() error {
	git, err := exec.LookPath("git")
	if err != nil {
		return fmt.Errorf("find git: %w", err)
	}
	s.git = git
	out, err := exec.Command(git, "--exec-path").Output()
	if err != nil {
		return fmt.Errorf("ask git for its programs: %w", err)
	}
	programs := strings.TrimSpace(string(out))
	s.backend = filepath.Join(programs, "git-http-backend")
	s.uploadPack = filepath.Join(programs, "git-upload-pack")
	return nil
}

func (s *Server) listen(address string) error {
	if address == "" {
		address = "127.0.0.1:0"
	}
	for _, l := range []struct {
		listener *net.Listener
		address  string
	}{{&s.http, address}, {&s.https, "127.0.0.1:0"}, {&s.ssh, "127.0.0.1:0"}} {
		listener, err := net.Listen("tcp", l.address)
		if err != nil {
			return fmt.Errorf("listen for git clients: %w", err)
		}
		*l.listener = listener
	}
	plain := s.newHTTPServer()
	secure := s.newHTTPServer()
	secure.TLSConfig = s.authority.serverConfig()
	s.servers = []*http.Server{plain, secure}
	s.running.Go(func() { _ = plain.Serve(s.http) })
	s.running.Go(func() { _ = secure.ServeTLS(s.https, "", "") })
	s.running.Go(s.serveSSH)
	return nil
}

// Close stops listening, ends every request and connection, and returns when nothing of the server
// runs any more.
func (s *Server) Close() error {
	s.mu.Lock()
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	s.mu.Unlock()
	var errs []error
	for _, server := range s.servers {
		errs = append(errs, server.Close())
	}
	for _, listener := range []net.Listener{s.http, s.https, s.ssh} {
		if listener != nil {
			if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
	return errors.Join(errs...)
}

// SetFault makes the server misbehave; the zero Fault mends it.
func (s *Server) SetFault(fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// Counts returns what clients asked for since the start or the last ResetCounts.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// ResetCounts sets all counts to zero.
func (s *Server) ResetCounts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts = Counts{}
}

// HTTPURL returns the base of all repositories over plain HTTP, without a slash at its end.
func (s *Server) HTTPURL() string { return "http://" + s.http.Addr().String() }

// HTTPSURL returns the base of all repositories over HTTPS; CABundle verifies it.
func (s *Server) HTTPSURL() string { return "https://" + s.https.Addr().String() }

// SSHURL returns the base of all repositories over SSH, for user git.
func (s *Server) SSHURL() string { return "ssh://git@" + s.ssh.Addr().String() }

// CABundle returns the certificate, in PEM, of the authority that signed the HTTPS certificate.
func (s *Server) CABundle() []byte { return s.authority.bundle }

// ClientKey returns the private key, in OpenSSH's PEM form, that the SSH server accepts.
func (s *Server) ClientKey() []byte { return s.clientKey }

// KnownHosts returns the known_hosts line of the SSH server.
func (s *Server) KnownHosts() string { return s.knownHosts(s.hostSigner.PublicKey()) }

func (s *Server) root() string { return filepath.Join(s.dir, "repositories") }
func (s *Server) home() string { return filepath.Join(s.dir, "home") }

// environment keeps git away from the configuration of the machine and of whoever runs the server.
func (s *Server) environment() []string {
	return []string{
		"HOME=" + s.home(),
		"PATH=" + filepath.Dir(s.git) + ":/usr/bin:/bin",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0",
		"LC_ALL=C",
	}
}

func (s *Server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = s.environment()
	cmd.Dir = s.home()
	return cmd
}
