package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

const (
	defaultMaxBody = 10 << 20
	// concurrency bounds how many bodies are in memory: anybody may send one.
	concurrency = 8
)

// GitRepo is a GitRepo as far as a push concerns it.
type GitRepo struct {
	Namespace, Name       string
	URL, Branch, Revision string
	// Secret is the name of the webhook Secret in the GitRepo's namespace; empty means the
	// installation's own.
	Secret string
}

// GitRepos lists the GitRepos that may be told of a push.
type GitRepos interface {
	GitRepos(ctx context.Context) ([]GitRepo, error)
}

// Secrets returns the data of the webhook Secret for a GitRepo, and that of the installation for the
// zero GitRepo. Nil data without an error means that there is none; a Secret that a GitRepo names and
// that does not exist is an error.
type Secrets interface {
	WebhookSecret(ctx context.Context, repo GitRepo) (map[string][]byte, error)
}

// Notifier is told to look at the repository of a GitRepo now. Commit is what the push claims; it may
// be empty, and is at most something to wait for.
type Notifier interface {
	Notify(ctx context.Context, repo GitRepo, commit string) error
}

// Receiver answers notifications, whatever their path: 200 when everybody concerned was told or nobody
// is concerned, 401 when the secret is not proven, 405 for anything but POST, 400 and 413 for bodies
// that are not read, 500 when somebody could not be told, so that the sender tries again.
type Receiver struct {
	repos    GitRepos
	secrets  Secrets
	notifier Notifier

	// AllowUnsigned lets GitRepos be told that have no secret, as Fleet does by default.
	AllowUnsigned bool
	// MaxBody bounds a body in bytes; 10 MiB if zero. GitHub sends up to 25 MiB for pushes of
	// thousands of commits.
	MaxBody int64
	// Report gets the errors of a notification that was answered 500; nil drops them.
	Report func(ctx context.Context, err error)

	slots chan struct{}
}

// NewReceiver returns a Receiver that is ready to serve; its fields may be set before it does.
func NewReceiver(repos GitRepos, secrets Secrets, notifier Notifier) *Receiver {
	return &Receiver{
		repos: repos, secrets: secrets, notifier: notifier,
		MaxBody: defaultMaxBody, slots: make(chan struct{}, concurrency),
	}
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "webhooks are sent by POST", http.StatusMethodNotAllowed)
		return
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-request.Context().Done():
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, r.MaxBody))
	if err != nil {
		r.refuseBody(w, err)
		return
	}
	push, err := Parse(request.Header, body)
	switch {
	case errors.Is(err, ErrIgnored):
		answer(w, http.StatusOK, "this event is not a push; nothing to do")
	case err != nil:
		answer(w, http.StatusBadRequest, err.Error())
	default:
		r.answerPush(w, request, body, push)
	}
}

func (r *Receiver) refuseBody(w http.ResponseWriter, err error) {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		answer(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("webhooks may have %d bytes", tooLarge.Limit))
		return
	}
	answer(w, http.StatusBadRequest, "the body cannot be read")
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text)
}

func (r *Receiver) answerPush(w http.ResponseWriter, request *http.Request, body []byte, push Push) {
	result := r.deliver(request.Context(), request.Header, body, push)
	if err := errors.Join(result.errs...); err != nil {
		if r.Report != nil {
			r.Report(request.Context(), err)
		}
		answer(w, http.StatusInternalServerError, "not everybody could be told; send it again")
		return
	}
	if !result.verified {
		answer(w, http.StatusUnauthorized, ErrUnverified.Error())
		return
	}
	answer(w, http.StatusOK, fmt.Sprintf("told %d GitRepos", result.told))
}

// result is what became of a push.
type result struct {
	// verified says that at least one secret was proven, or none was needed.
	verified bool
	told     int
	errs     []error
}

// deliver tells every GitRepo that the push concerns; one that cannot be told does not stop the others.
// When no GitRepo has this repository, the installation's secret decides what the sender learns.
func (r *Receiver) deliver(ctx context.Context, header http.Header, body []byte, push Push) result {
	all, err := r.repos.GitRepos(ctx)
	if err != nil {
		return result{errs: []error{fmt.Errorf("list GitRepos: %w", err)}}
	}
	var out result
	known := false
	for _, repo := range all {
		if !push.Concerns(repo.URL) {
			continue
		}
		known = true
		r.tell(ctx, header, body, push, repo, &out)
	}
	if !known {
		out.verified, err = r.verify(ctx, header, body, GitRepo{})
		if err != nil {
			out.errs = append(out.errs, err)
		}
	}
	return out
}

func (r *Receiver) tell(ctx context.Context, header http.Header, body []byte, push Push, repo GitRepo, out *result) {
	verified, err := r.verify(ctx, header, body, repo)
	if err != nil {
		out.errs = append(out.errs, err)
		return
	}
	if !verified {
		return
	}
	out.verified = true
	commit, moved := push.Moves(repo.Branch, repo.Revision)
	if !moved {
		return
	}
	if err := r.notifier.Notify(ctx, repo, commit); err != nil {
		out.errs = append(out.errs, fmt.Errorf("notify GitRepo %s/%s: %w", repo.Namespace, repo.Name, err))
		return
	}
	out.told++
}

func (r *Receiver) verify(ctx context.Context, header http.Header, body []byte, repo GitRepo) (bool, error) {
	secret, err := r.secrets.WebhookSecret(ctx, repo)
	if err != nil {
		return false, fmt.Errorf("read webhook secret for GitRepo %s/%s: %w", repo.Namespace, repo.Name, err)
	}
	if len(secret) == 0 {
		return r.AllowUnsigned, nil
	}
	return Verify(header, body, secret) == nil, nil
}
