package cilium

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"

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

var macs = [2][]byte{{2, 0, 0, 0, 1, 1}, {2, 0, 0, 0, 1, 2}}

// bench is a node's programs without a node: nothing is attached, packets are handed to them one by one.
type bench struct {
	*Node
	pods [2]*ebpf.Collection
	// podA and podB are on the node, remote is behind the tunnel; router, own and peer are the gateway and the nodes.
	podA, podB, remote, router, own, peer, client netip.Addr
	toB                                           bpftest.Packet // opens a flow from podA
}

func newBench(t *testing.T, where numbering, change func(*Options)) *bench {
	t.Helper()
	b := &bench{
		podA: where.pod(0, 0), podB: where.pod(0, 1), remote: where.pod(1, 2), router: where.gateway(0),
		own: where.node(1), peer: where.node(2), client: where.node(9),
	}
	b.toB = bpftest.Packet{
		Src: b.podA.String(), Dst: b.podB.String(), Proto: 6, SrcPort: 4000, DstPort: 80, Flags: bpftest.SYN, Payload: 20,
	}
	o := Options{NodeIP: b.own, Gateway: b.router, Legacy: true}
	change(&o)
	o.Sizes = Sizes{FlowsTCP: 1024, FlowsAny: 1024, SNAT: 1024, Stats: 1024, Ports: allPorts}
	n := newNode(o)
	b.Node = n
	overlay := o.Overlay
	n.opts.Overlay = ""
	if err := n.fillConfig(); err != nil {
		t.Fatal(err)
	}
	if overlay != "" {
		n.config.Tunnel, n.config.Overlay = 1, 1
	}
	spec, err := n.fam.host()
	if err != nil {
		t.Fatal(err)
	}
	n.setCapacities(spec)
	if err := spec.Variables["node"].Set(n.config); err != nil {
		t.Fatal(err)
	}
	n.host, err = attach.Load("host", spec, ebpf.CollectionOptions{})
	bpftest.SkipOrFail(t, err)
	t.Cleanup(n.host.Close)
	if err := fillCallTable(n.host, hostCalls); err != nil {
		t.Fatal(err)
	}
	for i, ip := range []netip.Addr{b.podA, b.podB} {
		b.pods[i] = b.endpoint(t, i, ip)
	}
	for _, a := range []netip.Addr{b.own, b.router} {
		if err := n.SetNodeAddress(a, Host); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.SetIPCache(n.fam.hostPrefix(b.remote), 1003, b.peer); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) endpoint(t *testing.T, i int, ip netip.Addr) *ebpf.Collection {
	t.Helper()
	spec, err := b.fam.lxc()
	if err != nil {
		t.Fatal(err)
	}
	b.setCapacities(spec)
	id := identities[i]
	self := lxcEndpointConfig{Ip: addressWords(ip), Identity: uint32(id), Ifindex: uint32(i + 1), Id: uint16(i + 1)}
	copy(self.HostMac.Addr[:], macs[i])
	if err := spec.Variables["self"].Set(self); err != nil {
		t.Fatal(err)
	}
	if err := spec.Variables["node"].Set(b.config); err != nil {
		t.Fatal(err)
	}
	coll, err := attach.Load("endpoint", spec, b.loadOptions(spec))
	bpftest.SkipOrFail(t, err)
	t.Cleanup(coll.Close)
	if err := fillCallTable(coll, lxcCalls); err != nil {
		t.Fatal(err)
	}
	b.policy(t, coll, AllowAll())
	info := hostEndpointInfo{Ifindex: uint32(i + 1), Id: uint16(i + 1), Identity: uint32(id)}
	copy(info.Mac.Addr[:], []byte{2, 0, 0, 0, 2, byte(i + 1)})
	copy(info.NodeMac.Addr[:], macs[i])
	for name, put := range map[string][2]any{
		"cilium_call_policy": {uint32(i + 1), coll.Programs["policy"]}, "cilium_lxc": {b.fam.endpointKey(ip), info},
	} {
		if err := b.host.Maps[name].Put(put[0], put[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.SetIPCache(b.fam.hostPrefix(ip), id, netip.Addr{}); err != nil {
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

// total returns how many packets were counted under an outcome; "" is all that were dropped.
func (b *bench) total(t *testing.T, outcome string) (sum uint64) {
	t.Helper()
	list, err := b.Counters()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Outcome == outcome || outcome == "" && c.Drop {
			sum += c.Packets
		}
	}
	return sum
}

func overlay(o *Options) { o.Overlay = "cilium_vxlan" }

// verdict is a frame and what a program shall do with it, and why if it is dropped.
type verdict struct {
	name  string
	frame []byte
	want  uint32
	why   string
}

func TestFromContainer(t *testing.T) {
	eachFamily(t, func(t *testing.T, where numbering) {
		b := newBench(t, where, overlay)
		special := b.special4
		if where.version == 6 {
			special = b.special6
		}
		for _, c := range append(b.common(), special()...) {
			t.Run(c.name, func(t *testing.T) { b.judge(t, b.pods[0].Programs["from_container"], c) })
		}
	})
}

// judge runs a program and looks at the verdict and the counters.
func (b *bench) judge(t *testing.T, prog *ebpf.Program, c verdict) {
	t.Helper()
	before, all := b.total(t, c.why), b.total(t, "")
	got, _ := bpftest.Run(t, prog, c.frame)
	if got != c.want {
		t.Errorf("verdict %d, want %d", got, c.want)
	}
	drops := uint64(0)
	if c.want == shot && c.why != outcomes[linkLocal] {
		drops = 1
	}
	if b.total(t, "")-all != drops || c.why != "" && b.total(t, c.why)-before != 1 {
		t.Errorf("%d drops, %d of them as %q", b.total(t, "")-all, b.total(t, c.why)-before, c.why)
	}
}

// common are the packets of a pod that either family has.
func (b *bench) common() []verdict {
	toB := b.toB
	to := func(dst netip.Addr) []byte { return toB.With(func(p *bpftest.Packet) { p.Dst = dst.String() }).Bytes() }
	world, stranger := netip.MustParseAddr("1.2.3.4"), netip.MustParseAddr("10.20.1.99")
	if b.fam.version == 6 {
		world, stranger = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("fd00:20:1::99")
	}
	return []verdict{
		{"pod of this node", toB.Bytes(), redirect, ""},
		{"pod behind the tunnel", to(b.remote), redirect, ""},
		{"the node", to(b.own), pass, ""},
		{"the gateway", to(b.router), pass, ""},
		{"the world", to(world), pass, ""},
		{"somebody else's source", toB.With(func(p *bpftest.Packet) { p.Src = stranger.String() }).Bytes(), shot, "source address is not the pod's"},
		{"last hop", toB.With(func(p *bpftest.Packet) { p.TTL = 1 }).Bytes(), shot, "time to live exceeded"},
		{"no hop", toB.With(func(p *bpftest.Packet) { p.NoTTL = true }).Bytes(), shot, "time to live exceeded"},
		{"a protocol without ports", toB.With(func(p *bpftest.Packet) { p.Proto = 47 }).Bytes(), shot, "unknown transport protocol"},
	}
}

// special4 are those that only IPv4 has.
func (b *bench) special4() []verdict {
	toB := b.toB
	v6 := toB.Bytes()
	v6[12], v6[13] = 0x86, 0xdd
	return []verdict{
		{"IPv6", v6, shot, "unknown network protocol"},
		{"cut in the ports", toB.Bytes()[:36], shot, "transport header is cut off"},
		{"cut before the flags", toB.Bytes()[:44], shot, "transport header is cut off"},
		{"header of four words", headerWords(toB.Bytes(), 4), shot, "malformed packet"},
		{"header beyond the packet", headerWords(toB.Bytes()[:40], 15), shot, "transport header is cut off"},
		{"a fragment without its first", toB.With(func(p *bpftest.Packet) { p.FragOff = 0x00b9; p.ID = 9 }).Bytes(), shot, "fragment without its first"},
	}
}

func headerWords(frame []byte, words byte) []byte {
	frame[14] = 0x40 | words
	return frame
}

// badVersion makes the header one of no protocol.
func badVersion(frame []byte) []byte {
	frame[14] = 0x22
	return frame
}

func TestDeliveryRewritesTheFrame(t *testing.T) { eachFamily(t, testDeliveryRewritesTheFrame) }

func testDeliveryRewritesTheFrame(t *testing.T, where numbering) {
	b := newBench(t, where, overlay)
	in := b.toB.Bytes()
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
	b := newBench(t, numberings[0], overlay)
	podA, podB, router := b.podA.String(), b.podB.String(), b.router.String()
	prog := b.pods[0].Programs["from_container"]
	got, out := bpftest.Run(t, prog, bpftest.ARP(podA, router))
	asked := bpftest.ARP(podA, router)
	sender, target := asked[22:28], asked[28:32] // who asked
	want := slices.Concat(sender, macs[0], asked[12:20], []byte{0, 2}, macs[0], b.router.AsSlice(), sender, target)
	if got != redirect || !bytes.Equal(out[:len(want)], want) {
		t.Errorf("verdict %d, %x, want %x", got, out, want)
	}
	if got, out = bpftest.Run(t, prog, bpftest.ARP(podA, podB)); got != pass || !bytes.Equal(out, bpftest.ARP(podA, podB)) {
		t.Errorf("somebody else's address: verdict %d", got)
	}
}

func TestFragmentsFollowTheirFirst(t *testing.T) {
	b := newBench(t, numberings[0], overlay)
	prog := b.pods[0].Programs["from_container"]
	first := b.toB.With(func(p *bpftest.Packet) { p.Proto = 17; p.ID = 77; p.FragOff = 0x2000 })
	later := first.With(func(p *bpftest.Packet) { p.FragOff = 0x0005 })
	for i, frame := range [][]byte{first.Bytes(), later.Bytes()} {
		if got, _ := bpftest.Run(t, prog, frame); got != redirect {
			t.Errorf("fragment %d: verdict %d", i, got)
		}
	}
}

// TestFlowsAndPolicy counts what each packet of one flow touched: replies ask no policy, and every side has one entry,
// with one more for errors about it.
func TestFlowsAndPolicy(t *testing.T) { eachFamily(t, testFlowsAndPolicy) }

func testFlowsAndPolicy(t *testing.T, where numbering) {
	b := newBench(t, where, overlay)
	forward, back := b.pods[0].Programs["from_container"], b.pods[1].Programs["from_container"]
	ack := b.toB.With(func(p *bpftest.Packet) { p.Flags = bpftest.ACK })
	for _, frame := range []bpftest.Packet{b.toB, ack, ack} {
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
	if n := entries(t, b.table("cilium_ct%d")); n != 2 {
		t.Errorf("%d TCP flows, want one of each side", n)
	}
	if n := entries(t, b.table("cilium_ct_any%d")); n != 2 {
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

func TestPolicy(t *testing.T) { eachFamily(t, testPolicy) }

func testPolicy(t *testing.T, where numbering) {
	b := newBench(t, where, overlay)
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
			frame := b.toB.With(func(p *bpftest.Packet) { p.SrcPort = port })
			got, _ := bpftest.Run(t, prog, frame.Bytes())
			if denied := b.total(t, "denied by policy") - before; got != c.want || denied != uint64(flagByte(c.want == shot)) {
				t.Errorf("verdict %d, want %d; %d denials counted", got, c.want, denied)
			}
		})
	}
}

func TestDevicesOfTheNode(t *testing.T) { eachFamily(t, testDevicesOfTheNode) }

func testDevicesOfTheNode(t *testing.T, where numbering) {
	b := newBench(t, where, func(o *Options) { o.Legacy = false })
	in := bpftest.Packet{Src: b.client.String(), Dst: b.podA.String(), Proto: 17, SrcPort: 5, DstPort: 6, Payload: 4}
	up := in.With(func(p *bpftest.Packet) { p.Dst = b.own.String() })
	nobody := in.With(func(p *bpftest.Packet) { p.Dst = where.member(0, 200).String() })
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
		{"from_netdev", "ARP", bpftest.ARP("10.10.0.9", "10.10.0.1"), pass, ""},
		{"from_netdev", "malformed", badVersion(in.Bytes()), shot, "malformed packet"},
		{"from_netdev", "last hop", in.With(func(p *bpftest.Packet) { p.TTL = 1 }).Bytes(), shot, "time to live exceeded"},
		{"to_netdev", "anything", up.Bytes(), pass, ""},
		{"from_overlay", "without a tunnel", in.Bytes(), shot, "no tunnel key"},
		{"from_overlay", "ARP", bpftest.ARP("10.10.0.9", "10.10.0.1"), pass, ""},
		{"to_overlay", "anything", in.Bytes(), pass, ""},
		{"from_host", "to a pod", in.Bytes(), redirect, ""},
		{"from_host", "to nobody", nobody.Bytes(), shot, "unknown endpoint"},
		{"from_host", "malformed", badVersion(in.Bytes()), shot, "malformed packet"},
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
func TestMissingDoor(t *testing.T) { eachFamily(t, testMissingDoor) }

func testMissingDoor(t *testing.T, where numbering) {
	b := newBench(t, where, overlay)
	if err := b.host.Maps["cilium_call_policy"].Delete(uint32(2)); err != nil {
		t.Fatal(err)
	}
	got, _ := bpftest.Run(t, b.pods[0].Programs["from_container"], b.toB.Bytes())
	if got != shot || b.total(t, "tail call to a program that is not there") != 1 {
		t.Errorf("verdict %d", got)
	}
}

// TestGarbage hands every program bytes that no stack would send; the kernel must live and every packet be judged.
func TestGarbage(t *testing.T) { eachFamily(t, testGarbage) }

func testGarbage(t *testing.T, where numbering) {
	b := newBench(t, where, func(o *Options) {
		o.Overlay, o.PacketLB, o.NodePort, o.Maglev = "cilium_vxlan", true, NodePortSNAT, true
		o.Masquerade = where.cluster
	})
	progs := map[string]*ebpf.Program{"from_container": b.pods[0].Programs["from_container"], "policy": b.pods[0].Programs["policy"]}
	for _, name := range []string{"from_netdev", "to_netdev", "from_overlay", "to_overlay", "from_host", "to_host"} {
		progs[name] = b.host.Programs[name]
	}
	r := rand.New(rand.NewPCG(1, 2))
	header := 14 + 20 // shorter frames the kernel does not run
	if where.version == 6 {
		header = ip6
	}
	for name, prog := range progs {
		for range 300 {
			frame := b.toB.Bytes()
			if r.IntN(2) == 0 {
				frame = frame[:header+r.IntN(len(frame)-header)]
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

// TestMaglevAgreesBetweenFrontends sends the same flows to two nodes' addresses: the backend is the flow's, not the
// node's.
func TestMaglevAgreesBetweenFrontends(t *testing.T) { eachFamily(t, testMaglevAgreesBetweenFrontends) }

func testMaglevAgreesBetweenFrontends(t *testing.T, where numbering) {
	b := newBench(t, where, func(o *Options) { o.Legacy, o.NodePort, o.Maglev = false, NodePortSNAT, true })
	list := []netip.AddrPort{netip.AddrPortFrom(b.podA, 80), netip.AddrPortFrom(b.podB, 80)}
	for i, front := range []netip.Addr{b.own, b.peer} {
		s := Service{Frontend: netip.AddrPortFrom(front, 30000), Proto: TCP, NodePort: true, Backends: list}
		if i == 1 {
			s.Backends = []netip.AddrPort{list[1], list[0]}
		}
		if err := b.SetService(s); err != nil {
			t.Fatal(err)
		}
	}
	in := bpftest.Packet{Src: b.client.String(), Proto: 6, DstPort: 30000, Flags: bpftest.SYN}
	served := map[netip.Addr]int{}
	for port := range uint16(64) {
		var chose [2]netip.Addr
		for i, dst := range []netip.Addr{b.own, b.peer} {
			// The second run of each is a packet of the open flow, which must stay.
			for range 2 {
				frame := in.With(func(p *bpftest.Packet) { p.SrcPort, p.Dst = 4000+port, dst.String() })
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
func TestBackendGoesAway(t *testing.T) { eachFamily(t, testBackendGoesAway) }

func testBackendGoesAway(t *testing.T, where numbering) {
	b := newBench(t, where, func(o *Options) { o.Legacy, o.NodePort = false, NodePortSNAT })
	front := netip.AddrPortFrom(b.own, 30000)
	in := bpftest.Packet{Src: b.client.String(), Dst: b.own.String(), Proto: 6, SrcPort: 1234, DstPort: 30000, Flags: bpftest.ACK}
	for _, pod := range []netip.Addr{b.podA, b.podB} {
		s := Service{Frontend: front, Proto: TCP, NodePort: true, Backends: []netip.AddrPort{netip.AddrPortFrom(pod, 80)}}
		if err := b.SetService(s); err != nil {
			t.Fatal(err)
		}
		_, out := bpftest.Run(t, b.host.Programs["from_netdev"], in.Bytes())
		if f := capture.Decode(out, len(out)); f.IP.Destination != pod {
			t.Errorf("with backend %s: %s", pod, f.String())
		}
	}
	if err := b.SetService(Service{Frontend: front, Proto: TCP, NodePort: true}); err != nil {
		t.Fatal(err)
	}
	if v, _ := bpftest.Run(t, b.host.Programs["from_netdev"], in.Bytes()); v != shot || b.total(t, "service has no backend") != 1 {
		t.Errorf("without backends: verdict %d", v)
	}
	if n := entries(t, b.table("cilium_lb%d_backends")); n != 0 {
		t.Errorf("%d backends are left", n)
	}
}

// TestTranslatedPortsChangeHands fills the range of ports towards one backend; ended flows must give theirs back.
func TestTranslatedPortsChangeHands(t *testing.T) { eachFamily(t, testTranslatedPortsChangeHands) }

func testTranslatedPortsChangeHands(t *testing.T, where numbering) {
	b := newBench(t, where, func(o *Options) {
		o.Overlay, o.NodePort = "cilium_vxlan", NodePortSNAT
	})
	s := Service{
		Frontend: netip.AddrPortFrom(b.own, 30000), Proto: TCP, NodePort: true,
		Backends: []netip.AddrPort{netip.AddrPortFrom(b.remote, 80)},
	}
	if err := b.SetService(s); err != nil {
		t.Fatal(err)
	}
	in := bpftest.Packet{Proto: 6, SrcPort: 40000, Dst: b.own.String(), DstPort: 30000}
	// Two clients with the same source port: the first keeps it, the second gets another, until the first has ended.
	ports := map[uint16]netip.Addr{}
	run := func(src netip.Addr, tcpFlags uint8) uint16 {
		frame := in.With(func(p *bpftest.Packet) { p.Src, p.Flags = src.String(), tcpFlags })
		v, out := bpftest.Run(t, b.host.Programs["from_netdev"], frame.Bytes())
		f := capture.Decode(out, len(out))
		if v != redirect || f.IP.Source != b.router || f.IP.Destination != b.remote || bpftest.Sums(out) != "" {
			t.Fatalf("verdict %d: %s %s", v, f.String(), bpftest.Sums(out))
		}
		return f.TCP.SourcePort
	}
	for _, src := range []netip.Addr{where.node(9), where.node(8)} {
		port := run(src, bpftest.SYN)
		if other := ports[port]; other.IsValid() {
			t.Errorf("port %d is given to %s and %s", port, other, src)
		}
		ports[port] = src
	}
	if ports[40000] != where.node(9) {
		t.Errorf("the first client did not keep its port: %v", ports)
	}
	run(where.node(9), bpftest.RST)
	if port := run(where.node(7), bpftest.SYN); port != 40000 {
		t.Errorf("port %d, want the one of the flow that was reset", port)
	}
}
