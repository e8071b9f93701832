package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// errBusy says that the machine has other work.
var errBusy = errors.New("machine is too busy: rates and times would be those of a smaller machine")

// truths measures links of known rate, delay and loss, and judges whether the medians come near to them. Every repetition
// counts; none is chosen. A machine that is busy before a run is refused.
type truths struct{ repetitions int }

func (c *truths) flags(f *flag.FlagSet) {
	f.IntVar(&c.repetitions, "repetitions", 9, "repetitions of each trial, all of which count")
}

// measure measures every link and judges it.
func (c *truths) measure(ctx context.Context, in setting) (string, error) {
	var all []verdict
	for _, l := range links() {
		content, err := l.measure(ctx, in, c.repetitions)
		if err != nil {
			return "", err
		}
		share, err := busy(content)
		if err != nil {
			return "", err
		}
		if share > quiet {
			return "", fmt.Errorf("%s: %.0f %% of the path's CPUs were busy before the run: %w", l.name, 100*share, errBusy)
		}
		all = append(all, judge(l, content)...)
	}
	var wrong []error
	for _, v := range all {
		if !v.holds() {
			wrong = append(wrong, fmt.Errorf("%s, %s, %s: median %g, known %g", v.link, v.truth.workload, v.truth.metric, v.median, v.truth.want))
		}
	}
	return render(all), errors.Join(wrong...)
}

// measure runs every workload of a link between two empty namespaces.
func (l link) measure(ctx context.Context, in setting, repetitions int) (result.Contents, error) {
	var workloads []string
	for _, x := range l.truths {
		if !slices.Contains(workloads, x.workload) {
			workloads = append(workloads, x.workload)
		}
	}
	file, err := in.results(l.name, func(file string) error {
		args := append([]string{"run", "--profiles", "raw", "--no-twin", "--paths", "host-to-host/cross-node", "--workloads", strings.Join(workloads, ","),
			"--repetitions", strconv.Itoa(repetitions), "--format", "none", "-o", file}, l.flags...)
		_, err := output(ctx, in.program, args...)
		return err
	})
	if err != nil {
		return result.Contents{}, err
	}
	return result.Load(file)
}

// tolerance is the largest accepted relative distance of a median from its truth.
const tolerance = 0.02

// quiet is the largest accepted busy share of the path's CPUs before a run.
const quiet = 0.1

// truth is a number that is known before it is measured.
type truth struct {
	workload, metric string
	want             float64
}

// link is a wire of known properties, with what has to be seen on it.
type link struct {
	name   string
	flags  []string
	truths []truth
}

// Bytes of a frame of Ethernet around a full TCP segment and around a datagram, as a shaper counts them.
const (
	fullFrame, fullSegment = 1514, 1448
	datagramHeaders        = 14 + 20 + 8
	datagram               = 1400
)

// shaped returns the truths of a line rate: what is left for payload is arithmetic.
func shaped(line float64, name string) link {
	share := func(payload, frame float64) float64 { return line * payload / frame }
	return link{name, []string{"--nic", "wire", "--line-rate", name, "--duration", "1s", "--warmup", "300ms"}, []truth{
		{"stream", metric.Goodput, share(fullSegment, fullFrame)},
		{"stream(flows=4)", metric.Goodput, share(fullSegment, fullFrame)},
		{"stream(reverse)", metric.Goodput, share(fullSegment, fullFrame)},
		{"stream(udp)", metric.Goodput, share(datagram, datagram+datagramHeaders)},
		{"throughput", metric.Throughput, share(datagram, datagram+datagramHeaders)},
	}}
}

// delayed returns the truths of a delay of 20 ms on each host's wire: a round trip crosses two of them.
func delayed() link {
	const trip = 40e6
	return link{"20 ms each way", []string{"--delay", "20ms", "--duration", "3s"}, []truth{
		{"ping", "rtt.p50", trip},
		{"rr", "rtt.p50", trip},
		{"rr(udp)", "rtt.p50", trip},
		{"crr", "rtt.p50", 2 * trip},
		{"crr", "connect_time.p50", trip},
		{"http(threads=1,connections=1)", "response_time.p50", trip},
	}}
}

// lossy returns the truths of a wire that loses every hundredth frame.
func lossy() link {
	const workload = "stream(udp,message=100,rate=8M)"
	return link{"1 % loss", []string{"--loss", "1%", "--duration", "1500ms"}, []truth{
		{workload, metric.FrameLossRate, 0.01},
		{workload, metric.Loss + ".path", 0.01},
		{workload, metric.PacketRate, 9900},
	}}
}

// links are what is measured.
func links() []link { return []link{shaped(100e6, "100M"), shaped(1e9, "1G"), delayed(), lossy()} }

// values returns what every repetition of c measured of x.
func values(c result.Contents, x truth) []float64 {
	var all []float64
	for _, r := range c.Records {
		if v, ok := r.Metrics[x.metric]; ok && r.Workload.String() == x.workload {
			all = append(all, v)
		}
	}
	return all
}

// verdict is a truth beside what was measured.
type verdict struct {
	link   string
	truth  truth
	n      int
	median float64
	// off is the relative distance of the median from the truth; low and high are those of all repetitions.
	off, low, high float64
}

// holds returns whether the median is near enough.
func (v verdict) holds() bool { return v.n > 0 && math.Abs(v.off) <= tolerance }

// judge compares the medians of a run over a link with the link's truths.
func judge(l link, c result.Contents) []verdict {
	var all []verdict
	for _, x := range l.truths {
		v := verdict{link: l.name, truth: x}
		if xs := values(c, x); len(xs) > 0 {
			s := stat.Summarize(xs, 0.95)
			v.n, v.median, v.off = len(xs), s.Median, s.Median/x.want-1
			v.low, v.high = math.Inf(1), math.Inf(-1)
			for _, value := range xs {
				v.low, v.high = min(v.low, value/x.want-1), max(v.high, value/x.want-1)
			}
		}
		all = append(all, v)
	}
	return all
}

// busy returns the busy share of the path's CPUs before the run.
func busy(c result.Contents) (float64, error) {
	share, err := strconv.ParseFloat(c.Header.Facts[facts.IdleBusy], 64)
	if err != nil {
		return 0, fmt.Errorf("fact %s: %w", facts.IdleBusy, err)
	}
	return share, nil
}

// render writes the table.
func render(all []verdict) string {
	var b strings.Builder
	b.WriteString("| link | workload | metric | known | median | all repetitions | n | within 2 % |\n|---|---|---|---|---|---|---|---|\n")
	for _, v := range all {
		unit := ""
		if m, ok := metric.Lookup(v.truth.metric); ok {
			unit = m.Unit
		}
		show := func(x float64) string {
			scale := number.Common(unit, x)
			return scale.Format(x) + " " + scale.Unit
		}
		median, spread, state := "absent", "", "no"
		if v.n > 0 {
			median = fmt.Sprintf("%s (%+.2f %%)", show(v.median), 100*v.off)
			spread = fmt.Sprintf("%+.2f to %+.2f %%", 100*v.low, 100*v.high)
		}
		if v.holds() {
			state = "yes"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s | %d | %s |\n", v.link, v.truth.workload, v.truth.metric, show(v.truth.want), median, spread, v.n, state)
	}
	return b.String()
}
