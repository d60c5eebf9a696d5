package target

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/policy"
)

// world keeps deployments and their Secrets as an API server would, and answers as agents do.
type world struct {
	t           testing.TB
	deployments map[string]fleet.BundleDeployment
	secrets     map[string]map[string][]byte
	writes      int
}

func newWorld(t testing.TB) *world {
	return &world{t: t, deployments: map[string]fleet.BundleDeployment{}, secrets: map[string]map[string][]byte{}}
}

func (w *world) current() []*fleet.BundleDeployment {
	var list []*fleet.BundleDeployment
	for _, bd := range w.deployments {
		list = append(list, bd.DeepCopy())
	}
	return list
}

// carryOut writes a plan, through JSON, and checks it on the way.
func (w *world) carryOut(plan Plan) {
	w.t.Helper()
	for _, list := range [][]Deployment{plan.Create, plan.Update} {
		for _, deployment := range list {
			w.write(deployment)
		}
	}
	for _, deployment := range plan.Delete {
		key := deployment.Object.Namespace
		if _, there := w.deployments[key]; !there {
			w.t.Fatalf("deletes %s, which is not there", key)
		}
		delete(w.deployments, key)
		delete(w.secrets, key)
		w.writes++
	}
}

func (w *world) write(deployment Deployment) {
	w.t.Helper()
	key := deployment.Object.Namespace
	if deployment.NeedsCurrentValues {
		deployment.KeepValues(w.secrets[key][ValuesKey])
	}
	data, err := json.Marshal(deployment.Object)
	if err != nil {
		w.t.Fatal(err)
	}
	var stored fleet.BundleDeployment
	if err := json.Unmarshal(data, &stored); err != nil {
		w.t.Fatal(err)
	}
	if deployment.Values != nil {
		w.secrets[key] = deployment.Values
	} else if stored.Spec.ValuesHash == "" {
		delete(w.secrets, key)
	}
	if hash := stored.Spec.ValuesHash; hash != "" {
		secret := w.secrets[key]
		if want := content.DeploymentValuesHash(secret[ValuesKey], secret[StagedValuesKey]); hash != want {
			w.t.Fatalf("%s: hash of values %s does not fit the Secret (%s)", key, hash, want)
		}
	}
	w.checkID(stored.Spec.DeploymentID, stored.Spec.Options, w.secrets[key][ValuesKey], stored)
	w.checkID(stored.Spec.StagedDeploymentID, stored.Spec.StagedOptions, w.secrets[key][StagedValuesKey], stored)
	w.deployments[key] = stored
	w.writes++
}

// checkID holds the id against options and values: what the agent gets is what the id says.
func (w *world) checkID(id string, options fleet.BundleDeploymentOptions, document []byte, bd fleet.BundleDeployment) {
	w.t.Helper()
	if id == "" {
		return
	}
	if options.Helm != nil {
		options.Helm = options.Helm.DeepCopy()
		options.Helm.Values = &fleet.GenericMap{Data: map[string]any{}}
		if len(document) > 0 {
			if err := json.Unmarshal(document, &options.Helm.Values.Data); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	manifest, _, _ := strings.Cut(id, ":")
	if got, _ := content.DeploymentID(manifest, options); got != id {
		// An id counts whether values were absent or empty; what is stored does not tell.
		options.Helm = &fleet.HelmOptions{}
	}
	if got, _ := content.DeploymentID(manifest, options); got != id {
		w.t.Fatalf("%s: id %s, but options and values give %s", bd.Namespace, id, got)
	}
}

// answer lets an agent apply what it was told.
func (w *world) answer(namespace string, ready bool) {
	bd := w.deployments[namespace]
	if bd.Spec.Paused || bd.Spec.OffSchedule {
		return
	}
	bd.Status.AppliedDeploymentID = bd.Spec.DeploymentID
	bd.Status.Ready, bd.Status.NonModified = ready, true
	w.deployments[namespace] = bd
}

func (w *world) answerAll() {
	for namespace := range w.deployments {
		w.answer(namespace, true)
	}
}

// settle plans until nothing is left to do.
func (w *world) settle(s Snapshot) Plan {
	w.t.Helper()
	for range 200 {
		s.Current = w.current()
		plan, err := NewPlan(s)
		if err != nil {
			w.t.Fatal(err)
		}
		before := w.writes
		w.carryOut(plan)
		if w.writes == before && !plan.More {
			return plan
		}
		w.answerAll()
	}
	w.t.Fatal("planning does not end")
	return Plan{}
}

func fleetOf(n int) []ClusterInfo {
	var clusters []ClusterInfo
	for i := range n {
		env := []string{"dev", "test", "prod"}[i%3]
		name := fmt.Sprintf("c%03d", i)
		clusters = append(clusters, ClusterInfo{
			Namespace: "ws", Name: name, DeploymentNamespace: "cluster-ws-" + name,
			Labels: map[string]string{"env": env, "name": name},
		})
	}
	return clusters
}

func bundleOf(t testing.TB, spec string) *fleet.Bundle {
	t.Helper()
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "app", Labels: map[string]string{
		fleet.RepoLabel: "repo", fleet.CommitLabel: "one", "team": "a", "kubectl.kubernetes.io/x": "y", "other.cattle.io/z": "y",
	}}}
	if err := yaml.UnmarshalStrict([]byte(spec), &bundle.Spec); err != nil {
		t.Fatal(err)
	}
	return bundle
}

