package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/fairlead-dev/fairlead/pkg/bundle/charts"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fetch/index"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const (
	// The media types of a chart's layer, now and in Helm's first charts in registries.
	chartLayer       = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	legacyChartLayer = "application/tar+gzip"

	maxManifest = 4 << 20
	maxTagPages = 200
)

// fromRegistry fetches from an OCI registry. A tag cannot hold a plus sign; Helm writes an underscore.
func (s *Source) fromRegistry(ctx context.Context, c *client, target *url.URL, ref charts.Ref) (*charts.Chart, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	name := strings.Trim(target.Path, "/")
	if ref.Repo != "" && ref.Chart != "" {
		name = path.Join(name, ref.Chart)
	}
	version := ref.Version
	if base, tag, tagged := strings.Cut(path.Base(name), ":"); tagged {
		name = path.Join(path.Dir(name), base)
		if version == "" {
			version = tag
		}
	}
	where := "chart oci://" + target.Host + "/" + name
	repository, err := c.repository(target.Host + "/" + name)
	if err != nil {
		return nil, fault.New(fault.Stalled, ReasonInvalidURL, "%s is no valid reference", where)
	}
	tag, err := findTag(ctx, repository, version, where)
	if err != nil {
		return nil, err
	}
	archive, err := s.pull(ctx, c, repository, tag, where)
	if err != nil {
		return nil, err
	}
	return &charts.Chart{Name: path.Base(name), Version: strings.ReplaceAll(tag, "_", "+"), Archive: archive}, nil
}

func (c *client) repository(reference string) (*remote.Repository, error) {
	repository, err := remote.NewRepository(reference)
	if err != nil {
		return nil, err
	}
	credential := auth.Credential{Username: c.username, Password: c.password}
	repository.Client = &auth.Client{
		Client:     c.http,
		Header:     map[string][]string{"User-Agent": {userAgent}},
		Credential: auth.StaticCredential(repository.Reference.Registry, credential),
	}
	repository.PlainHTTP = c.plainHTTP
	repository.MaxMetadataBytes = maxManifest
	repository.TagListMaxPages = maxTagPages
	return repository, nil
}

// findTag returns the tag of a version: the one that is written so, without asking, or the best of all.
func findTag(ctx context.Context, repository *remote.Repository, version, where string) (string, error) {
	if _, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v")); err == nil {
		return strings.ReplaceAll(version, "+", "_"), nil
	}
	var tags, versions []string
	err := repository.Tags(ctx, "", func(page []string) error {
		for _, tag := range page {
			version := strings.ReplaceAll(tag, "_", "+")
			if _, err := semver.NewVersion(version); err == nil {
				tags, versions = append(tags, tag), append(versions, version)
			}
		}
		return nil
	})
	if err != nil {
		return "", translateRegistry(ctx, where, err)
	}
	chosen, err := index.Choose(version, versions, where)
	if err != nil {
		return "", err
	}
	return tags[chosen], nil
}

// pull returns the chart behind a tag: the one that is kept under its digest, or the layer.
func (s *Source) pull(ctx context.Context, c *client, repository *remote.Repository, tag, where string) ([]byte, error) {
	descriptor, err := repository.Resolve(ctx, tag)
	if err != nil {
		return nil, translateRegistry(ctx, where+":"+tag, err)
	}
	key := c.identity + " manifest " + descriptor.Digest.String()
	if data, ok := s.cache.find(key).read(s.options.MaxArchive); ok {
		return data, nil
	}
	if descriptor.Size > maxManifest {
		return nil, tooLarge("the manifest of "+where, maxManifest)
	}
	encoded, err := content.FetchAll(ctx, repository, descriptor)
	if err != nil {
		return nil, translateRegistry(ctx, where, err)
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(encoded, &manifest); err != nil {
		return nil, fault.New(fault.Stalled, ReasonInvalidRepository, "%s: the manifest does not parse: %w", where, err)
	}
	for _, layer := range manifest.Layers {
		if layer.MediaType != chartLayer && layer.MediaType != legacyChartLayer {
			continue
		}
		if layer.Size > s.options.MaxArchive {
			return nil, tooLarge(where, s.options.MaxArchive)
		}
		data, err := content.FetchAll(ctx, repository.Blobs(), layer)
		if err != nil {
			return nil, translateRegistry(ctx, where, err)
		}
		s.cache.keep(key, validators{}, data)
		return data, nil
	}
	return nil, fault.New(fault.Stalled, ReasonInvalidRepository, "%s:%s is no Helm chart", where, tag)
}

// translateRegistry gives an error of the registry its class.
func translateRegistry(ctx context.Context, where string, err error) error {
	var answer *errcode.ErrorResponse
	switch {
	case errors.As(err, &answer):
		return status(where, answer.StatusCode)
	case errors.Is(err, errdef.ErrNotFound):
		return fault.New(fault.Stalled, ReasonChartNotFound, "%s is not in the registry", where)
	case errors.Is(err, errdef.ErrSizeExceedsLimit):
		return fault.New(fault.Stalled, ReasonTooLarge, "%s: the registry's answer is too large", where)
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData), errors.Is(err, content.ErrInvalidDescriptorSize):
		return fault.New(fault.Stalled, ReasonDigest, "%s: the registry's answer is not what its digest says", where)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return fault.New(fault.Stalled, ReasonAuthentication, "%s needs credentials; check the Helm credentials, and that helmRepoURLRegex matches this URL", where)
	}
	return translate(ctx, where, err)
}
