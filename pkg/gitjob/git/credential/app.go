package credential

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Keys of a Secret that holds a GitHub App, as Fleet defines them; the last one is ours, for a GitHub Enterprise
// Server, whose API is not at api.<host>.
const (
	keyAppID           = "github_app_id"
	keyAppInstallation = "github_app_installation_id"
	keyAppPrivateKey   = "github_app_private_key"
	keyAppAPI          = "github_app_api_url"
)

// App is an installation of a GitHub App. Servers are shown tokens that GitHub gives out for it, each for an hour.
type App struct {
	ID, Installation int64
	Key              *rsa.PrivateKey
	// API is the base of GitHub's API; empty means https://api.<host of the repository>.
	API string

	// pem tells keys apart.
	pem string
}

// identity is the part of Auth.Identity that an App has.
func (a *App) identity() string {
	if a == nil {
		return ""
	}
	return strings.Join([]string{strconv.FormatInt(a.ID, 10), strconv.FormatInt(a.Installation, 10), a.API, a.pem}, "\n")
}

// isApp says that a Secret holds any part of a GitHub App.
func isApp(data map[string][]byte) bool {
	for _, key := range []string{keyAppID, keyAppInstallation, keyAppPrivateKey} {
		if _, found := data[key]; found {
			return true
		}
	}
	return false
}

func appAuth(auth Auth, data map[string][]byte) (Auth, error) {
	app := &App{pem: string(data[keyAppPrivateKey]), API: strings.TrimRight(strings.TrimSpace(string(data[keyAppAPI])), "/")}
	for _, number := range []struct {
		key  string
		into *int64
	}{{keyAppID, &app.ID}, {keyAppInstallation, &app.Installation}} {
		parsed, err := strconv.ParseInt(strings.TrimSpace(string(data[number.key])), 10, 64)
		if err != nil || parsed <= 0 {
			return Auth{}, fault.New(fault.Stalled, ReasonInvalidCredential, "%s of the Secret is not a number", number.key)
		}
		*number.into = parsed
	}
	if app.API != "" {
		if at, err := url.Parse(app.API); err != nil || at.Scheme != "https" || at.Host == "" || at.User != nil {
			return Auth{}, fault.New(fault.Stalled, ReasonInvalidCredential, "%s of the Secret is not an https:// URL", keyAppAPI)
		}
	}
	app.Key = rsaKey(data[keyAppPrivateKey])
	if app.Key == nil {
		return Auth{}, fault.New(fault.Stalled, ReasonInvalidCredential, "%s of the Secret is not an RSA private key in PEM form", keyAppPrivateKey)
	}
	auth.App = app
	return auth, nil
}

// rsaKey reads the form in which GitHub gives keys out, and that into which tools convert them.
func rsaKey(data []byte) *rsa.PrivateKey {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil
	}
	key, _ := parsed.(*rsa.PrivateKey)
	return key
}
