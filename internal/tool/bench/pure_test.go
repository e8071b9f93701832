package bench

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"
)

func TestParseIperf3(t *testing.T) {
	const good = `{"start":{},"end":{"sum_sent":{"bytes":9},"sum_received":{"bytes":1400000,"seconds":2}}}`
	for name, c := range map[string]struct {
		in       string
		datagram int
		want     count
		fails    bool
	}{
		"tcp":       {good, 0, count{units: 11_200_000, seconds: 2}, false},
		"udp":       {good, 1400, count{units: 1000, seconds: 2}, false},
		"refused":   {`{"start":{},"error":"unable to connect"}`, 0, count{}, true},
		"no end":    {`{"end":{}}`, 0, count{}, true},
		"not JSON":  {`iperf3: error`, 0, count{}, true},
		"no answer": {``, 0, count{}, true},
	} {
		got, err := parseIperf3([]byte(c.in), c.datagram)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestParsePingpongAndNetperf(t *testing.T) {
	if got, err := parsePingpong([]byte("1234 0.500000000\n")); err != nil || got != (count{1234, 0.5}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := parsePingpong([]byte("connect: refused\n")); err == nil {
		t.Errorf("%+v of an error", got)
	}
	if got, err := parseNetperf([]byte("THROUGHPUT=20000.50\nELAPSED_TIME=2.00\n")); err != nil || got != (count{40001, 2}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "THROUGHPUT=1\n", "THROUGHPUT=x\nELAPSED_TIME=1\n", "establish control: are you sure?"} {
		if got, err := parseNetperf([]byte(bad)); err == nil {
			t.Errorf("%+v of %q", got, bad)
		}
	}
}

func TestParseWrk(t *testing.T) {
	const good = `Running 1s test @ http://10.201.0.2:20001/
  2 threads and 100 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   801.44us  101.18us   4.47ms   91.03%
    Req/Sec    62.65k     2.71k   65.96k    90.48%
  130877 requests in 1.10s, 139.42MB read
Requests/sec: 118979.09
Transfer/sec:    126.75MB
`
	got, err := parseWrk([]byte(good))
	if err != nil || got.units != 130_877 || got.units/got.seconds < 118_979 || got.units/got.seconds > 118_980 {
		t.Errorf("%+v, %v", got, err)
	}
	for name, bad := range map[string]string{
		"nothing":  "",
		"refused":  "unable to connect to 10.201.0.2:1 Connection refused",
		"no rate":  "  130877 requests in 1.10s, 139.42MB read\n",
		"zero":     "  0 requests in 1.10s, 0.00B read\nRequests/sec:      0.00\n",
		"failures": "  Socket errors: connect 0, read 3, write 0, timeout 0\n" + good,
		"refusals": "  Non-2xx or 3xx responses: 7\n" + good,
	} {
		if got, err := parseWrk([]byte(bad)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"end":{"sum_received":{"bytes":1,"seconds":1}}}`))
	f.Add([]byte("THROUGHPUT=1\nELAPSED_TIME=1\n"))
	f.Add([]byte("5 1\n"))
	f.Add([]byte("  7 requests in 1.00s, 1B read\nRequests/sec: 7\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		for _, err := range []error{second(parseIperf3(b, 7)), second(parseNetperf(b)), second(parsePingpong(b)), second(parseWrk(b))} {
			_ = errors.Unwrap(err) // nothing may panic
		}
		parseCalls(b)
		listens(b, 80)
	})
}

func second(_ count, err error) error { return err }

func TestReadingOfACount(t *testing.T) {
	got, err := count{units: 8000, seconds: 2}.reading(4*time.Second, 1.0/8)
	if err != nil || got != (reading{rate: 4000, cost: 4e6}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range []count{{0, 1}, {1, 0}, {-1, 1}} {
		if _, err := c.reading(1, 1); err == nil {
			t.Errorf("%+v is a reading", c)
		}
	}
}

func TestListens(t *testing.T) {
	table := []byte(`  sl  local_address rem_address   st tx_queue
   0: 0200C90A:4E21 00000000:0000 0A 00000000:00000000
   1: 0200C90A:4E22 0100C90A:C000 01 00000000:00000000
`)
	for port, want := range map[int]bool{0x4e21: true, 0x4e22: false, 0x4e23: false} {
		if listens(table, port) != want {
			t.Errorf("port %d: %v", port, !want)
		}
	}
}

func TestCallsPerTransaction(t *testing.T) {
	calls := parseCalls([]byte("    calls syscall\n--------- ---------\n     2010 sendto\n     2002 recvfrom\n      600 nanosleep\n       30 futex\n--------- ---------\n     4642 total\n"))
	if want := map[string]uint64{"sendto": 2010, "recvfrom": 2002, "nanosleep": 600, "futex": 30}; !maps.Equal(calls, want) {
		t.Errorf("%v", calls)
	}
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
