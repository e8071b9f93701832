package cilium

import (
	"net"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
)

// TestOwnFlowsKeepTheirPorts has a client outside and the node itself speak to the same pod of the other node from the
// same port: the client through the node port, under the node's address, and the node by itself. Whoever comes second
// gets another port, and each gets its own answers, also after the first has gone.
func TestOwnFlowsKeepTheirPorts(t *testing.T) {
	eachFamily(t, func(t *testing.T, where numbering) {
		for name, change := range map[string]func(*Options){
			"native": func(o *Options) { o.NodePort, o.Masquerade = NodePortSNAT, where.cluster },
			"legacy": func(o *Options) { o.NodePort, o.Masquerade, o.Legacy = NodePortSNAT, where.cluster, true },
			"vxlan":  func(o *Options) { o.Overlay, o.NodePort, o.Masquerade = "cilium_vxlan", NodePortSNAT, where.cluster },
		} {
			t.Run(name, func(t *testing.T) { testOwnFlows(t, newWorld(t, where, change)) })
		}
	})
}

// side is who speaks, and to whom.
type side struct {
	who *bpftest.Node
	to  netip.AddrPort
}

func testOwnFlows(t *testing.T, w *world) {
	defer w.explain(t)
	pod := netip.AddrPortFrom(w.pods[2].IP, 7000)
	bpftest.Serve(t, w.pods[2].NS, w.wildcard(7000))
	for _, proto := range []Proto{TCP, UDP} {
		w.setEverywhere(t, Service{Proto: proto, NodePort: true, Backends: []netip.AddrPort{pod}}, 30002)
	}
	entry := netip.AddrPortFrom(w.nodes[0].IP, 30002)
	outside, node := side{w.client, entry}, side{w.nodes[0], pod}
	for i, network := range w.networks {
		for j, order := range [][]side{{outside, node}, {node, outside}} {
			port := 40000 + 10*i + j
			var conns []net.Conn
			for _, s := range order {
				conns = append(conns, dialFrom(t, s.who, network, s.to, port))
			}
			for k, c := range conns {
				if _, err := bpftest.Converse(c, 1000); err != nil {
					t.Errorf("%s, port %d, speaker %d of order %d: %v", network, port, k, j, err)
				}
			}
			// What the first has left behind must not take the answers of the second.
			conns[0].Close()
			conns[1].Close()
			again := dialFrom(t, order[1].who, network, order[1].to, port+1000)
			if _, err := bpftest.Converse(again, 1000); err != nil {
				t.Errorf("%s, port %d, order %d, again: %v", network, port+1000, j, err)
			}
			again.Close()
			heir := dialFrom(t, order[0].who, network, order[0].to, port+1000)
			if _, err := bpftest.Converse(heir, 1000); err != nil {
				t.Errorf("%s, port %d, order %d, after another: %v", network, port+1000, j, err)
			}
			heir.Close()
		}
	}
}

// TestPortsChangeHandsAtOnce has the node speak from the very port that a client's translated flow has just closed, while
// that flow's last acknowledgement is still on its way. The two must not share what the node notes about the port.
func TestPortsChangeHandsAtOnce(t *testing.T) {
	eachFamily(t, func(t *testing.T, where numbering) {
		w := newWorld(t, where, func(o *Options) { o.NodePort, o.Masquerade = NodePortSNAT, where.cluster })
		defer w.explain(t)
		pod := netip.AddrPortFrom(w.pods[2].IP, 7000)
		bpftest.Serve(t, w.pods[2].NS, w.wildcard(7000))
		w.setEverywhere(t, Service{Proto: TCP, NodePort: true, Backends: []netip.AddrPort{pod}}, 30002)
		entry := netip.AddrPortFrom(w.nodes[0].IP, 30002)
		for port := 33000; port < 33600; port++ {
			for _, s := range []side{{w.client, entry}, {w.nodes[0], pod}} {
				c := dialFrom(t, s.who, w.networks[0], s.to, port)
				if _, err := bpftest.Converse(c, 10); err != nil {
					t.Fatalf("port %d: %v", port, err)
				}
				c.Close()
			}
		}
	})
}

// dialFrom connects from a port.
func dialFrom(t *testing.T, who *bpftest.Node, network string, to netip.AddrPort, port int) net.Conn {
	t.Helper()
	var c net.Conn
	err := who.NS.Do(func() (err error) {
		d := net.Dialer{Timeout: bpftest.Patience}
		if network[:3] == "tcp" {
			d.LocalAddr = &net.TCPAddr{Port: port}
		} else {
			d.LocalAddr = &net.UDPAddr{Port: port}
		}
		c, err = d.Dial(network, to.String())
		return err
	})
	if err != nil {
		t.Fatalf("%s to %s from port %d: %v", network, to, port, err)
	}
	t.Cleanup(func() { c.Close() }) // closed twice is as good as once
	return c
}

// TestOwnFlowsAreRemembered: a flow of the node from a port of translated flows has one entry, which its answers go by, and
// both halves of a translation. A half that the table has forgotten comes back with the next packet of either direction. A
// flow from another port leaves nothing.
func TestOwnFlowsAreRemembered(t *testing.T) {
	eachFamily(t, func(t *testing.T, where numbering) {
		b := newBench(t, where, func(o *Options) { o.NodePort, o.Masquerade = NodePortSNAT, where.cluster })
		out := bpftest.Packet{Src: b.own.String(), Dst: b.client.String(), Proto: 6, SrcPort: 40000, DstPort: 40001, Flags: bpftest.ACK}
		answer := out.Reply()
		has := func(when string, flows, halves int) {
			t.Helper()
			if f, h := entries(t, b.table("cilium_ct%d")), entries(t, b.table("cilium_snat%d")); f != flows || h != halves {
				t.Errorf("%s: %d flows and %d halves of translations, want %d and %d", when, f, h, flows, halves)
			}
		}
		passes := func(program string, frame bpftest.Packet) {
			t.Helper()
			if got, _ := bpftest.Run(t, b.host.Programs[program], frame.Bytes()); got != pass {
				t.Errorf("%s: verdict %d", program, got)
			}
		}
		passes("to_netdev", out.With(func(p *bpftest.Packet) { p.SrcPort = 1000 }))
		has("a port of no translation", 0, 0)
		passes("to_netdev", out)
		passes("from_netdev", answer)
		has("out and back", 1, 2)
		for _, way := range []struct {
			program string
			frame   bpftest.Packet
		}{{"to_netdev", out}, {"from_netdev", answer}} {
			forget(t, b.table("cilium_snat%d"), way.program == "from_netdev")
			has("half forgotten", 1, 1)
			passes(way.program, way.frame)
			has("after "+way.program, 1, 2)
		}
	})
}

// forget deletes one half of the only translation in a table: that of packets which leave, or that of their answers.
func forget(t *testing.T, m *ebpf.Map, leaving bool) {
	t.Helper()
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	for it := m.Iterate(); it.Next(&key, &value); {
		if (key[len(key)-1] == 0) == leaving {
			if err := m.Delete(key); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("no such half")
}
