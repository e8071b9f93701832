package api

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// resource is the client of the resource called name, whose objects are T and whose lists are L. Without a namespace it is
// that of all namespaces, or of a resource that has none.
type resource[T, L any] struct {
	rest            *rest.RESTClient
	name, namespace string
}

func (r resource[T, L]) to(request *rest.Request) *rest.Request {
	return request.NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name)
}

// answer sends a request and decodes what comes back.
func answer[T any](ctx context.Context, request *rest.Request, o runtime.Object) (*T, error) {
	object := new(T)
	return object, request.VersionedParams(o, Parameters()).Do(ctx).Into(any(object).(runtime.Object))
}

// Create implements Resource.
func (r resource[T, L]) Create(ctx context.Context, object *T, o metav1.CreateOptions) (*T, error) {
	return answer[T](ctx, r.to(r.rest.Post()).Body(object), &o)
}

// Get implements Resource.
func (r resource[T, L]) Get(ctx context.Context, name string, o metav1.GetOptions) (*T, error) {
	return answer[T](ctx, r.to(r.rest.Get()).Name(name), &o)
}

// List implements Resource.
func (r resource[T, L]) List(ctx context.Context, o metav1.ListOptions) (*L, error) {
	return answer[L](ctx, r.to(r.rest.Get()), &o)
}

// Update implements Resource.
func (r resource[T, L]) Update(ctx context.Context, object *T, o metav1.UpdateOptions) (*T, error) {
	return answer[T](ctx, r.to(r.rest.Put()).Name(any(object).(metav1.Object).GetName()).Body(object), &o)
}

// Patch implements Resource.
func (r resource[T, L]) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*T, error) {
	return answer[T](ctx, r.to(r.rest.Patch(kind)).Name(name).SubResource(subresources...).Body(data), &o)
}

// Delete implements Resource.
func (r resource[T, L]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return r.to(r.rest.Delete()).Name(name).Body(&o).Do(ctx).Error()
}
