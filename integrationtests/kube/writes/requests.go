package writes

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Request names a kind of request that asks the API server to change something.
type Request struct {
	// Verb is create, update, patch, apply, delete or deletecollection.
	Verb string
	// Group, Resource and Subresource say what it is about; the core group is "".
	Group, Resource, Subresource string
	// Code is the HTTP status of the answer; below 300 the request was carried out.
	Code int
}

// Requests counts requests by kind.
type Requests map[Request]int

// mutatingVerbs translates the verbs of the API server's metrics that change something.
var mutatingVerbs = map[string]string{
	"POST": "create", "PUT": "update", "PATCH": "patch", "APPLY": "apply",
	"DELETE": "delete", "DELETECOLLECTION": "deletecollection",
}

const requestMetric = "apiserver_request_total"

// ParseMetrics reads an API server's metrics and returns how many requests that ask for a change it
// has answered since it was started. It reads one family out of very many.
func ParseMetrics(metrics io.Reader) (Requests, error) {
	var family bytes.Buffer
	fmt.Fprintf(&family, "# TYPE %s counter\n", requestMetric)
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), []byte(requestMetric+"{")) {
			family.Write(lines.Bytes())
			family.WriteByte('\n')
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(&family)
	if err != nil {
		return nil, err
	}
	requests := Requests{}
	for _, metric := range families[requestMetric].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		verb, mutating := mutatingVerbs[labels["verb"]]
		if !mutating || labels["dry_run"] != "" {
			continue
		}
		code, err := strconv.Atoi(labels["code"])
		if err != nil {
			return nil, fmt.Errorf("code of a request: %w", err)
		}
		request := Request{Verb: verb, Group: labels["group"], Resource: labels["resource"], Subresource: labels["subresource"], Code: code}
		requests[request] += int(metric.GetCounter().GetValue())
	}
	return requests, nil
}

// Since returns what came in addition to an earlier count. The API server counts from zero when it is
// started again: a count that has become smaller is returned whole.
func (r Requests) Since(before Requests) Requests {
	added := Requests{}
	for request, count := range r {
		if earlier := before[request]; earlier <= count {
			count -= earlier
		}
		if count > 0 {
			added[request] = count
		}
	}
	return added
}

// Only returns the requests that have all the given properties.
func (r Requests) Only(properties ...func(Request) bool) Requests {
	kept := maps.Clone(r)
	maps.DeleteFunc(kept, func(request Request, _ int) bool { return !has(request, properties) })
	return kept
}

// Total returns the number of all requests.
func (r Requests) Total() int {
	total := 0
	for _, count := range r {
		total += count
	}
	return total
}

// String lists the requests, one kind a line, in a stable order.
func (r Requests) String() string {
	var lines []string
	for request, count := range r {
		lines = append(lines, fmt.Sprintf("%s ×%d", request, count))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// String returns the request as "patch fleet.cattle.io/bundles/status 200".
func (r Request) String() string {
	what := r.Resource
	if r.Group != "" {
		what = r.Group + "/" + what
	}
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %d", r.Verb, what, r.Code)
}

func has(request Request, properties []func(Request) bool) bool {
	for _, property := range properties {
		if !property(request) {
			return false
		}
	}
	return true
}

// InGroup tells requests about resources of an API group.
func InGroup(group string) func(Request) bool {
	return func(r Request) bool { return r.Group == group }
}

// OnResource tells requests about a resource of an API group, its subresources included.
func OnResource(group, resource string) func(Request) bool {
	return func(r Request) bool { return r.Group == group && r.Resource == resource }
}

// CarriedOut tells requests that the API server said it has carried out.
func CarriedOut(r Request) bool { return r.Code > 0 && r.Code < 300 }

// Refused tells requests that the API server said it has not carried out.
func Refused(r Request) bool { return r.Code >= 300 && r.Code < 500 }

// OutcomeUnknown tells requests on which the API server gave up, or whose client went away before the answer: they
// may have been carried out all the same.
func OutcomeUnknown(r Request) bool { return !CarriedOut(r) && !Refused(r) }

// Stored tells requests about stored objects: not the reviews and tokens that are computed on the
// spot, though asking for one is a create.
func Stored(r Request) bool {
	switch r.Group {
	case "authentication.k8s.io", "authorization.k8s.io":
		return false
	}
	return r.Resource != "serviceaccounts" || r.Subresource != "token"
}

// NotLeases tells requests about anything but leases, which are how an idle system says that it is
// still there.
func NotLeases(r Request) bool { return r.Group != "coordination.k8s.io" || r.Resource != "leases" }

// NotEvents tells requests about anything but events.
func NotEvents(r Request) bool {
	return r.Resource != "events" || r.Group != "" && r.Group != "events.k8s.io"
}
