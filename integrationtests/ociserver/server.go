// Package ociserver serves a real OCI registry on this machine, with basic authentication, to tests. It keeps
// everything in memory and can be away for a while.
//
// Start reading at Start.
package ociserver

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/registry"
	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// User is somebody who may use the registry.
type User struct {
	Name, Password string
	// ReadOnly refuses everything that changes something.
	ReadOnly bool
}

// Server is a running registry.
type Server struct {
	server *httptest.Server
	users  []User
	away   atomic.Bool
}

// Start serves a registry with TLS on a free port of 127.0.0.1.
func Start(users ...User) *Server {
	s := &Server{users: users}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.away.Load():
			http.Error(w, "away", http.StatusServiceUnavailable)
		case !s.allows(r):
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
		default:
			inner.ServeHTTP(w, r)
		}
	}))
	s.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.server.StartTLS()
	return s
}

func (s *Server) allows(r *http.Request) bool {
	name, password, _ := r.BasicAuth()
	for _, user := range s.users {
		if user.Name == name && user.Password == password {
			return !user.ReadOnly || r.Method == http.MethodGet || r.Method == http.MethodHead
		}
	}
	return false
}

// Close stops serving.
func (s *Server) Close() { s.server.Close() }

// SetAway lets every request fail, or work again.
func (s *Server) SetAway(away bool) { s.away.Store(away) }

// Reference is the host with a path, as the Secret of a registry has it.
func (s *Server) Reference() string { return strings.TrimPrefix(s.server.URL, "https://") + "/fleet" }

// Secret returns access for a writer and, when it is not nil, a reader for agents.
func (s *Server) Secret(namespace, name string, writer User, reader *User) *corev1.Secret {
	secret := &corev1.Secret{
		Type: fleet.OCIStorageSecretType,
		StringData: map[string]string{
			"reference": s.Reference(), "username": writer.Name, "password": writer.Password,
			"cacerts": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})),
		},
	}
	if reader != nil {
		secret.StringData["agentUsername"], secret.StringData["agentPassword"] = reader.Name, reader.Password
	}
	secret.Namespace, secret.Name = namespace, name
	return secret
}
