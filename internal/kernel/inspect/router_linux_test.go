package inspect

import (
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// routed are two namespaces with a router between them, which lets packets of 1350 bytes through one way and of 1400
// the other, and says so: 10.9.1.2 and 10.9.2.2, fd09:1::2 and fd09:2::2.
func routed(t *testing.T) (a, b *netns.NS) {
	t.Helper()
	a, b = namespace(t), namespace(t)
	router := namespace(t)
	must(t, netns.SetSysctls(router, []netns.Setting{{Name: "net/ipv4/ip_forward", Value: "1"}, {Name: "net/ipv6/conf/all/forwarding", Value: "1"}}))
	for _, side := range []struct {
		ns     *netns.NS
		device string
		own    []string
		gates  []string
		mtu    int
	}{
		{a, "left", []string{"10.9.1.2/24", "fd09:1::2/64"}, []string{"10.9.1.1/24", "fd09:1::1/64"}, 1400},
		{b, "right", []string{"10.9.2.2/24", "fd09:2::2/64"}, []string{"10.9.2.1/24", "fd09:2::1/64"}, 1350},
	} {
		must(t, router.Do(func() error {
			return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: side.device, MTU: 1500}, PeerName: "eth0", PeerMTU: 1500, PeerNamespace: netlink.NsFd(side.ns.FD())})
		}))
		address(t, router, side.device, side.gates...)
		address(t, side.ns, "eth0", side.own...)
		for i, gate := range side.gates {
			gateway, everywhere := netip.MustParsePrefix(gate), []string{"0.0.0.0/0", "::/0"}[i]
			route(t, side.ns, "eth0", netlink.Route{Dst: network(t, everywhere), Gw: gateway.Addr().AsSlice()})
			end := netip.MustParsePrefix(side.own[i]).Addr()
			route(t, router, side.device, netlink.Route{Dst: network(t, netip.PrefixFrom(end, end.BitLen()).String()), MTU: side.mtu, MTULock: true})
		}
	}
	return a, b
}

func network(t *testing.T, prefix string) *net.IPNet {
	t.Helper()
	_, n, err := net.ParseCIDR(prefix)
	must(t, err)
	return n
}

func route(t *testing.T, ns *netns.NS, device string, r netlink.Route) {
	t.Helper()
	must(t, ns.Do(func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		r.LinkIndex = l.Attrs().Index
		return netlink.RouteAdd(&r)
	}))
}

// TestPathMTUHearsTheRouter: what a router refuses with a word did not vanish, whichever way it went.
func TestPathMTUHearsTheRouter(t *testing.T) {
	a, b := routed(t)
	end := start(t, b, "echo", "")
	for _, to := range []string{"10.9.2.2:7777", "[fd09:2::2]:7777"} {
		var got netstate.PathMTU
		must(t, wait(t, a, "mtu", to, &got))
		if got.Own != 1500 || got.There != 1350 || got.Back != 1400 || got.Silent {
			t.Errorf("%s: %+v", to, got)
		}
	}
	var n int
	end(&n)
}