const everywhere = `
helm: {values: {name: "${ .ClusterName }", size: 1}}
targets: [{name: all, clusterSelector: {}}]
`

// A new pair is one create, a changed pair one update, and what is as it should be is no write.
func TestOneWriteAPair(t *testing.T) {
	w := newWorld(t)
	s := Snapshot{Bundle: bundleOf(t, everywhere), ManifestID: "s-1", Clusters: fleetOf(40), Finalizers: []string{"f"}}
	plan := w.settle(s)
	if w.writes != 40 || plan.Unchanged != 40 || plan.Targets != 40 {
		t.Errorf("%d writes to create 40, then %d unchanged of %d", w.writes, plan.Unchanged, plan.Targets)
	}
	s.ManifestID = "s-2"
	if w.settle(s); w.writes != 80 {
		t.Errorf("%d writes to change 40", w.writes-40)
	}
	s.Bundle.Labels[fleet.CommitLabel] = "two"
	if w.settle(s); w.writes != 80 {
		t.Errorf("%d writes for a commit that changes nothing", w.writes-80)
	}
	s.Clusters[7].Labels["name"] = "other"
	if w.settle(s); w.writes != 80 {
		t.Errorf("%d writes for a label that nothing looks at", w.writes-80)
	}
	s.Clusters[7].Annotations = map[string]string{"x": "y"}
	s.Clusters[8].Paused = true
	if w.settle(s); w.writes != 81 {
		t.Errorf("%d writes to pause one cluster", w.writes-80)
	}
}

// Whatever happens, planning ends, and then a plan is empty.
func TestConvergedWorldsGiveNoWrites(t *testing.T) {
	for _, c := range goldenCases(t) {
		t.Run(filepath.Base(c.dir), func(t *testing.T) {
			for i := range c.bundles {
				w := newWorld(t)
				s := c.snapshot(t, &c.bundles[i])
				w.settle(s)
				s.Current = w.current()
				plan, err := NewPlan(s)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(plan.Create) + len(plan.Update) + len(plan.Delete) + len(plan.Secrets); n > 0 {
					t.Errorf("%s: %d writes in a converged world", c.bundles[i].Name, n)
				}
			}
		})
	}
}

// Random edits, flags and answers: every write is consistent (checked by world), no more clusters than
// allowed are made unavailable, and it always settles.
func TestRandomWorlds(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		s := Snapshot{Bundle: bundleOf(t, everywhere), ManifestID: "s-0", Clusters: fleetOf(1 + random.IntN(12)), PersonsEdit: true}
		limit := 1 + random.IntN(3)
		value := intstr.FromInt32(int32(limit))
		s.Bundle.Spec.RolloutStrategy = &fleet.RolloutStrategy{MaxUnavailable: &value}
		w.settle(s)
		for step := range 40 {
			disturb(random, &s, w, step)
			s.Current = w.current()
			plan, err := NewPlan(s)
			if err != nil {
				t.Fatal(err)
			}
			before := available(w)
			w.carryOut(plan)
			lost := 0
			for namespace := range before {
				if bd, there := w.deployments[namespace]; there && before[namespace] && bd.Spec.DeploymentID != bd.Status.AppliedDeploymentID && !idle(s, namespace) {
					lost++
				}
			}
			if lost > limit {
				t.Fatalf("seed %d step %d: %d clusters changed at once, limit %d", seed, step, lost, limit)
			}
		}
		w.settle(s)
	}
}

