package awspolicy

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf/ringbuf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

const (
	pass = 0
	shot = 2
)

const (
	own, other, node, stranger = "10.0.1.2", "10.0.2.2", "10.10.0.1", "198.18.0.1"
)

func load(t *testing.T, ns *netns.NS) *Agent {
	t.Helper()
	a, err := Load(ns)
	return bpftest.Loaded(t, a, err)
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// selected is an agent whose pods may do everything but TCP to port 9, as policies in the lab have it.
func selected(t *testing.T, ns *netns.NS) *Agent {
	t.Helper()
	a := load(t, ns)
	must(t,
		a.Allow(netip.MustParsePrefix(node+"/32"), Ports{Protocol: Any}),
		a.Allow(netip.MustParsePrefix(stranger+"/32"), Ports{Protocol: TCP, Start: 80}),
		a.Allow(netip.MustParsePrefix("0.0.0.0/0"), Ports{TCP, 1, 8}, Ports{TCP, 10, 65535}, Ports{Protocol: UDP}, Ports{Protocol: ICMP}),
		a.SetSelected(true))
	return a
}

// bench hands packets to the programs of an agent, and reads their events.
type bench struct {
	*Agent
	t      *testing.T
	events *ringbuf.Reader
}

func newBench(t *testing.T, a *Agent) *bench {
	r, err := ringbuf.NewReader(a.coll.Maps["events"])
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return &bench{a, t, r}
}

// send hands a packet to a program of the pod. It returns the verdict and the number of events, of which each must have the verdict.
func (b *bench) send(program string, p bpftest.Packet) (verdict uint32, events int) {
	b.t.Helper()
	verdict, _ = bpftest.Run(b.t, b.coll.Programs[program], p.Bytes())
	for b.events.AvailableBytes() > 0 {
		r, err := b.events.Read()
		must(b.t, err)
		events++
		e := r.RawSample
		allowed, egress := binary.NativeEndian.Uint32(e[20:]) == 1, e[28] == 1
		if allowed != (verdict == pass) || egress != (program == "handle_egress") || binary.NativeEndian.Uint32(e[16:]) != uint32(p.Proto) ||
			binary.NativeEndian.Uint32(e[12:]) != uint32(p.DstPort) || binary.NativeEndian.Uint32(e[24:]) != uint32(len(p.Bytes())) {
			b.t.Errorf("%+v, verdict %d: event %x", p, verdict, e)
		}
	}
	return verdict, events
}

func (b *bench) wantFlows(n int) {
	b.t.Helper()
	if got, err := attach.Entries(b.coll.Maps["flows"]); err != nil || got != n {
		b.t.Errorf("%d entries in the table of connections, want %d: %v", got, n, err)
	}
}

// TestNewConnections: rules decide about the first packet, which leaves an entry and an event.
func TestNewConnections(t *testing.T) {
	to := bpftest.Packet{Src: other, Dst: own, Proto: TCP, SrcPort: 40000, DstPort: 80, Flags: bpftest.SYN}
	port := func(n uint16) bpftest.Packet { return to.With(func(p *bpftest.Packet) { p.DstPort = n }) }
	proto := func(n uint8) bpftest.Packet { return port(9).With(func(p *bpftest.Packet) { p.Proto = n }) }
	for name, tc := range map[string]struct {
		packet  bpftest.Packet
		verdict uint32
		flows   int
	}{
		"a port":                     {to, pass, 1},
		"the denied port":            {port(9), shot, 0},
		"the port below":             {port(8), pass, 1},
		"the port above":             {port(10), pass, 1},
		"the last port":              {port(65535), pass, 1},
		"the port of UDP":            {proto(UDP), pass, 1},
		"ping":                       {bpftest.Packet{Src: other, Dst: own, Proto: ICMP}, pass, 1},
		"SCTP, which no entry has":   {proto(SCTP).With(func(p *bpftest.Packet) { p.DstPort, p.Payload = 0, 100 }), shot, 0},
		"the node, the denied port":  {port(9).With(func(p *bpftest.Packet) { p.Src = node }), pass, 1},
		"an own entry":               {to.With(func(p *bpftest.Packet) { p.Src = stranger }), pass, 1},
		"an own entry, another port": {port(81).With(func(p *bpftest.Packet) { p.Src = stranger }), shot, 0},
		"IPv6":                       {bpftest.Packet{Src: "fd00::1", Dst: "fd00::2", Proto: TCP, DstPort: 9}, pass, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for _, program := range []string{"handle_ingress", "handle_egress"} {
				b, p := newBench(t, selected(t, bpftest.NewNS(t))), tc.packet
				if program == "handle_egress" { // the pod sends
					p.Src, p.Dst = p.Dst, p.Src
				}
				verdict, events := b.send(program, p)
				if wantEvents := min(1, tc.flows+int(tc.verdict)); verdict != tc.verdict || events != wantEvents {
					t.Errorf("%s: verdict %d with %d events, want %d with %d", program, verdict, events, tc.verdict, wantEvents)
				}
				b.wantFlows(tc.flows)
			}
		})
	}
	b := newBench(t, selected(t, bpftest.NewNS(t)))
	verdict, _ := bpftest.Run(t, b.coll.Programs["handle_ingress"], bpftest.ARP(other, own))
	if verdict != pass {
		t.Errorf("ARP: verdict %d", verdict)
	}
}

