package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan/position"
)

func TestDocumentIsCurrent(t *testing.T) {
	got, err := os.ReadFile("../../../docs/reference/config.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != page {
		t.Error("docs/reference/config.md is not page.md; run make generate")
	}
	if !strings.Contains(page, "`"+Schema+"`") {
		t.Errorf("page.md does not name the schema %s", Schema)
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ yaml, want string }{
		"twice":     {"cni: x\ncni: y\n", "in.yaml:2: cni: is given twice (first in line 1)"},
		"syntax":    {"bpf: [\n", "in.yaml:2: is not YAML"},
		"list":      {"- a\n", "in.yaml:1: is not a mapping of keys to values"},
		"nothing":   {"kind: Service\napiVersion: v1\n", "nothing to judge"},
		"empty":     {"", "nothing to judge"},
		"too large": {strings.Repeat("#", position.MaxFile+1), "in.yaml: is larger than 1048576 bytes"},
		"values of a HelmChartConfig": {"apiVersion: helm.cattle.io/v1\nkind: HelmChartConfig\nmetadata:\n  name: rke2-cilium\nspec:\n  valuesContent: |-\n    a: 1\n    a: 2\n",
			"in.yaml:8: a: in valuesContent: is given twice"},
		"no values": {"apiVersion: helm.cattle.io/v1\nkind: HelmChartConfig\nmetadata: {name: rke2-cilium}\nspec: {}\n",
			"in.yaml:1: spec.valuesContent: want the values as a block"},
	} {
		_, err := Check([]Input{{Name: "in.yaml", Text: c.yaml}}, Known{})
		var fs position.Faults
		if !errors.As(err, &fs) || len(fs) != 1 && name != "nothing" || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// TestNotJudged: without its chart nothing is said about values.
func TestNotJudged(t *testing.T) {
	r, err := Check([]Input{{Name: "v.yaml", Text: "kubeProxyReplacement: strict\n---\n" +
		"apiVersion: helm.cattle.io/v1\nkind: HelmChartConfig\nmetadata: {name: rke2-cilium}\nspec: {valuesContent: 'a: 1'}\n"}}, Known{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Inconclusive() || r.Alarm() || len(r.Measured) > 0 || len(r.Documents) != 2 {
		t.Errorf("%+v", r)
	}
	for _, d := range r.Documents {
		if !strings.Contains(d.NotJudged, "give it with --chart") {
			t.Errorf("%s: %s", d.Kind, d.NotJudged)
		}
	}
}

// small is a chart like Cilium's: one value overrules another, one is refused, and a Secret differs each time.
func small(t *testing.T) *Chart {
	renders := 0
	return &Chart{
		Name: "cilium", Version: "1.2.3", AppVersion: "1.20.2",
		Values: map[string]any{"routingMode": "", "bpf": map[string]any{"masquerade": nil}, "cni": map[string]any{"chainingMode": nil}, "noConntrack": false, "extra": map[string]any{}},
		Render: func(values map[string]any, skip map[string]bool) ([]Rendered, error) {
			renders++
			text := func(v any, other string) string {
				if v == nil || v == "" {
					return other
				}
				return fmt.Sprint(v)
			}
			inner := func(key, name string) any { m, _ := values[key].(map[string]any); return m[name] }
			if values["tunnel"] != nil {
				return nil, errors.New("tunnel was removed")
			}
			chaining := text(inner("cni", "chainingMode"), "none")
			conntrack := text(values["noConntrack"], "false")
			legacy := ""
			if chaining != "none" {
				conntrack, legacy = "false", "  enable-host-legacy-routing: \"true\"\n"
			}
			objects := []Rendered{
				{"config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cilium-config}\ndata:\n  routing-mode: " + text(values["routingMode"], "tunnel") +
					"\n  kube-proxy-replacement: \"true\"\n  enable-bpf-masquerade: \"" + text(inner("bpf", "masquerade"), "false") +
					"\"\n  cni-chaining-mode: " + chaining + "\n  install-no-conntrack-iptables-rules: \"" + conntrack + "\"\n" + legacy},
				{"secret.yaml", fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {key: \"%d\"}\n", renders)},
			}
			return slices.DeleteFunc(objects, func(r Rendered) bool { return skip[r.Template] }), nil
		},
	}
}

// TestChart: the chart decides, and each setting names the value that decides it.
func TestChart(t *testing.T) {
	for name, c := range map[string]struct{ yaml, rules, profile, where string }{
		"defaults":            {"", "host-routing-legacy", "cilium-vxlan", ""},
		"masquerade":          {"bpf: {masquerade: true}", "", "cilium-vxlan", ""},
		"chaining":            {"bpf: {masquerade: true}\ncni: {chainingMode: portmap}", "host-routing-legacy", "cilium-vxlan", "v.yaml:2"},
		"slip":                {"bpf: {masquerade: true, mascerade: true}", "unknown-key", "cilium-vxlan", "v.yaml:1"},
		"overruled":           {"bpf: {masquerade: true}\ncni: {chainingMode: portmap}\nnoConntrack: true", "host-routing-legacy no-effect", "cilium-vxlan", "v.yaml:2"},
		"default":             {"bpf: {masquerade: true}\nnoConntrack: false", "", "cilium-vxlan", ""},
		"the user's":          {"bpf: {masquerade: true}\nextra: {a: b}", "no-effect", "cilium-vxlan", "v.yaml:2"},
		"same as the default": {"bpf: {masquerade: true}\nroutingMode: tunnel", "", "cilium-vxlan", ""},
		"refused":             {"bpf: {masquerade: true}\ntunnel: disabled", "chart-refuses", "", "v.yaml:2"},
		"null":                {"bpf: {masquerade: true}\nbpf2: null", "", "cilium-vxlan", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var inputs []Input
			if c.yaml != "" {
				inputs = append(inputs, Input{Name: "v.yaml", Text: c.yaml})
			}
			r, err := Check(inputs, Known{Chart: small(t)})
			if err != nil {
				t.Fatal(err)
			}
			judged{rules: c.rules, profile: c.profile}.compare(t, r)
			if len(r.Findings) > 0 && r.Findings[0].Where != c.where {
				t.Errorf("where %q, want %q", r.Findings[0].Where, c.where)
			}
		})
	}
}

// TestLayers: later documents replace earlier ones, and values of the command line have no line.
func TestLayers(t *testing.T) {
	r, err := Check([]Input{
		{Name: "a.yaml", Text: "bpf: {masquerade: false}\nroutingMode: native\n"},
		{Name: "b.yaml", Text: "bpf:\n  masquerade: true\n"},
		{Name: "--set", Text: `{"cni": {"chainingMode": "none"}}`, Unlined: true},
	}, Known{Chart: small(t)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range r.Settings {
		if s.Name == "masquerading" || s.Name == "routing-mode" || s.Name == "datapath-mode" {
			got = append(got, s.Name+" "+s.Value+" "+s.Origin+" "+s.By)
		}
	}
	want := []string{"routing-mode native given a.yaml:2", "datapath-mode veth default cilium-agent 1.20", "masquerading eBPF given b.yaml:2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSuggestion: the nearest key of the group is named.
func TestSuggestion(t *testing.T) {
	r, err := Check([]Input{{Name: "v", Text: "bpf: {mascerade: true}"}}, Known{Chart: small(t)})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(r.Findings), `did you mean "bpf.masquerade"?`) {
		t.Errorf("%v", r.Findings)
	}
}

// FuzzCheck: the answer is a report or faults, and it is the same twice.
func FuzzCheck(f *testing.F) {
	f.Add("bpf: &a\n  b: *a\n", true)
	f.Add("Backend: {Type: vxlan}\n---\n<<: [{a: b}]\ncni: [multus, cilium]\n", false)
	f.Add(agentConfig("")+"---\n"+installation("mtu: 1440"), false)
	f.Fuzz(func(t *testing.T, text string, withChart bool) {
		once := func() string {
			var c *Chart
			if withChart {
				c = small(t)
			}
			r, err := Check([]Input{{Name: "in", Text: text}}, Known{Chart: c})
			if err != nil && err.Error() == "" {
				t.Error("an error without text")
			}
			return fmt.Sprint(r, err)
		}
		if first, second := once(), once(); first != second {
			t.Errorf("two answers:\n%s\n%s", first, second)
		}
	})
}
