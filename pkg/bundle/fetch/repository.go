package fetch

import (
	"context"
	"net/url"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/bundle/charts"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fetch/index"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// fetched is the index of a repository, or why it could not be had.
type fetched struct {
	data []byte
	err  error
}

// fromRepository fetches from a Helm repository with an index.yaml.
func (s *Source) fromRepository(ctx context.Context, c *client, repo *url.URL, ref charts.Ref) (*charts.Chart, error) {
	where := "chart " + ref.Chart + " in " + redact(repo.String())
	if ref.Chart == "" {
		return nil, fault.New(fault.Stalled, ReasonChartNotFound, "%s: helm.chart is not set", redact(repo.String()))
	}
	data, err := s.index(ctx, c, repo)
	if err != nil {
		return nil, err
	}
	versions, err := index.Versions(data, ref.Chart)
	if err != nil {
		return nil, fault.New(fault.Stalled, ReasonInvalidRepository, "%s: the index does not parse: %w", where, err)
	}
	if len(versions) == 0 {
		return nil, fault.New(fault.Stalled, ReasonChartNotFound, "%s: the repository has no such chart", where)
	}
	available := make([]string, len(versions))
	for i, version := range versions {
		available[i] = version.Version
	}
	chosen, err := index.Choose(ref.Version, available, where)
	if err != nil {
		return nil, err
	}
	archive, err := s.download(ctx, c, repo, versions[chosen], where)
	if err != nil {
		return nil, err
	}
	return &charts.Chart{Name: ref.Chart, Version: versions[chosen].Version, Archive: archive}, nil
}

// index returns a repository's index.yaml; a Source asks for it once.
func (s *Source) index(ctx context.Context, c *client, repo *url.URL) ([]byte, error) {
	target := repo.JoinPath("index.yaml")
	key := c.identity + target.String()
	if known, ok := s.indexes[key]; ok {
		return known.data, known.err
	}
	data, err := c.get(ctx, target, s.options.MaxIndex)
	if ctx.Err() == nil {
		// Only one large index is held at a time.
		clear(s.indexes)
		s.indexes[key] = fetched{data, err}
	}
	return data, err
}

// download gets the archive of a version: the one that is kept under its digest, or from its first URL.
func (s *Source) download(ctx context.Context, c *client, repo *url.URL, version index.Version, where string) ([]byte, error) {
	digest := strings.TrimPrefix(strings.ToLower(version.Digest), "sha256:")
	key := c.identity + " sha256 " + digest
	if digest != "" {
		if data, ok := s.cache.find(key).read(s.options.MaxArchive); ok && digestOf(data) == digest {
			return data, nil
		}
	}
	if len(version.URLs) == 0 {
		return nil, fault.New(fault.Stalled, ReasonInvalidRepository, "%s: version %s has no URL in the index", where, version.Version)
	}
	target, err := resolve(repo, version.URLs[0])
	if err != nil {
		return nil, err
	}
	if target.Scheme == "oci" {
		return nil, fault.New(fault.Stalled, ReasonNotSupported, "%s: version %s lies in a registry; set helm.repo to %s", where, version.Version, redact(target.String()))
	}
	data, err := c.get(ctx, target, s.options.MaxArchive)
	if err != nil {
		return nil, err
	}
	if digest != "" {
		if digestOf(data) != digest {
			return nil, fault.New(fault.Stalled, ReasonDigest, "%s: version %s is not what the index says it is", where, version.Version)
		}
		s.cache.keep(key, validators{}, data)
	}
	return data, nil
}

// resolve returns the URL of an archive, which may be relative to the repository.
func resolve(repo *url.URL, reference string) (*url.URL, error) {
	relative, err := url.Parse(reference)
	if err != nil {
		return nil, fault.New(fault.Stalled, ReasonInvalidRepository, "the index of %s holds an invalid URL", redact(repo.String()))
	}
	if relative.IsAbs() {
		return parse(reference)
	}
	// A repository's URL is a folder, with or without the last slash; its query (a token) goes along.
	base := *repo
	base.Path = strings.TrimSuffix(base.Path, "/") + "/"
	base.RawPath = ""
	target := base.ResolveReference(relative)
	if target.RawQuery == "" {
		target.RawQuery = repo.RawQuery
	}
	return parse(target.String())
}

// fromWeb fetches an archive by its URL.
func (s *Source) fromWeb(ctx context.Context, c *client, target *url.URL) (*charts.Chart, error) {
	shown := redact(target.String())
	if strings.Contains(strings.TrimPrefix(target.Path, "/"), "//") {
		return nil, fault.New(fault.Stalled, ReasonNotSupported, "%s: a folder inside an archive cannot be named; publish the chart by itself", shown)
	}
	query := target.Query()
	checksum := query.Get("checksum")
	query.Del("checksum")
	query.Del("archive")
	target.RawQuery = query.Encode()
	data, err := c.get(ctx, target, s.options.MaxArchive)
	if err != nil {
		return nil, err
	}
	if checksum != "" {
		algorithm, digest, named := strings.Cut(checksum, ":")
		if !named {
			algorithm, digest = "sha256", checksum
		}
		if algorithm != "sha256" {
			return nil, fault.New(fault.Stalled, ReasonNotSupported, "%s: the checksum must be a SHA-256", shown)
		}
		if !strings.EqualFold(digestOf(data), digest) {
			return nil, fault.New(fault.Stalled, ReasonDigest, "%s is not what its checksum says it is", shown)
		}
	}
	return &charts.Chart{Archive: data}, nil
}
