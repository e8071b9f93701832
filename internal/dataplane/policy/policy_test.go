package policy

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/dataplane/ruletest"
	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

var cluster = netip.MustParsePrefix("10.42.0.0/16")

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// pods are three: two on node 0, one on node 1. devices are theirs.
var (
	pods    = [][]netip.Addr{{addr("10.42.0.2"), addr("10.42.0.3")}, {addr("10.42.1.2")}}
	devices = [][]string{{"cali0a1b2c3d4e5", "cali0a9f8e7d6c5"}, {"cali5f4e3d2c1b0"}}
)

func services(node int) *service.Config {
	web := service.Service{Namespace: "default", Name: "web", PortName: "http", Protocol: "tcp", VIP: addr("10.43.0.10"), Port: 80, NodePort: 30080}
	for n, local := range pods {
		for _, p := range local {
			web.Endpoints = append(web.Endpoints, service.Endpoint{Addr: netip.AddrPortFrom(p, 8080), Local: n == node})
		}
	}
	kept := web
	kept.Name, kept.VIP, kept.NodePort, kept.ExternalTrafficPolicyLocal = "kept", addr("10.43.0.11"), 30081, true
	return &service.Config{
		ClusterCIDR: cluster, ServiceCIDR: netip.MustParsePrefix("10.43.0.0/16"), NodePortAddr: nodeAddr(node), Services: []service.Service{web, kept},
	}
}

func nodeAddr(node int) netip.Addr { return netip.AddrFrom4([4]byte{192, 168, 0, byte(10 + node)}) }

func calico(node int) *CalicoConfig {
	return &CalicoConfig{Devices: devices[node], NodeAddrs: []netip.Addr{nodeAddr(node)}, Peers: []netip.Addr{nodeAddr(1 - node)}}
}

// profiles are the nodes of the lab's profiles.
var profiles = map[string]func(node int) Node{
	"host": func(node int) Node { return Node{Services: services(node)} },
	"flannel-vxlan": func(node int) Node {
		return Node{Services: services(node), Flannel: flannel(node)}
	},
	"canal": func(node int) Node {
		return Node{Services: services(node), Flannel: flannel(node), Calico: calico(node)}
	},
	"calico-encrypted": func(node int) Node {
		c := calico(node)
		c.VXLAN, c.WireGuard, c.Pools = true, true, []netip.Prefix{cluster}
		return Node{Services: services(node), Calico: c}
	},
	"calico-vxlan": func(node int) Node {
		c := calico(node)
		c.VXLAN, c.Pools = true, []netip.Prefix{cluster}
		return Node{Services: services(node), Calico: c}
	},
	"calico-underlay": func(node int) Node {
		c := calico(node)
		c.Pools = []netip.Prefix{cluster}
		return Node{Services: services(node), Calico: c}
	},
	"calico-ipip": func(node int) Node {
		c := calico(node)
		c.IPIP, c.Pools = true, []netip.Prefix{cluster}
		return Node{Services: services(node), Calico: c}
	},
	"calico-ebpf": func(node int) Node {
		return Node{Calico: &CalicoConfig{Devices: devices[node], encapsulations: encapsulations{VXLAN: true}, BPF: true}}
	},
	"cilium-native":           func(int) Node { return Node{Cilium: &CiliumConfig{}} },
	"cilium-vxlan":            func(int) Node { return Node{Cilium: &CiliumConfig{VXLAN: true}} },
	"cilium-native-wireguard": func(int) Node { return Node{Cilium: &CiliumConfig{WireGuard: true}} },
	"cilium-native-ipsec":     func(int) Node { return Node{Cilium: &CiliumConfig{IPsec: true}} },
	"aws-vpc": func(node int) Node {
		s := services(node)
		s.ClusterCIDR = netip.Prefix{}
		return Node{Services: s, AWS: aws(node)}
	},
	"kube-router": func(node int) Node {
		return Node{Services: services(node), KubeRouter: &KubeRouterConfig{
			Subnets: []netip.Prefix{flannel(0).PodCIDR, flannel(1).PodCIDR}, NodeAddrs: []netip.Addr{nodeAddr(0), nodeAddr(1)}, ServiceCIDR: netip.MustParsePrefix("10.43.0.0/16"),
			Pods: []LocalPod{{"node-1/pod-1", netip.MustParseAddr("10.42.0.2")}, {"node-1/pod-2", netip.MustParseAddr("10.42.0.3")}}, Policies: 2 * node, PoliciesUnselected: node}}
	},
	"azure": func(node int) Node {
		return Node{Services: services(node), Azure: &AzureConfig{Cluster: cluster, Pods: flannel(node).PodCIDR, NodeAddr: nodeAddr(node)}}
	},
	"kindnetd": func(node int) Node {
		return Node{Services: services(node), Kindnet: &KindnetConfig{Pods: []netip.Prefix{cluster}, Kindnetd: true}}
	},
	"calico-policies": func(node int) Node {
		c := calico(node)
		c.Policies, c.PoliciesUnselected = 3, 2
		return Node{Calico: c}
	},
}

