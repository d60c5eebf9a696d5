package wire

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/credential"
)

const (
	// appUser is the user name that goes with an installation's token, by GitHub's documentation.
	appUser = "x-access-token"
	// proofLife is how long the App's own token may be used; GitHub allows ten minutes. It begins a moment ago,
	// so that clocks may differ.
	proofLife = 9 * time.Minute
	clockSkew = time.Minute
	// renewBefore is how long before its end a token is not used any more: a fetch may take that long.
	renewBefore = 10 * time.Minute

	maxToken = 64 << 10
)

// appTokens gets tokens for the installation of a GitHub App, and keeps one while it is good.
type appTokens struct {
	app    *credential.App
	client *http.Client
	target string
	now    func() time.Time

	mu    sync.Mutex
	token string
	ends  time.Time
}

// newAppTokens returns nil where there is no App.
func newAppTokens(options Options, transport *http.Transport) (*appTokens, error) {
	app := options.Auth.App
	if app == nil {
		return nil, nil
	}
	if options.Address.Scheme != "https" {
		return nil, errAppScheme
	}
	base := app.API
	if base == "" {
		base = "https://api." + options.Address.Host
	}
	now := options.Now
	if now == nil {
		now = time.Now
	}
	return &appTokens{
		app:    app,
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return &redirectError{"GitHub's API redirects"} }},
		target: base + "/app/installations/" + strconv.FormatInt(app.Installation, 10) + "/access_tokens",
		now:    now,
	}, nil
}

// get returns a token that is good for a while.
func (a *appTokens) get(ctx context.Context, dog *watchdog) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.token != "" && a.now().Add(renewBefore).Before(a.ends) {
		return a.token, nil
	}
	proof, err := a.proof()
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.target, bytes.NewReader(nil))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+proof)
	request.Header.Set("Accept", "application/vnd.github+json")
	request.Header.Set("User-Agent", userAgent)
	response, err := a.client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return "", fmt.Errorf("get a token for the GitHub App: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusCreated {
		return "", noToken(response)
	}
	var answer struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	err = json.NewDecoder(io.LimitReader(dog.reader(response.Body), maxToken)).Decode(&answer)
	if err != nil || answer.Token == "" {
		return "", fmt.Errorf("get a token for the GitHub App: %w", protocolError("its answer holds no token"))
	}
	a.token, a.ends = answer.Token, answer.ExpiresAt
	return a.token, nil
}

// noToken is the error for an answer without a token; what the server says is not repeated.
func noToken(response *http.Response) error {
	if response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests {
		return fault.New(fault.Transient, ReasonUnreachable, "GitHub gives no token for the App at %s: HTTP status %d", response.Request.URL.Host, response.StatusCode)
	}
	return fault.New(fault.Stalled, ReasonAuthenticationFailed,
		"GitHub gives no token for the App at %s: HTTP status %d; check the ids and the key in the Secret, and that the App is still installed",
		response.Request.URL.Host, response.StatusCode)
}

// forget makes the next request ask for a new token, since the server refused this one.
func (a *appTokens) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = ""
}

// proof returns the JSON Web Token (RFC 7519, RS256) by which the App says who it is.
func (a *appTokens) proof() (string, error) {
	now := a.now()
	claims, err := json.Marshal(map[string]any{
		"iat": now.Add(-clockSkew).Unix(), "exp": now.Add(proofLife).Unix(), "iss": strconv.FormatInt(a.app.ID, 10),
	})
	if err != nil {
		return "", err
	}
	part := base64.RawURLEncoding.EncodeToString
	signed := part([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + part(claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.app.Key, crypto.SHA256, digest[:])
	if err != nil {
		return "", fmt.Errorf("sign for the GitHub App: %w", err)
	}
	return signed + "." + part(signature), nil
}
