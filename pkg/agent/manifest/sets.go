package manifest

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Keys returns objects as a set.
func Keys(objects []*unstructured.Unstructured) map[Key]bool {
	return setOf(objects, func(*unstructured.Unstructured) bool { return true })
}

// Claimed returns the objects that are a bundle's since its release wrote them (Claims).
func Claimed(objects []*unstructured.Unstructured) map[Key]bool { return setOf(objects, Claims) }

// Held returns the objects that nobody else can have while a release has them: all but those that are only looked at.
func Held(objects []*unstructured.Unstructured) map[Key]bool {
	return setOf(objects, func(object *unstructured.Unstructured) bool { return !IsReadOnly(object) })
}

func setOf(objects []*unstructured.Unstructured, belongs func(*unstructured.Unstructured) bool) map[Key]bool {
	set := make(map[Key]bool, len(objects))
	for _, object := range objects {
		if belongs(object) {
			set[KeyOf(object)] = true
		}
	}
	return set
}
