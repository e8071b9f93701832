package plan

import (
	"strings"
	"testing"
)

// TestAlike: a variant that changes nothing is named before it is measured beside the profile that it is.
func TestAlike(t *testing.T) {
	for want, profiles := range map[string][]Variant{
		"calico-vxlan and calico-vxlan(mtu=1500) are measured under the same conditions":                   {VariantOf("calico-vxlan"), VariantOf("calico-vxlan(mtu=1500)")},
		"flannel-vxlan and flannel-vxlan(pod-mtu=1450) are measured under the same conditions":             {VariantOf("flannel-vxlan"), VariantOf("flannel-vxlan(pod-mtu=1450)")},
		"calico-vxlan(mtu=1500) and calico-vxlan are measured under the same conditions":                   {VariantOf("calico-vxlan(mtu=1500)"), VariantOf("calico-vxlan")},
		"canal(mtu=9000,services=5) and canal(services=5,mtu=9000) are measured under the same conditions": {VariantOf("canal(mtu=9000,services=5)"), VariantOf("canal(services=5,mtu=9000)")},
		"": {VariantOf("calico-vxlan"), VariantOf("calico-vxlan(mtu=1400)"), VariantOf("canal(mtu=1500)"), VariantOf("flannel-vxlan"), VariantOf("flannel-vxlan~twin")},
	} {
		p := Default()
		p.Profiles = profiles
		got := duplicateNotes(p)
		switch {
		case want == "" && len(got) > 0, want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], want)):
			t.Errorf("%v: %q, want %q", profiles, got, want)
		}
	}
	p := Default()
	p.Lab.MTU, p.Profiles = 9000, Variants("canal", "canal(mtu=1500)")
	if got := duplicateNotes(p); len(got) > 0 {
		t.Errorf("of a run with another MTU: %q", got)
	}
}
