package faultproxy

import (
	"net/http"
	"strings"
)

// Request is what a client asks of an API server.
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection.
	Verb string
	// Group is "" for the core group; Resource is empty for what is no resource, such as discovery.
	Group, Resource, Subresource string
	Namespace, Name              string
	// InitialEvents says that a watch is to begin with a list.
	InitialEvents bool
}

// Mutates says that the request asks for a change.
func (r Request) Mutates() bool {
	return r.Verb != "get" && r.Verb != "list" && r.Verb != "watch"
}

// Of returns a match for requests about a resource with one of the verbs, or any verb without them.
func Of(resource string, verbs ...string) func(Request) bool {
	return func(r Request) bool {
		if r.Resource != resource {
			return false
		}
		for _, verb := range verbs {
			if r.Verb == verb {
				return true
			}
		}
		return len(verbs) == 0
	}
}

// Lists matches everything by which a cache or a direct read gets all objects of a resource.
func Lists(resource string) func(Request) bool {
	return func(r Request) bool {
		return r.Resource == resource && (r.Verb == "list" || r.Verb == "watch" && r.InitialEvents)
	}
}

// parse reads /api/v1/… and /apis/GROUP/VERSION/… paths.
func parse(r *http.Request) Request {
	request := Request{}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		request.Group, parts = parts[1], parts[3:]
	default:
		request.Verb = "get"
		return request
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		request.Namespace, parts = parts[1], parts[2:]
	}
	request.Resource = parts[0]
	if len(parts) > 1 {
		request.Name = parts[1]
	}
	if len(parts) > 2 {
		request.Subresource = parts[2]
	}
	request.Verb = verbOf(r, request.Name)
	request.InitialEvents = r.URL.Query().Get("sendInitialEvents") == "true"
	return request
}

func verbOf(r *http.Request, name string) string {
	query := r.URL.Query()
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	switch {
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		return "watch"
	case name == "":
		return "list"
	}
	return "get"
}
