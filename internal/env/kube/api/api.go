// Package api is the part of the Kubernetes API that cnibench uses: typed clients of a dozen resources over client-go's
// REST client. client-go's own set of clients links every API group of Kubernetes, 17 MB of the binary, and registers their
// types when any process of this program starts, agents included.
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
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Interface is what is asked of an API server.
type Interface interface {
	ConfigMaps(namespace string) Resource[*corev1.ConfigMap, *corev1.ConfigMapList]
	Events(namespace string) Resource[*corev1.Event, *corev1.EventList]
	Namespaces() Resource[*corev1.Namespace, *corev1.NamespaceList]
	Nodes() Resource[*corev1.Node, *corev1.NodeList]
	Pods(namespace string) Pods
	Secrets(namespace string) Resource[*corev1.Secret, *corev1.SecretList]
	Services(namespace string) Resource[*corev1.Service, *corev1.ServiceList]
	DaemonSets(namespace string) Resource[*appsv1.DaemonSet, *appsv1.DaemonSetList]
	Deployments(namespace string) Resource[*appsv1.Deployment, *appsv1.DeploymentList]
	EndpointSlices(namespace string) Resource[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList]
	NetworkPolicies(namespace string) Resource[*networkingv1.NetworkPolicy, *networkingv1.NetworkPolicyList]
	AccessReviews() AccessReviews
	// REST returns the client of the core group, for subresources that are streams.
	REST() rest.Interface
	// Version returns the version of the API server, such as v1.36.3.
	Version(ctx context.Context) (string, error)
	// Kinds returns what a group version has. It fails with NotFound if that is not served.
	Kinds(ctx context.Context, of schema.GroupVersion) (*metav1.APIResourceList, error)
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

// Pods is the client of pods.
type Pods interface {
	Resource[*corev1.Pod, *corev1.PodList]
	GetLogs(name string, o *corev1.PodLogOptions) *rest.Request
}

// AccessReviews asks what the user may do.
type AccessReviews interface {
	Create(ctx context.Context, r *authorizationv1.SelfSubjectAccessReview, o metav1.CreateOptions) (*authorizationv1.SelfSubjectAccessReview, error)
}

// Scheme returns the types of the group versions that are used.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, authorizationv1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme, rbacv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two types of one name
		}
	}
	return s
})

// Parameters writes options into the query of a request.
var Parameters = sync.OnceValue(func() runtime.ParameterCodec { return runtime.NewParameterCodec(Scheme()) })

// Client is an Interface to a real API server.
type Client struct {
	groups map[schema.GroupVersion]*rest.RESTClient
}

