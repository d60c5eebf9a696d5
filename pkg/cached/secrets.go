package cached

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fairlead-dev/fairlead/pkg/confirm"
)

// Secrets caches the metadata of the Secrets of one type, as far as the transform leaves it, and nothing of what is in
// them. The cache starts and stops with the manager.
func Secrets(mgr ctrl.Manager, informers *confirm.Informers, kind corev1.SecretType, transform toolscache.TransformFunc) (cache.Cache, error) {
	share := true
	secrets, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme:                       mgr.GetScheme(),
		Mapper:                       mgr.GetRESTMapper(),
		HTTPClient:                   mgr.GetHTTPClient(),
		DefaultFieldSelector:         fields.OneTermEqualSelector("type", string(kind)),
		DefaultTransform:             transform,
		DefaultUnsafeDisableDeepCopy: &share,
		NewInformer:                  informers.New,
	})
	if err != nil {
		return nil, fmt.Errorf("cache Secrets of type %s: %w", kind, err)
	}
	if err := mgr.Add(secrets); err != nil {
		return nil, fmt.Errorf("cache Secrets of type %s: %w", kind, err)
	}
	return secrets, nil
}

// SecretMetadata returns an object by which the metadata of a Secret is asked for.
func SecretMetadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return object
}
