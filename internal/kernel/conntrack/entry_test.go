package conntrack

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

var (
	pod     = netip.MustParseAddr("10.244.0.2")
	vip     = netip.MustParseAddr("10.96.0.10")
	backend = netip.MustParseAddr("10.244.1.2")
)

func dnat() Entry {
	return Entry{
		Original: Tuple{Source: pod, Destination: vip, SourcePort: 40000, DestinationPort: 80, Protocol: TCP},
		Reply:    Tuple{Source: backend, Destination: pod, SourcePort: 8080, DestinationPort: 40000, Protocol: TCP},
		Replied:  true,
		Mark:     0x4000,
		Labels:   Labels{1 << 1, 1 << 36},
	}
}

func TestSelect(t *testing.T) {
	other := dnat()
	other.Original.Protocol = UDP
	list := []Entry{dnat(), other}
	for _, tc := range []struct {
		name string
		q    Tuple
		want int
	}{
		{"anything", Tuple{}, 2},
		{"protocol", Tuple{Protocol: UDP}, 1},
		{"source", Tuple{Source: pod}, 2},
		{"another source", Tuple{Source: backend}, 0},
		{"destination", Tuple{Destination: vip}, 2},
		{"another destination", Tuple{Destination: backend}, 0},
		{"source port", Tuple{SourcePort: 40000}, 2},
		{"another source port", Tuple{SourcePort: 40001}, 0},
		{"destination port", Tuple{DestinationPort: 80}, 2},
		{"the reply's port", Tuple{DestinationPort: 8080}, 0},
		{"all together", Tuple{pod, vip, 40000, 80, TCP}, 1},
	} {
		if got := Select(list, tc.q); len(got) != tc.want {
			t.Errorf("%s: %d entries, want %d", tc.name, len(got), tc.want)
		}
	}
}

// message is a dump message put together by hand: attribute length and type in host order (little-endian here), values
// in network order, 0x80 in the type's upper byte for nested.
const message = "02000000" + // nfgenmsg: AF_INET
	"34000180" + "14000180" + "080001000af40002" + "080002000a60000a" + // original: addresses
	"1c000280" + "0500010006000000" + "060002009c400000" + "0600030000500000" + // original: tcp 40000 > 80
	"34000280" + "14000180" + "080001000af40102" + "080002000af40002" +
	"1c000280" + "0500010006000000" + "060002001f900000" + "060003009c400000" +
	"080003000000002e" + // status: seen reply, assured, confirmed, destination NAT
	"080007000000012c" + // timeout 300
	"0800080000004000" + // mark
	"14001600" + "0200000000000000" + "0000000010000000" // labels 1 and 100, in host order

func fromHex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecode(t *testing.T) {
	replied := dnat()
	unreplied := replied
	unreplied.Replied = false
	for text, want := range map[string]Entry{
		message: replied, strings.Replace(message, "080003000000002e", "080003000000002c", 1): unreplied,
	} {
		if got, err := decodeEntry(fromHex(t, text)); err != nil || got != want {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
		} else if numbers := got.Labels.Numbers(); !slices.Equal(numbers, []int{1, 100}) {
			t.Errorf("labels %v", numbers)
		}
	}
}

func TestDecodeRefusesBrokenMessages(t *testing.T) {
	whole := fromHex(t, message)
	for name, b := range map[string][]byte{
		"no header":        whole[:3],
		"cut attribute":    whole[:len(whole)-2],
		"address of 3":     fromHex(t, "02000000"+"10000180"+"0c000180"+"070001000af40000"),
		"status of 1 byte": fromHex(t, "02000000"+"0500030001000000"),
	} {
		if e, err := decodeEntry(b); err == nil {
			t.Errorf("%s: decoded to %+v", name, e)
		}
	}
}

// FuzzDecode holds the decoder to being total: an error or an entry, and no entry beside an error.
func FuzzDecode(f *testing.F) {
	f.Add(fromHex(f, message))
	f.Add([]byte{2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEntry(b)
		if err != nil && e != (Entry{}) {
			t.Errorf("error %v beside %+v", err, e)
		}
	})
}
