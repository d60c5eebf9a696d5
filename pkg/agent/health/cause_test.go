package health

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, uid: w}\n"

func pod(name, status string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: " + name + "}\nstatus: " + status + "\n"
}

func warning(kind, name, uid, at, reason string) string {
	return "apiVersion: v1\nkind: Event\nmetadata: {name: " + at + "}\ntype: Warning\nlastTimestamp: '2026-01-01T00:00:0" + at + "Z'\nreason: " + reason +
		"\nmessage: words\ninvolvedObject: {kind: " + kind + ", name: " + name + ", uid: " + uid + "}\n"
}

func TestCauses(t *testing.T) {
	crash := "{containerStatuses: [{name: a, ready: false, restartCount: 3, %, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}"
	crashing := func(state string) string { return pod("p", strings.Replace(crash, "%", state, 1)) }
	const killed = "container a: CrashLoopBackOff: exit code 137 (OOMKilled)"
	for name, test := range map[string]struct {
		pods, events []string
		want         string
	}{
		"no pods":               {nil, nil, ""},
		"starting":              {[]string{pod("p", "{containerStatuses: [{name: a, ready: false, state: {waiting: {reason: ContainerCreating}}}]}")}, nil, ""},
		"running":               {[]string{pod("p", "{containerStatuses: [{name: a, ready: true, state: {running: {}}, lastState: {terminated: {exitCode: 1}}}]}")}, nil, ""},
		"unschedulable":         {[]string{pod("p", "{conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: no nodes}]}")}, nil, "Unschedulable: no nodes"},
		"pull fails":            {[]string{pod("p", "{containerStatuses: [{name: a, image: none:1, state: {waiting: {reason: ErrImagePull, message: rpc}}}]}")}, nil, `container a: ImagePullBackOff: image "none:1"`},
		"pull waits":            {[]string{pod("p", "{containerStatuses: [{name: a, image: none:1, state: {waiting: {reason: ImagePullBackOff, message: Back-off 20s}}}]}")}, nil, `container a: ImagePullBackOff: image "none:1"`},
		"crashed, waits":        {[]string{crashing("state: {waiting: {reason: CrashLoopBackOff, message: back-off 40s}}")}, nil, killed},
		"crashed, starts":       {[]string{crashing("state: {running: {}}")}, nil, killed},
		"crashes":               {[]string{crashing("state: {terminated: {exitCode: 137, reason: OOMKilled}}")}, nil, killed},
		"a missing secret":      {[]string{pod("p", "{containerStatuses: [{name: a, state: {waiting: {reason: CreateContainerConfigError, message: secret x not found}}}]}")}, nil, "container a: CreateContainerConfigError: secret x not found"},
		"init container":        {[]string{pod("p", "{initContainerStatuses: [{name: i, state: {terminated: {exitCode: 2, reason: Error}}}], containerStatuses: [{name: a, state: {waiting: {reason: PodInitializing}}}]}")}, nil, "container i: CrashLoopBackOff: exit code 2"},
		"evicted":               {[]string{pod("p", "{phase: Failed, reason: Evicted, message: low on memory}")}, nil, "Evicted: low on memory"},
		"many pods, one cause":  {[]string{crashing("state: {running: {}}"), crashing("state: {waiting: {reason: CrashLoopBackOff}}")}, nil, killed},
		"at most two":           {[]string{pod("p", "{containerStatuses: [{name: a, state: {waiting: {reason: A}}}, {name: b, state: {waiting: {reason: B}}}, {name: c, state: {waiting: {reason: C}}}]}")}, nil, "container a: A; container b: B"},
		"the last warning":      {[]string{pod("p", "{}")}, []string{warning("Pod", "p", "p", "2", "FailedMount"), warning("Pod", "p", "p", "1", "Else")}, "FailedMount: words"},
		"another's warning":     {[]string{pod("p", "{}")}, []string{warning("Pod", "q", "q", "1", "FailedMount"), warning("ReplicaSet", "other-1", "r", "1", "FailedCreate")}, ""},
		"its replica set's":     {nil, []string{warning("ReplicaSet", "web-1", "r", "1", "FailedCreate")}, "FailedCreate: words"},
		"pods before warnings":  {[]string{crashing("state: {running: {}}")}, []string{warning("Pod", "p", "p", "1", "BackOff")}, killed},
		"a pod that is leaving": {[]string{strings.Replace(crashing("state: {running: {}}"), "uid: p}", "uid: p, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [a/b]}", 1)}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var pods, events []*unstructured.Unstructured
			for _, text := range test.pods {
				pods = append(pods, object(t, text))
			}
			for _, text := range test.events {
				events = append(events, object(t, text))
			}
			if got := strings.Join(Causes(object(t, web), pods, events), "; "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if !RunsPods(object(t, web)) || RunsPods(object(t, pod("p", "{}"))) {
		t.Error("a Deployment runs pods, a Pod does not")
	}
}

func TestExplain(t *testing.T) {
	told := fleet.ObjectSummary{State: stateInProgress, Message: []string{"replicas missing"}}
	Explain(&told, nil)
	if len(told.Message) != 1 {
		t.Errorf("no cause: %v", told.Message)
	}
	Explain(&told, []string{strings.Repeat("x", 9999)})
	if len(told.Message) != 2 || told.Message[1] != "replicas missing" || len(told.Message[0]) > maxMessage+len("…") {
		t.Errorf("%d messages, the first of %d bytes", len(told.Message), len(told.Message[0]))
	}
}
