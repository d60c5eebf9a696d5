package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Provider is a product that sends notifications.
type Provider string

// The providers, by the key of their secret in Fleet's webhook Secret; Azure has two keys.
const (
	Gogs            Provider = "gogs"
	GitHub          Provider = "github"
	GitLab          Provider = "gitlab"
	BitbucketCloud  Provider = "bitbucket"
	BitbucketServer Provider = "bitbucket-server"
	Azure           Provider = "azure"
)

// ErrIgnored is the error of a notification that is well formed and not about a push.
var ErrIgnored = errors.New("not a push")

// Detect returns who sent a notification. Gogs and Gitea come first, because they also send GitHub's
// header; Azure DevOps, which sends no header of its own, is what remains.
func Detect(header http.Header) Provider {
	for _, known := range []struct {
		header   string
		provider Provider
	}{
		{"X-Gogs-Event", Gogs},
		{"X-GitHub-Event", GitHub},
		{"X-Gitlab-Event", GitLab},
		{"X-Hook-UUID", BitbucketCloud},
		{"X-Event-Key", BitbucketServer},
	} {
		if header.Get(known.header) != "" {
			return known.provider
		}
	}
	return Azure
}

// Parse reads a notification without believing it. The error is ErrIgnored for anything but a push.
func Parse(header http.Header, body []byte) (Push, error) {
	provider := Detect(header)
	payload, err := unwrap(header, body)
	if err != nil {
		return Push{}, fmt.Errorf("read webhook of %s: %w", provider, err)
	}
	var push Push
	switch provider {
	case Gogs:
		push, err = parseGitHub(header.Get("X-Gogs-Event"), payload)
	case GitHub:
		push, err = parseGitHub(header.Get("X-GitHub-Event"), payload)
	case GitLab:
		push, err = parseGitLab(payload)
	case BitbucketCloud:
		push, err = parseBitbucketCloud(header.Get("X-Event-Key"), payload)
	case BitbucketServer:
		push, err = parseBitbucketServer(header.Get("X-Event-Key"), payload)
	case Azure:
		push, err = parseAzure(payload)
	}
	if err != nil {
		return Push{}, fmt.Errorf("read webhook of %s: %w", provider, err)
	}
	if len(push.Repositories) == 0 {
		return Push{}, fmt.Errorf("read webhook of %s: it names no repository", provider)
	}
	return push, nil
}

// unwrap returns the JSON of a notification that was sent as a form, which GitHub and Gogs offer.
func unwrap(header http.Header, body []byte) ([]byte, error) {
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	if strings.TrimSpace(kind) != "application/x-www-form-urlencoded" {
		return body, nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errors.New("the form does not parse")
	}
	return []byte(form.Get("payload")), nil
}

func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return errors.New("the JSON does not parse")
	}
	return nil
}

// parseGitHub reads GitHub's notification; Gogs and Gitea have the same fields.
func parseGitHub(event string, body []byte) (Push, error) {
	if event != "push" {
		return Push{}, ErrIgnored
	}
	var payload struct {
		Ref        string `json:"ref"`
		After      string `json:"after"`
		Repository struct {
			HTMLURL  string `json:"html_url"`
			CloneURL string `json:"clone_url"`
			SSHURL   string `json:"ssh_url"`
		} `json:"repository"`
	}
	if err := decode(body, &payload); err != nil {
		return Push{}, err
	}
	var push Push
	push.add(payload.Repository.HTMLURL)
	push.add(payload.Repository.CloneURL)
	push.add(payload.Repository.SSHURL)
	push.move(payload.Ref, payload.After)
	return push, nil
}

// parseGitLab reads project and system hooks; the body says what happened in both.
func parseGitLab(body []byte) (Push, error) {
	var payload struct {
		ObjectKind string `json:"object_kind"`
		EventName  string `json:"event_name"`
		Ref        string `json:"ref"`
		After      string `json:"after"`
		Checkout   string `json:"checkout_sha"`
		Project    struct {
			WebURL  string `json:"web_url"`
			HTTPURL string `json:"git_http_url"`
			SSHURL  string `json:"git_ssh_url"`
		} `json:"project"`
	}
	if err := decode(body, &payload); err != nil {
		return Push{}, err
	}
	event := payload.ObjectKind
	if event == "" {
		event = payload.EventName
	}
	if event != "push" && event != "tag_push" {
		return Push{}, ErrIgnored
	}
	commit := payload.After
	if payload.Checkout != "" && strings.Trim(payload.After, "0") != "" {
		// For an annotated tag, after is the tag itself and checkout_sha its commit.
		commit = payload.Checkout
	}
	var push Push
	push.add(payload.Project.WebURL)
	push.add(payload.Project.HTTPURL)
	push.add(payload.Project.SSHURL)
	push.move(payload.Ref, commit)
	return push, nil
}

