//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/env/kube/recipe/residue"
)

// charts are modules that have a chart or manifest in them, by the recipe's family.
var charts = map[string]struct{ module, path string }{
	"cilium":  {"github.com/cilium/cilium@v1.20.2", "install/kubernetes/cilium"},
	"flannel": {"github.com/flannel-io/flannel@v0.28.10", "Documentation/kube-flannel.yml"},
}

// built are the charts and manifests of the images that the test cluster has.
var built = map[string]struct{ module, path string }{
	"cilium":  charts["cilium"],
	"flannel": {"github.com/flannel-io/flannel@v0.28.4", "Documentation/kube-flannel.yml"},
}

// source returns where the chart or manifest of a family is on this machine.
func source(t *testing.T, family string) string {
	t.Helper()
	return download(t, charts[family])
}

func download(t *testing.T, c struct{ module, path string }) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", c.module)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if bad := json.Unmarshal(out, &got); err != nil || bad != nil || got.Dir == "" {
		t.Skipf("%s cannot be had from the module proxy: %v %s", c.module, err, got.Error)
	}
	return filepath.Join(got.Dir, c.path)
}

// installer returns one for the cluster under test.
func installer(t *testing.T, o recipe.Options) *recipe.Installer {
	t.Helper()
	of := options(t)
	c, err := kube.Connect(of)
	if err != nil {
		t.Fatal(err)
	}
	o.Say, o.Image, o.Timeout = t.Logf, of.Image, 5*time.Minute
	i, err := recipe.NewInstaller(c.Config(), o)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// TestRecipeLearn: what recipes want to know is found out on a cluster that kubeadm did not make.
func TestRecipeLearn(t *testing.T) {
	p, err := installer(t, recipe.Options{}).Learn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !p.PodCIDR.IsValid() || p.APIServer == "" || len(p.Nodes) < 2 {
		t.Fatalf("%+v", p)
	}
	for _, n := range p.Nodes {
		if !p.PodCIDR.Contains(n.PodCIDR.Addr()) || !n.Address.IsValid() {
			t.Errorf("node %+v, pods %v", n, p.PodCIDR)
		}
	}
}

// TestRecipeDryRun: the API server takes what is applied, and keeps none of it. Cilium's is not there, so that all of it
// is new; flannel's is, and is changed to another backend.
func TestRecipeDryRun(t *testing.T) {
	for _, c := range []struct{ profile, variant, family string }{
		{"cilium-vxlan", recipe.Helm, "cilium"}, {"cilium-native", recipe.Helm, "cilium"}, {"cilium-native-legacy", recipe.Helm, "cilium"},
		{"cilium-netkit", recipe.Helm, "cilium"}, {"cilium-native-dsr", recipe.Helm, "cilium"},
		{"flannel-vxlan", recipe.ByFile, "flannel"}, {"flannel-host-gw", recipe.ByFile, "flannel"}, {"flannel-wireguard", recipe.ByFile, "flannel"},
		{"bridge", recipe.Conflist, ""}, {"ptp", recipe.Conflist, ""}, {"macvlan", recipe.Conflist, ""}, {"ipvlan", recipe.Conflist, ""},
	} {
		t.Run(c.profile, func(t *testing.T) {
			var out bytes.Buffer
			o := recipe.Options{For: c.variant, DryRun: recipe.DryRunServer, Out: &out, Params: recipe.Params{
				Device: "eth0", NodeSubnet: netip.MustParsePrefix("10.70.0.0/24"), PodRange: netip.MustParsePrefix("10.70.0.128/25"), Gateway: netip.MustParseAddr("10.70.0.1"),
			}}
			if c.family != "" {
				o.Source = source(t, c.family)
			}
			i := installer(t, o)
			i.Image = ""
			before := daemonSets(t)
			if err := i.Install(t.Context(), c.profile); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "accepted") {
				t.Errorf("nothing was accepted: %s", out.String())
			}
			if after := daemonSets(t); after != before {
				t.Errorf("kept: %s, was %s", after, before)
			}
			var nothing *recipe.NotInstalledError
			if err := i.Uninstall(t.Context(), c.profile); !errors.As(err, &nothing) {
				t.Errorf("it is recorded: %v", err)
			}
		})
	}
}

