package merge

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// A part has every field of a deployment, and nothing else, of the same type and name.
func TestPartsHaveTheFieldsOfDeployments(t *testing.T) {
	for name, types := range map[string][2]reflect.Type{
		"spec":   {reflect.TypeFor[fleet.BundleDeploymentSpec](), reflect.TypeFor[fleet.DeploymentPartSpec]()},
		"status": {reflect.TypeFor[fleet.BundleDeploymentStatus](), reflect.TypeFor[fleet.DeploymentPartStatus]()},
	} {
		t.Run(name, func(t *testing.T) {
			var want, got []string
			for i, list := range []*[]string{&want, &got} {
				for _, field := range reflect.VisibleFields(types[i]) {
					if !field.Anonymous && field.Name != "Parts" {
						*list = append(*list, fmt.Sprint(field.Name, " ", field.Type, " ", field.Tag))
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-alone +part:\n%s", diff)
			}
		})
	}
}

// fill sets every field of a struct to something.
func fill(r *rand.Rand, value reflect.Value, depth int) {
	switch value.Kind() {
	case reflect.String:
		value.SetString(fmt.Sprintf("text-%d", r.IntN(1000)))
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int64:
		value.SetInt(int64(1 + r.IntN(100)))
	case reflect.Pointer:
		if depth > 0 && value.Type().Elem() != reflect.TypeFor[fleet.GenericMap]() {
			value.Set(reflect.New(value.Type().Elem()))
			fill(r, value.Elem(), depth-1)
		}
	case reflect.Struct:
		if value.Type() == reflect.TypeFor[metav1.Time]() {
			return
		}
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.Name != "Parts" && field.IsExported() {
				fill(r, value.Field(i), depth-1)
			}
		}
	}
}

// deployment makes one with every field set.
func deployment(r *rand.Rand, name string) *fleet.BundleDeployment {
	made := &fleet.BundleDeployment{}
	made.Namespace, made.Name, made.Generation = "cluster-1", name, int64(1+r.IntN(5))
	made.Labels = map[string]string{fleet.BundleLabel: name, fleet.BundleNamespaceLabel: "ws", fleet.ContentLabel: "s-" + name}
	fill(r, reflect.ValueOf(&made.Spec).Elem(), 6)
	fill(r, reflect.ValueOf(&made.Status).Elem(), 6)
	made.Status.Conditions = []fleet.Condition{{Type: "Ready", Status: "True"}}
	return made
}

// implode puts deployments into one object.
func implode(name string, deployments ...*fleet.BundleDeployment) *fleet.BundleDeployment {
	object := &fleet.BundleDeployment{}
	object.Namespace, object.Name, object.UID, object.ResourceVersion = "cluster-1", name, "uid", "7"
	object.Labels = map[string]string{fleet.MergedLabel: "repo"}
	object.Spec.Parts, object.Status.Parts = map[string]fleet.DeploymentPart{}, map[string]fleet.DeploymentPartStatus{}
	for _, one := range deployments {
		object.Spec.Parts[one.Name], object.Status.Parts[one.Name] = PartOf(one), one.Status.DeploymentPartStatus
	}
	return object
}

// What is put into an object comes out of it as it was, also after it was stored, in whatever order it was put in.
func TestWhatIsPutInComesOut(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		var all []*fleet.BundleDeployment
		for i := range 1 + r.IntN(6) {
			all = append(all, deployment(r, fmt.Sprintf("app-%d", i)))
		}
		shuffled := slices.Clone(all)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		text, err := json.Marshal(implode("repo-merged", shuffled...))
		if err != nil {
			t.Fatal(err)
		}
		var stored fleet.BundleDeployment
		if err := json.Unmarshal(text, &stored); err != nil {
			t.Fatal(err)
		}
		got := Explode(&stored)
		if len(got) != len(all) {
			t.Fatalf("seed %d: %d came out of %d", seed, len(got), len(all))
		}
		for i, one := range got {
			if one.UID != "uid."+types.UID(one.Name) || one.ResourceVersion != "7" {
				t.Errorf("seed %d: %s leads to uid %s version %s", seed, one.Name, one.UID, one.ResourceVersion)
			}
			if carriers := Carriers(one); len(carriers) != 1 || carriers[0] != (Carrier{Name: "repo-merged", Parts: len(all)}) {
				t.Errorf("seed %d: %s is carried by %+v", seed, one.Name, carriers)
			}
			if one.Generation != all[i].Generation {
				t.Errorf("seed %d: generation %d became %d", seed, all[i].Generation, one.Generation)
			}
			if diff := cmp.Diff(Alone(all[i]), Alone(one)); diff != "" {
				t.Errorf("seed %d: spec or metadata (-in +out):\n%s", seed, diff)
			}
			if diff := cmp.Diff(all[i].Status, one.Status); diff != "" {
				t.Errorf("seed %d: status (-in +out):\n%s", seed, diff)
			}
		}
	}
}

