package api

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Mapper finds the resource of a kind, such as pods for Pod. It caches the resources of each group version until Reset.
type Mapper struct {
	client *Client
	known  map[schema.GroupVersion]*metav1.APIResourceList
}

// NewMapper returns a Mapper that asks the client.
func NewMapper(client *Client) *Mapper {
	return &Mapper{client: client, known: map[schema.GroupVersion]*metav1.APIResourceList{}}
}

// Reset clears the cache. Call it after CustomResourceDefinitions were added or removed.
func (m *Mapper) Reset() { clear(m.known) }

// Resource returns the resource of a kind, and whether its objects have a namespace. The error is a
// *meta.NoKindMatchError if the API server does not serve the kind.
func (m *Mapper) Resource(ctx context.Context, kind schema.GroupVersionKind) (at schema.GroupVersionResource, namespaced bool, err error) {
	list, err := m.cachedResources(ctx, kind.GroupVersion())
	if err != nil && !apierrors.IsNotFound(err) {
		return at, false, fmt.Errorf("kinds of %s: %w", kind.GroupVersion(), err)
	}
	if i := resourceIndex(list, kind.Kind); err == nil && i >= 0 {
		return kind.GroupVersion().WithResource(list.APIResources[i].Name), list.APIResources[i].Namespaced, nil
	}
	return at, false, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
}

// resourceIndex returns the index of a kind's resource in list, or -1. It skips subresources, because they may have the same
// kind.
func resourceIndex(list *metav1.APIResourceList, kind string) int {
	return slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind && !strings.Contains(r.Name, "/") })
}

// Serves reports whether the API server serves a group version (apps/v1, v1) or a kind in it (apps/v1/Deployment, v1/Pod). It
// returns false if the server does not answer.
func (m *Mapper) Serves(ctx context.Context, name string) bool {
	kind := ""
	if strings.Count(name, "/") == 2 || strings.HasPrefix(name, "v1/") {
		at := strings.LastIndexByte(name, '/')
		name, kind = name[:at], name[at+1:]
	}
	version, err := schema.ParseGroupVersion(name)
	if err != nil {
		return false
	}
	list, err := m.cachedResources(ctx, version)
	return err == nil && (kind == "" || resourceIndex(list, kind) >= 0)
}

// cachedResources returns the resources of a group version. It asks the API server only if the cache does not have them.
func (m *Mapper) cachedResources(ctx context.Context, of schema.GroupVersion) (*metav1.APIResourceList, error) {
	if list, ok := m.known[of]; ok {
		return list, nil
	}
	list, err := m.client.Kinds(ctx, of)
	if err == nil {
		m.known[of] = list
	}
	return list, err
}

// resource is the client of the resource called name. T is the type of its objects, L the type of its lists. If namespace is
// "", the resource is cluster-scoped, or the client lists all namespaces.
type resource[T, L any] struct {
	rest            *rest.RESTClient
	name, namespace string
}

func (r resource[T, L]) withPath(request *rest.Request) *rest.Request {
	return request.NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name)
}

// sendRequest sends a request with the options o and decodes the response.
func sendRequest[T any](ctx context.Context, request *rest.Request, o runtime.Object) (*T, error) {
	object := new(T)
	return object, request.VersionedParams(o, Parameters()).Do(ctx).Into(any(object).(runtime.Object))
}

// Create implements Resource.
func (r resource[T, L]) Create(ctx context.Context, object *T, o metav1.CreateOptions) (*T, error) {
	return sendRequest[T](ctx, r.withPath(r.rest.Post()).Body(object), &o)
}

// Get implements Resource.
func (r resource[T, L]) Get(ctx context.Context, name string, o metav1.GetOptions) (*T, error) {
	return sendRequest[T](ctx, r.withPath(r.rest.Get()).Name(name), &o)
}

// List implements Resource.
func (r resource[T, L]) List(ctx context.Context, o metav1.ListOptions) (*L, error) {
	return sendRequest[L](ctx, r.withPath(r.rest.Get()), &o)
}

// Update implements Resource.
func (r resource[T, L]) Update(ctx context.Context, object *T, o metav1.UpdateOptions) (*T, error) {
	return sendRequest[T](ctx, r.withPath(r.rest.Put()).Name(any(object).(metav1.Object).GetName()).Body(object), &o)
}

// Patch implements Resource.
func (r resource[T, L]) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*T, error) {
	return sendRequest[T](ctx, r.withPath(r.rest.Patch(kind)).Name(name).SubResource(subresources...).Body(data), &o)
}

// Delete implements Resource.
func (r resource[T, L]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return r.withPath(r.rest.Delete()).Name(name).Body(&o).Do(ctx).Error()
}
