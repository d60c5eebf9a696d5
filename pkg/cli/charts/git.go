package charts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/fairlead-dev/fairlead/pkg/bundle/fetch"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git"
)

// usualBranches are tried where a chart's URL names no ref.
var usualBranches = []string{"main", git.DefaultBranch}

// Source is where charts come from, for one run of a command.
type Source struct {
	*fetch.Source
	git *checkouts
}

// Close removes what was fetched.
func (s *Source) Close() {
	s.Source.Close()
	s.git.close()
}

// checkouts opens git repositories. The folder for them is made when the first is asked for.
type checkouts struct {
	dir     string
	service *git.Service
}

// open returns the files of a commit; the caller closes them.
func (c *checkouts) open(ctx context.Context, ref fetch.GitRef) (fs.FS, error) {
	if err := c.start(); err != nil {
		return nil, err
	}
	source := git.Source{
		URL: ref.URL, Revision: ref.Ref,
		Auth:     git.Auth{Username: ref.Username, Password: ref.Password, SSHKey: ref.SSHKey, KnownHosts: ref.KnownHosts},
		CABundle: ref.CABundle, InsecureSkipTLSVerify: ref.InsecureSkipTLSVerify,
	}
	commit, err := c.resolve(ctx, source)
	if err != nil {
		return nil, err
	}
	files, err := c.service.Checkout(ctx, source, commit)
	if err != nil {
		return nil, err
	}
	return files, nil
}

func (c *checkouts) resolve(ctx context.Context, source git.Source) (string, error) {
	if source.Revision != "" {
		return c.service.Resolve(ctx, source, 0)
	}
	var problems []error
	for _, branch := range usualBranches {
		source.Branch = branch
		commit, err := c.service.Resolve(ctx, source, 0)
		if err == nil || fault.ReasonOf(err) != git.ReasonBranchNotFound {
			return commit, err
		}
		problems = append(problems, err)
	}
	return "", errors.Join(problems...)
}

func (c *checkouts) start() error {
	if c.service != nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "fleet-charts-")
	if err != nil {
		return fmt.Errorf("make a folder for charts from git: %w", err)
	}
	c.dir = dir
	if c.service, err = git.New(git.Options{Dir: dir}); err != nil {
		return fmt.Errorf("fetch charts from git: %w", err)
	}
	return nil
}

// close removes everything. What cannot be removed is in the system's folder for temporary files.
func (c *checkouts) close() {
	if c.service != nil {
		_ = c.service.Close()
	}
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}