// TestEstablished: further packets and replies are found in the table, write no event, and search no rules: it holds when the
// rules are gone. What is denied is so each time.
func TestEstablished(t *testing.T) {
	b := newBench(t, selected(t, bpftest.NewNS(t)))
	first := bpftest.Packet{Src: other, Dst: own, Proto: TCP, SrcPort: 40000, DstPort: 80, Flags: bpftest.SYN}
	if verdict, events := b.send("handle_ingress", first); verdict != pass || events != 1 {
		t.Fatalf("first packet: verdict %d, %d events", verdict, events)
	}
	denied := first.With(func(p *bpftest.Packet) { p.DstPort = 9 })
	for range 3 {
		if verdict, events := b.send("handle_ingress", denied); verdict != shot || events != 1 {
			t.Errorf("denied: verdict %d, %d events", verdict, events)
		}
	}
	must(t, b.Allow(netip.MustParsePrefix("0.0.0.0/0")))
	if verdict, _ := b.send("handle_ingress", first.With(func(p *bpftest.Packet) { p.SrcPort++ })); verdict != shot {
		t.Errorf("without rules another connection has verdict %d", verdict)
	}
	var last uint64
	for _, p := range []struct {
		program string
		bpftest.Packet
	}{{"handle_ingress", first}, {"handle_egress", first.Reply()}, {"handle_ingress", first}} {
		if verdict, events := b.send(p.program, p.Packet); verdict != pass || events != 0 {
			t.Errorf("%s of an established connection: verdict %d, %d events", p.program, verdict, events)
		}
		seen := b.lastSeen(t)
		if seen <= last {
			t.Errorf("%s: last seen at %d, before at %d", p.program, seen, last)
		}
		last = seen
	}
	b.wantFlows(1)
}

// lastSeen returns the time in the only entry of the table of connections.
func (b *bench) lastSeen(t *testing.T) uint64 {
	t.Helper()
	var key programsFlow
	var state programsFlowState
	if it := b.coll.Maps["flows"].Iterate(); !it.Next(&key, &state) {
		t.Fatalf("no entry: %v", it.Err())
	}
	return state.LastSeen
}

// TestUnselected: all is allowed, and tracked. When policies begin to select the pod, they judge its established connections, too.
func TestUnselected(t *testing.T) {
	a := load(t, bpftest.NewNS(t))
	b := newBench(t, a)
	p := bpftest.Packet{Src: other, Dst: own, Proto: TCP, SrcPort: 40000, DstPort: 9}
	for i := range 2 {
		if verdict, events := b.send("handle_ingress", p); verdict != pass || events != 1-i {
			t.Errorf("packet %d: verdict %d, %d events", i, verdict, events)
		}
	}
	b.wantFlows(1)
	must(t, a.Allow(netip.MustParsePrefix("0.0.0.0/0"), Ports{Protocol: UDP}), a.SetSelected(true))
	if verdict, events := b.send("handle_ingress", p); verdict != shot || events != 1 {
		t.Errorf("selected: verdict %d, %d events", verdict, events)
	}
	b.wantFlows(0)
}

