package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Grace of the agents for a volume: where a test does not wait for its end it is long, so that a busy machine hears of
// the next owner in time.
const (
	volumeGrace = time.Minute
	shortGrace  = 4 * time.Second
)

const volume = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

func (w *world) volumeUID() string {
	w.t.Helper()
	claim, err := w.memberClients().CoreV1().PersistentVolumeClaims(w.target).Get(w.t.Context(), "data", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	if claim.DeletionTimestamp != nil {
		w.t.Fatal("the volume is being deleted")
	}
	return string(claim.UID)
}

// A bundle that gets another name is a new bundle and the end of the old one; its volume stays, whichever the agent
// hears of first, and when it hears of both as it starts.
func TestRenamedBundleKeepsItsVolume(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := map[string]string{"a.yaml": volume + "---\n" + configMap("settings", "a", "1")}
	isApplied := func(d *fleet.BundleDeployment) bool {
		return d.Spec.DeploymentID != "" && d.Status.AppliedDeploymentID == d.Spec.DeploymentID
	}
	w.put("db-0", bundle{files: files})
	w.untilTrue("db-0", "is applied", isApplied)
	before := w.volumeUID()
	for i, how := range []func(old, next string){
		func(old, next string) {
			w.put(next, bundle{files: files})
			w.delete(old)
		},
		func(old, next string) {
			w.delete(old)
			<-time.After(time.Second) // an uninstall takes less
			w.put(next, bundle{files: files})
		},
		func(old, next string) {
			w.stop()
			w.delete(old)
			w.put(next, bundle{files: files})
			w.start()
		},
	} {
		old, next := fmt.Sprintf("db-%d", i), fmt.Sprintf("db-%d", i+1)
		how(old, next)
		w.untilTrue(next, "is applied", isApplied)
		w.untilNoRecords(old)
		if after := w.volumeUID(); after != before {
			t.Fatalf("%s: the volume was made anew: %s, then %s", next, before, after)
		}
		if _, err := w.configMap("settings"); err != nil {
			t.Errorf("%s: %v", next, err)
		}
	}
}

// So it is when the old bundle's end comes late, after the new one was refused, and when both name one release.
func TestRenamedLateKeepsItsVolume(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]string{"a release each": "", "one release": "db"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			made := bundle{
				files:   map[string]string{"a.yaml": volume + "---\n" + configMap("settings", "a", "1")},
				options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{ReleaseName: release}},
			}
			w.put("apps-db", made)
			w.untilTrue("apps-db", "is applied", func(d *fleet.BundleDeployment) bool { return d.Status.AppliedDeploymentID != "" })
			before := w.volumeUID()
			w.put("platform-db", made)
			w.until("platform-db", fleet.ErrApplied)
			w.delete("apps-db")
			w.untilTrue("platform-db", "is applied", func(d *fleet.BundleDeployment) bool {
				return d.Status.AppliedDeploymentID == d.Spec.DeploymentID
			})
			if release == "" {
				w.untilNoRecords("apps-db")
			}
			w.put("platform-db", bundle{files: made.files, options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{ReleaseName: release, MaxHistory: 3}}})
			w.untilTrue("platform-db", "is applied again", func(d *fleet.BundleDeployment) bool {
				return d.Status.AppliedDeploymentID == d.Spec.DeploymentID
			})
			if after := w.volumeUID(); after != before {
				t.Errorf("the volume was made anew: %s, then %s", before, after)
			}
			if _, err := w.configMap("settings"); err != nil {
				t.Error(err)
			}
		})
	}
}

// movesToWhoWaits moves the volume from bundle "to" to one that waits for another before it can ask for it, with the
// agent started anew meanwhile: the former owner is fine, keeps it and says so.
func (w *world) movesToWhoWaits(before string) {
	w.t.Helper()
	w.put("patient", bundle{files: map[string]string{"a.yaml": volume}, change: func(d *fleet.BundleDeployment) {
		d.Spec.DependsOn = []fleet.BundleRef{{Name: "late"}}
	}})
	w.until("patient", fleet.WaitApplied)
	w.put("to", bundle{files: map[string]string{"a.yaml": configMap("two", "a", "3")}})
	keeps := func(d *fleet.BundleDeployment) bool {
		deployed := status.Find(d.Status.Conditions, fleet.ConditionDeployed)
		return status.Of(d) == fleet.Ready && deployed != nil && strings.Contains(deployed.Message, "keeps PersistentVolumeClaim "+w.target+"/data")
	}
	w.untilTrue("to", "tells what it keeps", keeps)
	w.stop()
	w.volumeGrace = shortGrace
	w.start()
	<-time.After(shortGrace + time.Second)
	w.untilTrue("to", "still keeps it", keeps)
	w.put("late", bundle{files: map[string]string{"a.yaml": configMap("late", "a", "1")}})
	w.untilTrue("patient", "is applied", func(d *fleet.BundleDeployment) bool {
		return d.Spec.DeploymentID != "" && d.Status.AppliedDeploymentID == d.Spec.DeploymentID
	})
	w.untilTrue("to", "keeps nothing any more", func(d *fleet.BundleDeployment) bool {
		return status.Of(d) == fleet.Ready && status.Find(d.Status.Conditions, fleet.ConditionDeployed).Message == ""
	})
	if after := w.volumeUID(); after != before {
		w.t.Errorf("the volume was made anew: %s, then %s", before, after)
	}
}

// An object that moves from one bundle to another in one commit is the same object afterwards, whichever
// bundle is deployed first.
func TestObjectMovesBetweenBundles(t *testing.T) {
	t.Parallel()
	for _, order := range [][]string{{"from", "to"}, {"to", "from"}} {
		t.Run(order[0]+" first", func(t *testing.T) {
			w := newWorld(t)
			w.put("from", bundle{files: map[string]string{"a.yaml": volume + "---\n" + configMap("one", "a", "1")}})
			w.put("to", bundle{files: map[string]string{"a.yaml": configMap("two", "a", "1")}})
			for _, name := range order {
				w.untilTrue(name, "is applied", func(d *fleet.BundleDeployment) bool { return d.Status.AppliedDeploymentID != "" })
			}
			before := w.volumeUID()
			next := map[string]string{"from": configMap("one", "a", "2"), "to": volume + "---\n" + configMap("two", "a", "2")}
			for _, name := range order {
				w.put(name, bundle{files: map[string]string{"a.yaml": next[name]}})
			}
			for _, name := range order {
				w.untilTrue(name, "is applied", func(d *fleet.BundleDeployment) bool {
					return d.Status.AppliedDeploymentID == d.Spec.DeploymentID
				})
			}
			if after := w.volumeUID(); after != before {
				t.Errorf("the volume was made anew: %s, then %s", before, after)
			}
			w.delete("from")
			w.untilNoRecords("from")
			w.volumeUID()

			if order[0] == "from" {
				w.movesToWhoWaits(before)
			}
		})
	}
}
