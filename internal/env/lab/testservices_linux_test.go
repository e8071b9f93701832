package lab

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// TestTestServicesFitIn: they have addresses of their own beside all the others, and backends that every node's kube-proxy
// takes.
func TestTestServicesFitIn(t *testing.T) {
	for _, name := range profile.Names() {
		for _, l := range []plan.Lab{{}, {Services: plan.MaxServices, Endpoints: 1}, {Nodes: 3, PodsPerNode: 5}, {Family: IPv6, Services: plan.MaxServices6, Endpoints: 1}} {
			s, err := NewSpec(plan.VariantOf(name), l, kept(2, 3)...)
			if err != nil || name == profile.Raw {
				continue // there is no such profile of IPv6, which is told elsewhere
			}
			added := s.testServices()
			s.Services = append(s.Services, added...)
			seen := map[netip.Addr]string{}
			for _, svc := range s.Services {
				if other, taken := seen[svc.VIP]; taken {
					t.Errorf("%s: %s and %s are both at %v", name, other, svc.Name, svc.VIP)
				}
				seen[svc.VIP] = svc.Name
			}
			for _, svc := range added {
				if slices.Contains(svc.Backends, PodRef{0, 0}) || (len(svc.Backends) == 0) != (svc.Name == NoneService) {
					t.Errorf("%s: %s has the backends %v", name, svc.Name, svc.Backends)
				}
			}
		}
	}
}

// TestSetBackends: every node learns of other backends, in each of the ways in which nodes know Services, and nothing but
// the Service changes.
func TestSetBackends(t *testing.T) {
	needRights(t)
	for name, conditions := range map[string]plan.Lab{
		"canal": {}, "ptp": {ServiceProxy: "nftables"}, "calico-nftables": {Family: IPv6}, "cilium-native": {Family: IPv6}, "calico-ebpf": {},
	} {
		l, err := Up(t.Context(), []plan.Variant{plan.VariantOf(name)}, Options{Lab: conditions, Program: program, TestServices: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := l.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
		i := standing(t, l)[0]
		was := i.Spec
		if err := i.SetBackends(t.Context(), SharedService, []PodRef{{1, 1}}); err != nil {
			t.Fatal(err)
		}
		if got := i.Service(SharedService).Backends; len(got) != 1 || got[0] != i.Nodes[1].Pods[1] {
			t.Errorf("%s: backends %v", name, got)
		}
		if svc := was.Services[len(was.Services)-1]; len(svc.Backends) < 2 {
			t.Errorf("%s: the old description has the new backends too: %+v", name, svc)
		}
		for k, n := range i.Nodes {
			rules := i.Spec.Netfilter(k)
			if rules.Services == nil || !rules.ProxyNFT {
				continue
			}
			family := nft.IPv4
			if rules.IPv6 {
				family = nft.IPv6
			}
			entries, err := nft.Elements(n.NS, family, service.TableNFT, service.MapServiceIPs)
			if want := 2*(3+1) + 2; err != nil || entries != want {
				t.Errorf("%s %s: %d ports in kube-proxy's map (%v), want %d", name, n.Name, entries, err, want)
			}
		}
		if err := i.SetBackends(t.Context(), "svc-no-such", nil); err == nil || !strings.Contains(err.Error(), "svc-no-such") {
			t.Errorf("%s: a Service that is not there: %v", name, err)
		}
	}
}