// TestPortEntries: the walk ends at the 24th entry, and Allow refuses more.
func TestPortEntries(t *testing.T) {
	b := newBench(t, selected(t, bpftest.NewNS(t)))
	var ports []Ports
	for i := range mostPorts {
		ports = append(ports, Ports{Protocol: TCP, Start: uint16(1000 + i)})
	}
	everyone := netip.MustParsePrefix("0.0.0.0/0")
	must(t, b.Allow(everyone, ports...))
	for port, want := range map[uint16]uint32{1000: pass, 1023: pass, 1024: shot} {
		p := bpftest.Packet{Src: other, Dst: own, Proto: TCP, SrcPort: 40000, DstPort: port}
		if verdict, _ := b.send("handle_ingress", p); verdict != want {
			t.Errorf("port %d: verdict %d, want %d", port, verdict, want)
		}
	}
	if err := b.Allow(everyone, append(ports, Ports{Protocol: UDP})...); err == nil {
		t.Error("25 entries are accepted")
	}
	if err := b.Allow(netip.MustParsePrefix("::/0"), Ports{Protocol: UDP}); err == nil {
		t.Error("IPv6 is accepted")
	}
}

// TestTraffic sends between two pods of a node. Each pod has an entry of its own.
func TestTraffic(t *testing.T) {
	n := bpftest.NewTopology(t, false).Node(1)
	gateway := netip.MustParseAddr("169.254.1.1")
	var pods [2]*bpftest.Pod
	a := selected(t, n.NS)
	for i := range pods {
		p := n.Pod(netip.AddrFrom4([4]byte{10, 20, 1, byte(i + 2)}), gateway, 1500)
		n.Address(p.Device, netip.PrefixFrom(gateway, 32))
		n.Route(netip.PrefixFrom(p.IP, 32), netip.Addr{}, p.Device, 0)
		must(t, a.Attach(p.Device, p.IP))
		pods[i] = p
	}
	at := netip.AddrPortFrom(pods[1].IP, 7000)
	bpftest.Serve(t, pods[1].NS, netip.MustParseAddrPort("0.0.0.0:7000"))
	bpftest.Serve(t, pods[1].NS, netip.MustParseAddrPort("0.0.0.0:9"))
	for _, network := range []string{"tcp4", "udp4"} {
		saw, err := bpftest.Exchange(pods[0].NS, network, at, 60000)
		if err != nil {
			t.Fatalf("%s: %v", network, err)
		}
		for _, p := range pods {
			if seen, err := a.LastSeen(saw, at, p.IP); err != nil || (seen > 0) != (network == "tcp4") {
				t.Errorf("%s: %s was last seen at %s at %d: %v", network, saw, p.Device, seen, err)
			}
		}
	}
	denied := netip.AddrPortFrom(pods[1].IP, 9)
	if _, err := bpftest.Exchange(pods[0].NS, "tcp4", denied, 1); err == nil {
		t.Error("the denied port answers")
	}
	must(t, a.Close())
	if _, err := bpftest.Exchange(pods[0].NS, "tcp4", denied, 1); err != nil {
		t.Errorf("without the programs: %v", err)
	}
}

// TestConnect: connections that are added are those that the programs look up.
func TestConnect(t *testing.T) {
	b := newBench(t, selected(t, bpftest.NewNS(t)))
	from, to := netip.MustParseAddrPort(stranger+":1024"), netip.MustParseAddrPort(own+":9")
	b.pods[to.Addr()] = pod{index: 1} // lo, by which packets of a test come
	must(t, b.Connect(100, func(i int) (_, _ netip.AddrPort) { return netip.AddrPortFrom(from.Addr(), uint16(1024+i)), to }))
	b.wantFlows(100)
	p := bpftest.Packet{Src: stranger, Dst: own, Proto: TCP, SrcPort: 1024 + 99, DstPort: 9}
	if verdict, events := b.send("handle_ingress", p); verdict != pass || events != 0 {
		t.Errorf("verdict %d, %d events", verdict, events)
	}
	b.wantFlows(100)
}
