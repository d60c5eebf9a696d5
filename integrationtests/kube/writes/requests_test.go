package writes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const metrics = `# HELP apiserver_request_total [STABLE] Counter of apiserver requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1"} 7
apiserver_request_total{code="201",component="apiserver",dry_run="All",group="",resource="configmaps",scope="resource",subresource="",verb="POST",version="v1"} 5
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="configmaps",scope="cluster",subresource="",verb="LIST",version="v1"} 40
apiserver_request_total{code="200",component="apiserver",dry_run="",group="fleet.cattle.io",resource="bundles",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 2
apiserver_request_total{code="409",component="apiserver",dry_run="",group="fleet.cattle.io",resource="bundles",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="fleet.cattle.io",resource="bundles",scope="resource",subresource="",verb="APPLY",version="v1alpha1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 100
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="namespace",subresource="",verb="DELETECOLLECTION",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="DELETE",version="v1"} 1e+06
apiserver_request_total_other{verb="POST"} 3
apiserver_storage_objects{resource="configmaps"} 9
`

func TestParseMetrics(t *testing.T) {
	got, err := ParseMetrics(strings.NewReader(metrics))
	if err != nil {
		t.Fatal(err)
	}
	want := Requests{
		{Verb: "create", Resource: "configmaps", Code: 201}:                                              7,
		{Verb: "patch", Group: "fleet.cattle.io", Resource: "bundles", Subresource: "status", Code: 200}: 2,
		{Verb: "patch", Group: "fleet.cattle.io", Resource: "bundles", Subresource: "status", Code: 409}: 1,
		{Verb: "apply", Group: "fleet.cattle.io", Resource: "bundles", Code: 200}:                        3,
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Code: 200}:                    100,
		{Verb: "deletecollection", Group: "apps", Resource: "deployments", Code: 200}:                    1,
		{Verb: "delete", Group: "apps", Resource: "deployments", Code: 200}:                              1_000_000,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseMetricsRefusesWhatItCannotRead(t *testing.T) {
	for name, line := range map[string]string{
		"no value":        `apiserver_request_total{code="200",verb="PUT"}`,
		"labels cut off":  `apiserver_request_total{code="200",ve`,
		"code of letters": `apiserver_request_total{code="abc",verb="PUT"} 1`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ParseMetrics(strings.NewReader(line + "\n")); err == nil {
				t.Errorf("got %v, want an error", got)
			}
		})
	}
}

func TestSince(t *testing.T) {
	create := Request{Verb: "create", Resource: "configmaps", Code: 201}
	remove := Request{Verb: "delete", Resource: "configmaps", Code: 200}
	for name, test := range map[string]struct{ before, after, want Requests }{
		"nothing happened": {Requests{create: 3}, Requests{create: 3}, Requests{}},
		"more of one":      {Requests{create: 3, remove: 1}, Requests{create: 5, remove: 1}, Requests{create: 2}},
		"a new kind":       {Requests{create: 3}, Requests{create: 3, remove: 1}, Requests{remove: 1}},
		"started again":    {Requests{create: 30}, Requests{create: 2}, Requests{create: 2}},
		"from nothing":     {nil, Requests{create: 2}, Requests{create: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.after.Since(test.before)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOnly(t *testing.T) {
	bundle := Request{Verb: "create", Group: "fleet.cattle.io", Resource: "bundles", Code: 201}
	conflict := Request{Verb: "update", Group: "fleet.cattle.io", Resource: "clusters", Code: 409}
	lease := Request{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Code: 200}
	event := Request{Verb: "create", Resource: "events", Code: 201}
	newEvent := Request{Verb: "create", Group: "events.k8s.io", Resource: "events", Code: 201}
	token := Request{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Code: 201}
	account := Request{Verb: "create", Resource: "serviceaccounts", Code: 201}
	review := Request{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Code: 201}
	all := Requests{bundle: 1, conflict: 2, lease: 3, event: 4, newEvent: 5, token: 6, account: 7, review: 8}

	for name, test := range map[string]struct {
		properties []func(Request) bool
		want       Requests
	}{
		"no property":         {nil, all},
		"a group":             {[]func(Request) bool{InGroup("fleet.cattle.io")}, Requests{bundle: 1, conflict: 2}},
		"a resource":          {[]func(Request) bool{OnResource("", "serviceaccounts")}, Requests{token: 6, account: 7}},
		"carried out":         {[]func(Request) bool{InGroup("fleet.cattle.io"), CarriedOut}, Requests{bundle: 1}},
		"stored":              {[]func(Request) bool{Stored}, Requests{bundle: 1, conflict: 2, lease: 3, event: 4, newEvent: 5, account: 7}},
		"neither lease event": {[]func(Request) bool{Stored, NotLeases, NotEvents}, Requests{bundle: 1, conflict: 2, account: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			got := all.Only(test.properties...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	for code, want := range map[int][3]bool{ // carried out, refused, unknown
		200: {true, false, false}, 201: {true, false, false}, 404: {false, true, false}, 409: {false, true, false},
		0: {false, false, true}, 500: {false, false, true}, 504: {false, false, true},
	} {
		if got := [3]bool{CarriedOut(Request{Code: code}), Refused(Request{Code: code}), OutcomeUnknown(Request{Code: code})}; got != want {
			t.Errorf("code %d: %v, want %v", code, got, want)
		}
	}
	if total := all.Total(); total != 36 {
		t.Errorf("total %d, want 36", total)
	}
}

func TestString(t *testing.T) {
	requests := Requests{
		{Verb: "patch", Group: "fleet.cattle.io", Resource: "bundles", Subresource: "status", Code: 200}: 2,
		{Verb: "create", Resource: "pods", Code: 403}:                                                    1,
	}
	want := "create pods 403 ×1\npatch fleet.cattle.io/bundles/status 200 ×2"
	if got := requests.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
