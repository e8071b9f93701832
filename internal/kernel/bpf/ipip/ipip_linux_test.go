package ipip

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/capture"
)

func load(t *testing.T, o Options) *Tunnel {
	t.Helper()
	tun, err := Load(o)
	return bpftest.Loaded(t, tun, err)
}

func prefixOf(node int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 20, byte(node + 1), 0}), 24)
}

// TestTraffic sends through two nodes with plain routing, whose only way to each other is the stand-in.
func TestTraffic(t *testing.T) {
	top := bpftest.NewTopology(t, false)
	var nodes [2]*bpftest.Node
	var pods [2]*bpftest.Pod
	var tunnels [2]*Tunnel
	gateway := netip.MustParseAddr("169.254.1.1")
	for i := range nodes {
		n := top.Node(byte(i + 1))
		nodes[i] = n
		n.Veth("tunl0", "tunl0peer", true)
		n.Address("tunl0", netip.PrefixFrom(prefixOf(i).Addr(), 32))
		bpftest.In(t, n.NS, func() error {
			l, err := netlink.LinkByName("tunl0")
			if err != nil {
				return err
			}
			return netlink.LinkSetMTU(l, 1480)
		})
		pods[i] = n.Pod(prefixOf(i).Addr().Next(), gateway, 1480)
		n.Address(pods[i].Device, netip.PrefixFrom(gateway, 32))
		n.Route(netip.PrefixFrom(pods[i].IP, 32), netip.Addr{}, pods[i].Device, 0)
	}
	for i, n := range nodes {
		tunnels[i] = load(t, Options{NS: n.NS, NodeIP: n.IP, Wire: "eth0", Tunnel: "tunl0"})
		if err := tunnels[i].SetPeer(prefixOf(1-i), nodes[1-i].IP); err != nil {
			t.Fatal(err)
		}
		n.Route(prefixOf(1-i), netip.Addr{}, "tunl0", 1480)
	}
	bpftest.Serve(t, pods[1].NS, netip.MustParseAddrPort("0.0.0.0:7000"))
	wire, err := capture.Open(nodes[0].NS, capture.Options{Device: "eth0"})
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	inside, err := capture.Open(nodes[1].NS, capture.Options{Device: "tunl0"})
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	for _, network := range []string{"tcp4", "udp4"} {
		// Larger than a packet, so that segmentation offload (TCP) and fragments (UDP) are crossed.
		saw, err := bpftest.Exchange(pods[0].NS, network, netip.AddrPortFrom(pods[1].IP, 7000), 60000)
		if err != nil || saw.Addr() != pods[0].IP {
			t.Errorf("%s: server saw %s, %v", network, saw, err)
		}
	}
	frames, err := wire.Drain()
	if err != nil {
		t.Fatal(err)
	}
	carried := 0
	for _, f := range frames {
		// The kernel itself sends reports of IPv6 groups when a link comes up.
		if f.IP == nil || f.IP.Destination.IsLinkLocalMulticast() {
			continue
		}
		if f.IP.Protocol != 4 || f.Inner == nil || f.Inner.IP == nil {
			t.Errorf("on the wire without a tunnel: %s", f.String())
			continue
		}
		carried++
		if out := f.Outgoing; out != (f.IP.Source == nodes[0].IP) || out != (f.Inner.IP.Source == pods[0].IP) {
			t.Errorf("wrong addresses: %s", f.String())
		}
	}
	if carried == 0 {
		t.Error("nothing crossed the wire")
	}
	if frames, err = inside.Drain(); err != nil || len(frames) == 0 {
		t.Errorf("%d frames on the tunnel device, %v", len(frames), err)
	}
	for i, tun := range tunnels {
		c, err := tun.Counters()
		if err != nil || slices.ContainsFunc(c, func(c attach.Counter) bool { return c.Drop != (c.Packets == 0) }) {
			t.Errorf("node %d: %+v, %v", i+1, c, err)
		}
	}
}

