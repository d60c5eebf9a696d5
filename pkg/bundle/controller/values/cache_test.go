package values

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestCache(t *testing.T) {
	shop := types.NamespacedName{Namespace: "ws", Name: "shop"}
	var cache cache
	if _, ok := cache.get(shop, "h1"); ok {
		t.Error("an empty cache has values")
	}
	cache.put(shop, "h1", map[string][]byte{"values.yaml": []byte("1")})
	if data, ok := cache.get(shop, "h1"); !ok || string(data["values.yaml"]) != "1" {
		t.Errorf("values %v", data)
	}
	if _, ok := cache.get(shop, "h2"); ok {
		t.Error("values of another version are given out")
	}
	cache.drop(shop)
	if _, ok := cache.get(shop, "h1"); ok || len(cache.entries) != 0 {
		t.Error("dropping leaves something")
	}
}
