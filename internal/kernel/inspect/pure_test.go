package inspect

import (
	"net/netip"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/measure/netstate"
)

func TestParseMax(t *testing.T) {
	two := 2.0
	half := 0.5
	for text, want := range map[string]*float64{"200000 100000": &two, "max 100000": nil, "50000 100000\n": &half} {
		got, err := parseCPUMax(text)
		if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "max", "x 100000", "1 0", "1 2 3"} {
		if got, err := parseCPUMax(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	if got, err := parseQuota("-1", "100000"); got != nil || err != nil {
		t.Errorf("v1 without a limit: %v, %v", got, err)
	}
}

func TestDatagram(t *testing.T) {
	to := netip.MustParseAddrPort("[fd00::1]:4000")
	for _, d := range []datagram{{kind: kindAsk, number: 7, size: 1472}, {kind: kindAnswer, number: 1 << 31, size: 8, to: to}, {kind: kindTooBig, to: to}, {kind: kindCheck, number: 9}, {kind: kindAnswer, to: to, echoCounts: echoCounts{7, 1, 2}}} {
		for _, length := range []int{0, 40, 1472} {
			b := d.encode([]byte("12345678"), length)
			got, filled, err := decodeDatagram([]byte("12345678"), b)
			if err != nil || got != d || len(b) < length || !isPadding(d.number, filled) {
				t.Errorf("%+v in %d bytes: %+v, %v", d, len(b), got, err)
			}
			if _, _, err := decodeDatagram([]byte("another-mark"), b); err != errForeign {
				t.Errorf("a foreign mark: %v", err)
			}
			if len(filled) > 0 {
				b[len(b)-1] ^= 1
				if _, filled, _ = decodeDatagram([]byte("12345678"), b); isPadding(d.number, filled) {
					t.Errorf("%+v in %d bytes: the last bit is another, and it is not seen", d, len(b))
				}
			}
		}
	}
}

func FuzzDatagram(f *testing.F) {
	f.Add(datagram{kind: kindAnswer, to: netip.MustParseAddrPort("1.2.3.4:5")}.encode([]byte("12345678"), 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, _, err := decodeDatagram([]byte("12345678"), b)
		if err != nil {
			return
		}
		again, _, err := decodeDatagram([]byte("12345678"), d.encode([]byte("12345678"), 0))
		if err != nil || again != d {
			t.Errorf("%+v becomes %+v, %v", d, again, err)
		}
	})
}

func TestTally(t *testing.T) {
	ip := func(protocol uint8) *capture.IP {
		return &capture.IP{Source: netip.MustParseAddr("10.0.0.1"), Destination: netip.MustParseAddr("10.0.0.2"), Protocol: protocol}
	}
	udp := func(port uint16) *capture.UDP { return &capture.UDP{SourcePort: 40000, DestinationPort: port} }
	inner := &capture.Frame{IP: ip(17), UDP: udp(7777)}
	for _, c := range []struct {
		frame  capture.Frame
		kind   string
		sealed bool
	}{
		{capture.Frame{IP: ip(17), UDP: udp(7777), Marked: true}, netstate.Bare, false},
		{capture.Frame{IP: ip(17), UDP: &capture.UDP{SourcePort: 7777, DestinationPort: 40000}, Marked: true}, netstate.Bare, false},
		{capture.Frame{IP: ip(17), UDP: udp(8472), VXLAN: &capture.VXLAN{VNI: 1}, Inner: inner, Marked: true}, netstate.VXLAN, false},
		{capture.Frame{IP: ip(4), Inner: inner, Marked: true}, netstate.IPIP, false},
		{capture.Frame{IP: ip(17), UDP: udp(6081), Marked: true}, netstate.Geneve, false},
		{capture.Frame{IP: ip(17), UDP: udp(6081), Geneve: &capture.Geneve{VNI: 5}, Inner: &capture.Frame{}, Marked: true}, netstate.Geneve, false},
		{capture.Frame{IP: ip(47), Marked: true}, netstate.GRE, false},
		{capture.Frame{IP: ip(17), UDP: udp(4790), Marked: true}, netstate.UDP, false},
		{capture.Frame{IP: ip(50)}, netstate.ESP, true},
		{capture.Frame{IP: ip(17), UDP: udp(51871)}, netstate.WireGuard, true},
		{capture.Frame{IP: ip(17), UDP: udp(7777)}, "", false},
		{capture.Frame{Marked: true}, "", false},
	} {
		tl := tally{port: 7777, marked: map[netstate.Wrapping]int{}, sealed: map[netstate.Wrapping]int{}}
		tl.add(&c.frame)
		marked, sealed := sortedWrappings(tl.marked), sortedWrappings(tl.sealed)
		list := marked
		if c.sealed {
			list = sealed
		}
		if len(marked)+len(sealed) > 1 {
			t.Errorf("%s is counted twice", &c.frame)
		}
		got := ""
		if len(list) == 1 && list[0].Frames == 1 {
			got = list[0].Kind
		}
		if got != c.kind {
			t.Errorf("%s: got %q, want %q", &c.frame, got, c.kind)
		}
	}
}
