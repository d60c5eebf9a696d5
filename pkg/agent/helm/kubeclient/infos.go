package kubeclient

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
)

// infos makes Helm's list of resources from objects. Objects of a namespaced kind that name no
// namespace get the release's. A kind that the member does not know yet is taken from a definition
// among the objects; one that nobody knows, or whose API does not answer, stays unmapped until it is written:
// a manifest that is only to be deleted may hold kinds that are gone, and the other objects do not need it.
func infos(objects []*unstructured.Unstructured, mapper meta.RESTMapper, namespace string) (kube.ResourceList, error) {
	definitions := manifest.Definitions(objects)
	list := make(kube.ResourceList, 0, len(objects))
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		switch defined, found := definitions[kind]; {
		case err == nil:
		case found:
			mapping = definedMapping(kind, defined)
		case meta.IsNoMatchError(err), isDiscoveryFailed(err):
			mapping = unknownMapping(kind)
		default:
			return nil, fmt.Errorf("look up kind %s: %w", kind, err)
		}
		if isKnown(mapping) {
			locate(object, mapping, namespace)
		}
		list = append(list, &resource.Info{
			Client: nothingThere{}, Mapping: mapping, Object: object,
			Namespace: object.GetNamespace(), Name: object.GetName(),
		})
	}
	return list, nil
}

// Locate puts objects into the namespaces they are in as objects of a release. What kinds the member does not know
// stays as it is. An error is one of asking the member.
func Locate(objects []*unstructured.Unstructured, mapper meta.RESTMapper, namespace string) error {
	_, err := infos(objects, mapper, namespace)
	return err
}

// LocateLate puts an object into a namespace whose kind was not known when its manifest was read, and says what
// the look-up failed of.
func LocateLate(object *unstructured.Unstructured, mapper meta.RESTMapper, namespace string) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err == nil {
		locate(object, mapping, namespace)
	}
	return err
}

// locate puts an object into a namespace if its kind has any and it names none.
func locate(object *unstructured.Unstructured, mapping *meta.RESTMapping, namespace string) {
	switch {
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		object.SetNamespace("")
	case object.GetNamespace() == "":
		object.SetNamespace(namespace)
	}
}

// isDiscoveryFailed tells the error of an API group that is registered and does not answer.
func isDiscoveryFailed(err error) bool {
	var failed *apiutil.ErrResourceDiscoveryFailed
	return errors.As(err, &failed)
}

func definedMapping(kind schema.GroupVersionKind, defined manifest.Definition) *meta.RESTMapping {
	scope := meta.RESTScopeRoot
	if defined.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	return &meta.RESTMapping{Resource: defined.GroupVersionResource, GroupVersionKind: kind, Scope: scope}
}

// unknownMapping has the scope of which Helm asks nothing.
func unknownMapping(kind schema.GroupVersionKind) *meta.RESTMapping {
	return &meta.RESTMapping{GroupVersionKind: kind, Scope: meta.RESTScopeRoot}
}

func isKnown(mapping *meta.RESTMapping) bool { return mapping.Resource.Resource != "" }

func objectsOf(list kube.ResourceList) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, 0, len(list))
	for _, info := range list {
		if object, ok := info.Object.(*unstructured.Unstructured); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// nothingThere answers every request with "not found". Helm looks for existing objects through the
// resources of a release before it writes; here ownership is checked by the writer, which reads each
// object anyway, so Helm's own look would double the requests.
type nothingThere struct{}

var nowhere = &url.URL{Scheme: "https", Host: "nowhere.invalid"}

func (nothingThere) request() *rest.Request {
	config := resource.UnstructuredPlusDefaultContentConfig()
	content := rest.ClientContentConfig{
		ContentType: runtime.ContentTypeJSON,
		Negotiator:  runtime.NewClientNegotiator(config.NegotiatedSerializer, schema.GroupVersion{}),
	}
	return rest.NewRequestWithClient(nowhere, "", content, &http.Client{Transport: nothingThere{}})
}

// RoundTrip implements http.RoundTripper without a network.
func (nothingThere) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusNotFound, Request: request, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(nil)),
	}, nil
}

// Get implements resource.RESTClient.
func (n nothingThere) Get() *rest.Request { return n.request().Verb(http.MethodGet) }

// Post implements resource.RESTClient.
func (n nothingThere) Post() *rest.Request { return n.request().Verb(http.MethodPost) }

// Patch implements resource.RESTClient.
func (n nothingThere) Patch(types.PatchType) *rest.Request { return n.request().Verb(http.MethodPatch) }

// Delete implements resource.RESTClient.
func (n nothingThere) Delete() *rest.Request { return n.request().Verb(http.MethodDelete) }

// Put implements resource.RESTClient.
func (n nothingThere) Put() *rest.Request { return n.request().Verb(http.MethodPut) }