// daemonSets are all there are, with their generation.
func daemonSets(t *testing.T) string {
	t.Helper()
	c, err := kube.Connect(options(t))
	if err != nil {
		t.Fatal(err)
	}
	list, err := clientset(c).AppsV1().DaemonSets(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, d := range list.Items {
		b.WriteString(d.Namespace + "/" + d.Name + " " + strconv.FormatInt(d.Generation, 10) + "\n")
	}
	return b.String()
}

// TestRecipeRefuses: another CNI on top of the one that is there is refused, with everything against it.
func TestRecipeRefuses(t *testing.T) {
	err := installer(t, recipe.Options{Source: source(t, "cilium")}).Install(t.Context(), "cilium-native")
	var refused *recipe.RefusedError
	if !errors.As(err, &refused) || len(refused.Reasons) < 2 {
		t.Fatalf("%v, want the CNI that is there and kube-proxy", err)
	}
}

// TestRecipeSurvey: the nodes are looked at, and what belongs to the CNI that runs is not called left.
func TestRecipeSurvey(t *testing.T) {
	i := installer(t, recipe.Options{})
	s, err := i.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range s.Unseen {
		if strings.Contains(u, "not inspected") {
			t.Error(u)
		}
	}
	for owner := range s.CNIs {
		for _, l := range s.Left {
			if strings.Contains(l.Owner, owner) {
				t.Errorf("%s is installed, and its own is called left: %s", owner, l)
			}
		}
	}
}

// TestRecipeInTurn installs CNIs in turn on a cluster of its own, which CNIBENCH_RECIPE_KUBECONFIG leads to: it has no CNI,
// kube-proxy in the mode that CNIBENCH_PROXY says, and the images of Cilium and flannel. Each is proven. After each
// nothing is left.
func TestRecipeInTurn(t *testing.T) {
	kubeconfig := os.Getenv("CNIBENCH_RECIPE_KUBECONFIG")
	if kubeconfig == "" {
		t.Skip("CNIBENCH_RECIPE_KUBECONFIG names no cluster without a CNI")
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	_, proxy := expected()
	i := installer(t, recipe.Options{StopProxy: true})
	if left := swept(t, i); len(left) > 0 {
		t.Fatalf("left by who was there before: %v", left)
	}
	for _, profile := range []string{"cilium-native", "flannel-vxlan", "cilium-vxlan", "bridge", "ptp"} {
		t.Run(profile, func(t *testing.T) {
			family, _, _ := strings.Cut(profile, "-")
			i.Source, i.Sets, i.For = "", nil, ""
			if family == "flannel" { // its manifest is in the module, its chart is not
				i.For = recipe.ByFile
			}
			if c, ok := built[family]; ok {
				i.Source = download(t, c)
			}
			if family == "cilium" { // root of the machine may lack a capability that the chart asks for by name
				i.Sets = []string{"securityContext.privileged=true"}
			}
			began := time.Now()
			if err := i.Install(t.Context(), profile); err != nil {
				t.Error(err)
			}
			t.Logf("%s installed after %s", profile, time.Since(began).Round(time.Millisecond))
			if family == "cilium" {
				prove(t, profile, "none")
			} else {
				prove(t, profile, proxy)
			}
			began = time.Now()
			if err := i.Uninstall(context.WithoutCancel(t.Context()), profile); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s uninstalled after %s", profile, time.Since(began).Round(time.Millisecond))
			if left := swept(t, i); len(left) > 0 {
				t.Fatalf("left after %s: %v", profile, left)
			}
		})
	}
}

// swept removes what is left and returns what is left then.
func swept(t *testing.T, i *recipe.Installer) []residue.Leftover {
	t.Helper()
	s, err := i.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Sweep(t.Context(), s.Left); err != nil {
		t.Error(err)
	}
	if s, err = i.Survey(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s.Left
}