func parseBitbucketCloud(event string, body []byte) (Push, error) {
	if event != "repo:push" {
		return Push{}, ErrIgnored
	}
	type reference struct {
		Type   string `json:"type"`
		Name   string `json:"name"`
		Target struct {
			Hash string `json:"hash"`
		} `json:"target"`
	}
	var payload struct {
		Push struct {
			Changes []struct {
				Old *reference `json:"old"`
				New *reference `json:"new"`
			} `json:"changes"`
		} `json:"push"`
		Repository struct {
			FullName string `json:"full_name"`
			Links    struct {
				HTML struct {
					Href string `json:"href"`
				} `json:"html"`
			} `json:"links"`
		} `json:"repository"`
	}
	if err := decode(body, &payload); err != nil {
		return Push{}, err
	}
	var push Push
	push.add(payload.Repository.Links.HTML.Href)
	if payload.Repository.FullName != "" {
		push.add("https://bitbucket.org/" + payload.Repository.FullName)
	}
	prefixes := map[string]string{"branch": "refs/heads/", "named_branch": "refs/heads/", "tag": "refs/tags/", "annotated_tag": "refs/tags/"}
	for _, change := range payload.Push.Changes {
		switch {
		case change.New != nil:
			push.move(prefixes[change.New.Type]+change.New.Name, change.New.Target.Hash)
		case change.Old != nil:
			push.move(prefixes[change.Old.Type]+change.Old.Name, "")
		}
	}
	return push, nil
}

func parseBitbucketServer(event string, body []byte) (Push, error) {
	if event != "repo:refs_changed" {
		return Push{}, ErrIgnored
	}
	var payload struct {
		Changes []struct {
			Ref struct {
				ID string `json:"id"`
			} `json:"ref"`
			ToHash string `json:"toHash"`
		} `json:"changes"`
		Repository struct {
			Slug    string `json:"slug"`
			Project struct {
				Key string `json:"key"`
			} `json:"project"`
			Links struct {
				Clone []struct {
					Href string `json:"href"`
				} `json:"clone"`
				Self []struct {
					Href string `json:"href"`
				} `json:"self"`
			} `json:"links"`
		} `json:"repository"`
	}
	if err := decode(body, &payload); err != nil {
		return Push{}, err
	}
	var push Push
	repository := payload.Repository
	for _, link := range append(repository.Links.Clone, repository.Links.Self...) {
		push.add(link.Href)
	}
	if len(push.Repositories) == 0 && repository.Slug != "" && repository.Project.Key != "" {
		push.addRepository(Repository{Path: strings.ToLower(repository.Project.Key + "/" + repository.Slug)})
	}
	for _, change := range payload.Changes {
		push.move(change.Ref.ID, change.ToHash)
	}
	return push, nil
}

func parseAzure(body []byte) (Push, error) {
	var payload struct {
		EventType string `json:"eventType"`
		Resource  struct {
			RefUpdates []struct {
				Name        string `json:"name"`
				NewObjectID string `json:"newObjectId"`
			} `json:"refUpdates"`
			Repository struct {
				RemoteURL string `json:"remoteUrl"`
				SSHURL    string `json:"sshUrl"`
				WebURL    string `json:"webUrl"`
			} `json:"repository"`
		} `json:"resource"`
	}
	if err := decode(body, &payload); err != nil {
		return Push{}, err
	}
	if payload.EventType != "git.push" {
		return Push{}, ErrIgnored
	}
	var push Push
	push.add(payload.Resource.Repository.RemoteURL)
	push.add(payload.Resource.Repository.SSHURL)
	push.add(payload.Resource.Repository.WebURL)
	for _, update := range payload.Resource.RefUpdates {
		push.move(update.Name, update.NewObjectID)
	}
	return push, nil
}
