package link

import (
	"net"
	"net/netip"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

// TestDrops sends more through a shaper at once than it holds: what is missing is counted at its queueing discipline,
// and nowhere else.
func TestDrops(t *testing.T) {
	a, b := fresh(t), fresh(t)
	near, far := netip.MustParsePrefix("10.1.0.1/24"), netip.MustParsePrefix("10.1.0.2/24")
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 2}
	must(t,
		a.Add(Veth{Name: "eth0", Peer: "eth0", PeerIn: b, PeerMAC: mac, MTU: 1500}),
		a.Add(Address{Dev: "eth0", Addr: near}), b.Add(Address{Dev: "eth0", Addr: far}), a.Add(StaticNeighbour{Dev: "eth0", Addr: far.Addr(), MAC: mac}),
		a.Shape("eth0", 1e6))
	var sink net.PacketConn
	must(t, b.NS().Do(func() (err error) {
		sink, err = net.ListenPacket("udp4", "10.1.0.2:9")
		return err
	}))
	defer sink.Close()
	before, err := a.Drops()
	must(t, err)
	// Several sockets: what one has under way is bounded by its own send buffer, and waits there instead.
	var conns []net.Conn
	must(t, a.NS().Do(func() error {
		for range 20 {
			c, err := net.Dial("udp4", "10.1.0.2:9")
			if err != nil {
				return err
			}
			conns = append(conns, c)
		}
		return nil
	}))
	for _, c := range conns {
		defer c.Close()
		for range 60 {
			_, err := c.Write(make([]byte, 1400))
			must(t, err)
		}
	}
	after, err := a.Drops()
	must(t, err)
	for _, d := range sample.DropsBetween(before, after) {
		if d.Device != "eth0" || d.Kind != sample.DropQdisc || d.What != "tbf" {
			t.Errorf("dropped elsewhere: %+v", d)
		}
	}
	grown := sample.DropsBetween(before, after)
	if len(grown) != 1 || grown[0].Packets < 500 || grown[0].Packets > 20*60 {
		t.Errorf("of 1200 packets, of which a tenth fits, these were dropped: %+v", grown)
	}
	kinds := map[string]bool{}
	for _, d := range after {
		kinds[d.Device+" "+d.Kind] = true
	}
	for _, want := range []string{"eth0 tx", "eth0 rx", "eth0 qdisc", "lo tx"} {
		if !kinds[want] {
			t.Errorf("there is no counter %s among %v", want, after)
		}
	}
}
