package calico

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

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

// bench is a node's programs without a node: nothing is attached, packets are handed to them one by one.
type bench struct {
	*Node
	*plan
	entries map[kind]*ebpf.Program
}

// loopback is the device that a program's test run is on.
const loopback = 1

func newBench(t *testing.T, p *plan) *bench {
	t.Helper()
	n := &Node{
		family: p.family, opts: Options{NodeIP: p.own(1), Tunnel: "vxlan", Flows: 1024}, tunnel: loopback, cache: btf.NewCache(),
		workloads: map[string]*workload{}, next: jumpPolicy, services: map[frontend]*service{},
	}
	spec, err := p.mains()
	if err != nil {
		t.Fatal(err)
	}
	n.setCapacities(spec)
	n.mains, err = attach.Load("main", spec, ebpf.CollectionOptions{})
	bpftest.SkipOrFail(t, err)
	t.Cleanup(n.mains.Close)
	if err := n.fillJumpTable(); err != nil {
		t.Fatal(err)
	}
	b := &bench{Node: n, plan: p, entries: map[kind]*ebpf.Program{}}
	w := &workload{ingress: []uint32{jumpPolicy}, egress: []uint32{jumpPolicy + 1}}
	n.next = jumpPolicy + 2
	n.workloads["lxc1"] = w
	if err := n.setPolicy(w, Policy{}); err != nil {
		t.Fatal(err)
	}
	for k := fromWorkload; k <= toTunnel; k++ {
		b.entries[k] = b.preamble(t, k, w)
	}
	for id := range 2 {
		v := p.routeValue(routeWorkload|routeLocal|routeInPool|routeNATOut, netip.Addr{}, loopback)
		if err := n.table("routes").Put(routeKey(hostPrefix(p.pod(0, id))), v); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []Route{
		{Prefix: hostPrefix(p.own(1)), Kind: LocalHost},
		{Prefix: hostPrefix(p.own(2)), Kind: RemoteHost},
		{Prefix: p.pool(1), Kind: Tunneled, NextHop: p.own(2)},
	} {
		if err := n.SetRoute(r); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *bench) preamble(t *testing.T, k kind, w *workload) *ebpf.Program {
	t.Helper()
	spec, err := b.plan.preamble()
	if err != nil {
		t.Fatal(err)
	}
	b.setCapacities(spec)
	c := ifaceConfig{host: b.opts.NodeIP, tunnel: b.tunnel, kind: k}
	switch k {
	case fromWorkload:
		c.policy = w.egress[0]
	case toWorkload:
		c.policy = w.ingress[0]
	}
	if err := spec.Variables["iface"].Set(c.encode()); err != nil {
		t.Fatal(err)
	}
	coll, err := attach.Load("preamble", spec, b.loadOptions(spec))
	bpftest.SkipOrFail(t, err)
	t.Cleanup(coll.Close)
	return coll.Programs["preamble"]
}

// drops returns how many packets were dropped under an outcome; "" is all.
func (b *bench) drops(t *testing.T, outcome string) (sum uint64) {
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

// toRemote opens a flow from the first pod to one behind the tunnel.
func (p *plan) toRemote() bpftest.Packet {
	return bpftest.Packet{
		Src: p.pod(0, 0).String(), Dst: p.pod(1, 2).String(), Proto: 6, SrcPort: 4000, DstPort: 80, Flags: bpftest.SYN, Payload: 20,
	}
}

// verdict is a packet at a kind of device and what becomes of it.
type verdict struct {
	name  string
	kind  kind
	frame []byte
	want  uint32
	why   string
}

func TestVerdicts(t *testing.T) {
	both(t, func(t *testing.T, p *plan) {
		b := newBench(t, p)
		own := verdicts4
		if p == plan6 {
			own = verdicts6
		}
		for _, c := range append(verdicts(p), own()...) {
			t.Run(c.name, func(t *testing.T) { b.check(t, c) })
		}
	})
}

func (b *bench) check(t *testing.T, c verdict) {
	t.Helper()
	before, all := b.drops(t, c.why), b.drops(t, "")
	got, out := bpftest.Run(t, b.entries[c.kind], c.frame)
	if got != c.want {
		t.Errorf("verdict %d, want %d", got, c.want)
	}
	want := uint64(0)
	if c.want == shot {
		want = 1
	}
	if b.drops(t, "")-all != want || c.why != "" && b.drops(t, c.why)-before != 1 {
		t.Errorf("%d drops, %d of them as %q", b.drops(t, "")-all, b.drops(t, c.why)-before, c.why)
	}
	if got == pass && !bytes.Equal(out, c.frame) {
		t.Errorf("a packet for the stack was changed: % x", out)
	}
}

// verdicts are those that do not depend on the family.
func verdicts(p *plan) []verdict {
	ask := p.toRemote()
	to := func(dst netip.Addr) bpftest.Packet { return ask.With(func(q *bpftest.Packet) { q.Dst = dst.String() }) }
	from := func(src netip.Addr) bpftest.Packet { return ask.With(func(q *bpftest.Packet) { q.Src = src.String() }) }
	between := func(src, dst netip.Addr, proto uint8, port uint16) bpftest.Packet {
		return bpftest.Packet{Src: src.String(), Dst: dst.String(), Proto: proto, SrcPort: 5, DstPort: port}
	}
	vxlan := between(p.own(2), p.own(1), 17, 4789).With(func(q *bpftest.Packet) { q.Payload = 90 })
	world, stranger := p.at(1, 2, 3), p.own(66)
	return []verdict{
		{"through the tunnel", fromWorkload, ask.Bytes(), redirect, ""},
		{"to the node", fromWorkload, to(p.own(1)).Bytes(), pass, ""},
		{"to the world, masqueraded", fromWorkload, to(world).Bytes(), pass, ""},
		{"somebody else's source", fromWorkload, from(p.pod(0, 89)).Bytes(), shot, "source address is not the sender's"},
		{"a pod's source from the wire", fromHost, to(p.own(1)).With(func(q *bpftest.Packet) { q.SrcPort = 4001 }).Bytes(), shot, "source address is not the sender's"},
		{"cut in the ports", fromWorkload, ask.Bytes()[:len(ask.Bytes())-20-18], shot, "malformed packet"},
		{"a protocol without ports", fromWorkload, ask.With(func(q *bpftest.Packet) { q.Proto = 47 }).Bytes(), shot, "unknown protocol"},
		{"the same, to the node", fromHost, between(p.own(9), p.own(1), 47, 0).Bytes(), pass, ""},
		{"tunnel packet of a node", fromHost, vxlan.Bytes(), pass, ""},
		{"tunnel packet of a stranger", fromHost, vxlan.With(func(q *bpftest.Packet) { q.Src = stranger.String() }).Bytes(), shot, "source address is not the sender's"},
		{"tunnel packet cut off", fromHost, vxlan.With(func(q *bpftest.Packet) { q.Payload = 4 }).Bytes(), shot, "malformed packet"},
		{"out to the pod", toWorkload, between(p.own(9), p.pod(0, 0), 17, 2).Bytes(), pass, ""},
		{"the node's own, into the tunnel", toTunnel, between(p.own(1), p.pod(1, 2), 17, 2).Bytes(), pass, ""},
		{"the node's own, to nobody", toTunnel, between(p.own(1), p.at(77, 2, 12), 17, 2).Bytes(), shot, "no route"},
		{"out on the wire", toHost, between(p.own(1), p.own(9), 6, 2).Bytes(), pass, ""},
	}
}

func verdicts4() []verdict {
	ask := plan4.toRemote()
	v6 := ask.Bytes()
	v6[12], v6[13] = 0x86, 0xdd
	short := ask.Bytes()
	short[14] = 0x44
	return []verdict{
		{"IPv6", fromWorkload, v6, shot, "unknown protocol"},
		{"ARP", fromWorkload, bpftest.ARP(ask.Src, "169.254.1.1"), pass, ""},
		{"header of four words", fromWorkload, short, shot, "malformed packet"},
		{"a later fragment", fromWorkload, ask.With(func(q *bpftest.Packet) { q.FragOff = 5 }).Bytes(), shot, "fragment without its first"},
	}
}

func verdicts6() []verdict {
	ask := plan6.toRemote()
	extended := func(next uint8, headers ...byte) []byte {
		return ask.With(func(q *bpftest.Packet) { q.Next, q.Options, q.SrcPort = next, headers, 4002 }).Bytes()
	}
	control := func(typ, hops uint8, src, dst string) []byte {
		return bpftest.Packet{Src: src, Dst: dst, Proto: 58, TTL: hops, Raw: append([]byte{typ}, make([]byte, 23)...)}.Bytes()
	}
	v4, odd := ask.Bytes(), ask.Bytes()
	v4[12], v4[13] = 8, 0
	odd[14] = 0x50
	const gateway, self, group = "fe80::ecee:eeff:feee:eeee", "fe80::1", "ff02::1:ffee:eeee"
	var deep []byte
	for range 4 {
		deep = append(deep, 60, 0, 1, 4, 0, 0, 0, 0)
	}
	return []verdict{
		{"IPv4", fromWorkload, v4, shot, "unknown protocol"},
		{"version five", fromWorkload, odd, shot, "malformed packet"},
		{"hop-by-hop and destination options", fromWorkload, extended(0, 60, 0, 1, 4, 0, 0, 0, 0, 6, 0, 1, 4, 0, 0, 0, 0), redirect, ""},
		{"a first fragment", fromWorkload, extended(44, 6, 0, 0, 1, 0, 0, 0, 7), redirect, ""},
		{"a later fragment", fromWorkload, extended(44, 6, 0, 0, 9, 0, 0, 0, 7), shot, "fragment without its first"},
		{"options beyond the packet", fromWorkload, extended(60, 6, 200, 1, 4, 0, 0, 0, 0), shot, "malformed packet"},
		{"more options than are followed", fromWorkload, extended(60, append(deep, 6, 0, 1, 4, 0, 0, 0, 0)...), shot, "malformed packet"},
		{"who has the gateway", fromWorkload, control(135, 255, ask.Src, group), pass, ""},
		{"is my address taken", fromWorkload, control(135, 255, "::", group), pass, ""},
		{"I am here", fromWorkload, control(136, 255, ask.Src, gateway), pass, ""},
		{"a router asked for", fromWorkload, control(133, 255, self, "ff02::2"), pass, ""},
		{"groups that are listened to", fromWorkload, control(143, 1, self, "ff02::16"), pass, ""},
		{"a neighbour beyond a router", fromWorkload, control(135, 254, ask.Src, ask.Dst), redirect, ""},
		{"the same with a false source", fromWorkload, control(135, 254, self, ask.Dst), shot, "source address is not the sender's"},
		{"who has the node", fromHost, control(135, 255, plan6.own(2).String(), plan6.own(1).String()), pass, ""},
		{"the node asks the pod", toWorkload, control(135, 255, gateway, ask.Src), pass, ""},
		{"link-local on the wire", fromHost, bpftest.Packet{Src: self, Dst: gateway, Proto: 17, SrcPort: 1, DstPort: 2}.Bytes(), pass, ""},
		{"echo", fromWorkload, bpftest.Packet{Src: ask.Src, Dst: ask.Dst, Proto: 58, SrcPort: 7}.Bytes(), redirect, ""},
	}
}

func TestPolicy(t *testing.T) { both(t, testPolicy) }

func testPolicy(t *testing.T, p *plan) {
	b := newBench(t, p)
	if err := b.SetIPSet(7, []netip.Prefix{p.pool(1), netip.PrefixFrom(p.at(9, 0, 0), 16)}); err != nil {
		t.Fatal(err)
	}
	long := make([]Rule, maxRules)
	for i := range long {
		long[i] = Rule{Allow: true, Proto: TCP, Port: uint16(10000 + i), Set: 7}
	}
	long[maxRules-1].Port = 80
	longer := slices.Concat(long[:maxRules-1], long[:maxRules-1], long)
	port := uint16(5000)
	for _, c := range []struct {
		name  string
		rules []Rule
		want  uint32
	}{
		{"no list allows all", nil, redirect},
		{"an empty list denies all", []Rule{}, shot},
		{"the port", []Rule{{Allow: true, Proto: TCP, Port: 80}}, redirect},
		{"another port", []Rule{{Allow: true, Proto: TCP, Port: 81}}, shot},
		{"another protocol", []Rule{{Allow: true, Proto: UDP}}, shot},
		{"the set", []Rule{{Allow: true, Set: 7}}, redirect},
		{"another set", []Rule{{Allow: true, Set: 8}}, shot},
		{"the first match decides", []Rule{{Set: 7}, {Allow: true}}, shot},
		{"the last of many", long, redirect},
		{"none of many", long[:maxRules-1], shot},
		{"the last of several programs", longer, redirect},
		{"none of several programs", longer[:len(longer)-1], shot},
		{"the first of several programs", append([]Rule{{Allow: true}}, longer...), redirect},
		{"one program again", []Rule{{Allow: true, Proto: TCP, Port: 81}}, shot},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := b.SetPolicy("lxc1", Policy{Egress: c.rules}); err != nil {
				t.Fatal(err)
			}
			port++
			before := b.drops(t, "denied by policy")
			frame := p.toRemote().With(func(q *bpftest.Packet) { q.SrcPort = port })
			got, _ := bpftest.Run(t, b.entries[fromWorkload], frame.Bytes())
			if denied := b.drops(t, "denied by policy") - before; got != c.want || (c.want == shot) != (denied == 1) {
				t.Errorf("verdict %d, want %d; %d denials counted", got, c.want, denied)
			}
		})
	}
	if err := b.SetPolicy("lxc1", Policy{Ingress: []Rule{{Port: 80}}}); err == nil {
		t.Error("a rule with a port and no protocol was taken")
	}
	before := len(b.free)
	for range 2 {
		if err := b.SetPolicy("lxc1", Policy{Egress: longer}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(b.free); got > before+2 {
		t.Errorf("%d slots are free after two sets of policies, %d before", got, before)
	}
	if err := b.SetPolicy("nosuch", Policy{}); err == nil {
		t.Error("a policy was set for no workload")
	}
}

// TestPolicyJudgesOpenersOnly denies everything after a flow was opened: its packets pass, a new opener does not.
func TestPolicyJudgesOpenersOnly(t *testing.T) { both(t, testPolicyJudgesOpenersOnly) }

func testPolicyJudgesOpenersOnly(t *testing.T, p *plan) {
	b := newBench(t, p)
	run := func(flags uint8) uint32 {
		v, _ := bpftest.Run(t, b.entries[fromWorkload], p.toRemote().With(func(q *bpftest.Packet) { q.Flags = flags }).Bytes())
		return v
	}
	if v := run(bpftest.SYN); v != redirect {
		t.Fatalf("opener: verdict %d", v)
	}
	if err := b.SetPolicy("lxc1", Policy{Egress: []Rule{}}); err != nil {
		t.Fatal(err)
	}
	if v := run(bpftest.ACK); v != redirect {
		t.Errorf("packet of the open flow: verdict %d", v)
	}
	if v := run(bpftest.SYN); v != shot {
		t.Errorf("opener on the open flow: verdict %d, want it judged again", v)
	}
}

// TestServiceEntries translates one flow and counts its entries: one for each tuple.
func TestServiceEntries(t *testing.T) { both(t, testServiceEntries) }

func testServiceEntries(t *testing.T, p *plan) {
	b := newBench(t, p)
	vip, backend := netip.AddrPortFrom(p.vip(1), 53), netip.AddrPortFrom(p.pod(1, 2), 5353)
	s := Service{Frontend: vip, Proto: UDP, Remote: []netip.AddrPort{backend}}
	if err := b.SetService(s); err != nil {
		t.Fatal(err)
	}
	ask := bpftest.Packet{Src: p.pod(0, 0).String(), Dst: vip.Addr().String(), Proto: 17, SrcPort: 999, DstPort: 53, Payload: 33}
	for range 2 {
		v, out := bpftest.Run(t, b.entries[fromWorkload], ask.Bytes())
		f := capture.Decode(out, len(out))
		if v != redirect || f.IP.Destination != backend.Addr() || f.UDP.DestinationPort != 5353 || bpftest.Sums(out) != "" {
			t.Fatalf("verdict %d: %s %s", v, f.String(), bpftest.Sums(out))
		}
	}
	answer := bpftest.Packet{Src: backend.Addr().String(), Dst: ask.Src, Proto: 17, SrcPort: 5353, DstPort: 999, Payload: 3}
	_, out := bpftest.Run(t, b.entries[fromTunnel], answer.Bytes())
	if f := capture.Decode(out, len(out)); f.IP.Source != vip.Addr() || f.UDP.SourcePort != 53 || bpftest.Sums(out) != "" {
		t.Errorf("answer: %s %s", f.String(), bpftest.Sums(out))
	}
	if n := entries(t, b.table("ct")); n != 2 {
		t.Errorf("%d entries, want NAT_FWD and NAT_REV", n)
	}
	s.Remote = nil
	if err := b.SetService(s); err != nil {
		t.Fatal(err)
	}
	fresh := ask.With(func(p *bpftest.Packet) { p.SrcPort = 998 })
	if v, _ := bpftest.Run(t, b.entries[fromWorkload], fresh.Bytes()); v != shot || b.drops(t, "service has no backend") != 1 {
		t.Errorf("without backends: verdict %d", v)
	}
}

// TestPortUsedAgain opens a connection where an earlier one had been on the same ports, whose backend has left the
// service. It is a flow of its own once both sides of the earlier one have ended, and before that a packet of the
// earlier one.
func TestPortUsedAgain(t *testing.T) { both(t, testPortUsedAgain) }

func testPortUsedAgain(t *testing.T, p *plan) {
	b := newBench(t, p)
	vip := netip.AddrPortFrom(p.vip(1), 80)
	old, fresh := netip.AddrPortFrom(p.pod(1, 2), 8080), netip.AddrPortFrom(p.pod(1, 3), 8080)
	const fin, rst = bpftest.FIN | bpftest.ACK, bpftest.RST
	for i, c := range []struct {
		name           string
		client, server uint8 // how each side ends, if it does
		flags          uint8 // of the packet after that
		anew           bool
	}{
		{"neither has ended", 0, 0, bpftest.SYN, false},
		{"the client has", fin, 0, bpftest.SYN, false},
		{"the server has", 0, fin, bpftest.SYN, false},
		{"the server refused", 0, rst, bpftest.SYN, false},
		{"both have", fin, fin, bpftest.SYN, true},
		{"the client by a reset", rst, fin, bpftest.SYN, true},
		{"the server by a reset", fin, rst, bpftest.SYN, true},
		{"both by a reset", rst, rst, bpftest.SYN, true},
		{"the last acknowledgement", fin, fin, bpftest.ACK, false},
		{"not the opener", fin, fin, bpftest.SYN | bpftest.ACK, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ask := bpftest.Packet{
				Src: p.pod(0, 0).String(), Dst: vip.Addr().String(), Proto: 6, SrcPort: uint16(1000 + i), DstPort: 80,
			}
			answer := bpftest.Packet{Src: old.Addr().String(), Dst: ask.Src, Proto: 6, SrcPort: 8080, DstPort: ask.SrcPort}
			send := func(k kind, q bpftest.Packet, flags uint8) capture.Frame {
				t.Helper()
				v, out := bpftest.Run(t, b.entries[k], q.With(func(q *bpftest.Packet) { q.Flags = flags }).Bytes())
				// The way to the pod begins with a lookup of the kernel, which has no routes here.
				if k == fromWorkload && v != redirect || bpftest.Sums(out) != "" {
					t.Fatalf("verdict %d %s", v, bpftest.Sums(out))
				}
				return capture.Decode(out, len(out))
			}
			serve := func(backend netip.AddrPort) {
				t.Helper()
				if err := b.SetService(Service{Frontend: vip, Proto: TCP, Remote: []netip.AddrPort{backend}}); err != nil {
					t.Fatal(err)
				}
			}
			serve(old)
			before := entries(t, b.table("ct"))
			send(fromWorkload, ask, bpftest.SYN)
			send(fromTunnel, answer, bpftest.SYN|bpftest.ACK)
			if c.server != 0 {
				send(fromTunnel, answer, c.server)
			}
			if c.client != 0 {
				send(fromWorkload, ask, c.client)
			}
			serve(fresh)
			want := map[bool]netip.Addr{false: old.Addr(), true: fresh.Addr()}[c.anew]
			for range 2 { // the opener may be sent again
				if f := send(fromWorkload, ask, c.flags); f.IP.Destination != want {
					t.Errorf("to %s, want %s", f.IP.Destination, want)
				}
			}
			answer.Src = want.String()
			if f := send(fromTunnel, answer, bpftest.ACK); f.IP.Source != vip.Addr() {
				t.Errorf("the answer comes from %s", f.IP.Source)
			}
			if n := entries(t, b.table("ct")) - before; n != 2 {
				t.Errorf("%d entries, want NAT_FWD and NAT_REV of one flow", n)
			}
		})
	}
}

// entries is how many a table has.
func entries(t *testing.T, m *ebpf.Map) (n int) {
	t.Helper()
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	it := m.Iterate()
	for it.Next(&key, &value) {
		n++
	}
	if it.Err() != nil {
		t.Fatal(it.Err())
	}
	return n
}

// TestSelfEntries follows a pod's question to itself: translated and handed up at the pod's device; the answer, whose
// destination netfilter has put right, gets the service's address back on its way out to the pod.
func TestSelfEntries(t *testing.T) { both(t, testSelfEntries) }

func testSelfEntries(t *testing.T, p *plan) {
	b := newBench(t, p)
	pod, vip := p.pod(0, 0), netip.AddrPortFrom(p.vip(1), 53)
	s := Service{Frontend: vip, Proto: UDP, Local: []netip.AddrPort{netip.AddrPortFrom(pod, 5353)}}
	if err := b.SetService(s); err != nil {
		t.Fatal(err)
	}
	ask := bpftest.Packet{Src: pod.String(), Dst: vip.Addr().String(), Proto: 17, SrcPort: 999, DstPort: 53, Payload: 33}
	for range 2 {
		v, out := bpftest.Run(t, b.entries[fromWorkload], ask.Bytes())
		f := capture.Decode(out, len(out))
		if v != pass || f.IP.Destination != pod || f.UDP.DestinationPort != 5353 || bpftest.Sums(out) != "" {
			t.Fatalf("verdict %d, want it handed up: %s %s", v, f.String(), bpftest.Sums(out))
		}
	}
	answer := bpftest.Packet{Src: pod.String(), Dst: pod.String(), Proto: 17, SrcPort: 5353, DstPort: 999, Payload: 3}
	v, out := bpftest.Run(t, b.entries[toWorkload], answer.Bytes())
	if f := capture.Decode(out, len(out)); v != pass || f.IP.Source != vip.Addr() || f.UDP.SourcePort != 53 || bpftest.Sums(out) != "" {
		t.Errorf("answer: verdict %d: %s %s", v, f.String(), bpftest.Sums(out))
	}
}

// TestAffinity has a client stay with its backend over many flows, until that backend is taken away.
func TestAffinity(t *testing.T) { both(t, testAffinity) }

func testAffinity(t *testing.T, p *plan) {
	b := newBench(t, p)
	vip := netip.AddrPortFrom(p.vip(1), 53)
	s := Service{Frontend: vip, Proto: UDP, Affinity: time.Hour}
	for last := range 8 {
		s.Remote = append(s.Remote, netip.AddrPortFrom(p.pod(1, last), 5353))
	}
	port := uint16(1000)
	chosen := func() netip.Addr {
		t.Helper()
		if err := b.SetService(s); err != nil {
			t.Fatal(err)
		}
		var first netip.Addr
		for i := range 20 {
			port++
			ask := bpftest.Packet{Src: p.pod(0, 0).String(), Dst: vip.Addr().String(), Proto: 17, SrcPort: port, DstPort: 53}
			v, out := bpftest.Run(t, b.entries[fromWorkload], ask.Bytes())
			f := capture.Decode(out, len(out))
			if v != redirect || i > 0 && f.IP.Destination != first {
				t.Fatalf("flow %d: verdict %d, to %s after %s", i, v, f.IP.Destination, first)
			}
			first = f.IP.Destination
		}
		return first
	}
	old := chosen()
	s.Remote = slices.DeleteFunc(s.Remote, func(a netip.AddrPort) bool { return a.Addr() == old })
	if now := chosen(); now == old {
		t.Errorf("flows still go to %s, which serves no more", old)
	}
	s.Remote = nil
	if err := b.SetService(s); err != nil {
		t.Fatal(err)
	}
	if n := entries(t, b.table("nat_aff")); n != 0 {
		t.Errorf("%d clients are remembered of a service without backends", n)
	}
}

// TestOtherFamily refuses addresses that the node has no tables for.
func TestOtherFamily(t *testing.T) {
	for _, pair := range [][2]*plan{{plan4, plan6}, {plan6, plan4}} {
		b, other := newBench(t, pair[0]), pair[1]
		front := netip.AddrPortFrom(other.vip(1), 80)
		for what, err := range map[string]error{
			"workload": b.AddWorkload(Workload{IP: other.pod(0, 0), Device: "nosuch"}),
			"route":    b.SetRoute(Route{Prefix: other.pool(0), Kind: Pool}),
			"next hop": b.SetRoute(Route{Prefix: pair[0].pool(1), Kind: RemoteWorkload, NextHop: other.own(2)}),
			"service":  b.SetService(Service{Frontend: front, Proto: TCP}),
			"set":      b.SetIPSet(1, []netip.Prefix{other.pool(0)}),
		} {
			if err == nil || !strings.Contains(err.Error(), pair[0].name) {
				t.Errorf("%s of %s on a node of %s: %v", what, other.name, pair[0].name, err)
			}
		}
	}
	for _, a := range []string{"", "::ffff:10.0.0.1", "fe80::1%eth0"} {
		o := Options{NS: bpftest.NewNS(t), Wire: "eth0"}
		if a != "" {
			o.NodeIP = netip.MustParseAddr(a)
		}
		if _, err := Load(o); err == nil || !strings.Contains(err.Error(), "neither IPv4 nor IPv6") {
			t.Errorf("node address %q: %v", a, err)
		}
	}
}

// TestGarbage hands every program bytes that no stack would send; every packet must be judged.
func TestGarbage(t *testing.T) { both(t, testGarbage) }

func testGarbage(t *testing.T, p *plan) {
	b := newBench(t, p)
	behind := len(p.toRemote().Bytes()) - 20 - 20 // the IP header
	protocols := []uint8{1, 4, 6, 17, 0, 43, 44, 58, 60}
	r := rand.New(rand.NewPCG(1, 2))
	for k, prog := range b.entries {
		for range 300 {
			frame := p.toRemote().With(func(q *bpftest.Packet) { q.Proto, q.DstPort = protocols[r.IntN(len(protocols))], 4789 }).Bytes()
			if r.IntN(2) == 0 {
				frame = frame[:behind+r.IntN(len(frame)-behind)]
			}
			for range r.IntN(20) {
				frame[14+r.IntN(len(frame)-14)] = byte(r.Uint32())
			}
			if v, _ := bpftest.Run(t, prog, frame); v != pass && v != shot && v != redirect {
				t.Fatalf("kind %d: verdict %d for % x", k, v, frame)
			}
		}
	}
}
