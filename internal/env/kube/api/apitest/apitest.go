// Package apitest puts client-go's fake set of clients behind api.Interface.
package apitest

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/cnibench/cnibench/internal/env/kube/api"
)

// Clientset is an API server in memory.
type Clientset struct{ *fake.Clientset }

// NewClientset returns an API server that has objects.
func NewClientset(objects ...runtime.Object) *Clientset {
	return &Clientset{fake.NewClientset(objects...)}
}

// ConfigMaps implements api.Interface.
func (c *Clientset) ConfigMaps(namespace string) api.Resource[*corev1.ConfigMap, *corev1.ConfigMapList] {
	return c.CoreV1().ConfigMaps(namespace)
}

// Events implements api.Interface.
func (c *Clientset) Events(namespace string) api.Resource[*corev1.Event, *corev1.EventList] {
	return c.CoreV1().Events(namespace)
}

// Namespaces implements api.Interface.
func (c *Clientset) Namespaces() api.Resource[*corev1.Namespace, *corev1.NamespaceList] {
	return c.CoreV1().Namespaces()
}

// Nodes implements api.Interface.
func (c *Clientset) Nodes() api.Resource[*corev1.Node, *corev1.NodeList] { return c.CoreV1().Nodes() }

// Pods implements api.Interface.
func (c *Clientset) Pods(namespace string) api.Pods { return c.CoreV1().Pods(namespace) }

// Secrets implements api.Interface.
func (c *Clientset) Secrets(namespace string) api.Resource[*corev1.Secret, *corev1.SecretList] {
	return c.CoreV1().Secrets(namespace)
}

// Services implements api.Interface.
func (c *Clientset) Services(namespace string) api.Resource[*corev1.Service, *corev1.ServiceList] {
	return c.CoreV1().Services(namespace)
}

// DaemonSets implements api.Interface.
func (c *Clientset) DaemonSets(namespace string) api.Resource[*appsv1.DaemonSet, *appsv1.DaemonSetList] {
	return c.AppsV1().DaemonSets(namespace)
}

// Deployments implements api.Interface.
func (c *Clientset) Deployments(namespace string) api.Resource[*appsv1.Deployment, *appsv1.DeploymentList] {
	return c.AppsV1().Deployments(namespace)
}

// EndpointSlices implements api.Interface.
func (c *Clientset) EndpointSlices(namespace string) api.Resource[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList] {
	return c.DiscoveryV1().EndpointSlices(namespace)
}

// NetworkPolicies implements api.Interface.
func (c *Clientset) NetworkPolicies(namespace string) api.Resource[*networkingv1.NetworkPolicy, *networkingv1.NetworkPolicyList] {
	return c.NetworkingV1().NetworkPolicies(namespace)
}

// AccessReviews implements api.Interface.
func (c *Clientset) AccessReviews() api.AccessReviews {
	return c.AuthorizationV1().SelfSubjectAccessReviews()
}

// REST implements api.Interface.
func (c *Clientset) REST() rest.Interface { return c.CoreV1().RESTClient() }

// Version implements api.Interface.
func (c *Clientset) Version(context.Context) (string, error) {
	v, err := c.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	return v.GitVersion, nil
}

// Kinds implements api.Interface.
func (c *Clientset) Kinds(_ context.Context, of schema.GroupVersion) (*metav1.APIResourceList, error) {
	return c.Discovery().ServerResourcesForGroupVersion(of.String())
}