func disturb(random *rand.Rand, s *Snapshot, w *world, step int) {
	i := random.IntN(len(s.Clusters))
	switch random.IntN(8) {
	case 0:
		s.ManifestID = fmt.Sprintf("s-%d", step)
	case 1:
		s.Bundle.Spec.Helm.Values.Data["size"] = float64(step)
	case 2:
		s.Clusters[i].Paused = !s.Clusters[i].Paused
	case 3:
		s.Bundle.Spec.Paused = !s.Bundle.Spec.Paused
	case 4:
		s.Clusters[i].OffSchedule = !s.Clusters[i].OffSchedule
	case 5:
		s.Clusters[i].Offline = !s.Clusters[i].Offline
	default:
		w.answer(s.Clusters[i].DeploymentNamespace, random.IntN(4) > 0)
	}
}

func available(w *world) map[string]bool {
	is := map[string]bool{}
	for namespace, bd := range w.deployments {
		is[namespace] = bd.Status.Ready && bd.Status.AppliedDeploymentID == bd.Spec.DeploymentID
	}
	return is
}

func idle(s Snapshot, namespace string) bool {
	for _, cluster := range s.Clusters {
		if cluster.DeploymentNamespace == namespace {
			return cluster.OffSchedule || cluster.Offline || cluster.Paused
		}
	}
	return false
}

// A held-back deployment keeps the values it runs while others are staged.
func TestHeldBackKeepsItsValues(t *testing.T) {
	w := newWorld(t)
	s := Snapshot{Bundle: bundleOf(t, everywhere), ManifestID: "s-1", Clusters: fleetOf(1)}
	w.settle(s)
	old := w.deployments["cluster-ws-c000"]
	s.Bundle.Spec.Paused = true
	s.Bundle.Spec.Helm.Values.Data["size"] = 2.0
	w.settle(s)
	held := w.deployments["cluster-ws-c000"]
	if held.Spec.DeploymentID != old.Spec.DeploymentID || held.Spec.StagedDeploymentID == old.Spec.StagedDeploymentID {
		t.Errorf("ids %s and staged %s after %s", held.Spec.DeploymentID, held.Spec.StagedDeploymentID, old.Spec.DeploymentID)
	}
	secret := w.secrets["cluster-ws-c000"]
	if string(secret[ValuesKey]) != `{"name":"c000","size":1}` || string(secret[StagedValuesKey]) != `{"name":"c000","size":2}` {
		t.Errorf("Secret holds %s", secret)
	}
	s.Bundle.Spec.Helm.Values.Data["size"] = 1.0
	w.settle(s)
	if back := w.deployments["cluster-ws-c000"]; back.Spec.StagedDeploymentID != old.Spec.DeploymentID || !back.Spec.Paused {
		t.Errorf("after going back: %+v", back.Spec)
	}
}

// What is compared or repaired differently redeploys nothing, and reaches every cluster at once.
func TestDiffAndDriftKeepTheID(t *testing.T) {
	w := newWorld(t)
	s := Snapshot{Bundle: bundleOf(t, everywhere), ManifestID: "s-1", Clusters: fleetOf(3)}
	zero := intstr.FromInt32(0)
	s.Bundle.Spec.RolloutStrategy = &fleet.RolloutStrategy{MaxUnavailable: &zero}
	w.settle(s)
	before := w.deployments["cluster-ws-c001"]
	s.Bundle.Spec.Diff = &fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{{Kind: "Deployment", JsonPointers: []string{"/spec"}}}}
	s.Bundle.Spec.CorrectDrift = &fleet.CorrectDrift{Enabled: true}
	w.settle(s)
	after := w.deployments["cluster-ws-c001"]
	if after.Spec.DeploymentID != before.Spec.DeploymentID {
		t.Error("the id moved")
	}
	if after.Spec.Options.Diff == nil || after.Spec.CorrectDrift == nil || !after.Spec.CorrectDrift.Enabled {
		t.Errorf("not copied: %+v", after.Spec)
	}
}

// A template that fails for one cluster leaves that cluster as it is, and does not stop the others.
func TestTemplateErrorBlocksOneCluster(t *testing.T) {
	w := newWorld(t)
	s := Snapshot{Bundle: bundleOf(t, everywhere), ManifestID: "s-1", Clusters: fleetOf(3)}
	w.settle(s)
	before := w.deployments["cluster-ws-c001"]
	s.Bundle.Spec.Helm.Values.Data["name"] = "${ .ClusterLabels.zone }"
	for _, i := range []int{0, 2} {
		s.Clusters[i].Labels["zone"] = "z"
	}
	plan := w.settle(s)
	if len(plan.Failed) != 1 || plan.Failed[0].Cluster != "ws/c001" || !strings.Contains(plan.Failed[0].Err.Error(), "render values: name: ") {
		t.Fatalf("failed: %+v", plan.Failed)
	}
	if fault.ClassOf(plan.Failed[0].Err) != fault.Stalled {
		t.Errorf("class %s", fault.ClassOf(plan.Failed[0].Err))
	}
	if diff := cmp.Diff(before, w.deployments["cluster-ws-c001"]); diff != "" {
		t.Errorf("the failing cluster changed: %s", diff)
	}
	for _, other := range []string{"cluster-ws-c000", "cluster-ws-c002"} {
		if !strings.Contains(string(w.secrets[other][ValuesKey]), `"z"`) {
			t.Errorf("%s has %s", other, w.secrets[other])
		}
	}
}

