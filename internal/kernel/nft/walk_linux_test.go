package nft_test

import (
	"net/netip"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane/policy"
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

// services are one of each kind, and one with a load balancer.
func services() policy.Node {
	c, open := walktest.Services(), walktest.Service("open", 19, "a")
	open.LoadBalancerIPs = []netip.Addr{netip.MustParseAddr("203.0.113.2")}
	c.ServiceCIDR, c.NodePortAddr, c.Services = netip.MustParsePrefix("10.43.0.0/16"), netip.MustParseAddr(walktest.NodeIP), append(c.Services, open)
	return policy.Node{ProxyNFT: true, Services: c}
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
