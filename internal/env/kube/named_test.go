package kube

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/env/kube/api/apitest"
	"github.com/cnibench/cnibench/internal/judge/diagnose"
)

// shop is a namespace with a Service cart of two pods, of which one is not ready, and Services of other kinds.
func shop() *apitest.Clientset {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "cart"}}
	}
	pod := func(name, node, ip string, ready corev1.ConditionStatus, why string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: meta(name), Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{
			{Name: "app", Ports: []corev1.ContainerPort{{Name: "dns", Protocol: corev1.ProtocolUDP, ContainerPort: 53}, {Name: "http", ContainerPort: 8080}, {Name: "admin", ContainerPort: 9090}}},
		}}, Status: corev1.PodStatus{PodIP: ip, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, Reason: why}}}}
	}
	service := func(name, ip string, ports ...corev1.ServicePort) *corev1.Service {
		return &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: ports, Selector: map[string]string{"app": "cart"}}}
	}
	http := corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}
	slice := func(service string, family discoveryv1.AddressType, ips ...string) *discoveryv1.EndpointSlice {
		name, port := "http", int32(8080)
		s := &discoveryv1.EndpointSlice{AddressType: family, ObjectMeta: meta(service + strings.ToLower(string(family))), Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}}}
		s.Labels = map[string]string{discoveryv1.LabelServiceName: service}
		for i, ip := range ips {
			ready, node := i == 0, "n2"
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{ip}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, TargetRef: &corev1.ObjectReference{Name: []string{"cart-1", "cart-2"}[i]},
			})
		}
		return s
	}
	local := service("local", "10.96.0.9", http)
	only := corev1.ServiceInternalTrafficPolicyLocal
	local.Spec.InternalTrafficPolicy = &only
	outside := service("outside", "")
	outside.Spec.Type, outside.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.org"
	return apitest.NewClientset(
		pod("cart-1", "n2", "10.0.2.1", corev1.ConditionTrue, ""), pod("cart-2", "n3", "10.0.3.1", corev1.ConditionFalse, "ContainersNotReady"),
		service("cart", "10.96.0.7", corev1.ServicePort{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53}, http), slice("cart", discoveryv1.AddressTypeIPv4, "10.0.2.1", "10.0.3.1"),
		slice("cart", discoveryv1.AddressTypeIPv6, "fd00::1", "fd00::2"),
		service("headless", corev1.ClusterIPNone, http), slice("headless", discoveryv1.AddressTypeIPv4, "10.0.2.1"),
		service("empty", "fd00:96::8", http), local, outside, service("udp", "10.96.0.8", corev1.ServicePort{Protocol: corev1.ProtocolUDP, Port: 53}),
		&networkingv1.NetworkPolicy{ObjectMeta: meta("closed"), Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "cart"}}}},
		&networkingv1.NetworkPolicy{ObjectMeta: meta("other"), Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}}},
	)
}

// TestFind: what is named is found with its address, its pods by family and port, those that are not ready with the reason,
// and the policies that select them; what cannot be connected to says why.
func TestFind(t *testing.T) {
	closed := []string{"shop/closed"}
	ready := diagnose.Pod{Name: "cart-1", Node: "n2", Address: "10.0.2.1:8080"}
	late := "cart-2 (it is not ready: ContainersNotReady)"
	for _, tt := range []struct {
		text string
		want diagnose.Named
	}{
		{"shop/cart", diagnose.Named{Name: "Service shop/cart", Address: "10.96.0.7:80", Pods: []diagnose.Pod{ready}, Unready: []string{late}, Policies: closed}},
		{"shop/cart:http", diagnose.Named{Name: "Service shop/cart", Address: "10.96.0.7:80", Pods: []diagnose.Pod{ready}, Unready: []string{late}, Policies: closed}},
		{"shop/cart:81", diagnose.Named{Name: "Service shop/cart", Why: "it has no TCP port 81"}},
		{"shop/udp", diagnose.Named{Name: "Service shop/udp", Why: "it has no TCP port"}},
		{"shop/outside", diagnose.Named{Name: "Service shop/outside", Why: "it is a name for example.org, outside the cluster"}},
		{"shop/headless", diagnose.Named{Name: "Service shop/headless", Pods: []diagnose.Pod{ready}, Policies: closed}},
		{"shop/empty", diagnose.Named{Name: "Service shop/empty", Address: "[fd00:96::8]:80", Policies: closed}},
		{"shop/local", diagnose.Named{Name: "Service shop/local", Address: "10.96.0.9:80", Policies: closed, Note: "its internalTrafficPolicy is Local: a node without one of its pods reaches none"}},
		{"shop/cart-1", diagnose.Named{Name: "pod shop/cart-1", Node: "n2", Pods: []diagnose.Pod{ready}, Policies: closed}},
		{"shop/cart-1:admin", diagnose.Named{Name: "pod shop/cart-1", Node: "n2", Pods: []diagnose.Pod{{Name: "cart-1", Node: "n2", Address: "10.0.2.1:9090"}}, Policies: closed}},
		{"shop/cart-1:7070", diagnose.Named{Name: "pod shop/cart-1", Node: "n2", Pods: []diagnose.Pod{{Name: "cart-1", Node: "n2", Address: "10.0.2.1:7070"}}, Policies: closed}},
		{"shop/cart-1:none", diagnose.Named{Name: "pod shop/cart-1", Node: "n2", Policies: closed, Why: `it declares no TCP port "none"`}},
		{"shop/cart-2", diagnose.Named{Name: "pod shop/cart-2", Node: "n3", Unready: []string{late}, Policies: closed}},
	} {
		got, err := findNamed(t.Context(), shop().Client, tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
		}
		if tt.want.Why != "" {
			got.Pods = nil // which are not connected to
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.text, diff)
		}
	}
	for text, want := range map[string]string{
		"shop/nothing": "there is no Service and no pod nothing in namespace shop",
		"shop/":        "want NAMESPACE/NAME", "/cart": "want NAMESPACE/NAME", "a/b/c": "want NAMESPACE/NAME",
	} {
		if _, err := findNamed(t.Context(), shop().Client, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}
