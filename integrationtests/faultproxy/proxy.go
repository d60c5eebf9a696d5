package faultproxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/pki"
)

// Proxy is a running fault proxy.
type Proxy struct {
	url       string
	authority *pki.Authority
	server    *http.Server
	upstream  *rest.Config
	transport http.RoundTripper

	mu      sync.Mutex
	rules   []Rule
	counts  []int
	watches map[*stream]bool
}

// Start starts a proxy on loopback in front of the API server of a client config, whose identity it uses for
// requests that bring none of their own.
func Start(upstream *rest.Config) (*Proxy, error) {
	anonymous := rest.AnonymousClientConfig(upstream)
	transport, err := rest.TransportFor(anonymous)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", upstream.Host, err)
	}
	authority, err := pki.NewAuthority("faultproxy")
	if err != nil {
		return nil, err
	}
	certificate, key, err := authority.Server(net.IPv4(127, 0, 0, 1))
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		url: "https://" + listener.Addr().String(), authority: authority, upstream: upstream, transport: transport,
		watches: map[*stream]bool{},
	}
	p.server = &http.Server{
		Handler:   http.HandlerFunc(p.serve),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ErrorLog:  nil,
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	return p, nil
}

// Close ends the proxy and all connections.
func (p *Proxy) Close() error { return p.server.Close() }

// Kubeconfig writes a copy of a kubeconfig that leads through the proxy. Its user must bring a token: a client
// certificate does not pass.
func (p *Proxy) Kubeconfig(from, to string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server, cluster.CertificateAuthorityData = p.url, p.authority.CertPEM()
	}
	return clientcmd.WriteToFile(*config, to)
}

// Through returns a client config with the identity of a token that leads through the proxy.
func (p *Proxy) Through(config *rest.Config) *rest.Config {
	through := rest.AnonymousClientConfig(config)
	through.Host, through.BearerToken = p.url, config.BearerToken
	through.TLSClientConfig = rest.TLSClientConfig{CAData: p.authority.CertPEM()}
	through.QPS = -1
	return through
}

// Set replaces the rules. Watches that run go on as they began; see CutWatches and ExpireWatches.
func (p *Proxy) Set(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.counts = rules, make([]int, len(rules))
}

// Hits returns how many requests each of the present rules matched.
func (p *Proxy) Hits() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]int(nil), p.counts...)
}

func (p *Proxy) faultOf(request Request) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, rule := range p.rules {
		if rule.Match(request) {
			p.counts[i]++
			return rule.Do
		}
	}
	return Fault{}
}

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	request := parse(r)
	fault := p.faultOf(request)
	switch {
	case fault.cut:
		panic(http.ErrAbortHandler)
	case fault.status != nil:
		answer(w, int(fault.status.Code), fault.status)
		return
	}
	response, err := p.forward(r)
	if err != nil {
		if r.Context().Err() == nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
		return
	}
	defer response.Body.Close()
	if fault.loseAnswer {
		_, _ = io.Copy(io.Discard, response.Body)
		panic(http.ErrAbortHandler)
	}
	for key, values := range response.Header {
		w.Header()[key] = values
	}
	switch {
	case request.Verb == "watch" && response.StatusCode == http.StatusOK:
		p.watch(w, r, request, fault, response.Body)
	case fault.empty && response.StatusCode == http.StatusOK:
		w.Header().Del("Content-Length")
		err = emptied(w, response.Body)
	default:
		w.WriteHeader(response.StatusCode)
		_, err = io.Copy(w, response.Body)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

// forward sends a request on and asks for JSON, which is what can be changed here.
func (p *Proxy) forward(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.RequestURI, out.Host = "", ""
	out.URL.Scheme, out.URL.Host = "https", strings.TrimPrefix(p.upstream.Host, "https://")
	out.Header.Del("Accept-Encoding")
	if accept := out.Header.Get("Accept"); strings.Contains(accept, "protobuf") {
		out.Header.Set("Accept", asJSON(accept))
	}
	return p.transport.RoundTrip(out)
}

func asJSON(accept string) string {
	var kept []string
	for _, kind := range strings.Split(accept, ",") {
		if strings.Contains(kind, "protobuf") {
			kind = strings.ReplaceAll(kind, "application/vnd.kubernetes.protobuf", "application/json")
			kind = strings.ReplaceAll(kind, "application/json;stream=watch", "application/json")
		}
		kept = append(kept, strings.TrimSpace(kind))
	}
	return strings.Join(kept, ",")
}

// emptied writes a list without its items.
func emptied(w io.Writer, body io.Reader) error {
	var list map[string]any
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return err
	}
	list["items"] = []any{}
	if meta, ok := list["metadata"].(map[string]any); ok {
		delete(meta, "continue")
		delete(meta, "remainingItemCount")
	}
	return json.NewEncoder(w).Encode(list)
}

func runtimeRaw(raw []byte) runtime.RawExtension { return runtime.RawExtension{Raw: raw} }

// endings of a watch, from outside.
var (
	errCut    = errors.New("cut")
	errExpire = errors.New("expire")
)

// CutWatches ends the running watches of a resource, of all resources if it is empty, and returns how many.
func (p *Proxy) CutWatches(resource string) int { return p.end(resource, errCut) }

// ExpireWatches ends the running watches of a resource with 410 Gone, after which a client lists anew.
func (p *Proxy) ExpireWatches(resource string) int { return p.end(resource, errExpire) }

func (p *Proxy) end(resource string, how error) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	ended := 0
	for running := range p.watches {
		if resource == "" || running.request.Resource == resource {
			running.cancel(how)
			ended++
		}
	}
	return ended
}

// track counts a watch among those that run until its stream ends.
func (p *Proxy) track(ctx context.Context, request Request) (*stream, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stream{request: request, ctx: ctx, cancel: cancel}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[s] = true
	return s, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, s)
		cancel(nil)
	}
}

func line(raw []byte) []byte { return append(bytes.TrimSpace(raw), '\n') }
