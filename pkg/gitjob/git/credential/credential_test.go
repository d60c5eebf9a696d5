package credential

import (
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func newKey(t *testing.T, passphrase string) []byte {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block)
}

func TestFromSecret(t *testing.T) {
	key, locked := string(newKey(t, "")), string(newKey(t, "pass"))
	for name, test := range map[string]struct {
		secretType string
		data       map[string]string
		want       Auth
		wantError  string
	}{
		"basic":          {TypeBasicAuth, map[string]string{"username": "u", "password": "p"}, Auth{Username: "u", Password: "p", KnownHosts: "default"}, ""},
		"token":          {TypeBasicAuth, map[string]string{"password": "tok"}, Auth{Username: "tok", Password: "tok", KnownHosts: "default"}, ""},
		"trailing line":  {TypeBasicAuth, map[string]string{"username": "u", "password": "p\n"}, Auth{Username: "u", Password: "p", KnownHosts: "default"}, ""},
		"basic empty":    {TypeBasicAuth, nil, Auth{}, "neither username nor password"},
		"inner line":     {TypeBasicAuth, map[string]string{"username": "u", "password": "hunter2\nx"}, Auth{}, "line break"},
		"ssh":            {TypeSSHAuth, map[string]string{"ssh-privatekey": key}, Auth{SSHKey: []byte(key), KnownHosts: "default"}, ""},
		"ssh own hosts":  {TypeSSHAuth, map[string]string{"ssh-privatekey": key, "known_hosts": "own"}, Auth{SSHKey: []byte(key), KnownHosts: "own"}, ""},
		"ssh no key":     {TypeSSHAuth, map[string]string{"password": "p"}, Auth{}, "no ssh-privatekey"},
		"ssh passphrase": {TypeSSHAuth, map[string]string{"ssh-privatekey": locked}, Auth{}, "passphrase"},
		"ssh garbage":    {TypeSSHAuth, map[string]string{"ssh-privatekey": "hunter2"}, Auth{}, "not a private key"},
		"app no number":  {"Opaque", map[string]string{"github_app_id": "hunter2", "github_app_installation_id": "1"}, Auth{}, "github_app_id of the Secret is not a number"},
		"app no install": {"Opaque", map[string]string{"github_app_id": "1"}, Auth{}, "github_app_installation_id of the Secret is not a number"},
		"app no key":     {"Opaque", map[string]string{"github_app_id": "1", "github_app_installation_id": "2", "github_app_private_key": "hunter2"}, Auth{}, "not an RSA private key"},
		"app other key":  {"Opaque", map[string]string{"github_app_id": "1", "github_app_installation_id": "2", "github_app_private_key": key}, Auth{}, "not an RSA private key"},
		"app plain http": {"Opaque", map[string]string{"github_app_id": "1", "github_app_installation_id": "2", "github_app_api_url": "http://hunter2"}, Auth{}, "https://"},
		"other":          {"Opaque", map[string]string{"x": "hunter2"}, Auth{}, `type "Opaque"`},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, v := range test.data {
				data[k] = []byte(v)
			}
			got, err := FromSecret(test.secretType, data, HostKeys{KnownHosts: "default"})
			if test.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantError) || fault.ClassOf(err) != fault.Stalled {
					t.Fatalf("error %v, want a stalled one with %q", err, test.wantError)
				}
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("error shows a value: %v", err)
				}
				return
			}
			if err != nil || got.Identity() != test.want.Identity() {
				t.Errorf("got %v %v, want %v", got, err, test.want)
			}
		})
	}
}

func TestAuthPrintsNoSecret(t *testing.T) {
	auth := Auth{Username: "hunter2", Password: "hunter2", SSHKey: nil}
	if printed := fmt.Sprintf("%v %+v %#v %s", auth, auth, auth, auth); strings.Contains(printed, "hunter2") {
		t.Errorf("printed as %s", printed)
	}
}

func TestIdentityKeepsFieldsApart(t *testing.T) {
	a, b := Auth{Username: "ab", Password: "c"}, Auth{Username: "a", Password: "bc"}
	if a.Identity() == b.Identity() {
		t.Error("two credentials have one identity")
	}
}