func aws(node int) *AWSConfig {
	return &AWSConfig{VPC: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/17"), cluster}, NodeAddr: nodeAddr(node)}
}

func flannel(node int) *FlannelConfig {
	return &FlannelConfig{ClusterCIDR: cluster, PodCIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 42, byte(node), 0}), 24)}
}

func TestProfiles(t *testing.T) {
	for name, build := range profiles {
		for node := range pods {
			n := build(node)
			rules, sets := n.Render()
			golden.Check(t, fmt.Sprintf("%s-%d.rules", name, node), []byte(rules))
			if sets != "" {
				golden.Check(t, fmt.Sprintf("%s-%d.sets", name, node), []byte(sets))
			}
			again, againSets := build(node).Render()
			if rules != again || sets != againSets {
				t.Errorf("%s: two renderings of node %d differ", name, node)
			}
		}
	}
}

func TestTables(t *testing.T) {
	for name, n := range map[string]Node{
		"aws-vpc":          profiles["aws-vpc"](0),
		"kindnet-fastpath": {Kindnet: &KindnetConfig{Pods: []netip.Prefix{cluster}, Devices: []string{"eth0", "knet0a1b2c3d"}, Threshold: 20}},
		"kindnet":          {Kindnet: &KindnetConfig{Pods: []netip.Prefix{cluster, netip.MustParsePrefix("fd00:10:244::/56")}}},
	} {
		var text string
		for _, table := range n.Tables() {
			if err := table.Check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			text += table.String()
		}
		golden.Check(t, name+"-0.nft", []byte(text))
	}
}

// loose are the chains that no built-in chain leads to on a running node either: the canaries, which are only watched.
// Policies that select no pod are loaded here to weigh on the tables, not on packets.
var loose = regexp.MustCompile(`/KUBE-(PROXY-CANARY|KUBELET-CANARY|IPTABLES-HINT)$`)

func TestRulesAreWhole(t *testing.T) {
	for name, build := range profiles {
		n := build(0)
		rules, sets := n.Ruleset()
		if err := ruletest.Check(rules); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		unselected := 0
		for _, chain := range ruletest.Unreachable(rules) {
			if strings.Contains(chain, "/cali-pi-") || strings.Contains(chain, "/cali-po-") {
				unselected++
			} else if !loose.MatchString(chain) {
				t.Errorf("%s: no way leads to %s", name, chain)
			}
		}
		want := 0
		if n.Calico != nil {
			want = 2 * n.Calico.PoliciesUnselected
		}
		if unselected != want {
			t.Errorf("%s: %d chains of policies stand alone, want %d", name, unselected, want)
		}
		for _, m := range regexp.MustCompile(`--match-set (\S+)`).FindAllStringSubmatch(rules.String(), -1) {
			if !strings.Contains(sets, "create "+m[1]+" ") {
				t.Errorf("%s: set %s is matched and never made", name, m[1])
			}
			if len(m[1]) > 31 {
				t.Errorf("%s: set name %s is longer than 31 bytes", name, m[1])
			}
		}
	}
}

