package report

import (
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// TestEncryptedVariantHasEncryption: the letter follows from the condition, of the variant or of the run.
func TestEncryptedVariantHasEncryption(t *testing.T) {
	for name, want := range map[plan.Variant]bool{
		plan.VariantOf("calico-vxlan"): false, plan.VariantOf("calico-vxlan(encryption=wireguard)"): true, plan.VariantOf("cilium-native"): false, plan.VariantOf("cilium-native(encryption=ipsec)"): true, plan.VariantOf("flannel-wireguard"): true,
	} {
		known, ok := new(builder).lookUpProfile(name)
		if got := profile.Encryption.By(known) != ""; !ok || got != want {
			t.Errorf("%s: encrypts: %v", name, got)
		}
	}
}
