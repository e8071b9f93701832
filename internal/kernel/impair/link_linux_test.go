package impair

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/link"
)

// TestLossyLink: half of the frames for one station get lost once it is impaired, and none of those for others.
func TestLossyLink(t *testing.T) {
	near, atNear := space(t)
	far, atFar := space(t)
	must(t,
		atNear.Add(link.Veth{Name: "eth0", Peer: "eth0", PeerIn: atFar, MTU: 1500}), atFar.Up("eth0"),
		atNear.Add(link.Address{Dev: "eth0", Addr: netip.MustParsePrefix(nearAddress + "/24")}),
		atFar.Add(link.Address{Dev: "eth0", Addr: netip.MustParsePrefix(farAddress + "/24")}))
	devices, err := atFar.Devices()
	must(t, err)
	var station net.HardwareAddr
	for _, d := range devices {
		if d.Name == "eth0" {
			station = d.MAC
		}
	}
	must(t, atNear.Add(link.StaticNeighbour{Dev: "eth0", Addr: netip.MustParseAddr(farAddress), MAC: station}))
	other := append(net.HardwareAddr{}, station...)
	other[5] ^= 1
	a, b := socket(t, near, nearAddress), socket(t, far, farAddress)
	const sent = 100 // the socket has room for them
	arriving := func() (n int) {
		for range sent {
			_, err := a.WriteTo([]byte{1}, b.LocalAddr())
			must(t, err)
		}
		must(t, b.SetReadDeadline(time.Now().Add(200*time.Millisecond)))
		room := make([]byte, 100)
		for {
			if _, _, err := b.ReadFrom(room); err != nil {
				return n
			}
			n++
		}
	}
	whole, err := NewLossy(far, "eth0", other, 1)
	must(t, err, whole.Impair())
	defer whole.Close()
	half, err := NewLossy(far, "eth0", station, 0.5)
	must(t, err)
	defer half.Close()
	if n := arriving(); n != sent {
		t.Errorf("%d of %d frames arrive before the link is impaired", n, sent)
	}
	must(t, half.Impair())
	if n := arriving(); n < sent/4 || n > 3*sent/4 {
		t.Errorf("%d of %d frames arrive, want about a half", n, sent)
	}
}