func TestDeletes(t *testing.T) {
	for name, test := range map[string]struct {
		clusters, leave int
		person          bool
		confirm         bool
		change          func(*Snapshot)
		wantDeletes     int
		wantGuard       bool
	}{
		"few of many":            {clusters: 20, leave: 3, wantDeletes: 3},
		"five of five":           {clusters: 5, leave: 5, wantDeletes: 5},
		"half":                   {clusters: 12, leave: 6, wantDeletes: 6},
		"more than half":         {clusters: 12, leave: 7, wantGuard: true},
		"all":                    {clusters: 20, leave: 20, wantGuard: true},
		"all, by a person":       {clusters: 20, leave: 20, person: true, wantDeletes: 20},
		"all, confirmed":         {clusters: 20, leave: 20, confirm: true, wantDeletes: 20},
		"clusters are gone":      {clusters: 20, change: func(s *Snapshot) { s.Clusters = nil }, wantGuard: true},
		"bundle is deleted":      {clusters: 20, change: func(s *Snapshot) { s.Bundle.DeletionTimestamp = &metav1.Time{} }, wantDeletes: 20},
		"namespaces are unknown": {clusters: 20, person: true, change: func(s *Snapshot) { forAll(s, func(c *ClusterInfo) { c.DeploymentNamespace = "" }) }},
		"outside of schedule":    {clusters: 3, leave: 3, change: func(s *Snapshot) { forAll(s, func(c *ClusterInfo) { c.OffSchedule = true }) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := Snapshot{Bundle: bundleOf(t, "targets: [{clusterSelector: {matchExpressions: [{key: gone, operator: DoesNotExist}]}}]"), ManifestID: "s-1", Clusters: fleetOf(test.clusters)}
			w.settle(s)
			for i := range test.leave {
				s.Clusters[i].Labels["gone"] = "yes"
			}
			if test.change != nil {
				test.change(&s)
			}
			s.PersonsEdit, s.Current = test.person, w.current()
			plan, err := NewPlan(s)
			if err == nil && test.confirm {
				s.ConfirmedDeletes = plan.Guard.Token
				plan, err = NewPlan(s)
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(plan.Delete) != test.wantDeletes || (plan.Guard != nil) != test.wantGuard {
				t.Errorf("%d deletes, guard %+v", len(plan.Delete), plan.Guard)
			}
			if plan.Guard != nil && (plan.Guard.Of != test.clusters || !strings.Contains(plan.Guard.Message(), plan.Guard.Token)) {
				t.Errorf("guard %+v", plan.Guard)
			}
		})
	}
}

func forAll(s *Snapshot, change func(*ClusterInfo)) {
	for i := range s.Clusters {
		change(&s.Clusters[i])
	}
}

func TestPoliciesReachTheOptions(t *testing.T) {
	s := Snapshot{
		Bundle: bundleOf(t, "{contentsId: s-1, serviceAccount: tenant, namespace: apps, helmOpOptions: {helmOpSecretName: x}, dependsOn: [{name: db}], targets: [{clusterSelector: {}}]}"), ManifestID: "s-1", Clusters: fleetOf(1),
		Rules: policy.New(
			[]fleet.GitRepoRestriction{{AllowedTargetNamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}},
			[]fleet.Policy{{RequireServiceAccount: true}}),
	}
	plan, err := NewPlan(s)
	if err != nil {
		t.Fatal(err)
	}
	spec := plan.Create[0].Object.Spec
	if spec.Options.CreateNamespace == nil || *spec.Options.CreateNamespace || spec.Options.AllowedTargetNamespaceSelector.MatchLabels["a"] != "b" {
		t.Errorf("options %+v", spec.Options)
	}
	if !spec.OCIContents || spec.HelmChartOptions.SecretName != "x" || len(spec.DependsOn) != 1 {
		t.Errorf("spec %+v", spec)
	}
	want := map[string]string{
		fleet.RepoLabel: "repo", fleet.CommitLabel: "one", "team": "a", fleet.ManagedLabel: "true",
		fleet.BundleLabel: "app", fleet.BundleNamespaceLabel: "ws", fleet.ClusterLabel: "c000", fleet.ClusterNamespaceLabel: "ws",
	}
	if diff := cmp.Diff(want, plan.Create[0].Object.Labels); diff != "" {
		t.Error(diff)
	}
}

func TestInvalidBundlesPlanNothing(t *testing.T) {
	for name, spec := range map[string]string{
		"selector": "targets: [{name: bad, clusterSelector: {matchExpressions: [{key: a, operator: Maybe}]}}]",
		"rollout":  "{targets: [{clusterSelector: {}}], rolloutStrategy: {maxUnavailable: some}}",
	} {
		_, err := NewPlan(Snapshot{Bundle: bundleOf(t, spec), Clusters: fleetOf(2)})
		if fault.ClassOf(err) != fault.Stalled || !strings.Contains(err.Error(), "bundle ws/app: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A pair whose Secret is lost gets it again, without a write to the pair.
func TestMissingValuesAreWrittenAgain(t *testing.T) {
	w := newWorld(t)
	s := Snapshot{Bundle: bundleOf(t, everywhere), ManifestID: "s-1", Clusters: fleetOf(2)}
	w.settle(s)
	s.Current = w.current()
	s.MissingValues = map[string]bool{"cluster-ws-c001/app": true}
	plan, err := NewPlan(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Update) != 0 || len(plan.Secrets) != 1 || string(plan.Secrets[0].Values[ValuesKey]) != `{"name":"c001","size":1}` {
		t.Errorf("plan %+v", plan)
	}
}

// Values that were moved into the bundle's Secret give the deployments that inline values give.
func TestInline(t *testing.T) {
	checked := 0
	for _, c := range goldenCases(t) {
		file := filepath.Join(c.dir, "expected", "values-secrets.yaml")
		secrets := map[string]struct{ Data map[string]any }{}
		if matches, _ := filepath.Glob(file); len(matches) > 0 {
			secrets = read[map[string]struct{ Data map[string]any }](t, file)
		}
		for i := range c.bundles {
			secret, has := secrets[c.bundles[i].Name]
			if !has {
				continue
			}
			checked++
			compareInlined(t, c, &c.bundles[i], secret.Data)
		}
	}
	if checked < 10 {
		t.Errorf("checked %d bundles", checked)
	}
}

func compareInlined(t *testing.T, c goldenCase, bundle *fleet.Bundle, secret map[string]any) {
	t.Helper()
	data := map[string][]byte{}
	for key, tree := range secret {
		text, err := yaml.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		data[key] = text
	}
	stored := bundle.DeepCopy()
	for _, helm := range append([]*fleet.HelmOptions{stored.Spec.Helm}, targetHelm(stored)...) {
		if helm != nil {
			helm.Values = nil
		}
	}
	var err error
	if stored.Spec.ValuesHash, err = content.BundleValuesHash(data); err != nil {
		t.Fatal(err)
	}
	inlined, err := Inline(stored, data)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := NewPlan(c.snapshot(t, bundle))
	got, err := NewPlan(c.snapshot(t, inlined))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", bundle.Name, diff)
	}
	data["more"] = []byte("x")
	if _, err := Inline(stored, data); fault.ClassOf(err) != fault.Waiting {
		t.Errorf("%s: values of another version: %v", bundle.Name, err)
	}
}

func targetHelm(bundle *fleet.Bundle) []*fleet.HelmOptions {
	var list []*fleet.HelmOptions
	for i := range bundle.Spec.Targets {
		list = append(list, bundle.Spec.Targets[i].Helm)
	}
	return list
}

func TestInlineHidesValues(t *testing.T) {
	data := map[string][]byte{RootValuesKey: []byte("password: [hunter2")}
	bundle := bundleOf(t, "{}")
	bundle.Spec.ValuesHash, _ = content.BundleValuesHash(data)
	_, err := Inline(bundle, data)
	var classified *fault.Error
	if !errors.As(err, &classified) || classified.Reason != ReasonInvalidValues || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

// A converged bundle on 1,000 clusters: with values that differ by cluster, and with the same everywhere.
func BenchmarkPlan(b *testing.B) {
	for name, spec := range map[string]string{"templates": everywhere, "static": "{helm: {values: {a: {b: [1, 2]}}}, targets: [{clusterSelector: {}}]}"} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b)
			s := Snapshot{Bundle: bundleOf(b, spec), ManifestID: "s-1", Clusters: fleetOf(1000), Memory: &Memory{}}
			w.settle(s)
			s.Current = w.current()
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				if _, err := NewPlan(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
