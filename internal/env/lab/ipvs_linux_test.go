package lab

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// TestWhoIsInIPVSMode: kube-proxy is where there is one, unless Calico's nftables have taken it along.
func TestWhoIsInIPVSMode(t *testing.T) {
	l := plan.Lab{ServiceProxy: "ipvs"}
	for name, want := range map[string]bool{"raw": false, "host": true, "flannel-vxlan": true, "cilium-native": false, "calico-nftables": false} {
		s := spec(t, name, l)
		if s.ProxyIPVS() != want || slices.Contains(s.Needs(), "ipvs") != want {
			t.Errorf("%s: ipvs mode %v, needs %v", name, s.ProxyIPVS(), s.Needs())
		}
	}
	if s := spec(t, "host", plan.Lab{}); s.ProxyIPVS() || !slices.Equal(s.Needs(), s.Profile.Needs) {
		t.Errorf("without a word of it: %v, needs %v", s.ProxyIPVS(), s.Needs())
	}
}

// TestIPVSIsRefusedByName, with the way out, where the kernel has none.
func TestIPVSIsRefusedByName(t *testing.T) {
	i := up(t, plan.Lab{ServiceProxy: "ipvs"}, "host").Instance(plan.VariantOf("host"))
	if i.Err == nil {
		t.Skip("this machine has IPVS, so there is nothing to refuse")
	}
	if !errors.Is(i.Err, errors.ErrUnsupported) {
		t.Fatalf("host does not stand: %v", i.Err)
	}
	for _, says := range []string{`profile "host": rules: node-1: kube-proxy in ipvs mode: `, "CONFIG_"} {
		if !strings.Contains(i.Err.Error(), says) {
			t.Errorf("%v, which does not say %q", i.Err, says)
		}
	}
	if h := advice.Of(i.Err); !strings.Contains(h, "modprobe ip_vs") || !strings.Contains(h, "--service-proxy iptables") {
		t.Errorf("way out: %q", h)
	}
}