// The patch of a part leads from one version to the other.
func TestPatchLeadsToTheNewVersion(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		before, after := deployment(r, "app"), deployment(r, "app")
		if r.IntN(2) == 0 {
			after.Spec.ValuesHash, after.Spec.CorrectDrift = "", nil
			delete(after.Labels, fleet.ContentLabel)
		}
		patch, err := PatchOf(before, after)
		if err != nil {
			t.Fatal(err)
		}
		object := implode("repo-merged", before, deployment(r, "other"))
		text, _ := json.Marshal(object)
		change, _ := json.Marshal(map[string]any{"spec": map[string]any{"parts": map[string]any{"app": patch}}})
		changed, err := jsonpatch.MergePatch(text, change)
		if err != nil {
			t.Fatal(err)
		}
		var got fleet.BundleDeployment
		if err := json.Unmarshal(changed, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(PartOf(after), got.Spec.Parts["app"]); diff != "" {
			t.Errorf("seed %d: -want +got:\n%s", seed, diff)
		}
		if diff := cmp.Diff(object.Spec.Parts["other"], got.Spec.Parts["other"]); diff != "" {
			t.Errorf("seed %d: another part changed:\n%s", seed, diff)
		}
	}
}

func TestCombine(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	alone := func(change func(*fleet.BundleDeployment)) *fleet.BundleDeployment {
		made := deployment(r, "app")
		made.ResourceVersion, made.UID = "9", "alone"
		made.Status = fleet.BundleDeploymentStatus{DeploymentPartStatus: fleet.DeploymentPartStatus{AppliedDeploymentID: "x"}}
		if change != nil {
			change(made)
		}
		return made
	}
	part := func(change func(*fleet.BundleDeployment)) *fleet.BundleDeployment {
		return Explode(implode("repo-merged", alone(change)))[0]
	}
	blank := func(d *fleet.BundleDeployment) { d.Status = fleet.BundleDeploymentStatus{} }
	leaving := func(d *fleet.BundleDeployment) { d.DeletionTimestamp = &metav1.Time{} }
	other := func(d *fleet.BundleDeployment) { d.Status.AppliedDeploymentID = "y" }
	for name, test := range map[string]struct {
		carried []*fleet.BundleDeployment
		want    []Carrier
		version string
	}{
		"alone":                    {[]*fleet.BundleDeployment{alone(nil)}, []Carrier{{Name: "app"}}, "9"},
		"a part":                   {[]*fleet.BundleDeployment{part(nil)}, []Carrier{{Name: "repo-merged", Parts: 1}}, "7"},
		"both reported":            {[]*fleet.BundleDeployment{alone(nil), part(nil)}, []Carrier{{Name: "repo-merged", Parts: 1}, {Name: "app"}}, "9"},
		"the part is new":          {[]*fleet.BundleDeployment{alone(nil), part(blank)}, []Carrier{{Name: "app"}, {Name: "repo-merged", Parts: 1, Blank: true}}, "9"},
		"its own is new":           {[]*fleet.BundleDeployment{alone(blank), part(nil)}, []Carrier{{Name: "repo-merged", Parts: 1}, {Name: "app", Blank: true}}, "9"},
		"nobody has reported":      {[]*fleet.BundleDeployment{alone(blank), part(blank)}, []Carrier{{Name: "repo-merged", Parts: 1, Blank: true}, {Name: "app", Blank: true}}, "9"},
		"they say different":       {[]*fleet.BundleDeployment{alone(other), part(nil)}, []Carrier{{Name: "repo-merged", Parts: 1}, {Name: "app", Differs: true}}, "9"},
		"its own is being deleted": {[]*fleet.BundleDeployment{alone(leaving), part(blank)}, []Carrier{{Name: "repo-merged", Parts: 1, Blank: true}, {Name: "app", Differs: true}}, "9"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, order := range [][]*fleet.BundleDeployment{test.carried, {test.carried[len(test.carried)-1], test.carried[0]}} {
				if len(test.carried) == 1 {
					order = test.carried
				}
				got := Combine(order)
				if diff := cmp.Diff(test.want, Carriers(got)); diff != "" {
					t.Errorf("carriers (-want +got):\n%s", diff)
				}
				if got.ResourceVersion != test.version {
					t.Errorf("version %s, want %s", got.ResourceVersion, test.version)
				}
				if got.DeletionTimestamp != nil {
					t.Error("it is shown as being deleted although it stays")
				}
			}
		})
	}
	if Combine(nil) != nil {
		t.Error("nothing is shown as something")
	}
}

