package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

func TestCallsPerTransaction(t *testing.T) {
	calls := map[string]uint64{"sendto": 2010, "recvfrom": 2002, "nanosleep": 600, "futex": 30}
	names, total := tracing{transactions: 1000, calls: calls}.perTransaction()
	if names != "recvfrom 2.00, sendto 2.01" || total < 4.01 || total > 4.02 {
		t.Errorf("%q %v", names, total)
	}
}

func TestVerdict(t *testing.T) {
	for want, c := range map[string]struct {
		r   ratio
		bar float64
	}{
		"none":                 {ratio{1, 0.9, 1.1, true}, 0},
		">= 1.00: held":        {ratio{1.1, 1, 1.2, true}, 1},
		">= 2.00: missed":      {ratio{1.5, 1.2, 1.99, true}, 2},
		">= 0.97: not decided": {ratio{1, 0.9, 1.1, true}, 0.97},
		">= 0.50: not decided": {ratio{1, 0.9, 1.1, false}, 0.5}, // too few repetitions
	} {
		if got := c.r.verdict(c.bar); got != want {
			t.Errorf("%+v, bar %v: %q, want %q", c.r, c.bar, got, want)
		}
	}
}

func TestPage(t *testing.T) {
	p := page{facts: [][2]string{{"Kernel", "6.1"}}, repetitions: 10, missing: []string{"netperf: not installed"}}
	c := &pairing{task: "rr", peer: "C", unit: "transactions/s", work: "transaction", bar: 0.97}
	for i := range 10 {
		drift := 1 + float64(i)/10 // shared by both, so no matter
		c.ours = append(c.ours, reading{rate: 50_500 * drift, cost: 20_000})
		c.theirs = append(c.theirs, reading{rate: 50_000 * drift, cost: 10_000})
	}
	p.pairings = append(p.pairings, c)
	p.tracings = append(p.tracings, tracing{task: "rr", tool: "cnibench", side: "client", transactions: 100, calls: map[string]uint64{"sendto": 100}})
	var b strings.Builder
	if err := p.write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| Kernel | 6.1 |",
		"| rr | C | transactions/s | 73.22 k | 72.5 k | 1.010 [1.010, 1.010] | >= 0.97: held |",
		"| rr | C | ns/transaction | 20 k | 10 k | 2.000 [2.000, 2.000] |",
		"| rr | cnibench | client | sendto 1.00 | 1.00 |",
		"- netperf: not installed",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page has no %q:\n%s", want, b.String())
		}
	}
	if err := p.write(brokenWriter{}); err == nil {
		t.Error("a page that could not be written is no error")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestReadingOf(t *testing.T) {
	ns := func(n int64) sample.CPUTime { return sample.CPUTime{ProcessNs: n} }
	own := &sample.Observation{ElapsedNs: 1e9, Operations: 1000, CPU: ns(5e6)}
	tool := func(work float64, metrics map[string]float64) *sample.Observation {
		return &sample.Observation{ElapsedNs: 1e9, CPU: ns(2e6), Tool: &sample.Tool{Name: "x", Work: work, Metrics: metrics}}
	}
	for _, tt := range []struct {
		name           string
		task           string
		client, server *sample.Observation
		want           reading
	}{
		{"ours", "rr", own, own, reading{rate: 1000, cost: 10_000}},
		{"a tool", "rr", tool(2000, map[string]float64{metric.TransactionRate: 1500}), tool(0, nil), reading{rate: 1500, cost: 2000}},
		{"a tool before our server", "http", tool(1000, map[string]float64{metric.RequestRate: 900}), own, reading{rate: 900, cost: 7000}},
		{"datagrams, half of them lost", "udp", tool(2000, map[string]float64{metric.PacketRate: 1000, metric.FrameLossRate: 0.5}), tool(0, nil), reading{rate: 1000, cost: 4000}},
		{"bytes", "stream", tool(1000, map[string]float64{metric.Goodput: 8e6}), tool(0, nil), reading{rate: 8e6, cost: 4000}},
	} {
		if got, err := readingOf(task{name: tt.task}, tt.client, tt.server); err != nil || got != tt.want {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
	if _, err := readingOf(task{name: "rr"}, tool(0, nil), tool(0, nil)); err == nil {
		t.Error("a tool that did nothing has a reading")
	}
}

func TestPingpong(t *testing.T) {
	b, err := external.Decode(pingpong, []byte("1234 0.500000000\n"))
	if err != nil || b.Readings[0].Metrics[metric.TransactionRate] != 2468 || b.Readings[0].Work != 1234 {
		t.Errorf("%+v, %v", b, err)
	}
	for _, bad := range []string{"", "connect: refused\n", "0 1", "1 0", "1 x"} {
		if b, err := external.Decode(pingpong, []byte(bad)); err == nil {
			t.Errorf("%+v of %q", b, bad)
		}
	}
}

// TestTasks holds that each peer can do its tasks.
func TestTasks(t *testing.T) {
	for _, task := range tasks {
		for _, c := range append(task.peers, peer{}) {
			if w, err := task.workloadBy(c.tool); err != nil || w.Tool != c.tool {
				t.Errorf("%s by %q: %v", task.name, c.tool, err)
			}
		}
	}
}
