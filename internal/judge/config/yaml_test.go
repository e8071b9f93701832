package config

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestFaults(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for _, c := range []struct {
		name, yaml string
		options    Options
		want       []string
	}{
		{"twice", "kubeProxyReplacement: true\nbpf:\n  masquerade: true\n  masquerade: false\nrouting: x\nrouting: y\n", Options{},
			[]string{"in.yaml:4: masquerade is given twice, before in line 3", "in.yaml:6: routing is given twice, before in line 5"}},
		{"no yaml", "bpf: [\n", Options{}, []string{"in.yaml:2: is not YAML"}},
		{"list", "- a\n", Options{}, []string{"in.yaml:1: is not a mapping of keys to values"}},
		{"unclear", "foo: 1\n", Options{}, []string{"in.yaml:1: has no kind, and its keys do not say what it is: say it with --as"}},
		{"rke2 or k3s", "cluster-cidr: 10.0.0.0/8\n", Options{}, []string{"in.yaml:1: has no kind"}},
		{"nothing", "kind: Service\napiVersion: v1\n", Options{}, []string{"nothing to judge"}},
		{"empty", "", Options{}, []string{"nothing to judge"}},
		{"too large", strings.Repeat("#", MaxInput+1), Options{}, []string{"in.yaml: is larger than 1048576 bytes"}},
		{"bomb", bomb, Options{}, []string{"expands to more than 100000 values"}},
		{"deep", strings.Repeat("{a: ", 100) + "1" + strings.Repeat("}", 100), Options{}, []string{"is nested deeper than 64"}},
		{"in itself", "bpf: &a\n  b: *a\n", Options{}, []string{"in.yaml"}},
		{"keys", "? {a: b}\n: c\nbpf: {}\n", Options{}, []string{"in.yaml:1: a key is no plain text"}},
		{"values of a HelmChartConfig", "apiVersion: helm.cattle.io/v1\nkind: HelmChartConfig\nmetadata:\n  name: rke2-cilium\nspec:\n  valuesContent: |-\n    a: 1\n    a: 2\n", Options{},
			[]string{"in.yaml:8: in valuesContent: a is given twice, before in line 7"}},
		{"no values", "apiVersion: helm.cattle.io/v1\nkind: HelmChartConfig\nmetadata: {name: rke2-cilium}\nspec: {}\n", Options{},
			[]string{"in.yaml:1: HelmChartConfig rke2-cilium has no text in spec.valuesContent"}},
		{"as", "a: b", Options{As: "weave"}, []string{`unknown kind "weave"`}},
		{"sets", "", Options{As: "cilium", Sets: []string{"a", "b[x]=1", "c={1", "..=3"}}, []string{"--set a: want key=value", "--set b[x]=1", "--set c={1: the list of c has no end", "has an empty key"}},
		{"sets of nobody", "", Options{Sets: []string{"a=b"}}, []string{"name it with --as"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Check([]Input{{"in.yaml", c.yaml}}, c.options)
			if err == nil {
				t.Fatal("no fault")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in\n%v", want, err)
				}
			}
			var fs Faults
			if errors.As(err, &fs) && len(fs) != len(c.want) {
				t.Errorf("%d faults, want %d: %v", len(fs), len(c.want), err)
			}
		})
	}
}

