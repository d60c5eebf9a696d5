package wire

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/net/proxy"

	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/address"
)

type sshTransport struct {
	address address.Address
	signer  ssh.Signer
	hosts   *hostKeys
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
}

func newSSH(options Options) (*sshTransport, error) {
	if options.Auth.App != nil {
		return nil, errAppScheme
	}
	if len(options.Auth.SSHKey) == 0 {
		return nil, errNoKey
	}
	signer, err := options.Auth.Signer()
	if err != nil {
		return nil, err
	}
	hosts, err := newHostKeys(options.Auth, options.ScratchDir)
	if err != nil {
		return nil, err
	}
	t := &sshTransport{address: options.Address, signer: signer, hosts: hosts, dial: options.Dial}
	if t.dial == nil {
		t.dial = proxy.Dial
	}
	return t, nil
}

func (t *sshTransport) list(ctx context.Context, dog *watchdog) (*Listing, error) {
	s, err := t.open(ctx, dog)
	if err != nil {
		return nil, err
	}
	defer s.close()
	listing, err := readAdvertisement(s.lines)
	if err != nil {
		return nil, s.explain(err)
	}
	// A flush instead of wants says that nothing more is needed; the answer stands without it.
	_, _ = s.stdin.Write(appendFlush(nil))
	return listing, nil
}

func (t *sshTransport) fetch(ctx context.Context, dog *watchdog, _ *Listing, request Request, pack io.Writer) (Shallow, error) {
	s, err := t.open(ctx, dog)
	if err != nil {
		return false, err
	}
	defer s.close()
	advertised, err := readAdvertisement(s.lines)
	if err != nil {
		return false, s.explain(err)
	}
	body, shallow, err := advertised.encode(request)
	if err != nil {
		return false, err
	}
	if _, err := s.stdin.Write(body); err != nil {
		return false, s.explain(err)
	}
	s.lines.left = math.MaxInt64
	if err := readPack(s.lines, pack); err != nil {
		return false, s.explain(err)
	}
	return shallow, nil
}

func (t *sshTransport) close() {}

// session is one git-upload-pack on the server.
type session struct {
	conn    net.Conn
	client  *ssh.Client
	stdin   io.WriteCloser
	lines   *lineReader
	stderr  *diagnosis
	release func() bool
	ended   func() error
}

func (t *sshTransport) open(ctx context.Context, dog *watchdog) (*session, error) {
	conn, err := t.dial(ctx, "tcp", t.address.HostPort())
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, stderr: &diagnosis{}}
	// The handshake and all reads know no context; closing the connection ends them.
	s.release = context.AfterFunc(ctx, func() { _ = conn.Close() })
	if err := t.start(s, dog); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (t *sshTransport) start(s *session, dog *watchdog) error {
	check := t.hosts.check(t.address.HostPort())
	config := &ssh.ClientConfig{
		User:              t.address.Username,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(t.signer)},
		HostKeyCallback:   check.callback,
		HostKeyAlgorithms: check.algorithms,
	}
	conn, channels, requests, err := ssh.NewClientConn(s.conn, t.address.HostPort(), config)
	if err != nil {
		if check.err != nil {
			return check.err
		}
		return err
	}
	s.client = ssh.NewClient(conn, channels, requests)
	remote, err := s.client.NewSession()
	if err != nil {
		return err
	}
	if s.stdin, err = remote.StdinPipe(); err != nil {
		return err
	}
	stdout, err := remote.StdoutPipe()
	if err != nil {
		return err
	}
	remote.Stderr = s.stderr
	s.lines = newLineReader(dog.reader(stdout), maxAdvertisement)
	s.ended = remote.Wait
	return remote.Start(service + " " + quote(t.address.Path))
}

// quote makes one word for the shell that servers give the command to.
func quote(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

// explain prefers what the server said on its error stream over the bare end of the other one.
func (s *session) explain(err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	_ = s.ended()
	if said := s.stderr.text(); said != "" {
		return serverError([]byte(said))
	}
	return err
}

func (s *session) close() {
	s.release()
	if s.client != nil {
		_ = s.client.Close()
	}
	_ = s.conn.Close()
}

// diagnosis keeps the beginning of what a server says on its error stream.
type diagnosis struct {
	mu   sync.Mutex
	said []byte
}

func (d *diagnosis) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if room := maxErrorBody - len(d.said); room > 0 {
		d.said = append(d.said, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (d *diagnosis) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.TrimSpace(string(d.said))
}
