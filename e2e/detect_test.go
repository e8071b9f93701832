//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/profile"
)

// expected are the profile and kube-proxy's mode that the cluster under test was raised with.
func expected() (profile, proxy string) {
	return cmp.Or(os.Getenv("CNIBENCH_PROFILE"), "flannel-vxlan"), cmp.Or(os.Getenv("CNIBENCH_PROXY"), "iptables")
}

// connection reaches the cluster, as another user if one is named.
func connection(t *testing.T, as string) detect.Clients {
	t.Helper()
	c, err := kube.Connect(options(t))
	if err != nil {
		t.Fatal(err)
	}
	config := c.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: as}
	clients, err := detect.ClientsOf(config)
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// TestDetectAndProve: the cluster's CNI, its mode and kube-proxy's are named, and shown on the nodes and on the wire.
func TestDetectAndProve(t *testing.T) {
	want, proxy := expected()
	prove(t, want, proxy)
}

// prove wants the cluster to be named as a profile under a mode of kube-proxy ("none" without it), and every proof to hold.
func prove(t *testing.T, want, proxy string) {
	t.Helper()
	clients := connection(t, "")
	s, err := detect.Read(t.Context(), clients)
	if err != nil {
		t.Fatal(err)
	}
	byObjects := strings.HasPrefix(want, "flannel") || strings.HasPrefix(want, "cilium")
	if v := detect.Detect(s); byObjects && v.Profile != want {
		t.Errorf("by its objects alone the cluster is %q (%s), want %s; doubts %q, unproven %q", v.Profile, v.Title, want, v.Doubts, v.Unproven)
	}
	run := kube.RunID()
	post, err := detect.Post(t.Context(), clients, detect.LookoutOptions{
		Run: run, Image: os.Getenv("CNIBENCH_IMAGE"), Nodes: []string{s.Nodes[0].Name, s.Nodes[1].Name}, Pods: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := post.Close(ctx); err != nil {
			t.Error(err)
		}
		if _, err := clients.Kube.Namespaces().Get(ctx, "cnibench-"+run+"-look", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the lookouts' namespace is left: %v", err)
		}
	}()
	after, v, proofs, err := detect.Prove(t.Context(), s, detect.Ground{Profile: want, Ends: post.Ends(), Routes: post.Routes()})
	if err != nil {
		t.Fatal(err)
	}
	proved := map[string]bool{}
	for _, p := range proofs {
		t.Log(p)
		if p.Result != detect.OK {
			t.Error(p)
		}
		proved[p.What] = true
	}
	for _, what := range []string{"profile", "placement", "device of the pod", "MTU of the pod", "kube-proxy", "MTU end to end", "encapsulation on the wire"} {
		if !proved[what] {
			t.Errorf("%s is not proved", what)
		}
	}
	known, _ := profile.Lookup(want)
	if v.Profile != want || v.Encapsulation.Value != known.Encapsulation {
		t.Errorf("%+v", v)
	}
	if runs := v.KubeProxy.Runs == detect.Yes; runs != (proxy != "none") || runs && v.KubeProxy.Mode != proxy {
		t.Errorf("kube-proxy %+v, want %s", v.KubeProxy, proxy)
	}
	for name, value := range detect.Facts(v, after, proofs) {
		t.Logf("%s = %s", name, value)
	}
}

// TestDetectWithoutRights: a user who may read nothing gets no error, and a list of what could not be read.
func TestDetectWithoutRights(t *testing.T) {
	s, err := detect.Read(t.Context(), connection(t, "nobody-in-particular"))
	if err != nil {
		t.Fatal(err)
	}
	v := detect.Detect(s)
	for _, want := range []string{"list nodes", "list daemonsets", "list pods in kube-system"} {
		if !strings.Contains(strings.Join(v.Unproven, "\n"), want) {
			t.Errorf("%q is not in %q", want, v.Unproven)
		}
	}
	if v.Profile != "" || v.CNI != "" || v.KubeProxy.Runs != detect.Unknown {
		t.Errorf("claimed without having seen anything: %+v", v)
	}
}
