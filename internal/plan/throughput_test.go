package plan

import (
	"strings"
	"testing"
)

func TestParseThroughput(t *testing.T) {
	for in, want := range map[string]string{
		"throughput":                                      "throughput",
		"throughput(udp)":                                 "throughput",
		"throughput(message=64, flows=2)":                 "throughput(flows=2,message=64)",
		"throughput(loss=0.001,rate=1G)":                  "throughput(rate=1G,loss=0.1%)",
		"throughput(loss=0%,message=1400)":                "throughput",
		"throughput(rate=1G,loss=0.0001%,message=512)":    "throughput(message=512,rate=1G,loss=0.0001%)",
		"throughput(rate=1000M,loss=0.00000001,flows= 1)": "", // flows has a space in its value
	} {
		w, err := ParseWorkload(in)
		if (err == nil) != (want != "") || err == nil && w.String() != want {
			t.Errorf("%s: got %s, %v; want %q", in, w, err, want)
		}
		if err == nil && w.Traits().Work != "packet" {
			t.Errorf("%s: its unit of work is %s", in, w.Traits().Work)
		}
	}
	for in, want := range map[string]string{
		"throughput(tcp)":        "throughput runs over udp, not tcp",
		"throughput(loss=51%)":   "out of range",
		"throughput(loss=-1%)":   "out of range",
		"throughput(loss=x)":     "is not a loss",
		"throughput(message=15)": "message 15 is out of range for udp",
		"throughput(reverse)":    "throughput has no reverse",
		"stream(udp,loss=1%)":    "stream has no loss",
	} {
		if _, err := ParseWorkload(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}

func TestProbeIsAStream(t *testing.T) {
	w := Throughput{MessageSize: 64, Flows: 3, Loss: 0.01, Rate: 5e9}
	if got := w.Probe(1e9).String(); got != "stream(udp,flows=3,message=64,rate=1G)" {
		t.Errorf("got %s", got)
	}
}

func FuzzParseLoss(f *testing.F) {
	for _, s := range []string{"0", "1%", "0.001", "1e-6", "50%", "-0", "%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := losses.parse(s)
		if err != nil {
			return
		}
		if again, err := losses.parse(FormatShare(v)); err != nil || again != v {
			t.Fatalf("%q is %v, written %s, read %v, %v", s, v, FormatShare(v), again, err)
		}
	})
}
