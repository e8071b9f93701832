package nft_test

import (
	"net/netip"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/dataplane/walktest"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newWorld builds the world and loads the nftables tables of n into the node.
func newWorld(t *testing.T, n policy.Node) walktest.World {
	t.Helper()
	w := walktest.New(t)
	must(t, nft.Load(t.Context(), w["node"], n.Tables()...))
	return w
}

// services are one of each kind.
func services() policy.Node {
	local, far, sticky := walktest.Service("local", 15, "a"), walktest.Service("far", 16, ""), walktest.Service("sticky", 17, "abc")
	local.ExternalTrafficPolicyLocal, far.ExternalTrafficPolicyLocal, sticky.SessionAffinity = true, true, true
	far.Endpoints = []service.Endpoint{{Addr: netip.MustParseAddrPort("10.42.9.9:8080")}}
	open := walktest.Service("open", 19, "a")
	open.LoadBalancerIPs = []netip.Addr{netip.MustParseAddr("203.0.113.2")}
	return policy.Node{ProxyNFT: true, Services: &service.Config{
		ClusterCIDR: walktest.Cluster, ServiceCIDR: netip.MustParsePrefix("10.43.0.0/16"), NodePortAddr: netip.MustParseAddr(walktest.NodeIP),
		Services: []service.Service{
			walktest.Service("one", 10, "a"), walktest.Service("self", 11, "b"), walktest.Service("closed", 12, ""), walktest.Service("three", 13, "abc"), walktest.Service("routed", 14, "d"), local, far, sticky, open,
		},
	}}
}

// underlay is a whole node of Calico without encapsulation, with the pods named.
func underlay(pods string) policy.Node {
	n := services()
	n.Calico = &policy.CalicoConfig{
		NFTables: true, NodeAddrs: []netip.Addr{netip.MustParseAddr(walktest.NodeIP)}, Peers: []netip.Addr{netip.MustParseAddr(walktest.ClientIP)},
		Pools: []netip.Prefix{walktest.Cluster},
	}
	for _, p := range pods {
		n.Calico.Devices = append(n.Calico.Devices, "cali"+string(p))
	}
	return n
}
