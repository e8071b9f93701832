package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// conversation has every type of message once.
var conversation = []Message{
	{Type: TypeHello, Hello: &Hello{Version: Version, Program: "v1", PID: 7}},
	{Type: TypePrepare, Trial: 1, Prepare: &Prepare{Side: SideClient, Workload: plan.Workload{Spec: plan.RR{}}.Normalize(),
		Address: "10.0.0.1", Port: 5000, CPUs: []int{1}, Window: time.Second, Timeout: time.Second}},
	{Type: TypeReady, Trial: 1, Ready: &Ready{Port: 5000}},
	{Type: TypeStart, Trial: 1, Start: &Start{Delay: time.Millisecond}},
	{Type: TypeStarted, Trial: 1},
	{Type: TypeHeartbeat, Trial: 1},
	{Type: TypeDone, Trial: 1, Done: &sample.Observation{Side: SideClient, ElapsedNs: 1, Errors: map[string]uint64{"reset": 2}}},
	{Type: TypeFinish, Trial: 1},
	{Type: TypeCancel, Trial: 2},
	{Type: TypeError, Trial: 2, Error: &Error{Kind: "timeout", Message: "no reply\nfrom 10.0.0.1"}},
}

func TestRoundTrip(t *testing.T) {
	var b bytes.Buffer
	enc := NewEncoder(&b)
	for _, m := range conversation {
		if err := enc.Encode(m); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(b.String(), "\n"); n != len(conversation) {
		t.Errorf("%d messages are on %d lines", len(conversation), n)
	}
	d := NewDecoder(&b)
	for _, want := range conversation {
		got, err := d.Decode()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.Type, diff)
		}
	}
	if _, err := d.Decode(); err != io.EOF {
		t.Errorf("after the last message: %v, want io.EOF", err)
	}
}

// TestBadLineIsPassedOver wants a typed error that names the line, and the message behind it.
func TestBadLineIsPassedOver(t *testing.T) {
	good := `{"type":"heartbeat","trial":3}` + "\n"
	for name, bad := range map[string]string{
		"no JSON":       "panic: runtime error\n",
		"unknown type":  `{"type":"gossip"}` + "\n",
		"no contents":   `{"type":"prepare","trial":1}` + "\n",
		"wrong shape":   `{"type":"ready","ready":7}` + "\n",
		"no type":       "{}\n",
		"two objects":   `{"type":"finish"}{"type":"finish"}` + "\n",
		"too long":      strings.Repeat("x", maxLine+1) + "\n",
		"bad histogram": `{"type":"done","done":{"side":"client","rtt":"????"}}` + "\n",
	} {
		d := NewDecoder(strings.NewReader(good + "\n" + bad + good))
		if _, err := d.Decode(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err := d.Decode()
		var line *lineError
		if !errors.As(err, &line) || line.Line != 3 {
			t.Errorf("%s: got %v, want a LineError of line 3", name, err)
		}
		if name == "too long" && !errors.Is(err, errTooLong) {
			t.Errorf("%s: got %v", name, err)
		}
		if m, err := d.Decode(); err != nil || m.Trial != 3 {
			t.Errorf("%s: behind the bad line: %v, %v", name, m, err)
		}
	}
}

func TestCutStream(t *testing.T) {
	d := NewDecoder(strings.NewReader(`{"type":"finish"}` + "\n" + `{"type":"sta`))
	if _, err := d.Decode(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Decode(); err != io.ErrUnexpectedEOF {
		t.Errorf("cut in a line: %v, want io.ErrUnexpectedEOF", err)
	}
}

// TestLongestLine puts the limit at maxLine exactly.
func TestLongestLine(t *testing.T) {
	frame, err := json.Marshal(Message{Type: TypeError, Error: &Error{}})
	if err != nil {
		t.Fatal(err)
	}
	room := maxLine - len(frame) - 1
	var b bytes.Buffer
	if err := NewEncoder(&b).Encode(Message{Type: TypeError, Error: &Error{Message: strings.Repeat("x", room)}}); err != nil {
		t.Fatal(err)
	}
	if b.Len() != maxLine {
		t.Fatalf("the line has %d bytes, want %d", b.Len(), maxLine)
	}
	if _, err := NewDecoder(&b).Decode(); err != nil {
		t.Errorf("a line of MaxLine bytes: %v", err)
	}
	b.Reset()
	err = NewEncoder(&b).Encode(Message{Type: TypeError, Error: &Error{Message: strings.Repeat("x", room+1)}})
	if !errors.Is(err, errTooLong) || b.Len() != 0 {
		t.Errorf("one byte more: %v, %d bytes written", err, b.Len())
	}
}

func TestEncodeRefusesWhatNobodyReads(t *testing.T) {
	var b bytes.Buffer
	for _, m := range []Message{{}, {Type: "gossip"}, {Type: TypeDone}} {
		if err := NewEncoder(&b).Encode(m); err == nil || b.Len() != 0 {
			t.Errorf("%+v: err %v, %d bytes written", m, err, b.Len())
		}
	}
}

func FuzzDecoder(f *testing.F) {
	for _, m := range conversation {
		var b bytes.Buffer
		if err := NewEncoder(&b).Encode(m); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
		f.Add(b.Bytes()[:b.Len()/2])
	}
	f.Add([]byte("\n\n{}\n[]\nnull\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		d := NewDecoder(bytes.NewReader(in))
		for range len(in) + 2 {
			m, err := d.Decode()
			var line *lineError
			switch {
			case err == io.EOF || err == io.ErrUnexpectedEOF:
				return
			case errors.As(err, &line):
			case err != nil:
				t.Fatalf("error of no stated kind: %v", err)
			default:
				if err := NewEncoder(io.Discard).Encode(m); err != nil {
					t.Fatalf("what was decoded cannot be sent: %v", err)
				}
			}
		}
		t.Fatal("more messages than bytes")
	})
}
