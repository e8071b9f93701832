package cilium

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/capture"
)

// The verdicts of a tc program.
const (
	pass     = 0
	shot     = 2
	redirect = 7
)

const (
	podA   = "10.20.1.10"
	podB   = "10.20.1.11" // of the same node
	remote = "10.20.2.12" // behind the tunnel
	router = "10.20.1.1"
	ownIP  = "10.10.0.1"
)

var macs = [2][]byte{{2, 0, 0, 0, 1, 1}, {2, 0, 0, 0, 1, 2}}

// bench is a node's programs without a node: nothing is attached, packets are handed to them one by one.
type bench struct {
	*Node
	pods [2]*ebpf.Collection
}

func newBench(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	o := Options{NodeIP: netip.MustParseAddr(ownIP), Gateway: netip.MustParseAddr(router), Legacy: true}
	change(&o)
	o.Sizes = Sizes{FlowsTCP: 1024, FlowsAny: 1024, SNAT: 1024, Stats: 1024}
	n := &Node{opts: o, cache: btf.NewCache(), endpoints: map[uint16]*pod{}, services: newServices()}
	overlay := o.Overlay
	n.opts.Overlay = ""
	if err := n.configure(); err != nil {
		t.Fatal(err)
	}
	if overlay != "" {
		n.config.Tunnel, n.config.Overlay = 1, 1
	}
	spec, err := loadHost()
	if err != nil {
		t.Fatal(err)
	}
	n.size(spec)
	if err := spec.Variables["node"].Set(n.config); err != nil {
		t.Fatal(err)
	}
	n.host, err = attach.Load("host", spec, ebpf.CollectionOptions{})
	skipOrFail(t, err)
	t.Cleanup(n.host.Close)
	b := &bench{Node: n}
	if err := fillCalls(n.host, hostCalls); err != nil {
		t.Fatal(err)
	}
	for i, ip := range []string{podA, podB} {
		b.pods[i] = b.endpoint(t, i, netip.MustParseAddr(ip))
	}
	for a, id := range map[string]Identity{ownIP: Host, router: Host} {
		if err := n.SetNodeAddress(netip.MustParseAddr(a), id); err != nil {
			t.Fatal(err)
		}
	}
	to := netip.MustParseAddr("10.10.0.2")
	if err := n.SetIPCache(netip.MustParsePrefix(remote+"/32"), 1003, to); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) endpoint(t *testing.T, i int, ip netip.Addr) *ebpf.Collection {
	t.Helper()
	spec, err := loadLxc()
	if err != nil {
		t.Fatal(err)
	}
	b.size(spec)
	id := identities[i]
	self := lxcEndpointConfig{Ip: be32(ip), Identity: uint32(id), Ifindex: uint32(i + 1), Id: uint16(i + 1)}
	copy(self.HostMac.Addr[:], macs[i])
	if err := spec.Variables["self"].Set(self); err != nil {
		t.Fatal(err)
	}
	if err := spec.Variables["node"].Set(b.config); err != nil {
		t.Fatal(err)
	}
	coll, err := attach.Load("endpoint", spec, b.share(spec))
	skipOrFail(t, err)
	t.Cleanup(coll.Close)
	if err := fillCalls(coll, lxcCalls); err != nil {
		t.Fatal(err)
	}
	b.policy(t, coll, AllowAll())
	info := hostEndpointInfo{Ifindex: uint32(i + 1), Id: uint16(i + 1), Identity: uint32(id)}
	copy(info.Mac.Addr[:], []byte{2, 0, 0, 0, 2, byte(i + 1)})
	copy(info.NodeMac.Addr[:], macs[i])
	for name, put := range map[string][2]any{
		"cilium_call_policy": {uint32(i + 1), coll.Programs["policy"]}, "cilium_lxc": {endpointKey(ip), info},
	} {
		if err := b.host.Maps[name].Put(put[0], put[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.SetIPCache(netip.PrefixFrom(ip, 32), id, netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	return coll
}

func (b *bench) policy(t *testing.T, coll *ebpf.Collection, rules []Rule) {
	t.Helper()
	p := &pod{policy: coll.Maps["cilium_policy"]}
	if err := p.setPolicy(rules); err != nil {
		t.Fatal(err)
	}
}

// total returns how many packets were dropped for a reason; "" is all reasons.
func (b *bench) total(t *testing.T, outcome string) (sum uint64) {
	t.Helper()
	list, err := b.Counters()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Drop && (outcome == "" || c.Outcome == outcome) {
			sum += c.Packets
		}
	}
	return sum
}

func overlay(o *Options) { o.Overlay = "cilium_vxlan" }

var toB = bpftest.Packet{Src: podA, Dst: podB, Proto: 6, SrcPort: 4000, DstPort: 80, Flags: bpftest.SYN, Payload: 20}

func TestFromContainer(t *testing.T) {
	b := newBench(t, overlay)
	to := func(dst string) []byte { return toB.With(func(p *bpftest.Packet) { p.Dst = dst }).Bytes() }
	v6 := toB.Bytes()
	v6[12], v6[13] = 0x86, 0xdd
	for _, c := range []struct {
		name  string
		frame []byte
		want  uint32
		why   string
	}{
		{"pod of this node", toB.Bytes(), redirect, ""},
		{"pod behind the tunnel", to(remote), redirect, ""},
		{"the node", to(ownIP), pass, ""},
		{"the gateway", to(router), pass, ""},
		{"the world", to("1.2.3.4"), pass, ""},
		{"somebody else's source", toB.With(func(p *bpftest.Packet) { p.Src = "10.20.1.99" }).Bytes(), shot, "source address is not the pod's"},
		{"last hop", toB.With(func(p *bpftest.Packet) { p.TTL = 1 }).Bytes(), shot, "time to live exceeded"},
		{"no hop", toB.With(func(p *bpftest.Packet) { p.NoTTL = true }).Bytes(), shot, "time to live exceeded"},
		{"IPv6", v6, shot, "unknown network protocol"},
		{"cut in the ports", toB.Bytes()[:36], shot, "transport header is cut off"},
		{"cut before the flags", toB.Bytes()[:44], shot, "transport header is cut off"},
		{"header of four words", headerWords(toB.Bytes(), 4), shot, "malformed packet"},
		{"header beyond the packet", headerWords(toB.Bytes()[:40], 15), shot, "transport header is cut off"},
		{"a protocol without ports", toB.With(func(p *bpftest.Packet) { p.Proto = 47 }).Bytes(), shot, "unknown transport protocol"},
		{"a fragment without its first", toB.With(func(p *bpftest.Packet) { p.FragOff = 0x00b9; p.ID = 9 }).Bytes(), shot, "fragment without its first"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, all := b.total(t, c.why), b.total(t, "")
			got, _ := bpftest.Run(t, b.pods[0].Programs["from_container"], c.frame)
			if got != c.want {
				t.Errorf("verdict %d, want %d", got, c.want)
			}
			drops := uint64(0)
			if c.want == shot {
				drops = 1
			}
			if b.total(t, "")-all != drops || c.why != "" && b.total(t, c.why)-before != 1 {
				t.Errorf("%d drops, %d of them as %q", b.total(t, "")-all, b.total(t, c.why)-before, c.why)
			}
		})
	}
}

func headerWords(frame []byte, words byte) []byte {
	frame[14] = 0x40 | words
	return frame
}

func TestDeliveryRewritesTheFrame(t *testing.T) {
	b := newBench(t, overlay)
	in := toB.Bytes()
	_, out := bpftest.Run(t, b.pods[0].Programs["from_container"], in)
	f := capture.Decode(out, len(out))
	if f.IP.TTL != 63 || !bytes.Equal(out[:6], []byte{2, 0, 0, 0, 2, 2}) || !bytes.Equal(out[6:12], macs[1]) {
		t.Errorf("delivered %s", f.String())
	}
	if bad := bpftest.Sums(out); bad != "" {
		t.Error(bad)
	}
}

func TestGatewayAnswersARP(t *testing.T) {
	b := newBench(t, overlay)
	prog := b.pods[0].Programs["from_container"]
	got, out := bpftest.Run(t, prog, bpftest.ARP(podA, router))
	f := capture.Decode(out, len(out))
	if got != redirect || f.ARP == nil || f.ARP.Operation != 2 || f.ARP.Sender.String() != router ||
		f.ARP.Target.String() != podA || !bytes.Equal(f.ARP.SenderMAC, macs[0]) || !bytes.Equal(out[:6], f.ARP.TargetMAC) {
		t.Errorf("verdict %d, %s", got, f.String())
	}
	if got, out = bpftest.Run(t, prog, bpftest.ARP(podA, podB)); got != pass || !bytes.Equal(out, bpftest.ARP(podA, podB)) {
		t.Errorf("somebody else's address: verdict %d", got)
	}
}

func TestFragmentsFollowTheirFirst(t *testing.T) {
	b := newBench(t, overlay)
	prog := b.pods[0].Programs["from_container"]
	first := toB.With(func(p *bpftest.Packet) { p.Proto = 17; p.ID = 77; p.FragOff = 0x2000 })
	later := first.With(func(p *bpftest.Packet) { p.FragOff = 0x0005 })
	for i, frame := range [][]byte{first.Bytes(), later.Bytes()} {
		if got, _ := bpftest.Run(t, prog, frame); got != redirect {
			t.Errorf("fragment %d: verdict %d", i, got)
		}
	}
}

// TestFlowsAndPolicy counts what each packet of one flow touched: replies ask no policy, and every side has one entry,
// with one more for errors about it.
func TestFlowsAndPolicy(t *testing.T) {
	b := newBench(t, overlay)
	forward, back := b.pods[0].Programs["from_container"], b.pods[1].Programs["from_container"]
	ack := toB.With(func(p *bpftest.Packet) { p.Flags = bpftest.ACK })
	for _, frame := range []bpftest.Packet{toB, ack, ack} {
		if got, _ := bpftest.Run(t, forward, frame.Bytes()); got != redirect {
			t.Fatalf("forward: verdict %d", got)
		}
	}
	for range 5 {
		if got, _ := bpftest.Run(t, back, ack.Reply().Bytes()); got != redirect {
			t.Fatalf("reply: verdict %d", got)
		}
	}
	asked := map[uint8]uint64{}
	var k hostPolicystatsKey
	var v []hostCounter
	for it := b.host.Maps["cilium_policystats"].Iterate(); it.Next(&k, &v); {
		for _, c := range v {
			asked[k.Egress] += c.Packets
		}
	}
	if asked[0] != 3 || asked[1] != 3 {
		t.Errorf("policy was asked %d times on the way out and %d on the way in, want 3 and 3", asked[1], asked[0])
	}
	if n := entries(t, b.host.Maps["cilium_ct4"]); n != 2 {
		t.Errorf("%d TCP flows, want one of each side", n)
	}
	if n := entries(t, b.host.Maps["cilium_ct_any4"]); n != 2 {
		t.Errorf("%d other flows, want those for errors", n)
	}
}

func entries(t *testing.T, m *ebpf.Map) (n int) {
	t.Helper()
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	it := m.Iterate()
	for it.Next(&key, &value) {
		n++
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPolicy(t *testing.T) {
	b := newBench(t, overlay)
	prog := b.pods[0].Programs["from_container"]
	port := uint16(5000)
	for _, c := range []struct {
		name            string
		egress, ingress []Rule
		want            uint32
	}{
		{"all allowed", AllowAll(), AllowAll(), redirect},
		{"nothing allowed out", nil, AllowAll(), shot},
		{"nothing allowed in", AllowAll(), nil, shot},
		{"the peer by identity", []Rule{{Identity: identities[1], Egress: true}}, []Rule{{Identity: identities[0]}}, redirect},
		{"another identity", []Rule{{Identity: 7777, Egress: true}}, AllowAll(), shot},
		{"the port", []Rule{{Egress: true, Proto: TCP, Port: 80}}, AllowAll(), redirect},
		{"another port", []Rule{{Egress: true, Proto: TCP, Port: 81}}, AllowAll(), shot},
		{"the protocol", []Rule{{Egress: true, Proto: TCP}}, AllowAll(), redirect},
		{"another protocol", []Rule{{Egress: true, Proto: UDP}}, AllowAll(), shot},
		{"a denial beats a permission", []Rule{{Egress: true}, {Identity: identities[1], Egress: true, Deny: true}}, AllowAll(), shot},
		{"precedence beats a denial", []Rule{{Egress: true, Precedence: 9}, {Identity: identities[1], Egress: true, Deny: true}}, AllowAll(), redirect},
		{"nothing beats the top denial", []Rule{{Egress: true}, {Identity: identities[1], Egress: true, Deny: true, Precedence: 0xffffffff}}, AllowAll(), shot},
		{"the other direction's rule", []Rule{{}}, AllowAll(), shot},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.policy(t, b.pods[0], c.egress)
			b.policy(t, b.pods[1], c.ingress)
			port++
			before := b.total(t, "denied by policy")
			frame := toB.With(func(p *bpftest.Packet) { p.SrcPort = port })
			got, _ := bpftest.Run(t, prog, frame.Bytes())
			if denied := b.total(t, "denied by policy") - before; got != c.want || denied != uint64(flag(c.want == shot)) {
				t.Errorf("verdict %d, want %d; %d denials counted", got, c.want, denied)
			}
		})
	}
}

func TestDevicesOfTheNode(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Legacy = false })
	in := bpftest.Packet{Src: "10.10.0.9", Dst: podA, Proto: 17, SrcPort: 5, DstPort: 6, Payload: 4}
	up := in.With(func(p *bpftest.Packet) { p.Dst = ownIP })
	nobody := in.With(func(p *bpftest.Packet) { p.Dst = "10.20.1.200" })
	for _, c := range []struct {
		prog  string
		name  string
		frame []byte
		want  uint32
		why   string
	}{
		{"from_netdev", "to a pod", in.Bytes(), redirect, ""},
		{"from_netdev", "to the node", up.Bytes(), pass, ""},
		{"from_netdev", "to nobody", nobody.Bytes(), pass, ""},
		{"from_netdev", "ARP", bpftest.ARP("10.10.0.9", ownIP), pass, ""},
		{"from_netdev", "malformed", headerWords(in.Bytes(), 2), shot, "malformed packet"},
		{"from_netdev", "last hop", in.With(func(p *bpftest.Packet) { p.TTL = 1 }).Bytes(), shot, "time to live exceeded"},
		{"to_netdev", "anything", up.Bytes(), pass, ""},
		{"from_overlay", "without a tunnel", in.Bytes(), shot, "no tunnel key"},
		{"from_overlay", "ARP", bpftest.ARP("10.10.0.9", ownIP), pass, ""},
		{"to_overlay", "anything", in.Bytes(), pass, ""},
		{"from_host", "to a pod", in.Bytes(), redirect, ""},
		{"from_host", "to nobody", nobody.Bytes(), shot, "unknown endpoint"},
		{"from_host", "malformed", headerWords(in.Bytes(), 2), shot, "malformed packet"},
		{"to_host", "anything", in.Bytes(), pass, ""},
	} {
		t.Run(c.prog+" "+c.name, func(t *testing.T) {
			before := b.total(t, c.why)
			if got, _ := bpftest.Run(t, b.host.Programs[c.prog], c.frame); got != c.want {
				t.Errorf("verdict %d, want %d", got, c.want)
			}
			if c.why != "" && b.total(t, c.why)-before != 1 {
				t.Errorf("not counted as %q", c.why)
			}
		})
	}
}

