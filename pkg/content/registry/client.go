package registry

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// The layout of an artifact, as upstream's agents read it.
const (
	artifactType = "application/fleet.manifest"
	layerType    = "application/fleet.file"
	idAnnotation = "id"
	tag          = "latest"
)

// Reasons of errors of a registry.
const (
	ReasonUnreachable    = "RegistryUnreachable"
	ReasonAuthentication = "RegistryAuthenticationFailed"
	ReasonNotFound       = "NotInRegistry"
	ReasonInvalid        = "InvalidArtifact"
)

const (
	maxManifest = 1 << 20
	// patience bounds the connection and the first answer, timeout a whole artifact.
	patience = 30 * time.Second
	timeout  = 5 * time.Minute
)

// Client reads and writes artifacts. The zero value uses no proxy.
type Client struct {
	// Proxy returns the proxy for a request; nil means none.
	Proxy func(*http.Request) (*url.URL, error)
}

// Push stores a manifest unless it is there already.
func (c Client) Push(ctx context.Context, access Access, stored content.Stored) error {
	text, err := stored.JSON()
	if err != nil {
		return err
	}
	return c.with(ctx, "push", access, stored.ID, func(ctx context.Context, repository *remote.Repository) error {
		layer := orascontent.NewDescriptorFromBytes(layerType, text)
		layer.Annotations = map[string]string{idAnnotation: stored.ID}
		if found, err := layerOf(ctx, repository, stored.ID); err == nil && found.Digest == layer.Digest {
			return nil
		} else if err != nil && !errors.Is(err, errdef.ErrNotFound) && fault.ReasonOf(err) != ReasonInvalid {
			return err
		}
		exists, err := repository.Blobs().Exists(ctx, layer)
		if err != nil {
			return err
		}
		if !exists {
			if err := repository.Blobs().Push(ctx, layer, bytes.NewReader(text)); err != nil {
				return err
			}
		}
		manifest, err := oras.PackManifest(ctx, repository, oras.PackManifestVersion1_1, artifactType, oras.PackManifestOptions{
			Layers: []ocispec.Descriptor{layer},
			// A constant, so that the same contents are the same artifact.
			ManifestAnnotations: map[string]string{ocispec.AnnotationCreated: time.Unix(0, 0).UTC().Format(time.RFC3339)},
		})
		if err != nil {
			return err
		}
		return repository.Tag(ctx, manifest, tag)
	})
}

// Pull reads a manifest and checks that it is the one of that id.
func (c Client) Pull(ctx context.Context, access Access, id string) (manifest content.Manifest, err error) {
	err = c.with(ctx, "pull", access, id, func(ctx context.Context, repository *remote.Repository) error {
		layer, err := layerOf(ctx, repository, id)
		if err != nil {
			return err
		}
		body, err := repository.Blobs().Fetch(ctx, layer)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		manifest, err = content.Read(io.LimitReader(body, layer.Size), id)
		var network net.Error
		if err != nil && ctx.Err() == nil && !errors.As(err, &network) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return invalid("%w", err)
		}
		return err
	})
	return manifest, err
}

// Delete removes an artifact; one that is not there is fine.
func (c Client) Delete(ctx context.Context, access Access, id string) error {
	return c.with(ctx, "delete", access, id, func(ctx context.Context, repository *remote.Repository) error {
		manifest, err := repository.Resolve(ctx, tag)
		if err == nil {
			err = repository.Delete(ctx, manifest)
		}
		if errors.Is(err, errdef.ErrNotFound) {
			return nil
		}
		return err
	})
}

