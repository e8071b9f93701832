package link

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// lacks skips a test where the kernel has no such device. In the guest of make test-vm it has.
func lacks(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("%v", err)
	}
	must(t, err)
}

// TestNetkitDropsWhatAPodSends: the pair is up at both ends and without MAC addresses, and until it has a program the
// peer's packets go nowhere, while the primary's arrive.
func TestNetkitDropsWhatAPodSends(t *testing.T) {
	node, pod := fresh(t), fresh(t)
	lacks(t, node.Add(Netkit{Name: "nk1", Peer: "eth0", PeerIn: pod, MTU: 1450}))
	for _, d := range []Device{device(t, node, "nk1"), device(t, pod, "eth0")} {
		if d.Kind != "netkit" || d.MTU != 1450 || !d.Up || slices.Max(append(d.MAC, 0)) != 0 {
			t.Errorf("%+v", d)
		}
	}
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	must(t, node.Add(Address{Dev: "nk1", Addr: netip.PrefixFrom(a, 24)}), pod.Add(Address{Dev: "eth0", Addr: netip.PrefixFrom(b, 24)}))
	if !sends(t, node, pod, b) {
		t.Error("what the primary sends does not arrive")
	}
	if sends(t, pod, node, a) {
		t.Error("what the peer sends arrives, though it has no program")
	}
}

// sends says whether a datagram from one namespace arrives at an address of another.
func sends(t *testing.T, from, to *Handle, addr netip.Addr) bool {
	t.Helper()
	var server, client *net.UDPConn
	must(t, to.NS().Do(func() (err error) {
		server, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
		return err
	}))
	defer server.Close()
	must(t, from.NS().Do(func() (err error) {
		client, err = net.DialUDP("udp4", nil, server.LocalAddr().(*net.UDPAddr))
		return err
	}))
	defer client.Close()
	if _, err := client.Write([]byte("x")); err != nil {
		return false // a drop on the way out is told
	}
	must(t, server.SetReadDeadline(time.Now().Add(2*time.Second)))
	_, err := server.Read(make([]byte, 1))
	return err == nil
}

// TestWireGuardCarriesBetweenOwners: two ends that know each other by name exchange packets, in either version of IP,
// and the kernel tells the peers that it was told.
func TestWireGuardCarriesBetweenOwners(t *testing.T) {
	for _, tc := range []struct{ name, outer, other, range1, range2 string }{
		{"IPv4", "192.0.2.1/24", "192.0.2.2/24", "10.1.0.0/24", "10.2.0.0/24"},
		{"IPv6", "2001:db8::1/64", "2001:db8::2/64", "10.1.0.0/24", "10.2.0.0/24"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := fresh(t), fresh(t)
			must(t, a.Add(Veth{Name: "eth0", Peer: "eth0", PeerIn: b, MTU: 1500}))
			ends := []struct {
				h            *Handle
				owner, other string
				outer, far   netip.Prefix
				own, theirs  netip.Prefix
			}{
				{a, "a", "b", netip.MustParsePrefix(tc.outer), netip.MustParsePrefix(tc.other), netip.MustParsePrefix(tc.range1), netip.MustParsePrefix(tc.range2)},
				{b, "b", "a", netip.MustParsePrefix(tc.other), netip.MustParsePrefix(tc.outer), netip.MustParsePrefix(tc.range2), netip.MustParsePrefix(tc.range1)},
			}
			for _, e := range ends {
				lacks(t, e.h.Add(WireGuard{Name: "wg0", MTU: 1420, Owner: e.owner, Port: 51820}))
				must(t,
					e.h.Add(Address{Dev: "eth0", Addr: e.outer}),
					e.h.Add(Address{Dev: "wg0", Addr: netip.PrefixFrom(e.own.Addr(), 32)}),
					e.h.Add(Route{To: e.theirs, Dev: "wg0", LinkScope: true}),
					e.h.Add(WireGuardPeer{Device: "wg0", Owner: e.other, Endpoint: netip.AddrPortFrom(e.far.Addr(), 51820), Allowed: []netip.Prefix{e.theirs}}))
				port, peers, err := e.h.WireGuardPeers("wg0")
				must(t, err)
				if port != 51820 || len(peers) != 1 || peers[0].Endpoint != netip.AddrPortFrom(e.far.Addr(), 51820) || !slices.Equal(peers[0].Allowed, []netip.Prefix{e.theirs}) {
					t.Errorf("port %d, peers %+v", port, peers)
				}
			}
			if !sends(t, a, b, ends[1].own.Addr()) || !sends(t, b, a, ends[0].own.Addr()) {
				t.Error("a datagram does not arrive")
			}
		})
	}
}

// TestVLANKeepsToItsNumber: devices of one VLAN reach each other over their parents, those of two VLANs do not. Each has
// its own MAC address.
func TestVLANKeepsToItsNumber(t *testing.T) {
	a, b := fresh(t), fresh(t)
	must(t, a.Add(Veth{Name: "eth1", Peer: "eth1", PeerIn: b, MTU: 1500}))
	mac := net.HardwareAddr{2, 0, 10, 0, 7, 1}
	lacks(t, a.Add(VLAN{Name: "vlan7", Parent: "eth1", ID: 7, MAC: mac}, Address{Dev: "vlan7", Addr: netip.MustParsePrefix("10.0.7.1/24")}))
	if d := device(t, a, "vlan7"); d.Kind != "vlan" || d.MAC.String() != mac.String() || d.MTU != 1500 || !d.Up || d.Peer != device(t, a, "eth1").Index {
		t.Errorf("%+v", d)
	}
	must(t, b.Add(VLAN{Name: "same", Parent: "eth1", ID: 7}, Address{Dev: "same", Addr: netip.MustParsePrefix("10.0.7.2/24")},
		VLAN{Name: "other", Parent: "eth1", ID: 8}, Address{Dev: "other", Addr: netip.MustParsePrefix("10.0.7.3/32")}))
	if !sends(t, a, b, netip.MustParseAddr("10.0.7.2")) {
		t.Error("a datagram does not arrive in its VLAN")
	}
	must(t, b.Remove("same"), a.Add(StaticNeighbour{Dev: "vlan7", Addr: netip.MustParseAddr("10.0.7.3"), MAC: device(t, b, "other").MAC}))
	if sends(t, a, b, netip.MustParseAddr("10.0.7.3")) {
		t.Error("a datagram arrives in another VLAN")
	}
}
