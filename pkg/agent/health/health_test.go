package health

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = o.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOf(t *testing.T) {
	deployment := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, generation: 2}\nspec: {replicas: 2}\n"
	custom := "apiVersion: e.com/v1\nkind: Jar\nmetadata: {name: jar, generation: 2}\n"
	for name, test := range map[string]struct {
		text                     string
		ignore                   []map[string]string
		wantReady                bool
		wantError, wantTransient bool
		wantMessage              string
	}{
		"a config map":               {text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}", wantReady: true},
		"an available deployment":    {text: deployment + "status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: 'True'}, {type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}", wantReady: true},
		"a generation not seen yet":  {text: deployment + "status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}", wantTransient: true, wantMessage: "generation"},
		"replicas missing":           {text: deployment + "status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}", wantTransient: true, wantMessage: "vailable"},
		"a finished job":             {text: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nstatus: {conditions: [{type: Complete, status: 'True'}], succeeded: 1}", wantReady: true},
		"a failed job":               {text: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nstatus: {conditions: [{type: Failed, status: 'True', message: too often}], failed: 3}", wantError: true},
		"custom, ready":              {text: custom + "status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True'}]}", wantReady: true},
		"custom, not ready":          {text: custom + "status: {observedGeneration: 2, conditions: [{type: Ready, status: 'False', message: no lid}]}", wantTransient: true, wantMessage: "no lid"},
		"custom, ignored condition":  {text: custom + "status: {observedGeneration: 2, conditions: [{type: Ready, status: 'False', reason: Lid, message: no lid}]}", ignore: []map[string]string{{"type": "Ready", "status": "False"}}, wantReady: true},
		"custom, other ignored":      {text: custom + "status: {observedGeneration: 2, conditions: [{type: Ready, status: 'False', message: no lid}]}", ignore: []map[string]string{{"type": "Ready", "reason": "Else"}}, wantTransient: true},
		"an empty entry ignores not": {text: custom + "status: {observedGeneration: 2, conditions: [{type: Ready, status: 'False', message: no lid}]}", ignore: []map[string]string{{}}, wantTransient: true},
		"custom, old generation":     {text: custom + "status: {observedGeneration: 1, conditions: [{type: Ready, status: 'True'}]}", wantTransient: true},
		"being deleted":              {text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [a/b]}", wantTransient: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, test.text)
			var ignore *fleet.IgnoreOptions
			if test.ignore != nil {
				ignore = &fleet.IgnoreOptions{Conditions: test.ignore}
			}
			told, ready := Of(o, ignore)
			if ready != test.wantReady || told.Error != test.wantError || told.Transitioning != test.wantTransient {
				t.Errorf("ready %v, %+v", ready, told)
			}
			if text := strings.Join(told.Message, " "); !strings.Contains(text, test.wantMessage) {
				t.Errorf("message %q lacks %q", text, test.wantMessage)
			}
			if told.State == "" {
				t.Error("no state")
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	told := bounded(fleet.ObjectSummary{Message: []string{strings.Repeat("x", 9999), "a", "b", "c", "d", "e"}})
	if len(told.Message) != maxMessages || len(told.Message[0]) > maxMessage+len("…") {
		t.Errorf("%d messages, the first of %d bytes", len(told.Message), len(told.Message[0]))
	}
}

func TestWith(t *testing.T) {
	active := fleet.ObjectSummary{State: stateActive}
	failed := fleet.ObjectSummary{State: stateFailed, Error: true, Message: []string{"broken"}}
	if told, ready := With(active, true, nil); !ready || told.State != stateActive {
		t.Errorf("no rule: %v, %+v", ready, told)
	}
	if told, ready := With(active, true, []string{"lid"}); ready || !told.Transitioning || told.State != stateInProgress || told.Message[0] != "lid" {
		t.Errorf("one rule: %v, %+v", ready, told)
	}
	if told, ready := With(failed, false, []string{"lid"}); ready || !told.Error || told.State != stateFailed || strings.Join(told.Message, " ") != "lid broken" {
		t.Errorf("failed and a rule: %v, %+v", ready, told)
	}
}