// jumps returns where a built-in chain leads, from the top.
func jumps(r *ruleset.Ruleset, table, chain string) []string {
	var out []string
	for _, rule := range r.Table(table).Chain(chain).Rules() {
		out = append(out, ruletest.Target(rule))
	}
	return out
}

// TestOrderOnANode holds the order in which a canal node, where everybody is present, walks its built-in chains.
func TestOrderOnANode(t *testing.T) {
	r, _ := profiles["canal"](0).Ruleset()
	tests := []struct {
		table, chain string
		want         []string
	}{
		{"raw", "PREROUTING", []string{"cali-PREROUTING"}},
		{"raw", "OUTPUT", []string{"cali-OUTPUT"}},
		{"mangle", "PREROUTING", []string{"cali-PREROUTING"}},
		{"mangle", "POSTROUTING", []string{"cali-POSTROUTING"}},
		{"nat", "PREROUTING", []string{"cali-PREROUTING", "KUBE-SERVICES"}},
		{"nat", "OUTPUT", []string{"cali-OUTPUT", "KUBE-SERVICES"}},
		{"nat", "POSTROUTING", []string{"KUBE-POSTROUTING", "FLANNEL-POSTRTG", "cali-POSTROUTING"}},
		{"filter", "INPUT", []string{"cali-INPUT", "KUBE-PROXY-FIREWALL", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-FIREWALL"}},
		{"filter", "FORWARD", []string{"cali-FORWARD", "KUBE-PROXY-FIREWALL", "KUBE-FORWARD", "KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "FLANNEL-FWD", "ACCEPT", "MARK"}},
		{"filter", "OUTPUT", []string{"cali-OUTPUT", "KUBE-PROXY-FIREWALL", "KUBE-SERVICES", "KUBE-FIREWALL"}},
		{"filter", "cali-fw-cali0a1b2c3d4e5", []string{"ACCEPT", "DROP", "MARK", "DROP", "DROP", "cali-pro-kns.default", "RETURN", "cali-pro-ksa.default.default", "RETURN", "DROP"}},
		{"filter", "cali-tw-cali0a1b2c3d4e5", []string{"ACCEPT", "DROP", "MARK", "cali-pri-kns.default", "RETURN", "cali-pri-ksa.default.default", "RETURN", "DROP"}},
	}
	for _, tt := range tests {
		if got := jumps(r, tt.table, tt.chain); !slices.Equal(got, tt.want) {
			t.Errorf("%s %s leads to\n  %q, want\n  %q", tt.table, tt.chain, got, tt.want)
		}
	}
}

// TestOnlyVXLANTouchesVXLAN holds that canal and the underlay leave outer packets alone.
func TestOnlyVXLANTouchesVXLAN(t *testing.T) {
	for name, build := range profiles {
		n := build(0)
		rules, sets := n.Render()
		untracked := n.Calico != nil && n.Calico.VXLAN || n.Cilium != nil && n.Cilium.VXLAN
		if strings.Contains(rules, "-j NOTRACK") != untracked {
			t.Errorf("%s: rules contain NOTRACK: %v", name, !untracked)
		}
		vxlan := n.Calico != nil && n.Calico.VXLAN && !n.Calico.BPF
		device, peers := "-o vxlan.calico", "cali40all-vxlan-net"
		if n.IPv6 {
			device, peers = "-o vxlan-v6.calico", "cali60all-vxlan-net"
		}
		for _, mark := range []string{device, peers} {
			if strings.Contains(rules, mark) != vxlan {
				t.Errorf("%s: rules contain %q: %v", name, mark, !vxlan)
			}
		}
		if strings.Contains(sets, peers) != vxlan {
			t.Errorf("%s: the set of VXLAN peers is there: %v", name, !vxlan)
		}
	}
}

// walk follows gotos for a device through a dispatch chain, as a packet does, and returns where it ends.
func walk(r *ruleset.Ruleset, chain, option, device string) (end string, depth int) {
	for strings.Contains(chain, "wl-dispatch") {
		depth++
		next := "nowhere"
		for _, rule := range r.Table(ruleset.Filter).Chain(chain).Rules() {
			m := regexp.MustCompile(option + ` (\S+) `).FindStringSubmatch(rule)
			if m == nil || m[1] == device || strings.HasSuffix(m[1], "+") && strings.HasPrefix(device, strings.TrimSuffix(m[1], "+")) {
				next = ruletest.Target(rule)
				break
			}
		}
		chain = next
	}
	return chain, depth
}

func TestDispatchFindsEveryPod(t *testing.T) {
	sets := [][]string{
		{"cali1"},
		{"cali1", "cali12", "cali123"},
		{"calia0", "calia1", "calib0"},
		{"cali-", "cali_", "caliZ"},
	}
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("cali%011x", i*0x1f3d5b79))
	}
	for _, names := range append(sets, many) {
		var c CalicoConfig
		c.Devices = names
		r := ruleset.New()
		addCalico(r, c)
		if err := ruletest.Check(r); err != nil {
			t.Error(err)
		}
		for _, n := range names {
			if end, depth := walk(r, "cali-from-wl-dispatch", "-i", n); end != "cali-fw-"+n || depth > 2 {
				t.Errorf("%d pods: from %s the way of %d chains leads to %s", len(names), n, depth, end)
			}
			if end, _ := walk(r, "cali-to-wl-dispatch", "-o", n); end != "cali-tw-"+n {
				t.Errorf("%d pods: to %s the way leads to %s", len(names), n, end)
			}
		}
		if end, _ := walk(r, "cali-from-wl-dispatch", "-i", "caliUNKNOWN"); end != "DROP" {
			t.Errorf("%d pods: from an unknown device the way leads to %s", len(names), end)
		}
	}
}

// TestOrderOfPodsDoesNotMatterToDispatch: Felix sorts, and so must we, or two runs would load different chains.
func TestOrderOfPodsDoesNotMatterToDispatch(t *testing.T) {
	a, b := *calico(0), *calico(0)
	b.Devices = []string{a.Devices[1], a.Devices[0]}
	for _, chain := range []string{"cali-from-wl-dispatch", "cali-to-wl-dispatch"} {
		ra, rb := ruleset.New(), ruleset.New()
		addCalico(ra, a)
		addCalico(rb, b)
		if got, want := rb.Table(ruleset.Filter).Chain(chain).Rules(), ra.Table(ruleset.Filter).Chain(chain).Rules(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", chain, got, want)
		}
	}
}

func TestPolicies(t *testing.T) {
	c := *calico(0)
	c.Policies, c.PoliciesUnselected = 7, 5
	r := ruleset.New()
	sets := addCalico(r, c)
	if err := ruletest.Check(r); err != nil {
		t.Error(err)
	}
	if got, want := strings.Count(sets, "create cali40s:"), 2*(7+5); got != want {
		t.Errorf("%d sets of policies, want %d", got, want)
	}
	chain := jumps(r, "filter", "cali-tw-"+c.Devices[0])
	seen := 0
	for _, to := range chain {
		if strings.HasPrefix(to, "cali-pi-") {
			seen++
		}
	}
	if seen != 7 {
		t.Errorf("a pod's chain leads to %d policies, want 7", seen)
	}
	// The halves of the address space stand in the sets of one policy, in each direction: it allows all.
	if got := strings.Count(sets, " 128.0.0.0/1\n"); got != 2 {
		t.Errorf("%d sets hold everybody, want 2", got)
	}
}
