package calico

import (
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
	podA  = "10.20.1.10"
	podB  = "10.20.1.11"
	ownIP = "10.10.0.1"
)

// bench is a node's programs without a node: nothing is attached, packets are handed to them one by one.
type bench struct {
	*Node
	entries map[kind]*ebpf.Program
}

// loopback is the device that a program's test run is on.
const loopback = 1

func newBench(t *testing.T) *bench {
	t.Helper()
	n := &Node{
		opts: Options{NodeIP: netip.MustParseAddr(ownIP), Tunnel: "vxlan", Flows: 1024}, tunnel: loopback, cache: btf.NewCache(),
		workloads: map[string]*workload{}, next: jumpPolicy, services: map[frontend]*service{},
	}
	spec, err := loadMains()
	if err != nil {
		t.Fatal(err)
	}
	n.size(spec)
	n.mains, err = attach.Load("main", spec, ebpf.CollectionOptions{})
	skipOrFail(t, err)
	t.Cleanup(n.mains.Close)
	if err := n.fillJumps(); err != nil {
		t.Fatal(err)
	}
	b := &bench{Node: n, entries: map[kind]*ebpf.Program{}}
	w := &workload{ingress: jumpPolicy, egress: jumpPolicy + 1}
	n.workloads["lxc1"] = w
	if err := n.setPolicy(w, Policy{}); err != nil {
		t.Fatal(err)
	}
	for k := fromWorkload; k <= toTunnel; k++ {
		b.entries[k] = b.preamble(t, k, w)
	}
	for _, ip := range []string{podA, podB} {
		v := mainsRouteValue{Flags: routeWorkload | routeLocal | routeInPool | routeNATOut, Ifindex: loopback}
		if err := n.mains.Maps["cali_v4_routes"].Put(routeKey(netip.MustParsePrefix(ip+"/32")), v); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []Route{
		{Prefix: netip.MustParsePrefix(ownIP + "/32"), Kind: LocalHost},
		{Prefix: netip.MustParsePrefix("10.10.0.2/32"), Kind: RemoteHost},
		{Prefix: netip.MustParsePrefix("10.20.2.0/24"), Kind: Tunneled, NextHop: netip.MustParseAddr("10.10.0.2")},
	} {
		if err := n.SetRoute(r); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *bench) preamble(t *testing.T, k kind, w *workload) *ebpf.Program {
	t.Helper()
	spec, err := loadPreamble()
	if err != nil {
		t.Fatal(err)
	}
	b.size(spec)
	c := preambleIfaceConfig{HostIp: be32(b.opts.NodeIP), Tunnel: b.tunnel, Kind: uint8(k)}
	switch k {
	case fromWorkload:
		c.Policy = w.egress
	case toWorkload:
		c.Policy = w.ingress
	}
	if err := spec.Variables["iface"].Set(c); err != nil {
		t.Fatal(err)
	}
	coll, err := attach.Load("preamble", spec, b.share(spec))
	skipOrFail(t, err)
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

var toRemote = bpftest.Packet{Src: podA, Dst: "10.20.2.12", Proto: 6, SrcPort: 4000, DstPort: 80, Flags: bpftest.SYN, Payload: 20}

func TestVerdicts(t *testing.T) {
	b := newBench(t)
	to := func(dst string) bpftest.Packet { return toRemote.With(func(p *bpftest.Packet) { p.Dst = dst }) }
	v6 := toRemote.Bytes()
	v6[12], v6[13] = 0x86, 0xdd
	short := toRemote.Bytes()
	short[14] = 0x44
	fromNode := bpftest.Packet{Src: "10.10.0.2", Dst: ownIP, Proto: 17, SrcPort: 5, DstPort: 4789, Payload: 80}
	for _, c := range []struct {
		name  string
		kind  kind
		frame []byte
		want  uint32
		why   string
	}{
		{"through the tunnel", fromWorkload, toRemote.Bytes(), redirect, ""},
		{"to the node", fromWorkload, to(ownIP).Bytes(), pass, ""},
		{"to the world, masqueraded", fromWorkload, to("1.2.3.4").Bytes(), pass, ""},
		{"somebody else's source", fromWorkload, toRemote.With(func(p *bpftest.Packet) { p.Src = "10.20.1.99" }).Bytes(), shot, "source address is not the sender's"},
		{"a pod's source from the wire", fromHost, to(ownIP).With(func(p *bpftest.Packet) { p.SrcPort = 4001 }).Bytes(), shot, "source address is not the sender's"},
		{"IPv6", fromWorkload, v6, shot, "unknown protocol"},
		{"ARP", fromWorkload, bpftest.ARP(podA, "169.254.1.1"), pass, ""},
		{"cut in the ports", fromWorkload, toRemote.Bytes()[:36], shot, "malformed packet"},
		{"header of four words", fromWorkload, short, shot, "malformed packet"},
		{"a protocol without ports", fromWorkload, toRemote.With(func(p *bpftest.Packet) { p.Proto = 47 }).Bytes(), shot, "unknown protocol"},
		{"the same, to the node", fromHost, bpftest.Packet{Src: "10.10.0.9", Dst: ownIP, Proto: 47}.Bytes(), pass, ""},
		{"a later fragment", fromWorkload, toRemote.With(func(p *bpftest.Packet) { p.FragOff = 5 }).Bytes(), shot, "fragment without its first"},
		{"tunnel packet of a node", fromHost, fromNode.Bytes(), pass, ""},
		{"tunnel packet of a stranger", fromHost, fromNode.With(func(p *bpftest.Packet) { p.Src = "10.10.0.66" }).Bytes(), shot, "source address is not the sender's"},
		{"tunnel packet cut off", fromHost, fromNode.With(func(p *bpftest.Packet) { p.Payload = 4 }).Bytes(), shot, "malformed packet"},
		{"out to the pod", toWorkload, bpftest.Packet{Src: "10.10.0.9", Dst: podA, Proto: 17, SrcPort: 1, DstPort: 2}.Bytes(), pass, ""},
		{"the node's own, into the tunnel", toTunnel, bpftest.Packet{Src: ownIP, Dst: "10.20.2.12", Proto: 17, SrcPort: 1, DstPort: 2}.Bytes(), pass, ""},
		{"the node's own, to nobody", toTunnel, bpftest.Packet{Src: ownIP, Dst: "10.77.2.12", Proto: 17, SrcPort: 1, DstPort: 2}.Bytes(), shot, "no route"},
		{"out on the wire", toHost, bpftest.Packet{Src: ownIP, Dst: "10.10.0.9", Proto: 6, SrcPort: 1, DstPort: 2}.Bytes(), pass, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, all := b.drops(t, c.why), b.drops(t, "")
			got, _ := bpftest.Run(t, b.entries[c.kind], c.frame)
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
		})
	}
}

func TestPolicy(t *testing.T) {
	b := newBench(t)
	if err := b.SetIPSet(7, []netip.Prefix{netip.MustParsePrefix("10.20.2.0/24"), netip.MustParsePrefix("10.9.0.0/16")}, nil); err != nil {
		t.Fatal(err)
	}
	long := make([]Rule, maxRules)
	for i := range long {
		long[i] = Rule{Allow: true, Proto: TCP, Port: uint16(10000 + i), Set: 7}
	}
	long[maxRules-1].Port = 80
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
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := b.SetPolicy("lxc1", Policy{Egress: c.rules}); err != nil {
				t.Fatal(err)
			}
			port++
			before := b.drops(t, "denied by policy")
			frame := toRemote.With(func(p *bpftest.Packet) { p.SrcPort = port })
			got, _ := bpftest.Run(t, b.entries[fromWorkload], frame.Bytes())
			if denied := b.drops(t, "denied by policy") - before; got != c.want || (c.want == shot) != (denied == 1) {
				t.Errorf("verdict %d, want %d; %d denials counted", got, c.want, denied)
			}
		})
	}
	for _, bad := range [][]Rule{{{Port: 80}}, make([]Rule, maxRules+1)} {
		if err := b.SetPolicy("lxc1", Policy{Ingress: bad}); err == nil {
			t.Errorf("%d rules were taken", len(bad))
		}
	}
	if err := b.SetPolicy("nosuch", Policy{}); err == nil {
		t.Error("a policy was set for no workload")
	}
}

