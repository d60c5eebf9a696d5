package webhook

import (
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/address"
)

// defaultBranch is the branch of a GitRepo that names none, as in Fleet.
const defaultBranch = "master"

// Repository identifies a repository independently of the form of its address; see
// address.Canonical. Host is empty when the sender does not say it: older Bitbucket Servers.
type Repository struct {
	Host, Path string
}

// Kind says what moved.
type Kind string

// What can move.
const (
	Branch Kind = "branch"
	Tag    Kind = "tag"
)

// Change is one branch or tag that moved. Commit is empty when it was deleted, and is a claim of the
// sender in any case.
type Change struct {
	Kind   Kind
	Name   string
	Commit string
}

// Push is what a notification says.
type Push struct {
	// Repositories are the addresses of the one repository that was pushed to.
	Repositories []Repository
	Changes      []Change
}

// Concerns says whether the push went to the repository at url.
func (p Push) Concerns(url string) bool {
	host, path, err := address.Canonical(url)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(p.Repositories, func(r Repository) bool {
		return r.Path == path && (r.Host == host || r.Host == "")
	})
}

// Moves returns the commit that the push claims for what a GitRepo follows, and whether it moved. A
// revision, which wins over the branch, may be a tag or a branch; a full commit id never moves. An
// empty branch means master.
func (p Push) Moves(branch, revision string) (commit string, moved bool) {
	for _, change := range p.Changes {
		if follows(change, branch, revision) {
			return change.Commit, true
		}
	}
	return "", false
}

func follows(change Change, branch, revision string) bool {
	full := "refs/heads/" + change.Name
	if change.Kind == Tag {
		full = "refs/tags/" + change.Name
	}
	if revision != "" {
		return revision == change.Name || revision == full
	}
	if branch == "" {
		branch = defaultBranch
	}
	return change.Kind == Branch && (branch == change.Name || branch == full)
}

// add notes an address of the repository; what does not parse names no repository we could know.
func (p *Push) add(url string) {
	host, path, err := address.Canonical(url)
	if err != nil {
		return
	}
	p.addRepository(Repository{Host: host, Path: path})
}

func (p *Push) addRepository(r Repository) {
	if !slices.Contains(p.Repositories, r) {
		p.Repositories = append(p.Repositories, r)
	}
}

// move notes a full reference name that moved; references other than branches and tags are left out.
func (p *Push) move(reference, commit string) {
	change := Change{Commit: commit}
	if name, isBranch := strings.CutPrefix(reference, "refs/heads/"); isBranch {
		change.Kind, change.Name = Branch, name
	} else if name, isTag := strings.CutPrefix(reference, "refs/tags/"); isTag {
		change.Kind, change.Name = Tag, name
	}
	if strings.Trim(commit, "0") == "" {
		// All zeros: git's way to say that the reference is gone.
		change.Commit = ""
	}
	if change.Name != "" {
		p.Changes = append(p.Changes, change)
	}
}
