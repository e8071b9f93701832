package kind

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// fake is a kind that makes no containers: a name, a configuration and a kubeconfig that leads to server.
type fake struct {
	clusters             map[string]string
	server               string
	createErr, deleteErr error
	listErr              error
}

func (f *fake) List() ([]string, error) {
	var names []string
	for n := range f.clusters {
		names = append(names, n)
	}
	slices.Sort(names)
	return names, f.listErr
}

func (f *fake) Create(name, config, kubeconfig string) error {
	f.clusters[name] = config // kind leaves what it began, too
	if f.createErr != nil {
		return f.createErr
	}
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: " + f.server + "}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\nusers: [{name: c}]\n"
	return os.WriteFile(kubeconfig, []byte(text), 0o600)
}

func (f *fake) Delete(name, _ string) error {
	if f.deleteErr != nil {
		return f.deleteErr
	}
	delete(f.clusters, name)
	return nil
}

func options(t *testing.T, profile string) upOptions {
	return upOptions{Variant: plan.VariantOf(profile), Kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
}

// TestConfig: what kind is given for each profile is a configuration of its kind, without a CNI of its own.
func TestConfig(t *testing.T) {
	all, err := recipe.All()
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, r := range all {
		if _, err := r.Variant(recipe.Kind); err != nil {
			continue
		}
		made++
		f := &fake{clusters: map[string]string{}, createErr: errors.New("enough")}
		o := options(t, r.Profile)
		f.deleteErr = errors.New("kept for the test")
		err := up(t, f, o)
		if config := f.clusters[clusterName(plan.VariantOf(r.Profile))]; config == "" {
			if !strings.Contains(err.Error(), "missing") {
				t.Errorf("%s: %v", r.Profile, err)
			}
			continue
		}
		var c v1alpha4.Cluster
		if err := yaml.UnmarshalStrict([]byte(f.clusters[clusterName(plan.VariantOf(r.Profile))]), &c); err != nil {
			t.Fatalf("%s: %v", r.Profile, err)
		}
		if !c.Networking.DisableDefaultCNI || len(c.Nodes) != 3 || c.Name != clusterName(plan.VariantOf(r.Profile)) || c.Networking.PodSubnet == "" {
			t.Errorf("%s: %+v", r.Profile, c)
		}
		if none := c.Networking.KubeProxyMode == "none"; none != (r.KubeProxy == "none") {
			t.Errorf("%s: kube-proxy is %q", r.Profile, c.Networking.KubeProxyMode)
		}
	}
	if made < 18 {
		t.Errorf("%d profiles can be had on kind", made)
	}
}

// up fails the test if a cluster comes up: there is no API server.
func up(t *testing.T, p containerEngine, o upOptions) error {
	t.Helper()
	c, err := createCluster(t.Context(), p, o)
	if err == nil {
		t.Fatalf("%+v is up", c)
	}
	return err
}

// TestNothingIsLeft: whatever fails, cluster and kubeconfig are gone; what cannot be taken away is said.
func TestNothingIsLeft(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }))
	defer refuses.Close()
	for _, c := range []struct {
		name string
		fake fake
		want string
	}{
		{"kind fails", fake{createErr: errors.New("out of disk")}, "out of disk"},
		{"the installation fails", fake{server: refuses.URL}, "no"},
		{"it cannot be removed", fake{createErr: errors.New("x"), deleteErr: errors.New("engine gone")}, "could not be removed: engine gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.fake.clusters = map[string]string{"other": ""}
			o := options(t, "flannel-vxlan")
			err := up(t, &c.fake, o)
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if _, gone := os.Stat(o.Kubeconfig); !errors.Is(gone, os.ErrNotExist) {
				t.Error("the kubeconfig is left")
			}
			if _, left := c.fake.clusters[clusterName(plan.VariantOf("flannel-vxlan"))]; left != (c.fake.deleteErr != nil) {
				t.Errorf("left: %v", c.fake.clusters)
			}
		})
	}
}

// TestCheck names every profile that cannot be had, before anything is made.
func TestCheck(t *testing.T) {
	if err := checkVariants(plan.VariantOf("canal"), plan.VariantOf("cilium-native")); err != nil {
		t.Error(err)
	}
	err := checkVariants(plan.Variants("sriov", "canal", "macvlan", "nobody")...)
	for _, want := range []string{"no kind cluster for sriov: ", "no kind cluster for macvlan: ", "no kind cluster for nobody: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestAbsent names every cluster that is somebody's, and how to ask an engine that does not answer.
func TestAbsent(t *testing.T) {
	f := &fake{clusters: map[string]string{clusterName(plan.VariantOf("canal")): "mine", clusterName(plan.VariantOf("ptp")): "mine"}}
	err := checkAbsent(f, plan.VariantOf("canal"), plan.VariantOf("bridge"), plan.VariantOf("ptp"))
	if err == nil || !strings.Contains(err.Error(), clusterName(plan.VariantOf("canal"))) || !strings.Contains(err.Error(), clusterName(plan.VariantOf("ptp"))) || strings.Contains(err.Error(), clusterName(plan.VariantOf("bridge"))) {
		t.Errorf("%v", err)
	}
	if err := checkAbsent(f, plan.VariantOf("bridge")); err != nil {
		t.Error(err)
	}
	f.listErr = errors.New("no socket")
	if err := checkAbsent(f, plan.VariantOf("bridge")); err == nil || !strings.Contains(advice.Of(err), "docker ps") {
		t.Errorf("%v, hint %q", err, advice.Of(err))
	}
}

// TestAnothersIsNotTouched: a cluster of the name that is there is somebody's.
func TestAnothersIsNotTouched(t *testing.T) {
	f := &fake{clusters: map[string]string{clusterName(plan.VariantOf("canal")): "mine"}}
	err := up(t, f, options(t, "canal"))
	if advice.Of(err) == "" || f.clusters[clusterName(plan.VariantOf("canal"))] != "mine" {
		t.Errorf("%v, %v", err, f.clusters)
	}
}

// TestNoEngine: without a container engine the error says what there may be.
func TestNoEngine(t *testing.T) {
	for _, name := range []string{"docker", "podman", "nerdctl", "finch"} {
		if path, err := exec.LookPath(name); err == nil {
			t.Skipf("%s is there: kind finds it", path)
		}
	}
	_, err := findEngine()
	if err == nil || !strings.Contains(err.Error(), "no container engine") || !strings.Contains(advice.Of(err), "docker") {
		t.Errorf("%v (%s)", err, advice.Of(err))
	}
}

// TestClosedAlready: Close works although the run was interrupted.
func TestClosedAlready(t *testing.T) {
	f := &fake{clusters: map[string]string{clusterName(plan.VariantOf("canal")): ""}}
	c := &kindCluster{Name: clusterName(plan.VariantOf("canal")), Kubeconfig: filepath.Join(t.TempDir(), "none"), provider: f}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := c.Close(ctx); err != nil || len(f.clusters) != 0 {
		t.Errorf("%v, %v", err, f.clusters)
	}
}

// TestVariantsHaveTheirClusters: two versions of one profile have a cluster each.
func TestVariantsHaveTheirClusters(t *testing.T) {
	one, two := clusterName(plan.VariantOf("canal(version=v3.30.1)")), clusterName(plan.VariantOf("canal(version=v3.31.0)"))
	if one == two || one == clusterName(plan.VariantOf("canal")) || !strings.HasPrefix(one, clusterName(plan.VariantOf("canal"))+"-") {
		t.Error(one, two)
	}
}
