package report

import (
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// TestValidated: a cost is called validated only where it was compared with a real cluster's, and a path only verified where
// assertions held.
func TestValidated(t *testing.T) {
	proven, both := Proof{Assertions: 5}, Proof{Assertions: 5, Fidelity: &profile.Fidelity{}}
	off := Proof{Assertions: 5, Fidelity: &profile.Fidelity{All: profile.Compared{Distance: 0.027}, Workloads: []profile.Compared{{Distance: 0.08}}}}
	for want, all := range map[string][]Ability{
		"": {{Profile: plan.VariantOf("host"), Proof: proven}},
		"Costs validated on a real cluster: flannel-vxlan. Others: path verified, cost not.": {
			{Profile: plan.VariantOf("host"), Proof: proven}, {Profile: plan.VariantOf("flannel-vxlan"), Proof: both}, {Profile: plan.VariantOf("canal"), Proof: proven}},
		"Costs validated on a real cluster: none. Others: not.":                     {{Profile: plan.VariantOf("canal"), Proof: proven}, {Profile: plan.VariantOf("ptp")}},
		"Costs validated on a real cluster: flannel-vxlan and canal.":               {{Profile: plan.VariantOf("flannel-vxlan"), Proof: both}, {Profile: plan.VariantOf("canal"), Proof: both}},
		"Costs validated on a real cluster: none. Others: path verified, cost not.": {{Profile: plan.VariantOf("canal"), Proof: proven}},
		"Costs validated on a real cluster: none. Compared with one, and off: cilium-native (+3 %). Others: path verified, cost not.": {
			{Profile: plan.VariantOf("canal"), Proof: proven}, {Profile: plan.VariantOf("cilium-native"), Proof: off}},
	} {
		if got := (Answer{Abilities: all}).Validated(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
