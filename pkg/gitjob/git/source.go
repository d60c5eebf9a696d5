package git

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/address"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/credential"
)

// DefaultBranch is the branch of a source that names neither branch nor revision, as in Fleet.
const DefaultBranch = "master"

// Auth is what a server is shown; credential.FromSecret makes it from a Secret.
type Auth = credential.Auth

// Source says where a repository is, what of it is wanted, and how to get in.
type Source struct {
	// URL is the repository's address in one of the forms of package address.
	URL string
	// Branch is followed; empty means DefaultBranch.
	Branch string
	// Revision is a tag, a branch or a full commit id; it wins over Branch.
	Revision string

	Auth Auth
	// CABundle holds certificates, in PEM, trusted beside the system's.
	CABundle []byte
	// InsecureSkipTLSVerify accepts any HTTPS certificate.
	InsecureSkipTLSVerify bool
}

// key is equal for sources that see the same repository in the same way: branch and revision do not
// matter. It is made from the credential and must not leave the process.
func (s Source) key() string {
	digest := sha256.New()
	for _, part := range []string{s.URL, s.Auth.Identity(), string(s.CABundle), strconv.FormatBool(s.InsecureSkipTLSVerify)} {
		digest.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return string(digest.Sum(nil))
}

// isCommitID says whether a revision is a commit id, of SHA-1 or SHA-256, and not a name.
func isCommitID(revision string) bool {
	if len(revision) != 40 && len(revision) != 64 {
		return false
	}
	_, err := hex.DecodeString(strings.ToLower(revision))
	return err == nil
}

// submodule returns the source of a submodule of this one. The credential goes with it only to the
// same host over the same protocol, and so does trust in certificates; host keys are trusted for any
// host they name.
func (s Source) submodule(reference string) (Source, error) {
	parent, err := address.Parse(s.URL)
	if err != nil {
		return Source{}, err
	}
	child, err := parent.Join(reference)
	if err != nil {
		return Source{}, err
	}
	sub := s
	sub.Branch, sub.Revision = "", ""
	sub.URL = reference
	if strings.HasPrefix(reference, ".") {
		sub.URL = child.String()
	}
	if child.HostPort() != parent.HostPort() || child.Scheme != parent.Scheme {
		sub.Auth = credential.Anonymous(credential.HostKeys{KnownHosts: s.Auth.KnownHosts, InsecureSkip: s.Auth.InsecureSkipHostKeyChecks})
		sub.InsecureSkipTLSVerify = false
	} else if sub.Auth.Username == "" && sub.Auth.Password == "" && parent.Scheme != "ssh" {
		sub.Auth.Username, sub.Auth.Password = parent.Username, parent.Password
	}
	return sub, nil
}
