package carrier

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// TestBrief makes objects at an API server that answers with metadata, with a refusal, and with what is none.
func TestBrief(t *testing.T) {
	refusal := apierrors.NewAlreadyExists(fleet.GroupVersion.WithResource("bundledeployments").GroupResource(), "app").Status()
	for name, test := range map[string]struct {
		code   int
		answer any
		want   func(error) bool
	}{
		"metadata": {http.StatusCreated, map[string]any{
			"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]any{"uid": "1-2-3", "resourceVersion": "7"},
		}, func(err error) bool { return err == nil }},
		"refusal":       {http.StatusConflict, refusal, apierrors.IsAlreadyExists},
		"not an object": {http.StatusCreated, "created", func(err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			var sent fleet.BundleDeployment
			var path, accept string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path, accept = r.Method+" "+r.URL.Path, r.Header.Get("Accept")
				if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
					t.Error(err)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.code)
				_ = json.NewEncoder(w).Encode(test.answer)
			}))
			defer server.Close()
			fake := newHub(t)
			c, err := Brief(fake, &rest.Config{Host: server.URL}, server.Client())
			if err != nil {
				t.Fatal(err)
			}
			object := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "app"}}
			object.Spec.DeploymentID = "s-1:2"
			err = c.Create(t.Context(), object)
			if !test.want(err) {
				t.Fatalf("error %v", err)
			}
			if path != "POST /apis/fleet.cattle.io/v1alpha1/namespaces/ns/bundledeployments" || accept != metadataAlone {
				t.Errorf("asked %s for %s", path, accept)
			}
			if sent.Kind != "BundleDeployment" || sent.Name != "app" || sent.Spec.DeploymentID != "s-1:2" {
				t.Errorf("sent %+v", sent)
			}
			if err == nil && (object.UID != "1-2-3" || object.ResourceVersion != "7") {
				t.Errorf("got %+v", object.ObjectMeta)
			}
			// Everything else is as it was.
			if err := c.Create(t.Context(), &fleet.Content{ObjectMeta: metav1.ObjectMeta{Name: "c"}}); err != nil {
				t.Error(err)
			}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "c"}, &fleet.Content{}); err != nil {
				t.Error(err)
			}
		})
	}
}
