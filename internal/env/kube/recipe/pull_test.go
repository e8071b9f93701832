package recipe

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/env/kube/api/apitest"
	"github.com/cnibench/cnibench/internal/env/kube/recipe/residue"

	"github.com/cnibench/cnibench/internal/env/kube/api"
)

// pulling is an Installer whose image is pulled with a Secret that is there.
func pulling() (*Installer, *apitest.Clientset) {
	i, client := standing(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "registry"}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{".dockerconfigjson": []byte("{}")},
	})
	i.Timeout = time.Minute
	i.Image, i.PullSecrets = "registry.example/cnibench:1", []api.PullSecret{{Namespace: "team", Name: "registry"}}
	return i, client
}

// TestNodePodsPull: pods that look at nodes and those that sweep them have their Secrets before them, in their own namespace.
func TestNodePodsPull(t *testing.T) {
	for name, visit := range map[string]func(*Installer) error{
		"look": func(i *Installer) error {
			_, err := i.inspectNodes(t.Context(), []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}})
			return err
		},
		"sweep": func(i *Installer) error {
			return i.sweepOnce(t.Context(), []residue.Leftover{{Node: "n1", Kind: "device", Name: "vxlan.calico", Remove: "ip link del vxlan.calico"}})
		},
	} {
		i, client := pulling()
		client.PrependReactor("create", "namespaces", func(a k8stesting.Action) (bool, runtime.Object, error) {
			a.(k8stesting.CreateAction).GetObject().(*corev1.Namespace).Name = "cnibench-look-x"
			return false, nil, nil
		})
		pods := 0
		client.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
			pods++
			p := a.(k8stesting.CreateAction).GetObject().(*corev1.Pod)
			p.Name, p.Status.Phase = "node-x", corev1.PodSucceeded
			if refs := p.Spec.ImagePullSecrets; len(refs) != 1 || refs[0].Name != "registry" {
				t.Errorf("%s: the pod is pulled with %v", name, refs)
			}
			if _, err := client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), a.GetNamespace(), "registry"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return false, nil, nil
		})
		if err := visit(i); err != nil || pods != 1 {
			t.Errorf("%s: %d pods, %v", name, pods, err)
		}

		i, client = pulling()
		client.PrependReactor("create", "secrets", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("a quota") })
		if err := visit(i); err == nil || !strings.Contains(err.Error(), "copy image pull Secret registry from namespace team") {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
			t.Errorf("%s: left %v, %v", name, left.Items, err)
		}
	}
}

// TestPlanterPulls: the Secret is applied, and so recorded for uninstall, before the pods that are pulled with it. A dry run
// shows who would be pulled with it, and nothing of what is in it.
func TestPlanterPulls(t *testing.T) {
	conflist := []Action{{Kind: plantConflist, Name: "10-ptp.conflist", Text: "{}", Node: "n1"}}
	i, client := pulling()
	client.Resources = []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "namespaces", Kind: "Namespace"}, {Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "secrets", Kind: "Secret", Namespaced: true},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "daemonsets", Kind: "DaemonSet", Namespaced: true}}},
	}
	i.mapper = api.NewMapper(client.Client)
	var applied []string
	i.dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("patch", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		applied = append(applied, a.GetResource().Resource)
		return true, &unstructured.Unstructured{}, nil
	})
	inv := &inventory{Profile: "ptp"}
	if err := i.applyPlanter(t.Context(), inv, conflist, nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{"namespaces", "configmaps", "secrets", "daemonsets"}; !slices.Equal(applied, want) {
		t.Errorf("applied %q, want %q", applied, want)
	}
	if !slices.ContainsFunc(inv.Items, func(o item) bool {
		return o.Kind == "Secret" && o.Name == "registry" && o.Namespace == planterNamespace("ptp") && !o.Existed
	}) {
		t.Errorf("recorded %+v", inv.Items)
	}

	i, _ = pulling()
	var out bytes.Buffer
	i.DryRun, i.Out = DryRunClient, &out
	if err := i.applyPlanter(t.Context(), &inventory{Profile: "ptp"}, conflist, nil); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "imagePullSecrets:\n      - name: registry") || strings.Contains(text, "kind: Secret") {
		t.Errorf("a dry run shows\n%s", text)
	}
}