func TestPlaceOf(t *testing.T) {
	bundle := func(change func(*fleet.Bundle)) *fleet.Bundle {
		made := &fleet.Bundle{}
		made.Namespace, made.Name, made.Labels = "ws", "app", map[string]string{fleet.RepoLabel: "repo"}
		made.Spec.Merge = &fleet.MergeOptions{Mode: fleet.MergePerRepo}
		change(made)
		return made
	}
	for name, test := range map[string]struct {
		bundle *fleet.Bundle
		ok     bool
		reason bool
		most   int
	}{
		"merged":        {bundle(func(*fleet.Bundle) {}), true, false, DefaultMaxBytes},
		"smaller":       {bundle(func(b *fleet.Bundle) { b.Spec.Merge.MaxBytes = 2000 }), true, false, 2000},
		"not asked for": {bundle(func(b *fleet.Bundle) { b.Spec.Merge = nil }), false, false, 0},
		"per path":      {bundle(func(b *fleet.Bundle) { b.Spec.Merge.Mode = fleet.MergePerPath }), false, false, 0},
		"of no repo":    {bundle(func(b *fleet.Bundle) { b.Labels = nil }), false, true, 0},
		"in a registry": {bundle(func(b *fleet.Bundle) { b.Spec.ContentsID = "s-1" }), false, true, 0},
		"of a HelmOp":   {bundle(func(b *fleet.Bundle) { b.Spec.HelmOpOptions = &fleet.BundleHelmOptions{} }), false, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			place, ok, reason := PlaceOf(test.bundle)
			if ok != test.ok || (reason != "") != test.reason || place.MaxBytes != test.most {
				t.Errorf("got %+v, %t, %q", place, ok, reason)
			}
		})
	}
}

// Places are told apart by all that makes them, and know their objects by name.
func TestPlaceNames(t *testing.T) {
	seen := map[string]Place{}
	for _, place := range []Place{
		{Workspace: "a", Repo: "b"}, {Workspace: "b", Repo: "a"}, {Workspace: "a", Repo: "b", Shard: "s"}, {Workspace: "a", Repo: "b-1"},
		{Workspace: "a", Repo: "a-repository-with-a-name-that-is-longer-than-anybody-could-ever-want"},
	} {
		for n := range 12 {
			name := place.Name(n)
			if other, taken := seen[name]; taken {
				t.Errorf("%s is the name of %+v and of %+v", name, place, other)
			}
			if seen[name] = place; len(name) > 63 || !place.Has(name) {
				t.Errorf("%s is too long or not known to be of %+v", name, place)
			}
			for _, other := range seen {
				if other != place && other.Has(name) {
					t.Errorf("%+v takes %s for its own", other, name)
				}
			}
		}
	}
}

