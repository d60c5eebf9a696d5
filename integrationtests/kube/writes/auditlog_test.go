package writes

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseAuditLog(t *testing.T) {
	const event = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete",` +
		`"requestURI":"/apis/fleet.cattle.io/v1alpha1/namespaces/a/bundles/b/status?fieldManager=x","verb":"patch",` +
		`"user":{"username":"system:fleet:a:b","groups":["system:authenticated"]},"userAgent":"fleet-agent/1",` +
		`"objectRef":{"resource":"bundles","namespace":"a","name":"b","apiGroup":"fleet.cattle.io","apiVersion":"v1alpha1","subresource":"status"},` +
		`"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-03-01T10:00:00.123456Z"}`
	write := Write{
		Request:   Request{Verb: "patch", Group: "fleet.cattle.io", Resource: "bundles", Subresource: "status", Code: 200},
		User:      "system:fleet:a:b",
		UserAgent: "fleet-agent/1",
		Namespace: "a",
		Name:      "b",
		Time:      time.Date(2026, 3, 1, 10, 0, 0, 123456000, time.UTC),
	}
	impersonated := write
	impersonated.User = "jane"
	for name, test := range map[string]struct {
		log  string
		want []Write
	}{
		"empty":            {"", nil},
		"one":              {event + "\n", []Write{write}},
		"being written":    {event + "\n" + event[:90], []Write{write}},
		"cut by a crash":   {event[:90] + "\n" + event + "\n", []Write{write}},
		"crash, then more": {event[:90] + event + "\n" + event + "\n", []Write{write}},
		"dry run":          {strings.Replace(event, "?fieldManager=x", "?dryRun=All", 1) + "\n", nil},
		"impersonation":    {strings.Replace(event, `"userAgent"`, `"impersonatedUser":{"username":"jane"},"userAgent"`, 1) + "\n", []Write{impersonated}},
		"no object":        {`{"verb":"create","requestURI":"/elsewhere","responseStatus":{"code":404}}` + "\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseAuditLog(strings.NewReader(test.log))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got, want := write.String(), "system:fleet:a:b: patch fleet.cattle.io/bundles/status 200 a/b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
