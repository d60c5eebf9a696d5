package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
)

// Keys of a webhook Secret that are not simply the provider's name.
const (
	keyAzureUsername = "azure-username"
	keyAzurePassword = "azure-password"
)

// ErrUnverified is the error of a notification that does not prove it knows the secret.
var ErrUnverified = errors.New("the webhook's signature or token does not match the secret")

// Verify compares what a notification proves with a webhook Secret's data: a signature of the body
// for GitHub, Gogs and Bitbucket Server, a token for GitLab, the hook's UUID for Bitbucket Cloud, user
// name and password for Azure DevOps. A Secret without the provider's key verifies nothing.
func Verify(header http.Header, body []byte, secret map[string][]byte) error {
	provider := Detect(header)
	key := trim(secret[string(provider)])
	var verified bool
	switch provider {
	case GitHub:
		verified = isSigned(body, key, header.Get("X-Hub-Signature-256"), "sha256=")
	case BitbucketServer:
		verified = isSigned(body, key, header.Get("X-Hub-Signature"), "sha256=")
	case Gogs:
		verified = isSigned(body, key, header.Get("X-Gogs-Signature"), "")
	case GitLab:
		verified = isEqual([]byte(header.Get("X-Gitlab-Token")), key)
	case BitbucketCloud:
		verified = isEqual(bare(header.Get("X-Hook-UUID")), bare(string(key)))
	case Azure:
		username, password, _ := (&http.Request{Header: header}).BasicAuth()
		isUser := isEqual([]byte(username), trim(secret[keyAzureUsername]))
		verified = isEqual([]byte(password), trim(secret[keyAzurePassword])) && isUser
	}
	if !verified {
		return ErrUnverified
	}
	return nil
}

// trim drops the line break that editors leave at the end of a Secret's value.
func trim(value []byte) []byte { return bytes.TrimRight(value, "\r\n") }

// bare drops the braces that Bitbucket shows around a UUID, and does not always send.
func bare(uuid string) []byte {
	return []byte(strings.ToLower(strings.Trim(uuid, "{}")))
}

// isEqual is false for an empty secret: it must not verify a missing token.
func isEqual(got, secret []byte) bool {
	return len(secret) > 0 && subtle.ConstantTimeCompare(got, secret) == 1
}

func isSigned(body, key []byte, signature, prefix string) bool {
	digits, found := strings.CutPrefix(signature, prefix)
	claimed, err := hex.DecodeString(digits)
	if !found || err != nil || len(key) == 0 {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return hmac.Equal(claimed, mac.Sum(nil))
}