// A part of any size has room in an empty object, and in another one as long as both limits hold.
func TestFits(t *testing.T) {
	for name, test := range map[string]struct {
		load Load
		size int
		want bool
	}{
		"empty":           {Load{}, 500, true},
		"just":            {Load{Bytes: 60, Parts: 1}, 40, true},
		"too large":       {Load{Bytes: 60, Parts: 1}, 41, false},
		"last part":       {Load{Bytes: 10, Parts: MaxParts - 1}, 1, true},
		"a part too many": {Load{Bytes: 10, Parts: MaxParts}, 1, false},
	} {
		if got := test.load.Fits(test.size, 100); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The marks of an object are those of its parts; what no part needs is stale, and other labels are left alone.
func TestMarks(t *testing.T) {
	part := fleet.DeploymentPart{Labels: map[string]string{
		fleet.BundleNamespaceLabel: "ws", fleet.BundleLabel: "app", fleet.ContentLabel: "s-1",
	}}
	part.Spec.DeploymentID, part.Spec.StagedDeploymentID = "s-2:x", "s-3:y"
	want := []string{BundleMark("ws", "app"), ContentMark("s-1"), ContentMark("s-2"), ContentMark("s-3")}
	if got := Marks(part); !slices.Equal(got, want) {
		t.Errorf("marks %q, want %q", got, want)
	}
	if got := Marks(fleet.DeploymentPart{}); got != nil {
		t.Errorf("a part of no bundle marks %q", got)
	}
	object := &fleet.BundleDeployment{}
	object.Spec.Parts = map[string]fleet.DeploymentPart{"app": part}
	object.Labels = map[string]string{fleet.RepoLabel: "repo", BundleMark("ws", "gone"): "", ContentMark("s-0"): ""}
	for _, mark := range want {
		object.Labels[mark] = ""
	}
	stale := StaleMarks(object)
	slices.Sort(stale)
	gone := []string{BundleMark("ws", "gone"), ContentMark("s-0")}
	slices.Sort(gone)
	if !slices.Equal(stale, gone) {
		t.Errorf("stale %q, want %q", stale, gone)
	}
}

func TestInMerged(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	one, two := deployment(r, "app"), deployment(r, "other")
	merged := Explode(implode("m", one, two))[0]
	moving := Combine([]*fleet.BundleDeployment{one, Explode(implode("m", one))[0]})
	if InMerged(one) || !InMerged(merged) {
		t.Errorf("alone %t, merged %t", InMerged(one), InMerged(merged))
	}
	for name, test := range map[string]struct {
		deployments []*fleet.BundleDeployment
		want        bool
	}{
		"none":   {nil, false},
		"alone":  {[]*fleet.BundleDeployment{one, two}, false},
		"merged": {[]*fleet.BundleDeployment{two, merged}, true},
		"moving": {[]*fleet.BundleDeployment{two, moving}, true},
	} {
		if got := AnyInMerged(test.deployments); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if alone, shared := StatusBudget(one), StatusBudget(merged); alone != 0 || shared < leastStatus {
		t.Errorf("a report may take %d bytes alone and %d in a merged object", alone, shared)
	}
}

func TestMoved(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	one, two := deployment(r, "app"), deployment(r, "other")
	inOne, inTwo := Explode(implode("m", one))[0], Explode(implode("m", one, two))[0]
	both := Combine([]*fleet.BundleDeployment{one, inOne})
	for name, test := range map[string]struct {
		before, after *fleet.BundleDeployment
		want          bool
	}{
		"nothing":               {inOne, inOne, false},
		"another part came":     {inOne, inTwo, false},
		"it came":               {one, both, true},
		"its own object went":   {both, inOne, true},
		"from one to the other": {one, inOne, true},
	} {
		if got := Moved(test.before, test.after); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Bundles, clusters and repositories count and show the same, whether deployments are alone, merged, or on their way.
func TestRollUpsAreTheSame(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		var objects []fleet.BundleDeployment
		alone, merged := tally.NewIndex(), tally.NewIndex()
		set := func(index *tally.Index, deployment *fleet.BundleDeployment) {
			index.Set(tally.Ref{Namespace: deployment.Namespace, Name: deployment.Name}, tally.Trim(deployment))
		}
		for cluster := range 3 {
			var parts []*fleet.BundleDeployment
			for i := range 5 {
				one := reported(r, fmt.Sprintf("cluster-%d", cluster), fmt.Sprintf("app-%d", i))
				set(alone, one)
				if r.IntN(4) == 0 {
					objects = append(objects, *one)
				}
				if len(objects) == 0 || objects[len(objects)-1].Name != one.Name || r.IntN(2) == 0 {
					parts = append(parts, one)
				}
			}
			if len(parts) > 0 {
				object := implode("repo-merged", parts...)
				object.Namespace = parts[0].Namespace
				objects = append(objects, *object)
			}
		}
		for _, deployment := range ExplodeAll(objects) {
			set(merged, &deployment)
		}
		for cluster := range 3 {
			name := fmt.Sprintf("cluster-%d", cluster)
			if diff := cmp.Diff(alone.Cluster("ws", name), merged.Cluster("ws", name)); diff != "" {
				t.Errorf("seed %d: %s (-alone +merged):\n%s", seed, name, diff)
			}
		}
		for i := range 5 {
			name := fmt.Sprintf("app-%d", i)
			if diff := cmp.Diff(alone.Bundle("ws", name), merged.Bundle("ws", name)); diff != "" {
				t.Errorf("seed %d: %s (-alone +merged):\n%s", seed, name, diff)
			}
		}
		repo := tally.Parent{Kind: tally.KindGitRepo, Ref: tally.Ref{Namespace: "ws", Name: "repo"}}
		if diff := cmp.Diff(alone.Of(repo), merged.Of(repo)); diff != "" {
			t.Errorf("seed %d: the repository (-alone +merged):\n%s", seed, diff)
		}
		if diff := cmp.Diff(alone.Resources(repo), merged.Resources(repo)); diff != "" {
			t.Errorf("seed %d: the repository's objects (-alone +merged):\n%s", seed, diff)
		}
	}
}

// reported is a deployment in any state.
func reported(r *rand.Rand, cluster, name string) *fleet.BundleDeployment {
	made := deployment(r, name)
	made.Namespace = cluster
	made.Labels[fleet.RepoLabel] = "repo"
	made.Labels[fleet.ClusterLabel], made.Labels[fleet.ClusterNamespaceLabel] = cluster, "ws"
	made.Spec.DeploymentID, made.Spec.StagedDeploymentID = "s-1:1", "s-1:1"
	if r.IntN(5) == 0 {
		return made
	}
	deployed := fleet.Condition{Type: fleet.ConditionDeployed, Status: corev1.ConditionTrue}
	if r.IntN(4) == 0 {
		deployed.Status, deployed.Message = corev1.ConditionFalse, "refused"
	}
	made.Status = fleet.BundleDeploymentStatus{DeploymentPartStatus: fleet.DeploymentPartStatus{
		Conditions: []fleet.Condition{deployed}, AppliedDeploymentID: "s-1:1", Ready: r.IntN(2) == 0, NonModified: r.IntN(2) == 0,
		Resources:      []fleet.BundleDeploymentResource{{Kind: "ConfigMap", APIVersion: "v1", Namespace: "apps", Name: name}},
		ResourceCounts: fleet.ResourceCounts{DesiredReady: 1, Ready: r.IntN(2)},
	}}
	return made
}