// TestMissingDoor sends to a pod whose program is not there yet.
func TestMissingDoor(t *testing.T) {
	b := newBench(t, overlay)
	if err := b.host.Maps["cilium_call_policy"].Delete(uint32(2)); err != nil {
		t.Fatal(err)
	}
	got, _ := bpftest.Run(t, b.pods[0].Programs["from_container"], toB.Bytes())
	if got != shot || b.total(t, "tail call to a program that is not there") != 1 {
		t.Errorf("verdict %d", got)
	}
}

// TestGarbage hands every program bytes that no stack would send; the kernel must live and every packet be judged.
func TestGarbage(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Overlay, o.PacketLB, o.NodePort, o.Maglev = "cilium_vxlan", true, NodePortSNAT, true
		o.Masquerade = netip.MustParsePrefix("10.20.0.0/16")
	})
	progs := map[string]*ebpf.Program{"from_container": b.pods[0].Programs["from_container"], "policy": b.pods[0].Programs["policy"]}
	for _, name := range []string{"from_netdev", "to_netdev", "from_overlay", "to_overlay", "from_host", "to_host"} {
		progs[name] = b.host.Programs[name]
	}
	r := rand.New(rand.NewPCG(1, 2))
	for name, prog := range progs {
		for range 300 {
			frame := toB.Bytes()
			if r.IntN(2) == 0 {
				frame = frame[:34+r.IntN(len(frame)-34)]
			}
			for range r.IntN(20) {
				frame[14+r.IntN(len(frame)-14)] = byte(r.Uint32())
			}
			if v, _ := bpftest.Run(t, prog, frame); v != pass && v != shot && v != redirect {
				t.Fatalf("%s: verdict %d for % x", name, v, frame)
			}
		}
	}
}

