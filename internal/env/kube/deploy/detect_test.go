package deploy

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/cnibench/cnibench/internal/env/kube/api/apitest"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
)

// daemons are the DaemonSets that make package detect ask for more.
var daemons = []string{"cilium", "calico-node", "canal", "rke2-canal", "kube-flannel-ds", "ovnkube-node", "kube-proxy", ""}

// The two roles allow everything that detection asks of a cluster, whatever CNI it has, and the second allows nothing that
// detection never asks for.
func TestDetection(t *testing.T) {
	plain := decode(t, string(rbacManifest()))
	base, more := one[*rbacv1.ClusterRole](t, plain, "cnibench").Rules, one[*rbacv1.ClusterRole](t, plain, "detect").Rules
	used := map[string]bool{}
	for _, daemon := range daemons {
		for _, a := range asked(t, daemon) {
			if i := slices.IndexFunc(more, func(r rbacv1.PolicyRule) bool { return allows(r, a) }); i >= 0 {
				used[more[i].Resources[0]+"."+more[i].APIGroups[0]] = true
			} else if !slices.ContainsFunc(base, func(r rbacv1.PolicyRule) bool { return allows(r, a) }) {
				t.Errorf("with %q detection asks to %s %v %s, which no role allows", daemon, a.GetVerb(), a.GetResource(), nameOf(a))
			}
		}
	}
	for _, r := range more {
		for _, resource := range r.Resources {
			if key := resource + "." + r.APIGroups[0]; !used[r.Resources[0]+"."+r.APIGroups[0]] {
				t.Errorf("detection never needs %s", key)
			}
		}
	}
}

// asked are the requests of detection on a cluster with this DaemonSet.
func asked(t *testing.T, daemon string) []clienttesting.Action {
	t.Helper()
	labels := map[string]string{"app": "cni"}
	objects := []runtime.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Annotations: map[string]string{"flannel.alpha.coreos.com/backend-type": "vxlan"}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cni-1", Labels: labels}, Spec: corev1.PodSpec{NodeName: "n1"}},
	}
	if daemon != "" {
		objects = append(objects, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: daemon}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
		})
	}
	kinds := map[schema.GroupVersionResource]string{{Group: "operator.tigera.io", Version: "v1", Resource: "installations"}: "InstallationList", {Group: "operator.openshift.io", Version: "v1", Resource: "networks"}: "NetworkList"}
	for _, g := range []schema.GroupVersion{{Group: "crd.projectcalico.org", Version: "v1"}, {Group: "projectcalico.org", Version: "v3"}} {
		kinds[g.WithResource("felixconfigurations")] = "FelixConfigurationList"
		kinds[g.WithResource("ippools")] = "IPPoolList"
	}
	typed, custom := apitest.NewClientset(objects...), dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	if _, err := detect.Read(t.Context(), detect.Clients{Kube: typed.Client, Dynamic: custom}); err != nil {
		t.Fatal(err)
	}
	actions := slices.Concat(typed.Actions(), custom.Actions())
	return slices.DeleteFunc(actions, func(a clienttesting.Action) bool {
		return a.GetResource().Resource == "version" || a.GetResource().Resource == "group" // which everybody may ask for
	})
}

func nameOf(a clienttesting.Action) string {
	if g, ok := a.(clienttesting.GetAction); ok {
		return g.GetName()
	}
	return ""
}

// allows says whether a rule grants a request.
func allows(r rbacv1.PolicyRule, a clienttesting.Action) bool {
	resource := strings.Trim(a.GetResource().Resource+"/"+a.GetSubresource(), "/")
	return slices.Contains(r.APIGroups, a.GetResource().Group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, a.GetVerb()) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, nameOf(a)))
}
