package recipe

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/profile"
)

func TestExpand(t *testing.T) {
	known := map[string]string{"one": "1", "block": "a:\n  b: ${one}\n", "empty": "", "loop": "x${loop}"}
	for _, c := range []struct {
		name, text, want string
		missing          []string
	}{
		{"in a line", "v: ${one}/${one}", "v: 1/1", nil},
		{"a block takes the indentation", "x:\n  ${block}\ny: 2", "x:\n  a:\n    b: 1\ny: 2", nil},
		{"left out with its comment", "a: 1\n# why\n# more\nb: ${none?}\nc: 3", "a: 1\nc: 3", nil},
		{"another's comment stays", "# of a\na: 1\nb: ${none?}", "# of a\na: 1", nil},
		{"a deeper comment stays", "a:\n  # inside\n${none?}", "a:\n  # inside", nil},
		{"empty is nothing to what may be left out", "a: 1\n${empty?}", "a: 1", nil},
		{"missing", "a: ${none} ${none} ${other}", "a:   ", []string{"none", "other"}},
		{"without end", "${loop}", strings.Repeat("x", 7), []string{"a reference that ends"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := expander{lookup: func(name string) (string, bool) { text, ok := known[name]; return text, ok }}
			if got := x.expand(c.text); got != c.want || !slices.Equal(x.missing, c.missing) {
				t.Errorf("%q, want %q; missing %q", got, c.want, x.missing)
			}
		})
	}
}

// TestMissing: what a recipe is not told is asked for once, by its flag.
func TestMissing(t *testing.T) {
	r, err := Lookup("macvlan")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Render(r, Conflist, Params{}.WithDefaults(), nil)
	var missing *MissingError
	if !errors.As(err, &missing) || len(missing.Flags) != 4 {
		t.Fatalf("%v, want four flags", err)
	}
	if _, err := Render(r, "helm", full(), nil); err == nil || !strings.Contains(err.Error(), "want conflist, rke2, kind") {
		t.Errorf("%v", err)
	}
}