// New returns a client for what config leads to. It contacts no server.
func New(config *rest.Config) (*Client, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := &Client{groups: map[schema.GroupVersion]*rest.RESTClient{}}
	for _, v := range []schema.GroupVersion{
		corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion,
	} {
		if c.groups[v], err = clientFor(config, transport, v); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func clientFor(config *rest.Config, transport *http.Client, v schema.GroupVersion) (*rest.RESTClient, error) {
	one := rest.CopyConfig(config)
	one.GroupVersion, one.APIPath = &v, "/apis"
	if v.Group == "" {
		one.APIPath = "/api"
	}
	one.NegotiatedSerializer = serializer.NewCodecFactory(Scheme()).WithoutConversion()
	if one.UserAgent == "" {
		one.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	return rest.RESTClientForConfigAndClient(one, transport)
}

// ConfigMaps returns the client of ConfigMaps in a namespace.
func (c *Client) ConfigMaps(namespace string) Resource[*corev1.ConfigMap, *corev1.ConfigMapList] {
	return resource[corev1.ConfigMap, corev1.ConfigMapList]{c.groups[corev1.SchemeGroupVersion], "configmaps", namespace}
}

// Events returns the client of Events in a namespace.
func (c *Client) Events(namespace string) Resource[*corev1.Event, *corev1.EventList] {
	return resource[corev1.Event, corev1.EventList]{c.groups[corev1.SchemeGroupVersion], "events", namespace}
}

// Namespaces returns the client of namespaces.
func (c *Client) Namespaces() Resource[*corev1.Namespace, *corev1.NamespaceList] {
	return resource[corev1.Namespace, corev1.NamespaceList]{c.groups[corev1.SchemeGroupVersion], "namespaces", ""}
}

// Nodes returns the client of nodes.
func (c *Client) Nodes() Resource[*corev1.Node, *corev1.NodeList] {
	return resource[corev1.Node, corev1.NodeList]{c.groups[corev1.SchemeGroupVersion], "nodes", ""}
}

// Pods returns the client of pods in a namespace.
func (c *Client) Pods(namespace string) Pods {
	return pods{resource[corev1.Pod, corev1.PodList]{c.groups[corev1.SchemeGroupVersion], "pods", namespace}}
}

type pods struct {
	resource[corev1.Pod, corev1.PodList]
}

// GetLogs returns a request for what a pod has printed.
func (p pods) GetLogs(name string, o *corev1.PodLogOptions) *rest.Request {
	return p.to(p.rest.Get()).Name(name).SubResource("log").VersionedParams(o, Parameters())
}

// Secrets returns the client of Secrets in a namespace.
func (c *Client) Secrets(namespace string) Resource[*corev1.Secret, *corev1.SecretList] {
	return resource[corev1.Secret, corev1.SecretList]{c.groups[corev1.SchemeGroupVersion], "secrets", namespace}
}

// Services returns the client of Services in a namespace.
func (c *Client) Services(namespace string) Resource[*corev1.Service, *corev1.ServiceList] {
	return resource[corev1.Service, corev1.ServiceList]{c.groups[corev1.SchemeGroupVersion], "services", namespace}
}

// DaemonSets returns the client of DaemonSets in a namespace.
func (c *Client) DaemonSets(namespace string) Resource[*appsv1.DaemonSet, *appsv1.DaemonSetList] {
	return resource[appsv1.DaemonSet, appsv1.DaemonSetList]{c.groups[appsv1.SchemeGroupVersion], "daemonsets", namespace}
}

// Deployments returns the client of Deployments in a namespace.
func (c *Client) Deployments(namespace string) Resource[*appsv1.Deployment, *appsv1.DeploymentList] {
	return resource[appsv1.Deployment, appsv1.DeploymentList]{c.groups[appsv1.SchemeGroupVersion], "deployments", namespace}
}

// EndpointSlices returns the client of EndpointSlices in a namespace.
func (c *Client) EndpointSlices(namespace string) Resource[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList] {
	return resource[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList]{c.groups[discoveryv1.SchemeGroupVersion], "endpointslices", namespace}
}

// NetworkPolicies returns the client of NetworkPolicies in a namespace.
func (c *Client) NetworkPolicies(namespace string) Resource[*networkingv1.NetworkPolicy, *networkingv1.NetworkPolicyList] {
	return resource[networkingv1.NetworkPolicy, networkingv1.NetworkPolicyList]{c.groups[networkingv1.SchemeGroupVersion], "networkpolicies", namespace}
}

// AccessReviews returns the client that asks what the user may do.
func (c *Client) AccessReviews() AccessReviews {
	return resource[authorizationv1.SelfSubjectAccessReview, authorizationv1.SelfSubjectAccessReview]{
		c.groups[authorizationv1.SchemeGroupVersion], "selfsubjectaccessreviews", "",
	}
}

// REST returns the client of the core group.
func (c *Client) REST() rest.Interface { return c.groups[corev1.SchemeGroupVersion] }

// ErrNotKubernetes means that what answers is not an API server of Kubernetes.
var ErrNotKubernetes = errors.New("not a Kubernetes API server")

// Version asks for the version. The error is ErrNotKubernetes if the answer has none.
func (c *Client) Version(ctx context.Context) (string, error) {
	raw, err := c.REST().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	var v struct{ GitVersion string }
	if err := json.Unmarshal(raw, &v); err != nil || v.GitVersion == "" {
		return "", ErrNotKubernetes
	}
	return v.GitVersion, nil
}

// Kinds asks what a group version has.
func (c *Client) Kinds(ctx context.Context, of schema.GroupVersion) (*metav1.APIResourceList, error) {
	path := "/apis/" + of.String()
	if of.Group == "" {
		path = "/api/" + of.Version
	}
	list := &metav1.APIResourceList{}
	return list, c.REST().Get().AbsPath(path).Do(ctx).Into(list)
}
