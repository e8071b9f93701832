package recipe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/cnibench/cnibench/internal/env/kube/chart"
	"github.com/cnibench/cnibench/internal/judge/config"
)

// modules are Go modules that have the charts in them: what the module proxy has can be checked without any registry of
// charts. Calico's releases have no version that a Go module may have; this is a commit between 3.30 and 3.31.
var modules = map[string]string{
	"cilium":  "github.com/cilium/cilium@v1.20.2",
	"flannel": "github.com/flannel-io/flannel@v0.28.10",
	"calico":  "github.com/projectcalico/calico@v1.11.0-cni-plugin.0.20250813170300-a0db560f0520",
}

// downloaded returns the directory of a module, or skips the test with the reason.
func downloaded(t *testing.T, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("downloads the module of " + name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", modules[name])
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if bad := json.Unmarshal(out, &got); err != nil || bad != nil || got.Dir == "" {
		t.Skipf("the module proxy does not deliver %s: %v %s", modules[name], err, got.Error)
	}
	return got.Dir
}

// loaded returns the directory of a chart in a module.
func loaded(t *testing.T, name, dir string) string {
	t.Helper()
	return filepath.Join(downloaded(t, name), dir)
}

// rendered are the objects that a chart makes of a recipe's values, as one stream. Its schema must allow the values, and
// Helm's own engine must make the same text of them.
func rendered(t *testing.T, dir string, a Action) string {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(a.Text), &values); err != nil {
		t.Fatal(err)
	}
	c, err := chart.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Render(values, chart.Release{Name: a.Chart.Release, Namespace: a.Chart.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	likeHelm(t, dir, a.Chart, values)
	var b strings.Builder
	for _, d := range list {
		if !strings.HasPrefix(d.Template, "crds/") {
			b.WriteString("---\n" + d.Text)
		}
	}
	return b.String()
}

// likeHelm fails unless the chart's text is what Helm makes of it, but for what is random.
func likeHelm(t *testing.T, dir string, at Chart, values map[string]any) {
	t.Helper()
	theirs, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	cluster := common.DefaultCapabilities.Copy()
	cluster.KubeVersion = common.KubeVersion{Version: "v1.36.1", Major: "1", Minor: "36"}
	all, err := util.ToRenderValues(theirs, values, common.ReleaseOptions{Name: at.Release, Namespace: at.Namespace, Revision: 1, IsInstall: true}, cluster)
	if err != nil {
		t.Fatalf("the chart refuses the values: %v", err)
	}
	want, err := engine.Render(theirs, all)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := chart.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ours.Execute(values, chart.Release{
		Name: at.Release, Namespace: at.Namespace, KubeVersion: cluster.KubeVersion.Version, Serves: cluster.APIVersions.Has,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("%d files, Helm makes %d", len(got), len(want))
	}
	for name, text := range got {
		helms := want[ours.Metadata.Name+"/"+name]
		if diff := cmp.Diff(random.ReplaceAllString(helms, "RANDOM"), random.ReplaceAllString(text, "RANDOM")); diff != "" {
			t.Errorf("%s (- Helm, + ours)\n%s", name, diff)
		}
	}
}

// random are certificates and keys that a chart makes anew each time, in base 64.
var random = regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=]+`)

// comesTo fails unless the configuration text is the profile, with nothing that differs.
func comesTo(t *testing.T, text, profile string, beside ...config.Input) {
	t.Helper()
	got, err := config.Check(append(beside, config.Input{Name: "rendered", Text: text}), config.Known{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Measured) != 1 || got.Measured[0].Profile != profile || len(got.Measured[0].But) > 0 {
		t.Errorf("amounts to %+v", got.Measured)
	}
}

// configMaps picks the ConfigMaps called names out of a stream of objects.
func configMaps(t *testing.T, stream string, names ...string) string {
	t.Helper()
	var b strings.Builder
	for _, doc := range strings.Split(stream, "\n---\n") {
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if head.Kind == "ConfigMap" && slices.Contains(names, head.Metadata.Name) {
			b.WriteString("---\n" + doc + "\n")
		}
	}
	return b.String()
}

// TestCiliumChart: the chart's own schema allows the values, and the agent's configuration that it makes of them is the
// profile.
func TestCiliumChart(t *testing.T) {
	c := loaded(t, "cilium", "install/kubernetes/cilium")
	versionIs(t, c, "cilium-vxlan", "cilium")
	eachVariant(t, func(t *testing.T, r Recipe, v Variant) {
		if r.Family != "cilium" || v.Name == RKE2 {
			return
		}
		out, err := Render(r, v.Name, full(), nil)
		if err != nil {
			t.Fatal(err)
		}
		a := out.Actions[len(out.Actions)-1]
		// that kube-proxy does not run is said in the cluster's configuration
		comesTo(t, configMaps(t, rendered(t, c, a), "cilium-config"), r.Profile, config.Input{Name: "kind", Text: "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {disableDefaultCNI: true, kubeProxyMode: none}\n"})
	})
}

// TestChartsDecide: what charts and the operator decide is read from what they make.
func TestChartsDecide(t *testing.T) {
	cilium, calico := loaded(t, "cilium", "install/kubernetes/cilium"), loaded(t, "calico", "charts/tigera-operator")
	const (
		ebpf     = "kubeProxyReplacement: true\nbpf: {masquerade: true}\n"
		nftables = "installation: {calicoNetwork: {linuxDataplane: Nftables}}\n"
		bpf      = "installation: {calicoNetwork: {linuxDataplane: BPF}}\n"
	)
	kindWith := func(mode string) string {
		return "---\nkind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {disableDefaultCNI: true, kubeProxyMode: " + mode + "}\n"
	}
	for _, c := range []struct{ name, chart, values, profile, rules string }{
		{"ENI", cilium, "eni: {enabled: true}", "cilium-native-legacy", "endpoint-routes-legacy"},
		{"ENI said twice", cilium, "eni: {enabled: true}\nipam: {mode: eni}", "cilium-native-legacy", "endpoint-routes-legacy"},
		{"ENI overrules", cilium, "eni: {enabled: true}\nipam: {mode: cluster-pool}", "cilium-native-legacy", "no-effect endpoint-routes-legacy"},
		{"GKE", cilium, "gke: {enabled: true}\nipv4NativeRoutingCIDR: 10.0.0.0/8", "cilium-native-legacy", "endpoint-routes-legacy"},
		{"aws-cni", cilium, "cni: {chainingMode: aws-cni}\nenableIPv4Masquerade: false\nroutingMode: native", "", ""},
		{"IPsec", cilium, "kubeProxyReplacement: true\nbpf: {masquerade: true}\nencryption: {enabled: true}", "", ""},
		{"removed", cilium, "encryption: {keyFile: x}", "", "chart-refuses"},
		{"strict", cilium, "kubeProxyReplacement: strict", "", "chart-refuses"},
		{"unknown", cilium, "externalIPs: {enabled: true}", "cilium-vxlan", "unknown-key"},
		{"BIG TCP", cilium, ebpf + "routingMode: native\nautoDirectNodeRoutes: true\nipv4NativeRoutingCIDR: 10.0.0.0/8\nenableIPv4BIGTCP: true", "cilium-native", ""},
		{"BIG TCP over a tunnel", cilium, ebpf + "enableIPv4BIGTCP: true", "cilium-vxlan", "big-tcp-tunnel"},
		{"BIG TCP with IPsec", cilium, ebpf + "enableIPv4BIGTCP: true\nencryption: {enabled: true, type: ipsec}", "", "big-tcp"},
		{"BIG TCP with legacy routing", cilium, "kubeProxyReplacement: true\nipv6: {enabled: true}\nenableIPv6BIGTCP: true\nbpf: {masquerade: true, hostLegacyRouting: true}", "cilium-vxlan", "big-tcp"},
		{"route source", cilium, ebpf + "enableMasqueradeRouteSource: true", "cilium-vxlan", "masquerade-refused"},
		{"no native CIDR", cilium, ebpf + "routingMode: native\nautoDirectNodeRoutes: true", "cilium-native", "native-cidr"},
		{"a parent chart's values", cilium, "cilium:\n  kubeProxyReplacement: true\n  bpf: {masquerade: true}", "cilium-vxlan", ""},
		{"removed tunnel", cilium, "tunnel: vxlan", "", "chart-refuses"},
		{"removed remoteNodeIdentity", cilium, "remoteNodeIdentity: true", "", "chart-refuses"},
		{"Calico nftables beside iptables", calico, nftables + kindWith("iptables"), "calico-nftables", "two-rule-engines"},
		{"Calico nftables beside ipvs", calico, nftables + kindWith("ipvs"), "calico-nftables", "two-rule-engines proxy-deprecated"},
		{"BPF without an endpoint", calico, bpf + kindWith("none"), "calico-ebpf", "api-server"},
		{"BPF with an endpoint", calico, bpf + "kubernetesServiceEndpoint: {host: 192.0.2.1, port: \"6443\"}\n" + kindWith("none"), "calico-ebpf", ""},
		{"EKS with Calico's CNI", calico, "installation: {kubernetesProvider: EKS, cni: {type: Calico}}", "calico-vxlan", ""},
		{"EKS", calico, "installation: {kubernetesProvider: EKS}", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			at, err := ConfigChart(t.Context(), c.chart)
			if err != nil {
				t.Fatal(err)
			}
			got, err := config.Check([]config.Input{{Name: "values", Text: c.values}}, config.Known{Chart: at})
			if err != nil {
				t.Fatal(err)
			}
			var rules []string
			for _, f := range got.Findings {
				rules = append(rules, f.ID)
			}
			profile := ""
			if len(got.Measured) == 1 {
				profile = got.Measured[0].Profile
			}
			if profile != c.profile || strings.Join(rules, " ") != c.rules {
				t.Errorf("amounts to %q with %v, want %q with %s", profile, got.Findings, c.profile, c.rules)
			}
		})
	}
}

// TestFlannelChart: the same for flannel, whose chart has no schema, and its manifest is what the recipe is laid over.
func TestFlannelChart(t *testing.T) {
	c := loaded(t, "flannel", "chart/kube-flannel")
	versionIs(t, c, "flannel-vxlan", "flannel")
	manifest, err := os.ReadFile(filepath.Join(downloaded(t, "flannel"), "Documentation", "kube-flannel.yml"))
	if err != nil {
		t.Fatal(err)
	}
	eachVariant(t, func(t *testing.T, r Recipe, v Variant) {
		if r.Family != "flannel" || v.Name == RKE2 {
			return
		}
		for _, mtu := range []int{0, 9000} {
			p := full()
			p.MTU = mtu
			out, err := Render(r, v.Name, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			a := out.Actions[len(out.Actions)-1]
			stream := ""
			if a.Kind == installChart {
				stream = rendered(t, c, a)
			} else {
				likeKubectl(t, string(manifest), a.Text)
				objects, err := patchedObjects(string(manifest), a.Text)
				if err != nil {
					t.Fatal(err)
				}
				stream = streamOf(t, objects)
			}
			comesTo(t, configMaps(t, stream, "kube-flannel-cfg"), r.Profile)
		}
	})
}

// versionIs fails unless a recipe's chart has the version of the one at hand.
func versionIs(t *testing.T, dir, profile, name string) {
	t.Helper()
	c, err := chart.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Lookup(profile)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Metadata.Version, r.charts[name].Version; got != want {
		t.Errorf("the chart has version %v, the recipe %s", got, want)
	}
}

// installationSince are fields and values of the Installation that came after the version of its schema that can be had
// here; they are read from the schema of operator 1.42.
var installationSince = []string{"bpfNetworkBootstrap", "kubeProxyManagement", "Nftables"}

// TestCalicoSchemas: the objects of the operator recipes are what their definitions allow, with no field that the API
// server would drop; and so are the values of the chart, which are those objects.
func TestCalicoSchemas(t *testing.T) {
	dir := downloaded(t, "calico")
	definitions := map[string]string{
		"Installation":       "charts/tigera-operator/crds/operator.tigera.io_installations_crd.yaml",
		"FelixConfiguration": "libcalico-go/config/crd/crd.projectcalico.org_felixconfigurations.yaml",
	}
	checked := 0
	eachVariant(t, func(t *testing.T, r Recipe, v Variant) {
		if r.Family != "calico" || v.Name != Operator {
			return
		}
		out, err := Render(r, v.Name, full(), nil)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decodeObjects(out.Actions[len(out.Actions)-1].Text)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			checked++
			allowed(t, filepath.Join(dir, definitions[o.GetKind()]), o.Object)
		}
	})
	if checked != 14 {
		t.Errorf("%d objects checked, want two for each of seven profiles", checked)
	}
}

// allowed fails unless the definition in a file allows the object.
func allowed(t *testing.T, file string, object map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var crd extensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	var props extensions.JSONSchemaProps
	if err := extensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	conforms(t, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, object, objectName(&unstructured.Unstructured{Object: object}))
	structural, err := schema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range pruning.PruneWithOptions(object, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		if !slices.ContainsFunc(installationSince, func(new string) bool { return strings.HasSuffix(field, "."+new) }) {
			t.Errorf("%s is no field of it", field)
		}
	}
}

// conforms fails unless a value has the type that its schema says, and is one of those that may be said.
func conforms(t *testing.T, s *extensionsv1.JSONSchemaProps, value any, path string) {
	t.Helper()
	if len(s.Enum) > 0 {
		said, _ := json.Marshal(value)
		text, _ := value.(string)
		if !slices.ContainsFunc(s.Enum, func(e extensionsv1.JSON) bool { return bytes.Equal(e.Raw, said) }) && !slices.Contains(installationSince, text) {
			t.Errorf("%s is %s, which may not be said", path, said)
		}
	}
	kind := map[string]bool{}
	switch v := value.(type) {
	case map[string]any:
		kind["object"] = true
		for name, inner := range v {
			if p, known := s.Properties[name]; known {
				conforms(t, &p, inner, path+"."+name)
			}
		}
	case []any:
		kind["array"] = true
		for i, inner := range v {
			conforms(t, s.Items.Schema, inner, fmt.Sprintf("%s[%d]", path, i))
		}
	case string:
		kind["string"] = true
	case bool:
		kind["boolean"] = true
	case float64, int64:
		kind["integer"], kind["number"] = true, true
	}
	if s.Type != "" && !kind[s.Type] {
		t.Errorf("%s is %T, want %s", path, value, s.Type)
	}
}

// TestCalicoChart: the operator's chart takes the values, and the Installation that it makes is the profile.
func TestCalicoChart(t *testing.T) {
	c := loaded(t, "calico", "charts/tigera-operator")
	eachVariant(t, func(t *testing.T, r Recipe, v Variant) {
		if r.Family != "calico" || v.Name != Helm {
			return
		}
		out, err := Render(r, v.Name, full(), nil)
		if err != nil {
			t.Fatal(err)
		}
		stream := rendered(t, c, out.Actions[len(out.Actions)-1])
		comesTo(t, stream, r.Profile)
		for _, none := range []string{"kind: Goldmane", "kind: Whisker", "kind: APIServer"} {
			if strings.Contains(stream, none) {
				t.Errorf("%s is installed, and its pods use the nodes' CPU", none)
			}
		}
	})
}

// TestCalicoManifests: the recipes laid over Calico's manifests, which are those of the commit that can be had, come to
// their profiles.
func TestCalicoManifests(t *testing.T) {
	dir := downloaded(t, "calico")
	eachVariant(t, func(t *testing.T, r Recipe, v Variant) {
		if v.Name != ByFile || r.Family != "calico" && r.Family != "canal" {
			return
		}
		out, err := Render(r, v.Name, full(), nil)
		if err != nil {
			t.Fatal(err)
		}
		a := out.Actions[0]
		text, err := os.ReadFile(filepath.Join(dir, "manifests", filepath.Base(a.Manifest.URL)))
		if err != nil {
			t.Fatal(err)
		}
		likeKubectl(t, string(text), a.Text)
		objects, err := patchedObjects(string(text), a.Text)
		if err != nil {
			t.Fatal(err)
		}
		comesTo(t, streamOf(t, objects), r.Profile)
	})
}

// likeKubectl fails unless laying objects over a manifest's is what a strategic merge patch makes of them, but for the order
// of lists.
func likeKubectl(t *testing.T, manifest, over string) {
	t.Helper()
	objects, err := decodeObjects(manifest)
	if err != nil {
		t.Fatal(err)
	}
	patches, err := decodeObjects(over)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range patches {
		o := objects[slices.IndexFunc(objects, func(o object) bool { return objectName(o) == objectName(p) })]
		typed, err := scheme.Scheme.New(o.GroupVersionKind())
		if err != nil {
			t.Fatal(err)
		}
		want, err := strategicpatch.StrategicMergeMapPatch(o.DeepCopy().Object, p.DeepCopy().Object, typed)
		if err != nil {
			t.Fatal(err)
		}
		byName := cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
		if diff := cmp.Diff(map[string]any(want), overriddenObject(o, p).Object, byName); diff != "" {
			t.Errorf("%s (- kubectl, + ours)\n%s", objectName(o), diff)
		}
	}
}

// streamOf writes objects as one YAML stream.
func streamOf(t *testing.T, objects []object) string {
	t.Helper()
	var b bytes.Buffer
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	return b.String()
}
