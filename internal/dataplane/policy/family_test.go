package policy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

// The profiles that differ in IPv6 are among the others under these names.
func init() {
	for _, name := range []string{"host", "flannel-vxlan", "canal", "calico-vxlan", "calico-policies"} {
		build := profiles[name]
		profiles[name+"-v6"] = func(node int) Node { return nodeIn6(build(node)) }
	}
}

// in6 is a where every byte of an IPv4 address has become a group of IPv6.
func in6(a netip.Addr) netip.Addr {
	b := a.As4()
	return netip.MustParseAddr(fmt.Sprintf("fd00:%d:%d:%d::%d", b[0], b[1], b[2], b[3]))
}

func prefixIn6(p netip.Prefix) netip.Prefix {
	return netip.PrefixFrom(in6(p.Addr()), 16+2*p.Bits()).Masked()
}

// nodeIn6 is the same node with IPv6 addresses.
func nodeIn6(n Node) Node {
	n.IPv6 = true
	if s := n.Services; s != nil {
		c := service.Config{IPv6: true, ClusterCIDR: prefixIn6(s.ClusterCIDR), ServiceCIDR: prefixIn6(s.ServiceCIDR), NodePortAddr: in6(s.NodePortAddr)}
		for _, svc := range s.Services {
			svc.VIP = in6(svc.VIP)
			var moved []service.Endpoint
			for _, e := range svc.Endpoints {
				moved = append(moved, service.Endpoint{Addr: netip.AddrPortFrom(in6(e.Addr.Addr()), e.Addr.Port()), Local: e.Local})
			}
			svc.Endpoints = moved
			c.Services = append(c.Services, svc)
		}
		n.Services = &c
	}
	if f := n.Flannel; f != nil {
		n.Flannel = &FlannelConfig{ClusterCIDR: prefixIn6(f.ClusterCIDR), PodCIDR: prefixIn6(f.PodCIDR)}
	}
	if n.Calico != nil {
		c := *n.Calico
		c.IPv6, c.Pools = true, nil
		for _, p := range n.Calico.Pools {
			c.Pools = append(c.Pools, prefixIn6(p))
		}
		c.NodeAddrs, c.Peers = addrsIn6(c.NodeAddrs), addrsIn6(c.Peers)
		n.Calico = &c
	}
	return n
}

func addrsIn6(list []netip.Addr) []netip.Addr {
	var out []netip.Addr
	for _, a := range list {
		out = append(out, in6(a))
	}
	return out
}

func TestCalicoNFTablesInIPv6(t *testing.T) {
	for _, name := range []string{"calico-vxlan-v6", "calico-policies-v6"} {
		var text strings.Builder
		for _, table := range inNFT(profiles[name](0)).Tables() {
			if err := table.Check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			text.WriteString(table.String())
		}
		golden.Check(t, name+"-0.nft", []byte(text.String()))
	}
}