// TestMaglevAgreesBetweenFrontends sends the same flows to two nodes' addresses: the backend is the flow's, not the node's.
func TestMaglevAgreesBetweenFrontends(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Legacy, o.NodePort, o.Maglev = false, NodePortSNAT, true })
	list := []netip.AddrPort{netip.MustParseAddrPort(podA + ":80"), netip.MustParseAddrPort(podB + ":80")}
	for i, front := range []string{ownIP + ":30000", "10.10.0.2:30000"} {
		s := Service{Frontend: netip.MustParseAddrPort(front), Proto: TCP, NodePort: true, Backends: list}
		if i == 1 {
			s.Backends = []netip.AddrPort{list[1], list[0]}
		}
		if err := b.SetService(s); err != nil {
			t.Fatal(err)
		}
	}
	in := bpftest.Packet{Src: "10.10.0.9", Proto: 6, DstPort: 30000, Flags: bpftest.SYN}
	served := map[netip.Addr]int{}
	for port := range uint16(64) {
		var chose [2]netip.Addr
		for i, dst := range []string{ownIP, "10.10.0.2"} {
			// The second run of each is a packet of the open flow, which must stay.
			for range 2 {
				frame := in.With(func(p *bpftest.Packet) { p.SrcPort, p.Dst = 4000+port, dst })
				v, out := bpftest.Run(t, b.host.Programs["from_netdev"], frame.Bytes())
				f := capture.Decode(out, len(out))
				if v != redirect || f.TCP.DestinationPort != 80 || bpftest.Sums(out) != "" {
					t.Fatalf("verdict %d: %s %s", v, f.String(), bpftest.Sums(out))
				}
				if chose[i].IsValid() && chose[i] != f.IP.Destination {
					t.Errorf("port %d: an open flow moved", 4000+port)
				}
				chose[i] = f.IP.Destination
			}
		}
		if chose[0] != chose[1] {
			t.Errorf("port %d: %s by one node, %s by the other", 4000+port, chose[0], chose[1])
		}
		served[chose[0]]++
	}
	if len(served) != 2 {
		t.Errorf("served %v, want both backends", served)
	}
}