// TestPolicyJudgesOpenersOnly denies everything after a flow was opened: its packets pass, a new opener does not.
func TestPolicyJudgesOpenersOnly(t *testing.T) {
	b := newBench(t)
	run := func(flags uint8) uint32 {
		v, _ := bpftest.Run(t, b.entries[fromWorkload], toRemote.With(func(p *bpftest.Packet) { p.Flags = flags }).Bytes())
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
func TestServiceEntries(t *testing.T) {
	b := newBench(t)
	vip := netip.MustParseAddrPort("10.96.0.1:53")
	s := Service{Frontend: vip, Proto: UDP, Remote: []netip.AddrPort{netip.MustParseAddrPort("10.20.2.12:5353")}}
	if err := b.SetService(s); err != nil {
		t.Fatal(err)
	}
	ask := bpftest.Packet{Src: podA, Dst: vip.Addr().String(), Proto: 17, SrcPort: 999, DstPort: 53, Payload: 33}
	for range 2 {
		v, out := bpftest.Run(t, b.entries[fromWorkload], ask.Bytes())
		f := capture.Decode(out, len(out))
		if v != redirect || f.IP.Destination.String() != "10.20.2.12" || f.UDP.DestinationPort != 5353 || bpftest.Sums(out) != "" {
			t.Fatalf("verdict %d: %s %s", v, f.String(), bpftest.Sums(out))
		}
	}
	answer := bpftest.Packet{Src: "10.20.2.12", Dst: podA, Proto: 17, SrcPort: 5353, DstPort: 999, Payload: 3}
	_, out := bpftest.Run(t, b.entries[fromTunnel], answer.Bytes())
	if f := capture.Decode(out, len(out)); f.IP.Source != vip.Addr() || f.UDP.SourcePort != 53 || bpftest.Sums(out) != "" {
		t.Errorf("answer: %s %s", f.String(), bpftest.Sums(out))
	}
	n := 0
	key, value := make([]byte, 16), make([]byte, 88)
	for it := b.mains.Maps["cali_v4_ct"].Iterate(); it.Next(&key, &value); {
		n++
	}
	if n != 2 {
		t.Errorf("%d entries, want NAT_FWD and NAT_REV", n)
	}
	if err := b.DeleteService(vip, UDP); err != nil {
		t.Fatal(err)
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

// TestGarbage hands every program bytes that no stack would send; every packet must be judged.
func TestGarbage(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(1, 2))
	for k, prog := range b.entries {
		for range 300 {
			frame := toRemote.With(func(p *bpftest.Packet) { p.Proto = []uint8{1, 4, 6, 17}[r.IntN(4)]; p.DstPort = 4789 }).Bytes()
			if r.IntN(2) == 0 {
				frame = frame[:34+r.IntN(len(frame)-34)]
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
