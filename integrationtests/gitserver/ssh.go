package gitserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

func (s *Server) knownHosts(key ssh.PublicKey) string {
	return knownhosts.Line([]string{knownhosts.Normalize(s.ssh.Addr().String())}, key) + "\n"
}

func (s *Server) serveSSH() {
	for {
		conn, err := s.ssh.Accept()
		if err != nil {
			return
		}
		if !s.hold(conn) {
			_ = conn.Close()
			return
		}
		s.running.Go(func() {
			defer s.release(conn)
			s.serveConn(conn)
		})
	}
}

// hold remembers a connection so that Close can end it; it returns false once the server stopped.
func (s *Server) hold(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.stop:
		return false
	default:
		s.conns[conn] = struct{}{}
		return true
	}
}

func (s *Server) release(conn net.Conn) {
	s.mu.Lock()
	delete(s.conns, conn)
	s.mu.Unlock()
	_ = conn.Close()
}

func (s *Server) serveConn(conn net.Conn) {
	s.mu.Lock()
	fault, hostKey := s.fault, s.hostSigner
	s.mu.Unlock()
	if fault.Hang {
		// Reading what the client sends keeps the connection until either side ends it.
		buffer := make([]byte, 512)
		for {
			if _, err := conn.Read(buffer); err != nil {
				return
			}
		}
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if bytes.Equal(key.Marshal(), s.clientSigner.PublicKey().Marshal()) {
			return nil, nil
		}
		return nil, errors.New("unknown key")
	}}
	config.AddHostKey(hostKey)
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		if offered.ChannelType() != "session" {
			_ = offered.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		s.running.Go(func() { s.serveSession(channel, requests) })
	}
}

func (s *Server) serveSession(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer func() { _ = channel.Close() }()
	for request := range requests {
		if request.Type != "exec" {
			_ = request.Reply(request.Type == "env", nil)
			continue
		}
		var payload struct{ Command string }
		if err := ssh.Unmarshal(request.Payload, &payload); err != nil {
			_ = request.Reply(false, nil)
			return
		}
		_ = request.Reply(true, nil)
		status := s.runUploadPack(channel, payload.Command)
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
		return
	}
}

// runUploadPack serves `git-upload-pack '<path>'`, the one command this server knows.
func (s *Server) runUploadPack(channel ssh.Channel, command string) uint32 {
	quoted, isUploadPack := strings.CutPrefix(command, "git-upload-pack ")
	name := strings.Trim(strings.TrimSpace(quoted), "'/")
	if !isUploadPack || !filepath.IsLocal(name) {
		_, _ = fmt.Fprintf(channel.Stderr(), "fatal: %q is not served here\n", command)
		return 128
	}
	s.mu.Lock()
	s.counts.SSH++
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.running.Go(func() {
		select {
		case <-s.stop:
			cancel()
		case <-ctx.Done():
		}
	})
	cmd := s.command(ctx, s.uploadPack, filepath.Join(s.root(), filepath.FromSlash(name)))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 128
	}
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	s.running.Go(func() {
		defer func() { _ = stdin.Close() }()
		_, _ = io.Copy(stdin, channel)
	})
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			return uint32(exit.ExitCode())
		}
		return 128
	}
	return 0
}
