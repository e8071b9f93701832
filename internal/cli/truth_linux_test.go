package cli

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// within is how near a measurement has to come to a known truth.
const within = 0.02

// truth is a number that is known before it is measured.
type truth struct {
	workload, metric string
	want             float64
}

// readings are the values of each truth, of all repetitions, and how busy the machine was before them.
type readings struct {
	of   map[truth][]float64
	busy float64
}

// quiet is the share of the path's CPUs that others may use: beyond it rates and times are those of a smaller machine, and
// say nothing about the measurement.
const quiet = 0.1

// measured runs a lab of two empty namespaces with the given settings.
func measured(t *testing.T, truths []truth, flags ...string) readings {
	t.Helper()
	var workloads []string
	for _, x := range truths {
		if !slices.Contains(workloads, x.workload) {
			workloads = append(workloads, x.workload)
		}
	}
	file := filepath.Join(t.TempDir(), "truth.jsonl")
	args := append([]string{"run", "--profiles", "raw", "--no-twin", "--paths", "host-to-host/cross-node", "-o", file,
		"--workloads", strings.Join(workloads, ","), "--repetitions", "5"}, flags...)
	args = append([]string{"-n", "-19", cnibench(t)}, args...) // where it may: others' work is no part of the truth
	if s := execute(t, "nice", args...); s.code != exitFine {
		t.Fatalf("exit code %d: %s", s.code, s.stderr)
	}
	c, err := result.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	values := map[truth][]float64{}
	busy, err := strconv.ParseFloat(c.Header.Facts[facts.IdleBusy], 64)
	if err != nil {
		t.Fatalf("how busy the machine is: %v", err)
	}
	for _, r := range c.Records {
		for _, x := range truths {
			w, err := plan.ParseWorkload(x.workload)
			if err != nil {
				t.Fatal(err)
			}
			if v, ok := r.Metrics[x.metric]; ok && r.Workload == w {
				values[x] = append(values[x], v)
			}
		}
	}
	return readings{values, busy}
}

// holdTo compares values with their truth. A machine with other things to do makes rates lower and times longer, never
// the other way round: so one repetition of all must come near to the truth, the one that was least disturbed, while the
// median must not be better than it. On a busy machine nothing can be held to a truth.
func holdTo(t *testing.T, all readings, truths []truth) {
	t.Helper()
	values := all.of
	var wrong []string
	for _, x := range truths {
		if len(values[x]) == 0 {
			t.Errorf("%s: there is no %s", x.workload, x.metric)
			continue
		}
		near := values[x][0]
		for _, v := range values[x] {
			if math.Abs(v-x.want) < math.Abs(near-x.want) {
				near = v
			}
		}
		median := stat.Summarize(values[x], 0.95).Median
		better := median/x.want - 1
		if m, _ := metric.Lookup(x.metric); m.Better != metric.Higher {
			better = 1 - median/x.want
		}
		t.Logf("%-30s %-20s %.5g, nearest %.5g (%+.2f%%), median %.5g", x.workload, x.metric, x.want, near, 100*(near/x.want-1), median)
		if off := near/x.want - 1; math.Abs(off) > within || better > within {
			wrong = append(wrong, fmt.Sprintf("%s: %s is known to be %g; got %v", x.workload, x.metric, x.want, values[x]))
		}
	}
	switch {
	case len(wrong) > 0 && all.busy > quiet:
		t.Skipf("lacks a quiet machine: %.0f%% of the path's CPUs were busy before the run; %s", 100*all.busy, strings.Join(wrong, "; "))
	case len(wrong) > 0:
		t.Error(strings.Join(wrong, "\n"))
	}
}

// Bytes of a frame of Ethernet around a full TCP segment and around a datagram, as a shaper counts them.
const (
	fullFrame, fullSegment = 1514, 1448
	datagramHeaders        = 14 + 20 + 8
)

