package recipe

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/cnibench/cnibench/internal/judge/config"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

// full are parameters that answer whatever a recipe asks.
func full() Params {
	p := Params{}.WithDefaults()
	p.APIServer = "192.168.7.11:6443"
	p.Device = "eth0"
	p.NodeSubnet = netip.MustParsePrefix("192.168.7.0/24")
	p.Gateway = netip.MustParseAddr("192.168.7.1")
	p.PodRange = netip.MustParsePrefix("192.168.7.128/25")
	p.Nodes = []Node{
		{"one", netip.MustParseAddr("192.168.7.11"), netip.MustParsePrefix("10.244.0.0/24")},
		{"two", netip.MustParseAddr("192.168.7.12"), netip.MustParsePrefix("10.244.1.0/24")},
	}
	return p
}

// eachVariant calls do with every recipe in every variant.
func eachVariant(t *testing.T, do func(t *testing.T, r Recipe, v Variant)) {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		for _, v := range r.Variants {
			t.Run(r.Profile+"/"+v.Name, func(t *testing.T) { do(t, r, v) })
		}
	}
}

// TestEveryProfile: each profile that is a CNI has a recipe, and no other has one.
func TestEveryProfile(t *testing.T) {
	for _, p := range profile.All() {
		_, err := Lookup(p.Name)
		if none := p.Name == profile.Raw || p.Name == profile.Host || p.Provided != ""; (err != nil) != none {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	if _, err := Lookup("host"); err == nil || !strings.Contains(err.Error(), "not a CNI") {
		t.Errorf("host: %v", err)
	}
}

// TestRender: what would be applied is valid YAML, every reference is filled in, and the printed form is kept.
func TestRender(t *testing.T) {
	eachVariant(t, func(t *testing.T, r Recipe, v Variant) {
		for _, mtu := range []int{0, 9000} {
			p := full()
			p.MTU = mtu
			out, err := Render(r, v.Name, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := out.Write(&b); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), "${") {
				t.Errorf("a reference is left:\n%s", b.String())
			}
			if mtu == 0 {
				golden.Check(t, r.Profile+"."+v.Name+".yaml", b.Bytes())
			}
			documents(t, b.String())
			for _, a := range out.Actions {
				if (a.Kind == writeFile || a.Kind == plantConflist || a.Kind == applyObjects || a.Kind == MakeKind) && a.Text == "" {
					t.Errorf("%s has no contents", a.Kind)
				}
			}
		}
	})
}

// documents decodes a stream; a key that is given twice is a fault to the decoder.
func documents(t *testing.T, text string) []any {
	t.Helper()
	var all []any
	d := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc any
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		all = append(all, doc)
	}
}

// TestShownConfiguration: what cni show prints is what check --config calls the profile, and nothing in it is without effect.
// Charts are those of the modules; values for RKE2's own charts are not judged.
func TestShownConfiguration(t *testing.T) {
	charts := map[string]*config.Chart{}
	for name, dir := range map[string]string{"cilium": "install/kubernetes/cilium", "flannel": "chart/kube-flannel", "calico": "charts/tigera-operator"} {
		c, err := ConfigChart(t.Context(), loaded(t, name, dir))
		if err != nil {
			t.Fatal(err)
		}
		charts[name] = c
	}
	judged := 0
	eachVariant(t, func(t *testing.T, r Recipe, v Variant) {
		if v.Name == Kind && charts[r.Family] != nil {
			return // the values are those of the variant helm
		}
		out, err := Render(r, v.Name, full(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := out.Write(&b); err != nil {
			t.Fatal(err)
		}
		if name := ShownChart(b.String()); v.Name == Helm && (charts[r.Family] == nil) != (name == "") || name != "" && !slices.Contains([]string{"cilium", "flannel", "tigera-operator"}, name) {
			t.Errorf("the text names chart %q", name)
		}
		got, err := config.Check([]config.Input{{Name: "recipe", Text: b.String()}}, config.Known{Chart: charts[r.Family]})
		if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		for _, f := range got.Findings {
			newer := strings.HasPrefix(f.Saw, "goldmane") || strings.HasPrefix(f.Saw, "whisker") // Calico's module is older than its chart
			if f.Severity.Alarm() && !newer {
				t.Errorf("%s: %s", f.ID, f.Text())
			}
		}
		if v.Name == RKE2 && r.Family != "plugins" {
			return
		}
		judged++
		multus := r.Profile == "sriov" // its recipe configures Multus, and not the CNI of the pods' first device
		if got.Inconclusive() != multus || len(got.Measured) != 1 || got.Measured[0].Profile != r.Profile || len(got.Measured[0].But) > 0 != multus {
			t.Errorf("amounts to %+v", got.Measured)
		}
	})
	if judged < 25 {
		t.Errorf("%d recipes judged", judged)
	}
}
