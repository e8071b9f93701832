// Package api has clients for the part of the Kubernetes API that cnibench uses: a dozen resources, over client-go's REST
// client. client-go's own typed clients would make the binary 17 MB larger, because they link every API group of Kubernetes.
// They also register all types whenever a process of cnibench starts, even an agent. client-go's generic client links its
// fakes, which take 4 MB.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Client sends requests to an API server. Tests replace its functions.
type Client struct {
	ConfigMaps      func(namespace string) Resource[*corev1.ConfigMap, *corev1.ConfigMapList]
	Events          func(namespace string) Resource[*corev1.Event, *corev1.EventList]
	Namespaces      func() Resource[*corev1.Namespace, *corev1.NamespaceList]
	Nodes           func() Resource[*corev1.Node, *corev1.NodeList]
	Pods            func(namespace string) Resource[*corev1.Pod, *corev1.PodList]
	Secrets         func(namespace string) Resource[*corev1.Secret, *corev1.SecretList]
	Services        func(namespace string) Resource[*corev1.Service, *corev1.ServiceList]
	DaemonSets      func(namespace string) Resource[*appsv1.DaemonSet, *appsv1.DaemonSetList]
	Deployments     func(namespace string) Resource[*appsv1.Deployment, *appsv1.DeploymentList]
	EndpointSlices  func(namespace string) Resource[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList]
	NetworkPolicies func(namespace string) Resource[*networkingv1.NetworkPolicy, *networkingv1.NetworkPolicyList]
	// WatchPods watches the pods of a namespace that a label selector selects. The first events are the present states of
	// these pods.
	WatchPods func(ctx context.Context, namespace, selector string) (watch.Interface, error)
	// Logs returns what a pod has printed.
	Logs func(ctx context.Context, namespace, pod string) ([]byte, error)
	// Summary returns the kubelet's statistics of CPU time and memory of a node, in JSON.
	Summary func(ctx context.Context, node string) ([]byte, error)
	// Review asks the API server whether the user has a right.
	Review func(ctx context.Context, r *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error)
	// REST is the client of the core group, for subresources.
	REST rest.Interface
	// Version returns the version of the API server, such as v1.36.3. It fails with ErrNotKubernetes if the answer has
	// no version.
	Version func(ctx context.Context) (string, error)
	// Kinds returns the resources of a group version. It fails with NotFound if the API server does not serve the group
	// version.
	Kinds func(ctx context.Context, of schema.GroupVersion) (*metav1.APIResourceList, error)
}

// Resource is a typed client of one resource.
type Resource[T, L any] interface {
	Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error)
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Update(ctx context.Context, object T, o metav1.UpdateOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// scheme returns the Go types of the group versions that Client uses. It builds them once.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, authorizationv1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two types of one name
		}
	}
	return s
})

// Parameters returns the codec that encodes options as the query of a request.
var Parameters = sync.OnceValue(func() runtime.ParameterCodec { return runtime.NewParameterCodec(scheme()) })

// New returns a client for the API server of config. It contacts no server.
func New(config *rest.Config) (*Client, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	groups := map[schema.GroupVersion]*rest.RESTClient{}
	for _, v := range []schema.GroupVersion{
		corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion,
	} {
		if groups[v], err = clientFor(config, transport, v); err != nil {
			return nil, err
		}
	}
	core, apps := groups[corev1.SchemeGroupVersion], groups[appsv1.SchemeGroupVersion]
	namespaces, nodes := resourceClients[corev1.Namespace, corev1.NamespaceList](core, "namespaces"), resourceClients[corev1.Node, corev1.NodeList](core, "nodes")
	reviews := resourceClients[authorizationv1.SelfSubjectAccessReview, authorizationv1.SelfSubjectAccessReview](groups[authorizationv1.SchemeGroupVersion], "selfsubjectaccessreviews")
	return &Client{
		ConfigMaps:      resourceClients[corev1.ConfigMap, corev1.ConfigMapList](core, "configmaps"),
		Events:          resourceClients[corev1.Event, corev1.EventList](core, "events"),
		Namespaces:      func() Resource[*corev1.Namespace, *corev1.NamespaceList] { return namespaces("") },
		Nodes:           func() Resource[*corev1.Node, *corev1.NodeList] { return nodes("") },
		Pods:            resourceClients[corev1.Pod, corev1.PodList](core, "pods"),
		Secrets:         resourceClients[corev1.Secret, corev1.SecretList](core, "secrets"),
		Services:        resourceClients[corev1.Service, corev1.ServiceList](core, "services"),
		DaemonSets:      resourceClients[appsv1.DaemonSet, appsv1.DaemonSetList](apps, "daemonsets"),
		Deployments:     resourceClients[appsv1.Deployment, appsv1.DeploymentList](apps, "deployments"),
		EndpointSlices:  resourceClients[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](groups[discoveryv1.SchemeGroupVersion], "endpointslices"),
		NetworkPolicies: resourceClients[networkingv1.NetworkPolicy, networkingv1.NetworkPolicyList](groups[networkingv1.SchemeGroupVersion], "networkpolicies"),
		WatchPods: func(ctx context.Context, namespace, selector string) (watch.Interface, error) {
			o := &metav1.ListOptions{Watch: true, LabelSelector: selector}
			return core.Get().Namespace(namespace).Resource("pods").VersionedParams(o, Parameters()).Watch(ctx)
		},
		Logs: func(ctx context.Context, namespace, pod string) ([]byte, error) {
			return core.Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("log").DoRaw(ctx)
		},
		Summary: func(ctx context.Context, node string) ([]byte, error) {
			return core.Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("stats/summary").Param("only_cpu_and_memory", "true").DoRaw(ctx)
		},
		Review: func(ctx context.Context, r *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error) {
			return reviews("").Create(ctx, r, metav1.CreateOptions{})
		},
		REST:    core,
		Version: func(ctx context.Context) (string, error) { return serverVersion(ctx, core) },
		Kinds: func(ctx context.Context, of schema.GroupVersion) (*metav1.APIResourceList, error) {
			list := &metav1.APIResourceList{}
			return list, core.Get().AbsPath(rootOf(of), of.String()).Do(ctx).Into(list)
		},
	}, nil
}

// resourceClients returns a function that returns the client of the resource called name in a namespace.
func resourceClients[T, L any](at *rest.RESTClient, name string) func(namespace string) Resource[*T, *L] {
	return func(namespace string) Resource[*T, *L] { return resource[T, L]{at, name, namespace} }
}

func clientFor(config *rest.Config, transport *http.Client, v schema.GroupVersion) (*rest.RESTClient, error) {
	one := rest.CopyConfig(config)
	one.GroupVersion, one.APIPath = &v, rootOf(v)
	one.NegotiatedSerializer = serializer.NewCodecFactory(scheme()).WithoutConversion()
	if one.UserAgent == "" {
		one.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	return rest.RESTClientForConfigAndClient(one, transport)
}

// rootOf returns the root of the URL paths of a group version: "/api" for the core group, "/apis" for all others.
func rootOf(v schema.GroupVersion) string {
	if v.Group == "" {
		return "/api"
	}
	return "/apis"
}

// ErrNotKubernetes means that the server that answered is not an API server of Kubernetes.
var ErrNotKubernetes = errors.New("not a Kubernetes API server")

func serverVersion(ctx context.Context, at rest.Interface) (string, error) {
	raw, err := at.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var v struct{ GitVersion string }
	if err := json.Unmarshal(raw, &v); err != nil || v.GitVersion == "" {
		return "", ErrNotKubernetes
	}
	return v.GitVersion, nil
}
