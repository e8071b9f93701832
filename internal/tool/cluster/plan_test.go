package main

import (
	"net/netip"
	"strings"
	"testing"
)

func TestRequestCheckListsEveryFault(t *testing.T) {
	good := request{Name: "dev", Nodes: 3, CNI: "bridge", Proxy: "nftables", DaemonCPUs: "0-1,3"}
	if err := good.check(); err != nil {
		t.Errorf("a good request is refused: %v", err)
	}
	if err := (request{Name: "dev", Nodes: 2, CNI: "cilium-native"}).check(); err != nil {
		t.Errorf("a good request is refused: %v", err)
	}
	err := request{Name: "dev", Nodes: 2, CNI: "cilium-native", Proxy: "iptables", Policies: true}.check()
	if err == nil || !strings.Contains(err.Error(), "replaces kube-proxy") || !strings.Contains(err.Error(), "NetworkPolicies itself") {
		t.Errorf("kube-proxy and kube-router beside Cilium: %v", err)
	}
	if err := (request{Name: "dev", Nodes: 2, CNI: kubeRouter, Proxy: "iptables", Policies: true}).check(); err == nil {
		t.Error("kube-router beside itself is taken")
	}
	bad := request{Name: "a-b", Nodes: 0, CNI: "weave", Proxy: "ipvs", PodCPUs: "one"}
	err = bad.check()
	if err == nil {
		t.Fatal("a bad request is taken")
	}
	for _, want := range []string{`"a-b"`, "nodes 0", `"weave"`, `"ipvs"`, `"one"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}

func TestNodesHaveAddressesOfTheirOwn(t *testing.T) {
	nodes := request{Nodes: maxNodes}.nodes()
	seen := map[netip.Addr]bool{host(nodeRange4, 1): true, host(nodeRange6, 1): true}
	control := 0
	for _, n := range nodes {
		for _, a := range []netip.Addr{n.Addr4, n.Addr6} {
			if seen[a] {
				t.Errorf("%s: address %v is taken", n.Name, a)
			}
			seen[a] = true
		}
		if !nodeRange4.Contains(n.Addr4) || !nodeRange6.Contains(n.Addr6) {
			t.Errorf("%s: %v or %v is outside the nodes' network", n.Name, n.Addr4, n.Addr6)
		}
		if n.ControlPlane {
			control++
		}
	}
	if control != 1 {
		t.Errorf("%d control planes, want 1", control)
	}
	if three := (request{Nodes: 3}).nodes(); three[0].Zone != three[1].Zone || three[0].Zone == three[2].Zone {
		t.Errorf("zones %q %q %q: want the last one alone", three[0].Zone, three[1].Zone, three[2].Zone)
	}
}

func TestNetworkCommands(t *testing.T) {
	nodes := request{Nodes: 2}.nodes()
	got := switchNetwork(nodes, map[string]int{"n1": 100, "n2": 200}) + "--\n" + nodeNetwork(nodes[1]) + "--\n" +
		podRoutes(nodes[1], nodes, map[string][]netip.Prefix{
			"n1": {netip.MustParsePrefix("10.244.7.0/24"), netip.MustParsePrefix("fd00:10:244:7::/64")},
			"n2": {netip.MustParsePrefix("10.244.8.0/24")},
		})
	const want = `link set lo up
link add br0 type bridge
addr add 10.70.0.1/24 dev br0
addr add fd00:10:70::1/64 dev br0 nodad
link set br0 up
link add n1 type veth peer name eth0 netns 100
link set n1 master br0 up
link add n2 type veth peer name eth0 netns 200
link set n2 master br0 up
--
link set lo up
addr add 10.70.0.12/24 dev eth0
addr add fd00:10:70::c/64 dev eth0 nodad
link set eth0 up
route add default via 10.70.0.1
route add ::/0 via fd00:10:70::1
--
route add 10.244.7.0/24 via 10.70.0.11
route add fd00:10:244:7::/64 via fd00:10:70::b
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestParseTarget(t *testing.T) {
	for in, want := range map[string][2]string{
		"n2": {"n2", "kubelet"}, "n3/containerd": {"n3", "containerd"}, "apiserver": {"n1", "kube-apiserver"},
	} {
		if node, daemon := parseTarget(in); node != want[0] || daemon != want[1] {
			t.Errorf("parseTarget(%q) = %q, %q, want %q", in, node, daemon, want)
		}
	}
}
