package controller_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// memberWrites returns what was asked of the member for the test's namespace, by others than its controllers.
func (w *world) memberWrites() []writes.Write {
	w.t.Helper()
	all, err := w.member.Writes()
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(write writes.Write) bool {
		return write.Namespace != w.target || write.Resource == "events" || strings.Contains(write.UserAgent, "kube-controller-manager")
	})
}

// anyGivenUp says that an API server out of breath gave up on a request: what follows of it is tried again, and how often
// something is written is not said.
func anyGivenUp(list []writes.Write) bool {
	return slices.ContainsFunc(list, func(write writes.Write) bool { return writes.OutcomeUnknown(write.Request) })
}

// To create or change an object takes one request, and a revision of the release three at most; nothing is
// refused on the way.
func TestRequestsOfAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := func(value string) map[string]string {
		var objects []string
		for _, name := range []string{"a", "b", "c"} {
			objects = append(objects, configMap(name, "value", value))
		}
		return map[string]string{"all.yaml": strings.Join(objects, "---\n")}
	}
	settle := time.NewTimer(time.Hour)
	for _, step := range []struct {
		value string
		want  map[string]int
	}{
		{"1", map[string]int{"patch configmaps 201": 3, "create secrets 201": 1, "update secrets 200": 1}},
		{"2", map[string]int{"patch configmaps 200": 3, "create secrets 201": 1, "update secrets 200": 2}},
		{"3", map[string]int{"patch configmaps 200": 3, "create secrets 201": 1, "update secrets 200": 2, "delete secrets 200": 1}},
	} {
		before := len(w.memberWrites())
		id := w.put("few", bundle{files: text(step.value)})
		w.untilTrue("few", "is applied", func(d *fleet.BundleDeployment) bool {
			return d.Status.AppliedDeploymentID == id && d.Status.Ready && d.Status.NonModified
		})
		settle.Reset(time.Second)
		<-settle.C
		got, all := map[string]int{}, w.memberWrites()[before:]
		for _, write := range all {
			got[write.Request.String()]++
		}
		if diff := cmp.Diff(step.want, got); diff != "" && !anyGivenUp(all) {
			t.Errorf("value %s (-want +got): %s\n%s", step.value, diff, fmt.Sprint(slices.Sorted(maps.Keys(got))))
		}
	}
}

// However often an object changes to and fro, its deployment's status is written at most once a second; and when
// nothing is left to say, not at all.
func TestStatusIsWrittenOnceASecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("flutter", bundle{files: map[string]string{"a.yaml": configMap("flag", "a", "0")}})
	w.until("flutter", fleet.Ready)
	statuses := func() (count int) {
		all, err := w.hub.Writes()
		if err != nil {
			t.Fatal(err)
		}
		for _, write := range all {
			if write.Namespace == w.namespace && write.Resource == "bundledeployments" && write.Subresource == "status" && writes.CarriedOut(write.Request) {
				count++
			}
		}
		return count
	}
	before, began := statuses(), time.Now()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for i := range 41 {
		<-ticker.C
		w.patchConfigMap("flag", fmt.Sprintf(`{"data":{"a":"%d"}}`, (i+1)%2)) // ends as it should not be
	}
	w.until("flutter", fleet.Modified)
	settle := time.NewTimer(2 * time.Second)
	<-settle.C
	written, most := statuses()-before, int(time.Since(began)/time.Second)+2
	if written == 0 || written > most {
		t.Errorf("%d statuses, want 1 to %d", written, most)
	}
}
