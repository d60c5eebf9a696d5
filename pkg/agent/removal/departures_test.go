package removal

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// fakeHub denies all deployments, but for one.
type fakeHub struct {
	has   string
	err   error
	empty bool
}

func (h fakeHub) Get(_ context.Context, name string) (*fleet.BundleDeployment, error) {
	if name == h.has || h.err != nil {
		return &fleet.BundleDeployment{}, h.err
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Group: fleet.GroupVersion.Group, Resource: "bundledeployments"}, name)
}

func (h fakeHub) IsEmpty(context.Context) (bool, error) { return h.empty, nil }

var doubt = Doubt{ConfirmAfter: 30 * time.Second, HeldFor: 15 * time.Minute}

// What the hub told of is gone at once; what a list lacks is gone when the hub has denied it for a while. Whatever is
// no proof leaves a deployment where it is.
func TestConfirm(t *testing.T) {
	for name, test := range map[string]struct {
		hub     fakeHub
		certain bool
		back    bool // listed again in between
		after   time.Duration
		want    Verdict
		wantErr bool
	}{
		"told of":             {certain: true, want: Verdict{Gone: true}},
		"lacking":             {want: Verdict{Again: doubt.ConfirmAfter}},
		"lacking for a while": {after: 10 * time.Second, want: Verdict{Again: 20 * time.Second}},
		"lacking long enough": {after: doubt.ConfirmAfter, want: Verdict{Gone: true}},
		"back and lacking":    {after: doubt.ConfirmAfter, back: true, want: Verdict{Again: doubt.ConfirmAfter}},
		"the hub has it":      {hub: fakeHub{has: "b"}, certain: true, want: Verdict{Listed: true, Again: listedSoon}},
		"the hub is away":     {hub: fakeHub{err: errors.New("away")}, certain: true, wantErr: true},
		"no resource of it":   {hub: fakeHub{err: apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "", 0, true)}, certain: true, wantErr: true},
		"an empty hub":        {hub: fakeHub{empty: true}, after: doubt.ConfirmAfter, want: Verdict{Again: doubt.HeldFor}},
		"an empty hub, told":  {hub: fakeHub{empty: true}, certain: true, want: Verdict{Gone: true}},
	} {
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
		departures := NewDepartures(test.hub, doubt, clock, logr.Discard())
		departures.Deleted("b", test.certain)
		if test.after > 0 {
			if verdict, err := departures.Confirm(t.Context(), "b", 9); err != nil || verdict.Gone {
				t.Errorf("%s: at first %+v, %v", name, verdict, err)
			}
			clock.SetTime(clock.Now().Add(test.after))
		}
		if test.back {
			departures.Forget("b")
		}
		verdict, err := departures.Confirm(t.Context(), "b", 9)
		if verdict != test.want || (err != nil) != test.wantErr {
			t.Errorf("%s: %+v, %v", name, verdict, err)
		}
	}
}

// A list that lacks more than half of what is known, and more than a few, is not believed; deletions that the hub
// told of do not count.
func TestManyDepartures(t *testing.T) {
	for name, test := range map[string]struct {
		lacking, told, all int
		want               bool
	}{
		"one of two":              {lacking: 1, all: 2, want: true},
		"five of five":            {lacking: 5, all: 5, want: true},
		"six of six":              {lacking: 6, all: 6},
		"six of twelve":           {lacking: 6, all: 12, want: true},
		"seven of twelve":         {lacking: 7, all: 12},
		"six told of, one lacked": {lacking: 1, told: 6, all: 7, want: true},
	} {
		clock := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
		departures := NewDepartures(fakeHub{}, doubt, clock, logr.Discard())
		for i := range test.lacking + test.told {
			departures.Deleted(fmt.Sprint(i), i >= test.lacking)
			if _, err := departures.Confirm(t.Context(), fmt.Sprint(i), test.all); err != nil {
				t.Fatal(err)
			}
		}
		clock.SetTime(clock.Now().Add(doubt.ConfirmAfter))
		verdict, err := departures.Confirm(t.Context(), "0", test.all)
		if err != nil || verdict.Gone != test.want || !test.want && verdict.Again != doubt.HeldFor {
			t.Errorf("%s: %+v, %v", name, verdict, err)
		}
	}
}
