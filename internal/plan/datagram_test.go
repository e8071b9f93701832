package plan

import (
	"strings"
	"testing"
)

func TestParseStreamOptions(t *testing.T) {
	for in, want := range map[string]string{
		"stream(udp,message=imix,rate=1G)":           "stream(udp,message=imix,rate=1G)",
		"throughput(message=imix,loss=1%)":           "throughput(message=imix,loss=1%)",
		"stream(udp,mode=gso,buffer=64Ki)":           "stream(udp,mode=gso,buffer=65536)",
		"stream(buffer=1Mi,bidirectional)":           "stream(buffer=1048576,bidirectional)",
		"stream(udp,bidirectional=true,flows=512)":   "stream(udp,flows=512,bidirectional)",
		"stream(bidirectional=false)":                "stream",
		"throughput(mode=gso,buffer=4Mi,message=64)": "throughput(message=64,mode=gso,buffer=4194304)",
	} {
		w, err := ParseWorkload(in)
		if err != nil || w.String() != want || w != w.Normalize() {
			t.Errorf("%s: got %s (%+v), %v; want %s", in, w, w, err, want)
		}
	}
	for in, want := range map[string]string{
		"stream(message=imix)":                 "imix is for datagrams",
		"ping(message=imix)":                   "is not a size",
		"stream(mode=gso)":                     "gso is for udp",
		"stream(udp,mode=trunc)":               "mode is for tcp",
		"stream(udp,mode=gso,message=imix)":    "packets of one size",
		"stream(reverse,bidirectional)":        "one of the two directions",
		"stream(bidirectional,flows=513)":      "want 1 to 512",
		"stream(buffer=2048Mi)":                "out of range",
		"rr(buffer=1Mi)":                       "rr has no buffer",
		"throughput(bidirectional)":            "throughput has no bidirectional",
		"stream(udp,message=imix,tool=iperf3)": "of one size",
	} {
		if _, err := ParseWorkload(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}

// TestMeanPayload: the mean that stands for IMIX is that of its sizes, to the byte.
func TestMeanPayload(t *testing.T) {
	sum := 0
	for _, n := range Payloads {
		sum += n
	}
	if mean := (sum + len(Payloads) - 1) / len(Payloads); mean != meanPayload {
		t.Errorf("the mean is %d, not %d", mean, meanPayload)
	}
}