// TestTruthLineRate shapes the NICs: what is left for payload is arithmetic.
func TestTruthLineRate(t *testing.T) {
	const line = 100e6
	share := func(payload, frame float64) float64 { return line * payload / frame }
	truths := []truth{
		{"stream", metric.Goodput, share(fullSegment, fullFrame)},
		{"stream(flows=4)", metric.Goodput, share(fullSegment, fullFrame)},
		{"stream(reverse)", metric.Goodput, share(fullSegment, fullFrame)},
		{"stream(udp)", metric.Goodput, share(1400, 1400+datagramHeaders)},
		{"stream(udp,message=512)", metric.PacketRate, share(1, 512+datagramHeaders) / 8},
		{"throughput", metric.Throughput, share(1400, 1400+datagramHeaders)},
	}
	holdTo(t, measured(t, truths, "--line-rate", "100M", "--duration", "500ms", "--warmup", "200ms"), truths)
}

// TestTruthDelay adds 20 ms each way. No exchange can be faster than that, and the fastest are hardly slower: what they
// take besides is the path's own and that of the kernel's timers, tens of microseconds on a machine of one's own and
// hundreds on a virtual one with busy neighbours.
func TestTruthDelay(t *testing.T) {
	const trip = 40e6
	truths := []truth{
		{"ping", "rtt.min", trip},
		{"rr", "rtt.min", trip},
		{"rr(udp)", "rtt.min", trip},
		{"crr", "rtt.min", 2 * trip},
		{"crr", "connect_time.min", trip},
		{"http(threads=1,connections=1)", "response_time.min", trip},
	}
	values := measured(t, truths, "--delay", "20ms", "--duration", "1s")
	for _, x := range truths {
		if v := values.of[x]; len(v) > 0 && slices.Min(v) < x.want {
			t.Errorf("%s: %s is %g, which is sooner than anything can come", x.workload, x.metric, slices.Min(v))
		}
	}
	holdTo(t, values, truths)
}

// TestTruthLoss loses one frame in a hundred, evenly, so that the share is exact but for the one that an edge of the
// window cuts off.
func TestTruthLoss(t *testing.T) {
	lossy := truth{"stream(udp,message=100,rate=8M)", metric.FrameLossRate, 0.01}
	truths := []truth{lossy, {lossy.workload, metric.Loss + ".path", 0.01}, {lossy.workload, metric.PacketRate, 9900}}
	values := measured(t, truths, "--loss", "1%", "--duration", "1500ms")
	for _, v := range values.of[lossy] {
		if math.Abs(v-lossy.want) > within*lossy.want+1e-4 {
			t.Errorf("%.3f%% of the datagrams were lost, 1%% is known to be", 100*v)
		}
	}
	if located := values.of[truths[1]]; !slices.Equal(located, values.of[lossy]) || len(located) == 0 {
		t.Errorf("the wire lost %v, and %v was put down to the path", values.of[lossy], located)
	}
	holdTo(t, values, truths)
}

// TestTruthLossIsLocated offers a shaped NIC more than it takes: what is missing is what its queueing discipline counted,
// in the stream and, above its throughput, in the search.
func TestTruthLossIsLocated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "located.jsonl")
	s := execute(t, cnibench(t), "run", "--profiles", "ptp", "--no-twin", "--paths", "pod-to-pod/cross-node", "-o", file, "--line-rate", "20M",
		"--workloads", "stream(udp,rate=60M),throughput(rate=60M)", "--repetitions", "1", "--duration", "600ms", "--warmup", "200ms")
	if s.code != exitFine {
		t.Fatalf("exit code %d: %s", s.code, s.stderr)
	}
	c, err := result.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, r := range c.Records {
		if r.Profile != "ptp" || r.Type != result.TypeTrial {
			continue
		}
		checked++
		if r.Status != result.OK {
			t.Errorf("%s failed: %+v", r.Workload, r.Error)
			continue
		}
		lost, at := 0.0, r.Metrics[metric.Loss+".qdisc"]
		for _, m := range metric.All() {
			if strings.HasPrefix(m.Name, metric.Loss+".") {
				lost += r.Metrics[m.Name]
			}
		}
		// The edges of the readings are not those of the receiver's window to the packet.
		if t.Logf("%s: %.4g lost, %.4g of it in the discipline", r.Workload, lost, at); lost == 0 || at < 0.9*lost {
			t.Errorf("%s: %v", r.Workload, r.Metrics)
		}
	}
	if checked != 2 {
		t.Errorf("%d trials, want 2", checked)
	}
}
