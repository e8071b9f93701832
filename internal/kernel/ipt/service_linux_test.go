package ipt_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/dataplane/walktest"
	"github.com/cnibench/cnibench/internal/kernel/ipt"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// TestServices holds what a backend sees on every way to a Service.
func TestServices(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.load(t, policy.Node{Services: walktest.Services()})
		tests := []struct {
			way      string
			from     string
			to       string
			sees, is string
		}{
			{"pod to cluster address: source kept", "b", "10.43.0.10:80", walktest.PodIP["b"], "a"},
			{"pod to cluster address, routed backend: source kept", "b", "10.43.0.14:80", walktest.PodIP["b"], "d"},
			{"pod to itself through the service: masqueraded", "b", "10.43.0.11:80", walktest.NodeIP, "b"},
			{"node to cluster address: the node's", "node", "10.43.0.10:80", walktest.NodeIP, "a"},
			{"node to cluster address, backend behind a device with an address: masqueraded to it", "node", "10.43.0.14:80", walktest.GatewayIP, "d"},
			{"outside to node port: masqueraded", "client", walktest.NodeIP + ":30010", walktest.NodeIP, "a"},
			{"outside to node port, device with an address: masqueraded to it", "client", walktest.NodeIP + ":30014", walktest.GatewayIP, "d"},
			{"outside to node port, policy Local: source kept", "client", walktest.NodeIP + ":30015", walktest.ClientIP, "a"},
			{"pod to node port, policy Local: source kept", "b", walktest.NodeIP + ":30015", walktest.PodIP["b"], "a"},
			{"node to its own node port, policy Local: masqueraded", "node", walktest.NodeIP + ":30015", walktest.NodeIP, "a"},
			{"pod to pod, no service: source kept", "a", walktest.PodIP["b"] + ":8080", walktest.PodIP["a"], "b"},
			{"pod to outside: nobody masquerades without a CNI", "a", walktest.ClientIP + ":8080", walktest.PodIP["a"], "client"},
		}
		for _, tt := range tests {
			sees, is, err := w.Ask(tt.from, tt.to, walktest.Patient)
			if err != nil || sees != tt.sees || is != tt.is {
				t.Errorf("%s: %s to %s: %q sees %q, %v; want %q to see %q", tt.way, tt.from, tt.to, is, sees, err, tt.is, tt.sees)
			}
		}
	})
}

func TestNobodyThere(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.load(t, policy.Node{Services: walktest.Services()})
		for _, way := range [][2]string{{"a", "10.43.0.12:80"}, {"node", "10.43.0.12:80"}, {"client", walktest.NodeIP + ":30012"}, {"a", walktest.NodeIP + ":30012"}} {
			if _, _, err := w.Ask(way[0], way[1], walktest.Patient); !walktest.IsRefused(err) {
				t.Errorf("%s to %s, a service without endpoints: %v, want refused", way[0], way[1], err)
			}
		}
		// Policy Local and no endpoint here: silence, so that a load balancer tries another node.
		if _, _, err := w.Ask("client", walktest.NodeIP+":30016", walktest.Hasty); !walktest.IsTimeout(err) {
			t.Errorf("a node port without local endpoints: %v, want no answer", err)
		}
		rules, err := w.tool.Counters(t.Context(), w.World["node"], "filter", service.ChainExternalServices)
		must(t, err)
		for _, r := range rules {
			if strings.Contains(r.Rule, "no local endpoints") && r.Packets == 0 {
				t.Errorf("nothing was dropped by %q", r.Rule)
			}
		}
	})
}

// TestShares counts who answers 300 connections. The bound on chi-squared with 2 degrees of freedom is passed by chance
// once in two million runs.
func TestShares(t *testing.T) {
	const n, bound = 300, 29.0
	eachWorld(t, func(t *testing.T, w *world) {
		w.load(t, policy.Node{Services: walktest.Services()})
		got := map[string]float64{}
		for range n {
			_, is, err := w.Ask("d", "10.43.0.13:80", walktest.Patient)
			must(t, err)
			got[is]++
		}
		chi := 0.0
		for _, pod := range []string{"a", "b", "c"} {
			d := got[pod] - n/3
			chi += d * d / (n / 3)
		}
		t.Logf("shares %v, chi-squared %.1f", got, chi)
		if chi > bound || len(got) != 3 {
			t.Errorf("shares %v: chi-squared %.1f is above %.1f", got, chi, bound)
		}
	})
}

func TestAffinity(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.load(t, policy.Node{Services: walktest.Services()})
		_, first, err := w.Ask("d", "10.43.0.17:80", walktest.Patient)
		must(t, err)
		for range 20 {
			if _, is, err := w.Ask("d", "10.43.0.17:80", walktest.Patient); err != nil || is != first {
				t.Fatalf("after %s, %s answers: %v", first, is, err)
			}
		}
	})
}

// TestLoadingTime logs what loading costs; it is a result of the benchmark, not of this test.
func TestLoadingTime(t *testing.T) {
	const n = 1000
	c := service.Config{ClusterCIDR: walktest.Cluster}
	for i := range n {
		s := walktest.Service("s"+strings.Repeat("x", i%30)+string(rune('a'+i/30%26))+string(rune('a'+i/780)), 1, "ab")
		s.VIP, s.NodePort = netip.AddrFrom4([4]byte{10, 43, byte(1 + i>>8), byte(i)}), 0
		c.Services = append(c.Services, s)
	}
	eachWorld(t, func(t *testing.T, w *world) {
		rules, _ := policy.Node{Services: &c, IPv6: c.IPv6}.Render()
		start := time.Now()
		err := w.tool.Restore(t.Context(), w.World["node"], rules)
		if advice := advice.Of(err); strings.Contains(advice, "wmem_max") {
			t.Skipf("%d services do not fit: %s", n, advice)
		}
		must(t, err)
		t.Logf("%s: %d services with 2 endpoints each, %d lines, loaded in %v", w.tool.Name(), n, strings.Count(rules, "\n"), time.Since(start).Round(time.Millisecond))
		last := c.Services[n-1]
		if _, is, err := w.Ask("d", netip.AddrPortFrom(last.VIP, 80).String(), walktest.Patient); err != nil || is != "a" && is != "b" {
			t.Errorf("the last service is answered by %q: %v", is, err)
		}
	})
}

// TestRoundTrip loads what every profile has at once, and compares what the kernel holds with what was asked for.
func TestRoundTrip(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		n := policy.Node{Services: walktest.Services(), Flannel: flannel(), Calico: calico("a", "b", "c")}
		n.Calico.VXLAN, n.Calico.Policies, n.Calico.PoliciesUnselected = true, 3, 2
		n.Calico.Pools = []netip.Prefix{walktest.Cluster}
		w.load(t, n)
		rules, _ := n.Render()
		want, err := ipt.ParseSave(rules)
		must(t, err)
		got := map[string]ipt.SavedTable{}
		for _, table := range w.save(t) {
			got[table.Name] = table
		}
		for _, table := range want {
			for _, chain := range table.Chains {
				held, ok := got[table.Name].Chain(chain.Name)
				if !ok || targets(held) != targets(chain) {
					t.Errorf("%s %s leads to\n  %q, asked for\n  %q", table.Name, chain.Name, targets(held), targets(chain))
				}
			}
			for _, chain := range got[table.Name].Chains {
				if asked, ok := tableOf(want, table.Name).Chain(chain.Name); !ok && len(chain.Rules) > 0 {
					t.Errorf("%s %s was never asked for: %q", table.Name, chain.Name, targets(asked))
				}
			}
		}
	})
}
