package ipt_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/dataplane/ruletest"
	"github.com/cnibench/cnibench/internal/dataplane/walktest"
	"github.com/cnibench/cnibench/internal/kernel/ipt"
)

func flannel() *policy.FlannelConfig {
	return &policy.FlannelConfig{ClusterCIDR: walktest.Cluster, PodCIDR: walktest.Cluster}
}

func calico(pods ...string) *policy.CalicoConfig {
	c := &policy.CalicoConfig{NodeAddrs: []netip.Addr{netip.MustParseAddr(walktest.NodeIP)}, Peers: []netip.Addr{netip.MustParseAddr(walktest.ClientIP)}}
	for _, p := range pods {
		c.Devices = append(c.Devices, "cali"+p)
	}
	return c
}

// underlay is a whole node of profile calico-underlay.
func underlay(pods ...string) policy.Node {
	c := calico(pods...)
	c.Pools = []netip.Prefix{walktest.Cluster}
	return policy.Node{Services: walktest.Services(), Calico: c}
}

// targets lists where the rules of a chain lead.
func targets(c ipt.SavedChain) string {
	var out []string
	for _, r := range c.Rules {
		out = append(out, ruletest.Target(r.Rule))
	}
	return strings.Join(out, " ")
}

func tableOf(tables []ipt.SavedTable, name string) ipt.SavedTable {
	for _, t := range tables {
		if t.Name == name {
			return t
		}
	}
	return ipt.SavedTable{}
}

// TestMasqueradeOfPods holds what an outside server sees of a pod, and that pods see each other, under each CNI.
func TestMasqueradeOfPods(t *testing.T) {
	nodes := map[string]policy.Node{
		"flannel": {Services: walktest.Services(), Flannel: flannel()},
		"canal":   {Services: walktest.Services(), Flannel: flannel(), Calico: calico("a", "b", "c")},
		"calico":  underlay("a", "b", "c"),
	}
	for name, n := range nodes {
		t.Run(name, func(t *testing.T) {
			eachWorld(t, func(t *testing.T, w *world) {
				w.load(t, n)
				for _, tt := range []struct{ from, to, sees string }{
					{"a", walktest.ClientIP + ":8080", walktest.NodeIP},
					{"a", walktest.PodIP["b"] + ":8080", walktest.PodIP["a"]},
					{"b", "10.43.0.10:80", walktest.PodIP["b"]},
					{"b", "10.43.0.11:80", walktest.NodeIP},
					{"client", walktest.NodeIP + ":30010", walktest.NodeIP},
					{"client", walktest.NodeIP + ":30015", walktest.ClientIP},
					{"node", walktest.PodIP["a"] + ":8080", walktest.NodeIP},
					{"a", walktest.NodeIP + ":8080", walktest.PodIP["a"]},
				} {
					if sees, is, err := w.Ask(tt.from, tt.to, walktest.Patient); err != nil || sees != tt.sees {
						t.Errorf("%s to %s: %q sees %q, %v; want %q", tt.from, tt.to, is, sees, err, tt.sees)
					}
				}
			})
		})
	}
}

// TestPolicyHolds: a device that Calico does not know, and a source address that is not the pod's, get nowhere.
func TestPolicyHolds(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.load(t, underlay("a", "b")) // not c
		if _, _, err := w.Ask("c", walktest.PodIP["a"]+":8080", walktest.Hasty); !walktest.IsTimeout(err) {
			t.Errorf("from an unknown device: %v, want no answer", err)
		}
		if _, _, err := w.Ask("a", walktest.PodIP["c"]+":8080", walktest.Hasty); !walktest.IsTimeout(err) {
			t.Errorf("to an unknown device: %v, want no answer", err)
		}
		w.AddAddress(t, "a", "10.42.0.99")
		err := w.World["a"].Do(func() error {
			d := net.Dialer{Timeout: walktest.Hasty, LocalAddr: &net.TCPAddr{IP: net.ParseIP("10.42.0.99")}}
			c, err := d.Dial("tcp4", walktest.PodIP["b"]+":8080")
			if err == nil {
				err = c.Close()
			}
			return err
		})
		if !walktest.IsTimeout(err) {
			t.Errorf("with a false source address: %v, want no answer", err)
		}
		rules, err := w.tool.Counters(t.Context(), w.World["node"], "raw", "cali-PREROUTING")
		must(t, err)
		for _, r := range rules {
			if strings.Contains(r.Rule, "rpfilter") && r.Packets == 0 {
				t.Errorf("nothing was dropped by %q", r.Rule)
			}
		}
	})
}

