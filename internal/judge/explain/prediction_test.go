package explain

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// TestPredict: a variant that costs what the parts say agrees; one whose other parts change too does not, and they are named.
func TestPredict(t *testing.T) {
	for _, c := range []struct {
		without spends
		agree   bool
		say     string
	}{
		{spends{"socket": 8000, "rules forward": 3000, "unexplained": 100}, true, "agree within their errors"},
		{spends{"socket": 8000, "rules forward": 1500, "unexplained": 100}, false, "other parts changed too, netfilter rules, forward (-1."},
	} {
		a, sides := judged(t, records(map[plan.Variant]spends{plan.VariantOf("flannel-vxlan"): spending[plan.VariantOf("flannel-vxlan")], plan.VariantOf("canal"): c.without}, 12, 60))
		d, ok := Between(a, sides[0], sides[1])
		if !ok {
			t.Fatal("no difference")
		}
		d.Predict(removals[0])
		p := d.Prediction
		if off := p.Predicted.Value - 11100; p.Agree != c.agree || off < -200 || off > 200 || p.Predicted.Low > p.Predicted.Value || p.Measured != d.B.Demand {
			t.Errorf("%+v", p)
		}
		if said := strings.Join(d.Findings(), " "); !strings.Contains(said, c.say) || !strings.Contains(said, "without connection tracking") {
			t.Errorf("want %q:\n%s", c.say, said)
		}
	}
}

// TestRemovals: the variants without a piece, and what has none.
func TestRemovals(t *testing.T) {
	if got := each.Of(Removals(), func(r Removal) string { return r.Name }); strings.Join(got, " ") != "conntrack tunnel br_netfilter" {
		t.Errorf("%v", got)
	}
	for text, want := range map[string]plan.Variant{
		"conntrack canal": plan.VariantOf("canal(conntrack=off)"), "conntrack canal(services=10)": plan.VariantOf("canal(services=10,conntrack=off)"),
		"conntrack canal(conntrack=off)": plan.Variant{}, "tunnel cilium-vxlan(mtu=9000)": plan.VariantOf("cilium-native(mtu=9000)"), "tunnel ptp": plan.Variant{},
		"br_netfilter bridge": plan.VariantOf("bridge(bridge-netfilter=off)"), "br_netfilter flannel-vxlan(mtu=9000)": plan.VariantOf("flannel-vxlan(mtu=9000,bridge-netfilter=off)"),
		"br_netfilter canal": plan.Variant{}, "br_netfilter cilium-native": plan.Variant{},
	} {
		name, of, _ := strings.Cut(text, " ")
		for _, r := range removals {
			if r.Name != name {
				continue
			}
			if got, err := r.From(plan.VariantOf(of)); got != want || (err != nil) != (want.IsZero()) {
				t.Errorf("%s: %q, %v", text, got, err)
			}
		}
	}
}

// TestGone: between pods of one node netfilter is called by the bridge alone, so that all of it goes with br_netfilter.
func TestGone(t *testing.T) {
	for path, want := range map[plan.Path]bool{
		{From: plan.Pod, To: plan.Pod, Locality: plan.SameNode}: true, {From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}: false,
		{From: plan.Pod, To: plan.Host, Locality: plan.SameNode}: false,
	} {
		if got := removals[2].partsOn(path); slices.Contains(got, "rules forward") != want || got[0] != "br_netfilter" {
			t.Errorf("%s: %v", path, got)
		}
	}
}
