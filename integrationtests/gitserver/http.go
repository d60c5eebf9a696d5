package gitserver

import (
	"crypto/subtle"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"strings"
	"time"
)

func (s *Server) newHTTPServer() *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(s.serveHTTP),
		ReadHeaderTimeout: 10 * time.Second,
		// Clients that do not trust the certificate are part of the tests, not news.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request) {
	fault, demand := s.note(r)
	switch {
	case fault.Hang:
		select {
		case <-r.Context().Done():
		case <-s.stop:
		}
		return
	case fault.Status != 0:
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		http.Error(w, fault.Body, fault.Status)
		return
	case !demand.allows(r):
		s.mu.Lock()
		s.counts.Refused++
		s.mu.Unlock()
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "credentials are needed", http.StatusUnauthorized)
		return
	}
	backend := &cgi.Handler{
		Path:   s.backend,
		Dir:    s.home(),
		Env:    append(s.environment(), "GIT_PROJECT_ROOT="+s.root(), "GIT_HTTP_EXPORT_ALL=1"),
		Stderr: io.Discard,
	}
	backend.ServeHTTP(flushing{w, http.NewResponseController(w)}, r)
}

// flushing passes on at once what the backend writes: git says every few seconds that it still packs, in
// five bytes that would otherwise wait for more.
type flushing struct {
	http.ResponseWriter
	controller *http.ResponseController
}

// Write implements io.Writer.
func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = f.controller.Flush()
	}
	return n, err
}

// note counts the request and returns the fault to play and what its repository demands.
func (s *Server) note(r *http.Request) (Fault, access) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/info/refs"):
		s.counts.InfoRefs++
	case strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
		s.counts.UploadPack++
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git")
	return s.fault, s.access[name]
}

func (a access) allows(r *http.Request) bool {
	if a == (access{}) {
		return true
	}
	username, password, _ := r.BasicAuth()
	return subtle.ConstantTimeCompare([]byte(username), []byte(a.username)) == 1 &&
		subtle.ConstantTimeCompare([]byte(password), []byte(a.password)) == 1
}
