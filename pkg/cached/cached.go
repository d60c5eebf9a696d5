package cached

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Index returns what an object is found by.
type Index[T client.Object] func(object T) []string

// Objects are those of one kind that a cache holds. Make them with New.
type Objects[T client.Object] struct {
	informer toolscache.SharedIndexInformer
}

// New returns the objects of an example's kind, to be found by the given indexes too, whose names must be new. It is
// called before the cache is started, which need not be filled yet.
func New[T client.Object](ctx context.Context, from cache.Informers, example T, indexes map[string]Index[T]) (*Objects[T], error) {
	found, err := from.GetInformer(ctx, example, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("cache every %T: %w", example, err)
	}
	informer, ok := found.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("cache every %T: a %T has no index of its own; a cache of single namespaces is none of this kind", example, found)
	}
	indexers := toolscache.Indexers{}
	for name, index := range indexes {
		indexers[name] = func(object any) ([]string, error) {
			typed, ok := object.(T)
			if !ok {
				return nil, fmt.Errorf("cache every %T: it holds a %T", example, object)
			}
			return index(typed), nil
		}
	}
	if err := informer.AddIndexers(indexers); err != nil {
		return nil, fmt.Errorf("index every %T: %w", example, err)
	}
	return &Objects[T]{informer: informer}, nil
}

// All returns all objects.
func (o *Objects[T]) All(ctx context.Context) ([]T, error) {
	if err := o.wait(ctx); err != nil {
		return nil, err
	}
	return typed[T](o.informer.GetIndexer().List())
}

// In returns the objects of a namespace.
func (o *Objects[T]) In(ctx context.Context, namespace string) ([]T, error) {
	return o.By(ctx, toolscache.NamespaceIndex, namespace)
}

// By returns the objects that an index has for a value.
func (o *Objects[T]) By(ctx context.Context, index, value string) ([]T, error) {
	if err := o.wait(ctx); err != nil {
		return nil, err
	}
	found, err := o.informer.GetIndexer().ByIndex(index, value)
	if err != nil {
		return nil, fmt.Errorf("read a cache: %w", err)
	}
	return typed[T](found)
}

// wait waits until everything is in the cache that was there when it was started: what is missing in it before looks
// as if it did not exist.
func (o *Objects[T]) wait(ctx context.Context) error {
	if o.informer.HasSynced() || toolscache.WaitForCacheSync(ctx.Done(), o.informer.HasSynced) {
		return nil
	}
	var kind T
	return fmt.Errorf("read a cache of every %T, which is not filled: %w", kind, context.Cause(ctx))
}

func typed[T client.Object](found []any) ([]T, error) {
	objects := make([]T, len(found))
	for i, object := range found {
		var ok bool
		if objects[i], ok = object.(T); !ok {
			return nil, fmt.Errorf("read a cache of every %T: it holds a %T", objects[i], object)
		}
	}
	return objects, nil
}