func TestManyFaultsAreCut(t *testing.T) {
	_, err := Check([]Input{{"in.yaml", "bpf: {}\n" + strings.Repeat("a: 1\n", 500)}}, Options{})
	if lines := strings.Split(err.Error(), "\n"); len(lines) != mostFaults+1 || lines[mostFaults] != "and more" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

// TestUnknownKeysAreCut: a file of another product is told to be one, not gone through to its end.
func TestUnknownKeysAreCut(t *testing.T) {
	var text strings.Builder
	text.WriteString("bpf:\n")
	for i := range 60_000 {
		fmt.Fprintf(&text, "  k%d: 1\n", i)
	}
	r, err := Check([]Input{{"in.yaml", text.String()}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Count(Ignored); n != mostUnknown {
		t.Errorf("%d keys are told, want %d", n, mostUnknown)
	}
}

// TestMerges: anchors and merge keys mean what they mean to Helm.
func TestMerges(t *testing.T) {
	const text = `x-base: &base {masquerade: true, hostLegacyRouting: true}
kubeProxyReplacement: &yes true
bpf:
  <<: *base
  hostLegacyRouting: false
hubble: {enabled: *yes}
`
	var fs Faults
	docs := parse(source{name: "m", text: text}, &fs)
	if len(fs) > 0 || len(docs) != 1 {
		t.Fatal(fs, len(docs))
	}
	v := newCilium("cilium")
	v.flatten("m", docs[0], "")
	for path, want := range map[string]string{"bpf.masquerade": "true", "bpf.hostLegacyRouting": "false", "hubble.enabled": "true"} {
		if got := v.at(path); got.text != want || got.origin != Given {
			t.Errorf("%s is %q (%s), want %q", path, got.text, got.origin, want)
		}
	}
}

// TestLaterWins: files are read in order, --set comes last, and null goes back to the default.
func TestLaterWins(t *testing.T) {
	s := newSetup()
	var fs Faults
	for _, text := range []string{"bpf: {masquerade: true, root: /x}\nMTU: 1400\n", "bpf: {masquerade: false}\nMTU: null\n"} {
		for _, d := range parse(source{name: "v", text: text}, &fs) {
			s.add("v", d, "cilium", &fs)
		}
	}
	s.addSets(Options{As: "cilium", Sets: []string{"bpf.root=/y,devices={eth0,eth1},ipv4NativeRoutingCIDR=10.0.0.0/8", `labels=a\,b`, "ipam=x"}}, &fs)
	if len(fs) > 0 {
		t.Fatal(fs)
	}
	for path, want := range map[string]string{
		"bpf.masquerade": "false", "MTU": "0", "bpf.root": "/y", "devices": "eth0, eth1", "labels": "a,b", "ipam": "x",
	} {
		if got := s.cilium.at(path).text; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestParseSet(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []assignment
	}{
		{"a=b", []assignment{{"a", "b", false}}},
		{"a.b=c,d=e=f", []assignment{{"a.b", "c", false}, {"d", "e=f", false}}},
		{"a[0].b=c", []assignment{{"a.0.b", "c", false}}},
		{"a[0][1]=c", []assignment{{"a.0.1", "c", false}}},
		{"a=null", []assignment{{"a", "null", true}}},
		{"a=", []assignment{{"a", "", false}}},
		{"a={x,y},b=1", []assignment{{"a", "x, y", false}, {"b", "1", false}}},
		{`a=1\,2`, []assignment{{"a", "1,2", false}}},
		{`a\.b=c`, []assignment{{"a.b", "c", false}}},
	} {
		got, err := parseSet(c.in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", c.in, got, err, c.want)
		}
	}
}

// FuzzCheck: whatever the input, the answer is a report that can be written or faults, and it is the same twice.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"rke2-article.yaml", "kind-article.yaml", "calico-ebpf-dsr.yaml"} {
		f.Add(example(&testing.T{}, s).Text, "", "kubeProxyReplacement=true")
	}
	f.Add("bpf: &a\n  b: *a\n", "cilium", "a[0].b={x,y}")
	f.Add("Backend: {Type: vxlan}\n---\n<<: [{a: b}]\ncni: [multus, cilium]\n", "", `a\,=b\`)
	f.Add("mode: ipvs", "kube-proxy", "=")
	f.Fuzz(func(t *testing.T, text, as, set string) {
		var sets []string
		if set != "" {
			sets = []string{set}
		}
		once := func() string {
			r, err := Check([]Input{{"in", text}}, Options{As: as, Sets: sets})
			if err != nil {
				if err.Error() == "" {
					t.Error("an error that says nothing")
				}
				return err.Error()
			}
			var b strings.Builder
			for _, write := range []func(io.Writer, Report) error{Text, Markdown, JSON} {
				if err := write(&b, r); err != nil {
					t.Error(err)
				}
			}
			return b.String()
		}
		if first, second := once(), once(); first != second {
			t.Errorf("two answers:\n%s\n%s", first, second)
		}
	})
}
