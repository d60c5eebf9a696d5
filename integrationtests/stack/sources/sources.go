package sources

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver"
)

const (
	// Placeholder is what the examples have in the place of the Helm repository's address.
	Placeholder = "http://charts.example.com"
	// chartFolder of the examples is the chart in the Helm repository, and no bundle.
	chartFolder = "helm-repo-chart"
	// Branch that holds the examples.
	Branch = "master"
)

// Sources are the served repositories.
type Sources struct {
	Git *gitserver.Server
	// Examples is the git repository with the examples at its root.
	Examples *gitserver.Repo
	Charts   *HelmRepo
	// Commit is the first commit of Examples.
	Commit string
	// Paths are the examples that are bundles.
	Paths []string
}

// Serve serves the examples in a folder; what is written goes into dir.
func Serve(dir, examples string) (*Sources, error) {
	s := &Sources{}
	if err := s.serve(dir, examples); err != nil {
		return nil, fmt.Errorf("serve %s: %w", examples, errors.Join(err, s.Close()))
	}
	return s, nil
}

func (s *Sources) serve(dir, examples string) error {
	var err error
	if s.Charts, err = ServeCharts(filepath.Join(dir, "charts"), filepath.Join(examples, chartFolder)); err != nil {
		return err
	}
	if s.Paths, err = bundleFolders(examples); err != nil {
		return err
	}
	work := filepath.Join(dir, "examples")
	if err := copyWith(work, examples, s.Charts.URL()); err != nil {
		return err
	}
	if s.Git, err = gitserver.Start(gitserver.Options{Dir: dir}); err != nil {
		return err
	}
	if s.Examples, err = s.Git.Repo("examples"); err != nil {
		return err
	}
	s.Commit, err = s.Examples.CommitDir(work, "The examples")
	return err
}

// Close stops serving.
func (s *Sources) Close() error {
	var failures []error
	if s.Git != nil {
		failures = append(failures, s.Git.Close())
	}
	if s.Charts != nil {
		failures = append(failures, s.Charts.Close())
	}
	return errors.Join(failures...)
}

func bundleFolders(examples string) ([]string, error) {
	entries, err := os.ReadDir(examples)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != chartFolder {
			folders = append(folders, entry.Name())
		}
	}
	slices.Sort(folders)
	return folders, nil
}

// copyWith copies a tree of plain files with the Helm repository's address in the place of the
// placeholder.
func copyWith(target, source, chartsURL string) error {
	return filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(target, relative), 0o755)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		content = bytes.ReplaceAll(content, []byte(Placeholder), []byte(chartsURL))
		return os.WriteFile(filepath.Join(target, relative), content, 0o644)
	})
}