// layerOf returns the one layer of an artifact, which is the manifest.
func layerOf(ctx context.Context, repository *remote.Repository, id string) (ocispec.Descriptor, error) {
	none := ocispec.Descriptor{}
	root, err := repository.Resolve(ctx, tag)
	if err != nil {
		return none, err
	}
	if root.Size > maxManifest {
		return none, invalid("its manifest has %d bytes", root.Size)
	}
	encoded, err := orascontent.FetchAll(ctx, repository, root)
	if err != nil {
		return none, err
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(encoded, &manifest); err != nil {
		return none, invalid("its manifest does not parse")
	}
	if len(manifest.Layers) != 1 || manifest.Layers[0].Annotations[idAnnotation] != id {
		return none, invalid("it holds no single layer with this id")
	}
	if size := manifest.Layers[0].Size; size > content.MaxStored {
		return none, invalid("it has %d MiB, and may have %d MiB", size>>20, content.MaxStored>>20)
	}
	return manifest.Layers[0], nil
}

func invalid(format string, args ...any) error {
	return fault.New(fault.Transient, ReasonInvalid, format, args...)
}

// with calls work with a connection of its own and gives its error a class and a place.
func (c Client) with(ctx context.Context, verb string, access Access, id string, work func(context.Context, *remote.Repository) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	repository, err := access.repository(id)
	if err != nil {
		return fault.New(fault.Stalled, ReasonSecret, "%s contents: the registry's reference is invalid", verb)
	}
	transport, err := c.transport(access)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	repository.Client = &auth.Client{
		Client:     &http.Client{Transport: transport, CheckRedirect: sameScheme},
		Cache:      auth.NewCache(),
		Header:     http.Header{"User-Agent": {"fairlead"}},
		Credential: auth.StaticCredential(repository.Reference.Host(), auth.Credential{Username: access.Username, Password: access.Password}),
	}
	return translate(ctx, verb, access.Show(id), work(ctx, repository))
}

func (a Access) repository(id string) (*remote.Repository, error) {
	repository, err := remote.NewRepository(a.Reference + "/" + id)
	if err != nil {
		return nil, err
	}
	repository.PlainHTTP = a.BasicHTTP
	repository.MaxMetadataBytes = maxManifest
	// Garbage of referrers' indexes is nothing we make.
	repository.SkipReferrersGC = true
	return repository, nil
}

func (c Client) transport(access Access) (*http.Transport, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: access.InsecureSkipTLS}
	if len(access.CACerts) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(access.CACerts) {
			return nil, fault.New(fault.Stalled, ReasonSecret, "the cacerts for registry %s hold no certificate in PEM", access.Reference)
		}
		settings.RootCAs = pool
	}
	return &http.Transport{
		Proxy:                  c.Proxy,
		DialContext:            (&net.Dialer{Timeout: patience}).DialContext,
		TLSClientConfig:        settings,
		TLSHandshakeTimeout:    patience,
		ResponseHeaderTimeout:  patience,
		MaxResponseHeaderBytes: 1 << 20,
		ForceAttemptHTTP2:      true,
	}, nil
}

const maxRedirects = 10

// sameScheme follows redirects, but never out of TLS.
func sameScheme(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("%s redirects to a URL without TLS", via[0].URL.Host)
	}
	return nil
}

// translate says what went wrong with what, without URLs: a redirect's may hold a signature.
func translate(ctx context.Context, verb, where string, err error) error {
	if err == nil {
		return nil
	}
	reason := ReasonUnreachable
	var classified *fault.Error
	var answer *errcode.ErrorResponse
	var wrapped *url.Error
	switch {
	case errors.As(err, &classified):
		reason, err = classified.Reason, classified.Err
	case errors.As(err, &answer):
		err = fmt.Errorf("the registry answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
		if answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden {
			reason = ReasonAuthentication
			err = fmt.Errorf("%w; check user name and password in the registry's Secret", err)
		}
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		reason, err = ReasonAuthentication, errors.New("the registry wants a user name and password, and its Secret has none")
	case errors.Is(err, errdef.ErrNotFound):
		reason, err = ReasonNotFound, errors.New("it is not in the registry")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = errors.New("no complete answer in time")
	case errors.As(err, &wrapped):
		err = wrapped.Err
	}
	return fault.New(fault.Transient, reason, "%s contents %s: %w", verb, where, err)
}