// TestBackendGoesAway removes the backend of an open flow: its next packet goes to another.
func TestBackendGoesAway(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Legacy, o.NodePort = false, NodePortSNAT })
	front := netip.MustParseAddrPort(ownIP + ":30000")
	in := bpftest.Packet{Src: "10.10.0.9", Dst: ownIP, Proto: 6, SrcPort: 1234, DstPort: 30000, Flags: bpftest.ACK}
	for _, pod := range []string{podA, podB} {
		s := Service{Frontend: front, Proto: TCP, NodePort: true, Backends: []netip.AddrPort{netip.MustParseAddrPort(pod + ":80")}}
		if err := b.SetService(s); err != nil {
			t.Fatal(err)
		}
		_, out := bpftest.Run(t, b.host.Programs["from_netdev"], in.Bytes())
		if f := capture.Decode(out, len(out)); f.IP.Destination.String() != pod {
			t.Errorf("with backend %s: %s", pod, f.String())
		}
	}
	if err := b.SetService(Service{Frontend: front, Proto: TCP, NodePort: true}); err != nil {
		t.Fatal(err)
	}
	if v, _ := bpftest.Run(t, b.host.Programs["from_netdev"], in.Bytes()); v != shot || b.total(t, "service has no backend") != 1 {
		t.Errorf("without backends: verdict %d", v)
	}
	if err := b.DeleteService(front, TCP); err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{"cilium_lb4_services", "cilium_lb4_backends", "cilium_lb4_reverse_nat"} {
		if n := entries(t, b.host.Maps[m]); n != 0 {
			t.Errorf("%d entries are left in %s", n, m)
		}
	}
}

