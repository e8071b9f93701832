package lab

import (
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/plan"
)

// addressing has the addresses of an instance. Instances are isolated, so all of them use the same addresses.
type addressing struct {
	// underlay is the range of the switch, the nodes and the external client.
	underlay netip.Prefix
	// switchAddr and outside are the addresses of the switch and of the external client.
	switchAddr, outside netip.Addr
	// cluster is the range of pod addresses, services the range of Service addresses.
	cluster, services netip.Prefix
	// local, remote and itself are the addresses of LocalService, RemoteService and SelfService.
	local, remote, itself netip.Addr
	// firstFiller is the address of the first idle Service; the other idle Services have the next addresses.
	firstFiller netip.Addr
	// balanced is the load balancer's first address, on the underlay. Further load balancer addresses follow it.
	balanced netip.Addr
	// forTests is the address of the first Service that only self-tests use; the others have the next addresses.
	forTests netip.Addr
	// churned is the address of the Service that changes under churn.
	churned netip.Addr
	// nodeOffset plus a node's number is the last byte of its address.
	nodeOffset int
	// everywhere is the destination of a default route.
	everywhere netip.Prefix
}

var (
	addressing4 = addressing{
		underlay:   netip.MustParsePrefix("172.18.0.0/16"),
		switchAddr: netip.MustParseAddr("172.18.0.1"), outside: netip.MustParseAddr("172.18.0.250"), nodeOffset: 10,
		cluster: netip.MustParsePrefix("10.244.0.0/16"), services: netip.MustParsePrefix("10.96.0.0/12"),
		local: netip.MustParseAddr("10.96.100.1"), remote: netip.MustParseAddr("10.96.100.2"), itself: netip.MustParseAddr("10.96.100.3"),
		balanced:    netip.MustParseAddr("172.18.1.1"),
		firstFiller: netip.MustParseAddr("10.97.0.1"), forTests: netip.MustParseAddr("10.96.101.1"), churned: netip.MustParseAddr("10.96.101.100"), everywhere: netip.MustParsePrefix("0.0.0.0/0"),
	}
	// A node has a /64 of the cluster's /56, as kubeadm assigns them. Node addresses are ::11 and up.
	addressing6 = addressing{
		underlay:   netip.MustParsePrefix("fd00:172:18::/64"),
		switchAddr: netip.MustParseAddr("fd00:172:18::1"), outside: netip.MustParseAddr("fd00:172:18::250"), nodeOffset: 0x10,
		cluster: netip.MustParsePrefix("fd00:10:244::/56"), services: netip.MustParsePrefix("fd00:10:96::/112"),
		local: netip.MustParseAddr("fd00:10:96::f001"), remote: netip.MustParseAddr("fd00:10:96::f002"), itself: netip.MustParseAddr("fd00:10:96::f003"),
		balanced:    netip.MustParseAddr("fd00:172:18::1:1"),
		firstFiller: netip.MustParseAddr("fd00:10:96::1"), forTests: netip.MustParseAddr("fd00:10:96::ff01"), churned: netip.MustParseAddr("fd00:10:96::fff0"), everywhere: netip.MustParsePrefix("::/0"),
	}
)

// IPv6 is the value of plan.Lab.Family for a lab whose nodes, pods and Services have only IPv6 addresses.
const IPv6 = 6

func addressingOf(l plan.Lab) addressing {
	if l.Family == IPv6 {
		return addressing6
	}
	return addressing4
}

// underlayHost describes a host on the underlay.
func (a addressing) underlayHost(name string, addr netip.Addr) hostSpec {
	return hostSpec{Name: name, Addr: netip.PrefixFrom(addr, a.underlay.Bits()), MAC: dataplane.UnderlayMAC(addr)}
}

// podlessEndpoint returns the address of the i-th endpoint that has no pod. It is in the cluster's range, but not in the range
// of a node. After 50,000 endpoints the addresses repeat, with the next port.
func (a addressing) podlessEndpoint(i, port int) netip.AddrPort {
	const first, size = 32, 50_000
	b := a.cluster.Addr().AsSlice()
	at := i % size
	if len(b) == 4 {
		b[2], b[3] = byte(first+at>>8), byte(at)
	} else {
		b[7], b[14], b[15] = first, byte(at>>8), byte(at)
	}
	addr, _ := netip.AddrFromSlice(b) // the length has not changed
	return netip.AddrPortFrom(addr, uint16(port+i/size))
}

// nodeAddr returns the address of the node with this number.
func (a addressing) nodeAddr(number int) netip.Addr {
	b := a.underlay.Addr().AsSlice()
	b[len(b)-1] = byte(a.nodeOffset + number)
	addr, _ := netip.AddrFromSlice(b) // the length has not changed
	return addr
}