// TestPoliciesAreWalkedOncePerConnection: the last policy counts connections, and established packets never come there.
func TestPoliciesAreWalkedOncePerConnection(t *testing.T) {
	const connections = 5
	eachWorld(t, func(t *testing.T, w *world) {
		n := underlay("a", "b", "c")
		n.Calico.Policies, n.Calico.PoliciesUnselected = 4, 3
		w.load(t, n)
		for range connections {
			_, _, err := w.Ask("a", walktest.PodIP["b"]+":8080", walktest.Patient)
			must(t, err)
		}
		if _, _, err := w.Ask("a", fmt.Sprintf("%s:%d", walktest.PodIP["b"], policy.DeniedPort), walktest.Hasty); !walktest.IsTimeout(err) {
			t.Errorf("to the denied port: %v, want no answer", err)
		}
		entered, accepted, unselected := 0, uint64(0), 0
		for _, c := range tableOf(w.save(t), "filter").Chains {
			if !strings.HasPrefix(c.Name, "cali-pi-") {
				continue
			}
			last := c.Rules[len(c.Rules)-1]
			if strings.Contains(c.Rules[0].Rule, ".p3 ") {
				accepted += last.Packets
			}
			if last.Packets > 0 {
				entered++
			} else {
				unselected++
			}
		}
		if accepted != connections || entered != 1 || unselected != 6 {
			t.Errorf("the last policy accepted %d of %d connections; %d policies accept and %d do not, want 1 and 6", accepted, connections, entered, unselected)
		}
	})
}

// TestWalkOfAnEstablishedPacket counts the rules that a packet of a standing connection between two pods meets: in raw
// 6 (7 with VXLAN), in mangle PREROUTING 1, in filter 3, one for each device up to its own in the dispatch, and 1, in
// mangle POSTROUTING 5; each with the jump in the built-in chain; nothing of nat, of kube-proxy and of the receiving
// pod's policy.
func TestWalkOfAnEstablishedPacket(t *testing.T) {
	const rounds = 50
	eachWorld(t, func(t *testing.T, w *world) {
		for _, vxlan := range []bool{false, true} {
			n := underlay("a", "b")
			n.Calico.VXLAN = vxlan
			w.load(t, n)
			c, _, _, err := w.Connect("a", net.Dialer{Timeout: walktest.Patient}, walktest.PodIP["b"]+":8080")
			must(t, err)
			before := w.save(t)
			buf := []byte{0}
			for range rounds {
				_, err := c.Write(buf)
				must(t, err)
				_, err = io.ReadFull(c, buf)
				must(t, err)
			}
			walk := newWalk(before, w.settled(t))
			must(t, c.Close())
			raw := 1.0 + 6
			if vxlan {
				raw++
			}
			if walk.packets < 2*rounds {
				t.Errorf("%d packets passed, want at least %d", walk.packets, 2*rounds)
			}
			for _, tt := range []struct {
				table, chain string
				least, most  float64
			}{
				{"raw", "PREROUTING", raw, raw},
				{"mangle", "PREROUTING", 2, 2},
				{"filter", "FORWARD", 1 + 3 + 1 + 1, 1 + 3 + 2 + 1},
				{"mangle", "POSTROUTING", 1 + 5, 1 + 5},
			} {
				met := walk.rulesPerPacket(tt.table, tt.chain)
				t.Logf("VXLAN %v: %s %s: %.2f rules per packet", vxlan, tt.table, tt.chain, met)
				if met < tt.least || met > tt.most {
					t.Errorf("VXLAN %v: a packet meets %.2f rules from %s %s on, want %.0f to %.0f", vxlan, met, tt.table, tt.chain, tt.least, tt.most)
				}
			}
			for _, met := range walk.foreign() {
				t.Errorf("VXLAN %v: established packets met %s", vxlan, met)
			}
		}
	})
}

// walk computes how many rules packets met, from by how much the counters of the rules have grown.
type walk struct {
	packets uint64
	grown   []ipt.SavedTable
}

func newWalk(before, after []ipt.SavedTable) *walk {
	w := &walk{grown: after}
	for ti, table := range after {
		for ci, chain := range table.Chains {
			for ri := range chain.Rules {
				chain.Rules[ri].Packets -= before[ti].Chains[ci].Rules[ri].Packets
			}
			if table.Name == "raw" && chain.Name == "PREROUTING" {
				w.packets = chain.Rules[0].Packets
			}
		}
	}
	return w
}

func (w *walk) rulesPerPacket(table, chain string) float64 {
	met, _ := follow(tableOf(w.grown, table), chain, w.packets)
	return float64(met) / float64(w.packets)
}

// foreign returns the rules that only a new connection should meet, and that were met.
func (w *walk) foreign() (met []string) {
	for _, table := range w.grown {
		for _, chain := range table.Chains {
			for _, r := range chain.Rules {
				first := table.Name == "nat" || strings.HasPrefix(chain.Name, "KUBE-") || strings.HasPrefix(chain.Name, "cali-tw-")
				if first && r.Packets > 0 {
					met = append(met, table.Name+" "+chain.Name+" "+r.Rule)
				}
			}
		}
	}
	return met
}

// follow sends packets into a chain and returns how many rules they meet there and below, and how many come back.
func follow(t ipt.SavedTable, name string, packets uint64) (met, back uint64) {
	chain, _ := t.Chain(name)
	left := packets
	for _, r := range chain.Rules {
		met += left
		target := ruletest.Target(r.Rule)
		switch target {
		case "ACCEPT", "DROP", "REJECT":
			left -= r.Packets
			continue
		case "RETURN":
			left -= r.Packets
			back += r.Packets
			continue
		}
		if _, ok := t.Chain(target); !ok {
			continue
		}
		below, returned := follow(t, target, r.Packets)
		met += below
		left -= r.Packets
		if strings.Contains(r.Rule, "-g ") {
			back += returned
		} else {
			left += returned
		}
	}
	return met, back + left
}
