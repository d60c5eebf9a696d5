package shard

import (
	"context"
	"fmt"
	"net/http"
)

type tenureKey struct{}

func withTenure(ctx context.Context, held *tenure) context.Context {
	return context.WithValue(ctx, tenureKey{}, held)
}

// Claim returns what a context's work is done under, for comparison: work under one claim may be done together.
func Claim(ctx context.Context) any { return ctx.Value(tenureKey{}) }

// Fence refuses requests for changes that are made under a tenure that is over. Requests made under none, such
// as renewals of leases, pass. It is for rest.Config.Wrap.
func Fence(next http.RoundTripper) http.RoundTripper { return fence{next} }

type fence struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(request *http.Request) (*http.Response, error) {
	held, under := request.Context().Value(tenureKey{}).(*tenure)
	if under && request.Method != http.MethodGet && !held.valid() {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, errLost)
	}
	return f.next.RoundTrip(request)
}

// WrappedRoundTripper is asked for by client-go, to find what it can cancel.
func (f fence) WrappedRoundTripper() http.RoundTripper { return f.next }
