package wire

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/credential"
)

// hostKeys decides which SSH servers are the ones meant.
type hostKeys struct {
	verify ssh.HostKeyCallback
	any    bool
}

func newHostKeys(auth credential.Auth, scratch string) (*hostKeys, error) {
	if auth.InsecureSkipHostKeyChecks {
		return &hostKeys{any: true}, nil
	}
	verify, err := parseKnownHosts(auth.KnownHosts, scratch)
	if err != nil {
		return nil, err
	}
	return &hostKeys{verify: verify}, nil
}

// parseKnownHosts goes through a file because the library reads nothing else.
func parseKnownHosts(text, scratch string) (ssh.HostKeyCallback, error) {
	file, err := os.CreateTemp(scratch, "known_hosts-")
	if err != nil {
		return nil, fmt.Errorf("store known_hosts: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("store known_hosts: %w", err)
	}
	verify, err := knownhosts.New(file.Name())
	if err != nil {
		return nil, &knownHostsError{strings.ReplaceAll(err.Error(), file.Name(), "known_hosts")}
	}
	return verify, nil
}

// hostCheck verifies the host of one connection, and keeps why it was refused: the SSH library
// returns that only as text.
type hostCheck struct {
	hosts      *hostKeys
	algorithms []string
	err        error
}

func (h *hostKeys) check(hostPort string) *hostCheck {
	check := &hostCheck{hosts: h}
	for _, known := range h.known(hostPort) {
		check.algorithms = append(check.algorithms, algorithmsOf(known.Key.Type())...)
	}
	return check
}

// known returns the keys that known_hosts has for a host, by asking about a key that it cannot have.
func (h *hostKeys) known(hostPort string) []knownhosts.KnownKey {
	if h.any {
		return nil
	}
	probe, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return nil
	}
	var mismatch *knownhosts.KeyError
	if errors.As(h.verify(hostPort, noAddress, probe), &mismatch) {
		return mismatch.Want
	}
	return nil
}

// noAddress keeps known_hosts to names: an entry for an IP address must not vouch for whatever name
// resolves to it, and the library insists on an address.
var noAddress = &net.TCPAddr{IP: net.IPv4zero}

// algorithmsOf makes a server offer the key that known_hosts has, and not another it may prefer. The
// old form of RSA signatures comes last, for servers that know nothing else; their key is still the
// known one.
func algorithmsOf(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}
	return []string{keyType}
}

func (c *hostCheck) callback(hostPort string, _ net.Addr, offered ssh.PublicKey) error {
	if c.hosts.any {
		return nil
	}
	err := c.hosts.verify(hostPort, noAddress, offered)
	if err == nil {
		return nil
	}
	refused := &hostKeyError{
		fingerprint: offered.Type() + " " + ssh.FingerprintSHA256(offered),
		line:        knownhosts.Line([]string{knownhosts.Normalize(hostPort)}, offered),
	}
	var mismatch *knownhosts.KeyError
	var revoked *knownhosts.RevokedError
	switch {
	case errors.As(err, &mismatch) && len(mismatch.Want) > 0:
		known := make([]string, 0, len(mismatch.Want))
		for _, key := range mismatch.Want {
			known = append(known, key.Key.Type()+" "+ssh.FingerprintSHA256(key.Key))
		}
		refused.known = strings.Join(known, ", ")
	case errors.As(err, &revoked):
		refused.revoked = true
	}
	c.err = refused
	return refused
}