// programs loads the collection without devices.
func programs(t *testing.T) *ebpf.Collection {
	t.Helper()
	spec, err := loadPrograms()
	if err != nil {
		t.Fatal(err)
	}
	node := netip.MustParseAddr("10.10.0.1")
	if err := spec.Variables["config"].Set(programsTunnelConfig{NodeIp: addressWord(node), Wire: 1, Tunnel: 1}); err != nil {
		t.Fatal(err)
	}
	coll, err := attach.Load("ipip", spec, ebpf.CollectionOptions{})
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("eBPF programs cannot be loaded here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(coll.Close)
	peer := programsPeerKey{Prefixlen: 24, Addr: addressWord(netip.MustParseAddr("10.20.2.0"))}
	if err := coll.Maps["ipip_peers"].Put(peer, addressWord(netip.MustParseAddr("10.10.0.2"))); err != nil {
		t.Fatal(err)
	}
	return coll
}

const (
	actOK       = 0
	actShot     = 2
	actRedirect = 7
)

func TestEncapsulatesPackets(t *testing.T) {
	coll := programs(t)
	good := bpftest.Packet{Src: "10.20.1.5", Dst: "10.20.2.5", Proto: 17, SrcPort: 1, DstPort: 2, Payload: 100}
	for _, c := range []struct {
		name string
		in   []byte
		want uint32
	}{
		{"to a peer", good.Bytes(), actRedirect},
		{"to nobody", good.With(func(p *bpftest.Packet) { p.Dst = "10.99.0.1" }).Bytes(), actShot},
		{"ARP", bpftest.ARP("10.20.1.5", "10.20.1.1"), actShot},
		{"header shorter than IPv4 allows", shortHeader(good.Bytes()), actShot},
	} {
		t.Run(c.name, func(t *testing.T) {
			ret, out := bpftest.Run(t, coll.Programs["encap"], c.in)
			if ret != c.want {
				t.Fatalf("verdict %d, want %d", ret, c.want)
			}
			if c.want != actRedirect {
				return
			}
			if len(out) != len(c.in)+20 {
				t.Fatalf("%d bytes became %d", len(c.in), len(out))
			}
			f := capture.Decode(out, len(out))
			if f.IP.Protocol != 4 || f.IP.Destination.String() != "10.10.0.2" || f.Inner.IP.Destination.String() != "10.20.2.5" {
				t.Errorf("became %s", f.String())
			}
			if s := bpftest.Sum(out[14:34]); s != 0 {
				t.Errorf("the outer header's checksum is off by %#x", s)
			}
			if got := binary.BigEndian.Uint16(out[16:]); int(got) != len(out)-14 {
				t.Errorf("the outer header says %d bytes", got)
			}
		})
	}
}

// shortHeader makes the IP header claim to be four words long.
func shortHeader(frame []byte) []byte {
	frame[14] = 0x44
	return frame
}

func TestDecapsulatesPackets(t *testing.T) {
	coll := programs(t)
	inner := bpftest.Packet{Src: "10.20.2.5", Dst: "10.20.1.5", Proto: 6, SrcPort: 1, DstPort: 2, Payload: 10}
	wrapped := bpftest.Packet{Src: "10.10.0.2", Dst: "10.10.0.1", Proto: 4, Raw: inner.Bytes()[14:]}
	for _, c := range []struct {
		name string
		in   []byte
		want uint32
	}{
		{"for this node", wrapped.Bytes(), actRedirect},
		{"for another node", wrapped.With(func(p *bpftest.Packet) { p.Dst = "10.10.0.7" }).Bytes(), actOK},
		{"no tunnel", inner.Bytes(), actOK},
		{"ARP", bpftest.ARP("10.10.0.2", "10.10.0.1"), actOK},
		{"inner header cut off", wrapped.Bytes()[:44], actShot},
		{"fragment", wrapped.With(func(p *bpftest.Packet) { p.FragOff = 0x2000 }).Bytes(), actShot},
		{"options", wrapped.With(func(p *bpftest.Packet) { p.Options = make([]byte, 8) }).Bytes(), actShot},
	} {
		t.Run(c.name, func(t *testing.T) {
			ret, out := bpftest.Run(t, coll.Programs["decap"], c.in)
			if ret != c.want {
				t.Fatalf("verdict %d, want %d", ret, c.want)
			}
			if c.want == actRedirect && string(out[14:]) != string(inner.Bytes()[14:]) {
				t.Errorf("the inner packet came out changed:\n% x\n% x", out[14:], inner.Bytes()[14:])
			}
		})
	}
}