// TestCheckParams: all faults are listed at once.
func TestCheckParams(t *testing.T) {
	p := full()
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	p.APIServer, p.MTU = "nowhere", 12
	p.PodCIDR = netip.MustParsePrefix("10.244.0.1/16")
	p.Gateway = netip.MustParseAddr("192.0.2.1")
	p.PodRange = netip.MustParsePrefix("192.168.7.0/24")
	err := p.Check()
	for _, want := range []string{"--api-server nowhere", "--mtu 12", "want 10.244.0.0/16", "--gateway 192.0.2.1", "--pod-range 192.168.7.0/24 leaves"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// TestUnknownNodes: where the nodes are not known nothing that differs between them has an address, and what to write is said.
func TestUnknownNodes(t *testing.T) {
	for profile, words := range map[string][]string{
		"bridge": {podCIDROfNode}, "ptp": {podCIDROfNode},
		"macvlan": {firstOfNode, lastOfNode}, "ipvlan": {firstOfNode, lastOfNode}, "sriov": {firstOfNode, lastOfNode},
	} {
		r, err := Lookup(profile)
		if err != nil {
			t.Fatal(err)
		}
		p := full()
		p.Nodes = nil
		out, err := Render(r, "", p, nil)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := out.Write(&b); err != nil {
			t.Fatal(err)
		}
		documents(t, b.String())
		for _, w := range append(words, "#    differs for each node") {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s lacks %q:\n%s", profile, w, b.String())
			}
		}
		for _, address := range []string{"10.244.0.0/24", "192.168.7.129", "192.168.7.254"} {
			if strings.Contains(b.String(), address) {
				t.Errorf("%s: %s is printed as if it were every node's:\n%s", profile, address, b.String())
			}
		}
		if p.PodRange = (netip.Prefix{}); words[0] == firstOfNode {
			if _, err := Render(r, "", p, nil); err == nil || !strings.Contains(err.Error(), "--pod-range") {
				t.Errorf("%s without a range: %v", profile, err)
			}
		}
	}
}

// TestShare: the parts of a range are disjoint, inside it, and leave its first and last address free.
func TestShare(t *testing.T) {
	for _, text := range []string{"192.168.7.128/25", "10.0.0.0/28", "10.0.0.0/16"} {
		r := netip.MustParsePrefix(text)
		for n := 1; n <= 5; n++ {
			last := r.Addr()
			for i := range n {
				from, to, ok := rangePart(r, i, n)
				if !ok {
					if each := 1 << (32 - r.Bits()) / n; each >= 4 {
						t.Errorf("%s: no part %d of %d", text, i, n)
					}
					break
				}
				if !r.Contains(from) || !r.Contains(to) || !last.Less(from) || !from.Less(to) {
					t.Errorf("%s: part %d of %d is %v to %v after %v", text, i, n, from, to, last)
				}
				last = to
			}
			if r.Contains(last) && !r.Contains(last.Next()) {
				t.Errorf("%s in %d: the last address is given away", text, n)
			}
		}
	}
	if _, _, ok := rangePart(netip.MustParsePrefix("fd00::/64"), 0, 1); ok {
		t.Error("an IPv6 range was cut")
	}
}

// TestSet: values are laid over those of the chart, a null takes a key away; faults are listed.
func TestSet(t *testing.T) {
	r, err := Lookup("cilium-native")
	if err != nil {
		t.Fatal(err)
	}
	out, err := Render(r, Helm, full(), []string{"operator.replicas=3,bpf.masquerade=null", "extraArgs={a,b}"})
	if err != nil {
		t.Fatal(err)
	}
	text := out.Actions[0].Text
	for _, want := range []string{"replicas: 3", "extraArgs:"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "masquerade:") {
		t.Errorf("a null takes nothing away:\n%s", text)
	}
	if _, err := Render(r, Helm, full(), []string{"a", "c[x]=1"}); err == nil || !strings.Contains(err.Error(), "--set a:") || !strings.Contains(err.Error(), "--set c[x]=1") {
		t.Errorf("%v, want both", err)
	}
	if r, err = Lookup("canal"); err != nil {
		t.Fatal(err)
	}
	if _, err := Render(r, ByFile, full(), []string{"a=b"}); err == nil || !strings.Contains(err.Error(), "has none") {
		t.Errorf("%v", err)
	}
}

// TestMerged: patches of a manifest merge by name; a patch of a missing object is an error.
func TestMerged(t *testing.T) {
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: n}\ndata: {a: \"1\", b: \"2\"}\n---\n# nothing\n---\n" +
		"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d, namespace: n}\nspec: {template: {spec: {containers: [{name: x, env: [{name: A, value: \"1\"}, {name: B, value: \"2\"}]}]}}}\n"
	over := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: n}\ndata: {b: \"3\"}\n---\n" +
		"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d, namespace: n}\nspec: {template: {spec: {containers: [{name: x, env: [{name: A, value: \"9\"}, {name: C, value: \"8\"}]}]}}}\n"
	objects, err := patchedObjects(manifest, over)
	if err != nil || len(objects) != 2 {
		t.Fatalf("%v, %v", objects, err)
	}
	text := streamOf(t, objects)
	for _, want := range []string{`a: "1"`, `b: "3"`, `value: "9"`, `value: "8"`, `value: "2"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if _, err := patchedObjects(manifest, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"); err == nil || !strings.Contains(err.Error(), "no Secret s") {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"kind: ConfigMap", "{", "apiVersion: v1\nkind: X\n"} {
		if _, err := decodeObjects(bad); err == nil {
			t.Errorf("%q was taken for objects", bad)
		}
	}
}

// FuzzDecoded: whatever a manifest is, it is refused or its objects have what objects have.
func FuzzDecoded(f *testing.F) {
	f.Add("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: p}}]\n")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := decodeObjects(text)
		for _, o := range list {
			if err == nil && o.GetKind() == "" {
				t.Errorf("an object without a kind in %q", text)
			}
		}
	})
}

// FuzzExpand: references of any shape neither fail nor go on for ever.
func FuzzExpand(f *testing.F) {
	f.Add("a: ${x}\n  ${y?}\n", "${y}")
	f.Fuzz(func(t *testing.T, text, inner string) {
		if len(text)+len(inner) > 200 {
			return
		}
		x := expander{lookup: func(name string) (string, bool) { return inner, name == "x" && !strings.Contains(inner, "${x") }}
		x.expand(text)
	})
}

// TestPodMTU: the pods' MTU leaves room for the headers of the family that the nodes have.
func TestPodMTU(t *testing.T) {
	q, _ := profile.Lookup("flannel-vxlan")
	for _, c := range []struct {
		nodes []string
		want  string
	}{
		{nil, "1450"}, {[]string{"192.0.2.1", "fd00::1"}, "1450"}, {[]string{"fd00::1", "fd00::2"}, "1430"}, {[]string{""}, "1450"},
	} {
		var p Params
		for _, a := range c.nodes {
			address, _ := netip.ParseAddr(a)
			p.Nodes = append(p.Nodes, Node{Address: address})
		}
		if got := p.values(q)["pod-mtu"]; got != c.want {
			t.Errorf("nodes %q: %s, want %s", c.nodes, got, c.want)
		}
	}
}
