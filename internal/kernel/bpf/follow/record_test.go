package follow

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/journey"
)

// raw is a record as the programs write it.
func raw() []byte {
	b := make([]byte, recordSize)
	n := binary.NativeEndian
	n.PutUint64(b, 12345)
	n.PutUint32(b[8:], 3)
	n.PutUint32(b[12:], 4026531840)
	n.PutUint32(b[16:], 2)
	n.PutUint32(b[20:], 77)
	n.PutUint16(b[24:], 1)
	n.PutUint16(b[26:], 95)
	b[28], b[29], b[30], b[31], b[32], b[33] = byte(journey.HookEnd), 2, byte(journey.Response), 0x18, 1, 2
	return b
}

var someHosts = hosts{4026531840: "node-1"}

func TestDecode(t *testing.T) {
	want := journey.Event{
		Time: 12345, Transaction: 3, Host: "node-1", Index: 2, Point: journey.HookEnd, Hook: 3, Direction: journey.Response,
		Sequence: 77, Flags: 0x18, Length: 1, Depth: 1, Took: 95, Vain: 2,
	}
	if got, err := someHosts.decodeRecord(raw()); err != nil || got != want || got.Hook.String() != "FORWARD" {
		t.Errorf("%+v, %v", got, err)
	}
	for want, change := range map[string]func(b []byte) []byte{
		"39 bytes":             func(b []byte) []byte { return b[:39] },
		"an unknown namespace": func(b []byte) []byte { b[12]++; return b },
		"an unknown point, 0":  func(b []byte) []byte { b[28] = 0; return b },
		"an unknown point, 11": func(b []byte) []byte { b[28] = 11; return b },
		"an unknown hook":      func(b []byte) []byte { b[29] = 5; return b },
		"without a direction":  func(b []byte) []byte { b[30] = 3; return b },
	} {
		if _, err := someHosts.decodeRecord(change(raw())); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// FuzzDecode: whatever the bytes are, an event is refused or has names for all that it is.
func FuzzDecode(f *testing.F) {
	f.Add(raw())
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := someHosts.decodeRecord(b)
		if err != nil {
			return
		}
		for _, s := range []string{e.Point.String(), e.Direction.String(), e.Hook.String()} {
			if strings.HasPrefix(s, "#") {
				t.Errorf("%+v has something without a name", e)
			}
		}
		if (e.Hook != 0) != (e.Point == journey.HookBegin || e.Point == journey.HookEnd) || e.Host == "" {
			t.Errorf("%+v", e)
		}
	})
}
