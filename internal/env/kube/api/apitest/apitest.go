// Package apitest is an API server in memory: client-go's fake set of clients behind api.Client.
package apitest

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/cnibench/cnibench/internal/env/kube/api"
)

// Clientset is an API server in memory, and its client.
type Clientset struct {
	*fake.Clientset
	*api.Client
}

// NewClientset returns an API server in memory that contains objects.
func NewClientset(objects ...runtime.Object) *Clientset {
	server := fake.NewClientset(objects...)
	core, apps := server.CoreV1(), server.AppsV1()
	return &Clientset{server, &api.Client{
		ConfigMaps:  func(ns string) api.Resource[*corev1.ConfigMap, *corev1.ConfigMapList] { return core.ConfigMaps(ns) },
		Events:      func(ns string) api.Resource[*corev1.Event, *corev1.EventList] { return core.Events(ns) },
		Namespaces:  func() api.Resource[*corev1.Namespace, *corev1.NamespaceList] { return core.Namespaces() },
		Nodes:       func() api.Resource[*corev1.Node, *corev1.NodeList] { return core.Nodes() },
		Pods:        func(ns string) api.Resource[*corev1.Pod, *corev1.PodList] { return core.Pods(ns) },
		Secrets:     func(ns string) api.Resource[*corev1.Secret, *corev1.SecretList] { return core.Secrets(ns) },
		Services:    func(ns string) api.Resource[*corev1.Service, *corev1.ServiceList] { return core.Services(ns) },
		DaemonSets:  func(ns string) api.Resource[*appsv1.DaemonSet, *appsv1.DaemonSetList] { return apps.DaemonSets(ns) },
		Deployments: func(ns string) api.Resource[*appsv1.Deployment, *appsv1.DeploymentList] { return apps.Deployments(ns) },
		EndpointSlices: func(ns string) api.Resource[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList] {
			return server.DiscoveryV1().EndpointSlices(ns)
		},
		NetworkPolicies: func(ns string) api.Resource[*networkingv1.NetworkPolicy, *networkingv1.NetworkPolicyList] {
			return server.NetworkingV1().NetworkPolicies(ns)
		},
		WatchPods: func(ctx context.Context, ns, selector string) (watch.Interface, error) {
			return core.Pods(ns).Watch(ctx, metav1.ListOptions{LabelSelector: selector})
		},
		Logs: func(ctx context.Context, ns, pod string) ([]byte, error) {
			return core.Pods(ns).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
		},
		Review: func(ctx context.Context, r *authorizationv1.SelfSubjectAccessReview) (*authorizationv1.SelfSubjectAccessReview, error) {
			return server.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, r, metav1.CreateOptions{})
		},
		REST: core.RESTClient(),
		Version: func(context.Context) (string, error) {
			v, err := server.Discovery().ServerVersion()
			if err != nil {
				return "", err
			}
			return v.GitVersion, nil
		},
		Kinds: func(_ context.Context, of schema.GroupVersion) (*metav1.APIResourceList, error) {
			return server.Discovery().ServerResourcesForGroupVersion(of.String())
		},
	}}
}
