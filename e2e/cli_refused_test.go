//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/cnibench/cnibench/internal/env/kube"
)

// gate returns a kubeconfig that leads to the cluster under test through a proxy, which calls before with each request.
func gate(t *testing.T, before func(*http.Request)) string {
	t.Helper()
	config := admin(t).Config()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		before(r.In)
		r.SetURL(to)
	}}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	path := rewrite(t, func(c *clientcmdapi.Config) {
		for _, one := range c.Clusters {
			*one = clientcmdapi.Cluster{Server: server.URL}
		}
		for _, one := range c.AuthInfos {
			*one = clientcmdapi.AuthInfo{}
		}
	})
	return path
}

// TestCLIQuota has a cluster that gives every new namespace a quota, as those with many tenants do.
func TestCLIQuota(t *testing.T) {
	client := clientset(admin(t))
	var once sync.Once
	config := gate(t, func(r *http.Request) {
		ns, resources, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"), "/")
		if r.Method != http.MethodPost || resources != "pods" {
			return
		}
		once.Do(func() {
			quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}, Spec: corev1.ResourceQuotaSpec{
				Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")},
			}}
			if _, err := client.CoreV1().ResourceQuotas(ns).Create(context.Background(), quota, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
		})
	})
	p := startRun(t, append(onePath, "--kubeconfig", config)...)
	p.wantEnd(t, time.Minute, 1, "create pod ", "quota: tenant", "hint: a quota limits the run")
	p.wantNothingLeft(t)
}

// subject is the user that a kubeconfig with a token is.
func subject(t *testing.T, path string) string {
	t.Helper()
	c, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range c.AuthInfos {
		if parts := strings.Split(u.Token, "."); len(parts) == 3 {
			raw, err := base64.RawURLEncoding.DecodeString(parts[1])
			var claims struct{ Sub string }
			if err == nil {
				err = json.Unmarshal(raw, &claims)
			}
			if err != nil {
				t.Fatal(err)
			}
			return claims.Sub
		}
	}
	t.Fatal("no token")
	return ""
}

// refuse has the cluster refuse to one user to make or change what an expression is true of.
func refuse(t *testing.T, user, what, expression, message string) {
	t.Helper()
	api, name := clientset(admin(t)).AdmissionregistrationV1(), "cnibench-e2e-"+kube.RunID()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{what}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("request.userInfo.username != '%s' || !(%s)", user, expression), Message: message}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	t.Cleanup(func() {
		for _, err := range []error{
			api.ValidatingAdmissionPolicyBindings().Delete(context.Background(), name, metav1.DeleteOptions{}),
			api.ValidatingAdmissionPolicies().Delete(context.Background(), name, metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	if _, err := api.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// inForce waits until a policy refuses: they are in force a while after they were made.
func inForce(t *testing.T, kubeconfig, message string, try func(context.Context, *kube.Cluster) error) {
	t.Helper()
	o := options(t)
	o.Kubeconfig = kubeconfig
	c, err := kube.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, time.Minute, func() (bool, string) {
		err := try(t.Context(), c)
		return err != nil && strings.Contains(err.Error(), message), fmt.Sprint(err)
	})
}

var dry = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// TestCLIPolicyRefusesPods has an admission policy refuse the run's pods.
func TestCLIPolicyRefusesPods(t *testing.T) {
	config := account(t, kube.Rights)
	refuse(t, subject(t, config), "pods", "true", "no measurements here")
	inForce(t, config, "no measurements here", func(ctx context.Context, c *kube.Cluster) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
		_, err := clientset(c).CoreV1().Pods("default").Create(ctx, pod, dry)
		return err
	})
	p := startRun(t, append(onePath, "--kubeconfig", config)...)
	p.wantEnd(t, time.Minute, 1, "create pod ", "no measurements here", "hint: a policy of this cluster refuses the run's objects")
	p.wantNothingLeft(t)
}

// TestCLIPrivilegedIsForbidden has a cluster without namespaces for host-network pods: the run says how to do without, and
// that way leads to an end.
func TestCLIPrivilegedIsForbidden(t *testing.T) {
	config := account(t, kube.Rights)
	const level = "pod-security.kubernetes.io/enforce"
	refuse(t, subject(t, config), "namespaces", "has(object.metadata.labels) && '"+level+"' in object.metadata.labels && object.metadata.labels['"+level+"'] == 'privileged'", "no host network here")
	inForce(t, config, "no host network here", func(ctx context.Context, c *kube.Cluster) error {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cnibench-e2e-dry", Labels: map[string]string{level: "privileged"}}}
		_, err := clientset(c).CoreV1().Namespaces().Create(ctx, ns, dry)
		return err
	})
	p := startRun(t, append(onePath, "--kubeconfig", config)...)
	p.wantEnd(t, time.Minute, 1, "create namespace ", "no host network here", "hint: ", "--baseline detected")
	p.wantNothingLeft(t)
	p = startRun(t, append(onePath, "--kubeconfig", config, "--baseline", "detected", "--repetitions", "2")...)
	p.wantEnd(t, time.Minute, 0, "4 trials (0 failed)")
	p.wantNothingLeft(t)
}
