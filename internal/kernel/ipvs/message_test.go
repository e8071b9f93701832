package ipvs

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestWhatIsSaidIsHeard: an answer has the form of a request, so what is encoded can be decoded.
func TestWhatIsSaidIsHeard(t *testing.T) {
	for _, s := range []Server{
		{Protocol: TCP, Addr: netip.MustParseAddrPort("10.96.0.1:443")},
		{Protocol: UDP, Addr: netip.MustParseAddrPort("10.96.0.1:53"), Affinity: 3 * time.Hour},
		{Protocol: SCTP, Addr: netip.MustParseAddrPort("[fd00:10:96::1]:65535")},
	} {
		b := backend{addr: netip.AddrPortFrom(s.Addr.Addr().Next(), 8080), weight: 7}
		data, err := encodeMessage(s, &b)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeServer(data); err != nil || got.String() != s.String() || got.Affinity != s.Affinity {
			t.Errorf("%s: heard %+v, %v", s, got, err)
		}
		if got, err := decodeBackend(data, s); err != nil || got != b {
			t.Errorf("%s: heard backend %+v, %v, want %+v", s, got, err, b)
		}
	}
}

func TestWhatCannotBeHeardIsSaid(t *testing.T) {
	for want, data := range map[string][]byte{
		"address family 0": nil,
		"address of 0 bytes and port of 0, want 4 and 2": {12, 0, attrService, 0x80, 6, 0, svcFamily, 0, inet, 0, 0, 0},
		"answer about a virtual server":                  {200, 0, attrService, 0x80},
	} {
		if _, err := decodeServer(data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", data, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, addr := range []string{"10.96.0.1:443", "[fd00::1]:80"} {
		s := Server{Protocol: TCP, Addr: netip.MustParseAddrPort(addr)}
		data, err := encodeMessage(s, &backend{addr: s.Addr, weight: 1})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > math.MaxUint16 {
			t.Skip("longer than any attribute")
		}
		s, err := decodeServer(data)
		if err == nil && !s.Addr.IsValid() {
			t.Errorf("%+v without an address and no error", s)
		}
		if b, err := decodeBackend(data, s); err == nil && !b.addr.IsValid() {
			t.Errorf("%+v without an address and no error", b)
		}
	})
}