// TestTranslatedPortsChangeHands fills the range of ports towards one backend; ended flows must give theirs back.
func TestTranslatedPortsChangeHands(t *testing.T) {
	b := newBench(t, func(o *Options) {
		o.Overlay, o.NodePort = "cilium_vxlan", NodePortSNAT
	})
	s := Service{
		Frontend: netip.MustParseAddrPort(ownIP + ":30000"), Proto: TCP, NodePort: true,
		Backends: []netip.AddrPort{netip.MustParseAddrPort(remote + ":80")},
	}
	if err := b.SetService(s); err != nil {
		t.Fatal(err)
	}
	in := bpftest.Packet{Proto: 6, SrcPort: 40000, Dst: ownIP, DstPort: 30000}
	// Two clients with the same source port: the first keeps it, the second gets another, until the first has ended.
	ports := map[uint16]string{}
	run := func(src string, tcpFlags uint8) uint16 {
		frame := in.With(func(p *bpftest.Packet) { p.Src, p.Flags = src, tcpFlags })
		v, out := bpftest.Run(t, b.host.Programs["from_netdev"], frame.Bytes())
		f := capture.Decode(out, len(out))
		if v != redirect || f.IP.Source.String() != router || f.IP.Destination.String() != remote || bpftest.Sums(out) != "" {
			t.Fatalf("verdict %d: %s %s", v, f.String(), bpftest.Sums(out))
		}
		return f.TCP.SourcePort
	}
	for _, src := range []string{"10.10.0.9", "10.10.0.8"} {
		port := run(src, bpftest.SYN)
		if other := ports[port]; other != "" {
			t.Errorf("port %d is given to %s and %s", port, other, src)
		}
		ports[port] = src
	}
	if ports[40000] != "10.10.0.9" {
		t.Errorf("the first client did not keep its port: %v", ports)
	}
	run("10.10.0.9", bpftest.RST)
	if port := run("10.10.0.7", bpftest.SYN); port != 40000 {
		t.Errorf("port %d, want the one of the flow that was reset", port)
	}
}
