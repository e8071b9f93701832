package adapter

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/bits"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Limits on what is read from a stranger.
const (
	// MaxInput bounds a file, and what an archive unpacks to, in bytes; some decoders take less.
	MaxInput = 64 << 20
	// MaxReadings bounds the trials of one input, MaxNames the distinct things that are listed.
	MaxReadings = 200_000
	MaxNames    = 200
)

// Reading is one trial as a tool tells it. The zero value of what identifies it means that the tool does not say.
type Reading struct {
	Profile  string
	Path     plan.Path
	Workload plan.Workload
	// Repetition counts from 1; 0 takes the next number of its case.
	Repetition int
	// Started is when it began, Window how long it measured; zero if not said.
	Started time.Time
	Window  time.Duration
	// Metrics are in base units by name of package metric. A failed trial has none.
	Metrics map[string]float64
	// Failure is why the trial failed; nil if it did not.
	Failure *result.Failure
	// Warnings are what a reader of the numbers must know, for example what was assumed.
	Warnings []sample.Warning
	// Work is how many units of work the client did in its whole life, warm-up included; 0 where Metrics say it.
	Work float64
	// Client is the client's series over time, nil if the tool gives none.
	Client *sample.Observation
	// Run identifies the run within all inputs, "" if the tool does not: two readings of one run are copies, or its two sides.
	Run string
	// Conditions are what the tool says of the test and no workload has, as "key=value"; see Condition.
	Conditions []string
	// Sizes bounds the message size of Workload where the tool's digits leave a range: repetitions of one run agree on one
	// size within it. The zero value is for a size that is printed.
	Sizes SizeRange
	// RateAssumed says that the rate of Workload is one that what was sent is near to.
	RateAssumed bool
}

// Unpaced takes back a rate that was assumed: the sender was as fast as it could be.
func (r *Reading) Unpaced() {
	r.RateAssumed = false
	r.Workload = r.Workload.Without("rate")
	r.Warnings = slices.DeleteFunc(r.Warnings, func(w sample.Warning) bool { return w.ID == Assumed && strings.Contains(w.Message, "intended rate") })
}

// SizeRange holds the least and the most bytes of a message; zero says nothing.
type SizeRange struct{ Low, High int }

// Ids of warnings that decoders raise.
const (
	// Assumed marks a setting that the tool's output does not say.
	Assumed = "assumed"
	// Note carries a remark of the source.
	Note = "note"
	// Paced marks a rate that the tool was held to.
	Paced = "paced"
	// Aggregated marks a reading that is a mean of several.
	Aggregated = "aggregated"
	// Corrected marks times that are not of the requests that were sent, but of those that a schedule would have sent.
	Corrected = "corrected-times"
	// Rounded marks numbers that the tool printed with few digits.
	Rounded = "rounded"
	// Conditional marks what a test had that no workload has.
	Conditional = "condition"
)

// Put records a number, unless the trial has failed.
func (r *Reading) Put(name string, v float64) {
	if r.Failure != nil {
		return
	}
	if r.Metrics == nil {
		r.Metrics = map[string]float64{}
	}
	r.Metrics[name] = v
}

// Likely returns the size in the range that a run is likely to have had: a power of two, else the middle in three digits.
func (s SizeRange) Likely() int {
	if power := 1 << bits.Len(uint(s.High)) >> 1; power >= s.Low && s.High > 0 {
		return power
	}
	return ThreeDigits(float64(s.Low+s.High) / 2)
}

// Condition records, as "key=value", what the tool says of the test and no workload has. Readings of one case whose conditions
// differ are not its repetitions.
func (r *Reading) Condition(conditions ...string) {
	for _, c := range conditions {
		AddName(&r.Conditions, c)
	}
	slices.Sort(r.Conditions)
}

// Omitted is the begin of a condition that says what was discarded before the window. It is one where runs of a case differ in it.
const Omitted = "omit="

// Omit records what the tool discarded before the window.
func (b *Batch) Omit(r *Reading, seconds float64) {
	if d := Seconds(seconds); d > 0 {
		b.Warmup = max(b.Warmup, d)
		r.Condition(Omitted + d.String())
	}
}

// Host records the family of the address that the tool sent to, where it is not that of most tests.
func (r *Reading) Host(address string) {
	if strings.Contains(address, ":") && !strings.HasPrefix(address, "::ffff:") {
		r.Condition("family=6")
	}
}

// URL records what of a URL changes what is measured: TLS, and the family of an address.
func (r *Reading) URL(text string) {
	u, err := url.Parse(text)
	if err != nil {
		return
	}
	if u.Scheme == "https" {
		r.Condition("tls=true")
	}
	r.Host(u.Hostname())
}

// Received records the rate at which bytes arrived, in bit/s; without any, the trial has failed.
func (r *Reading) Received(rate float64) {
	if rate == 0 {
		r.Fail("error", "the receiver reported no bytes")
	}
	r.Put(metric.Goodput, rate)
}

// Lost records how many of the datagrams that were sent did not arrive.
func (r *Reading) Lost(lost, sent float64) {
	r.Put(metric.FrameLossRate, lost/sent)
	r.Put(metric.Datagrams, sent)
	r.Put(metric.DatagramsLost, lost)
}

// Retransmitted records how many segments were sent again while so many bytes arrived.
func (r *Reading) Retransmitted(segments, bytes float64) {
	r.Put(metric.RetransmitsPerG, segments/(bytes/1e9))
	r.Put(metric.Retransmits, segments)
}

// Warn adds a warning.
func (r *Reading) Warn(id, format string, args ...any) {
	r.Warnings = append(r.Warnings, sample.Warning{ID: id, Message: fmt.Sprintf(format, args...)})
}

// Fail makes r a failed trial, which has a reason and no metrics.
func (r *Reading) Fail(kind, message string) {
	r.Failure = &result.Failure{Kind: kind, Message: message}
	r.Metrics, r.Client = nil, nil
}

// whole is the least share of its time that a run lasts, and that its rows over time cover.
const whole = 0.9

// EndedEarly makes r a failed trial if it lasted clearly less than it was asked to; 0 is not said.
func (r *Reading) EndedEarly(asked time.Duration) {
	if r.Failure == nil && r.Window > 0 && float64(r.Window) < whole*float64(asked) {
		r.Fail("interrupted", fmt.Sprintf("the run ended after %s of %s", r.Window.Round(10*time.Millisecond), asked.Round(10*time.Millisecond)))
	}
}

// Rows keeps the client's rows over time, if they cover the window.
func (b *Batch) Rows(r *Reading, o *sample.Observation) {
	covered := int64(0)
	for _, i := range o.Intervals {
		if !i.Warmup {
			covered += i.EndNs - i.StartNs
		}
	}
	switch {
	case len(o.Intervals) == 0 || r.Failure != nil:
	case float64(covered) < whole*float64(r.Window):
		b.LeaveOut("rows over time that cover %s of a run of %s", time.Duration(covered).Round(10*time.Millisecond), r.Window.Round(10*time.Millisecond))
	default:
		r.Client = o
	}
}

// Batch is what one input holds.
type Batch struct {
	// Tool is what measured, with its version where it is known: the origin of the result.
	Tool string
	// Title, Environment ("lab", "kubernetes" or "") and Baseline are as in a plan; mostly "".
	Title, Environment, Baseline string
	// Created is when it was measured; zero takes the first reading's start.
	Created time.Time
	// Warmup is what was discarded before each window.
	Warmup   time.Duration
	Facts    facts.Facts
	Readings []Reading
	// LeftOut lists, once each, what was found and is not supported.
	LeftOut []string
}

// AddName adds s to names unless it is empty or there, up to MaxNames.
func AddName(names *[]string, s string) {
	if s != "" && len(*names) < MaxNames && !slices.Contains(*names, s) {
		*names = append(*names, s)
	}
}

// LeaveOut lists something that is not imported, once.
func (b *Batch) LeaveOut(format string, args ...any) {
	AddName(&b.LeftOut, fmt.Sprintf(format, args...))
}

// NoURL lists that the output does not name the URL.
func (b *Batch) NoURL(tool string) {
	b.LeaveOut("whether it was over TLS or IPv6, since %s does not print the URL", tool)
}

// Fact records a condition, unless it is empty.
func (b *Batch) Fact(name, value string) {
	if value == "" {
		return
	}
	if b.Facts == nil {
		b.Facts = facts.Facts{}
	}
	b.Facts[name] = value
}

// SystemFacts takes apart what uname says: "Linux NODE RELEASE ... MACHINE".
func (b *Batch) SystemFacts(uname string) {
	words := strings.Fields(uname)
	if len(words) < 4 || words[0] != "Linux" {
		return
	}
	b.Fact(facts.Kernel, words[2])
	machine := words[len(words)-1]
	b.Fact(facts.Architecture, cmp.Or(map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[machine], machine))
}

// Check returns an error if b holds no trial, or a trial without a finite number and without a failure.
func (b *Batch) Check() error {
	if len(b.Readings) == 0 && len(b.LeftOut) > 0 {
		return fmt.Errorf("it contains no supported metrics: %s", number.Few(b.LeftOut))
	}
	if len(b.Readings) == 0 {
		return errors.New("it contains no trial")
	}
	for i, r := range b.Readings {
		for name, v := range r.Metrics {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("trial %d: its %s is out of range", i+1, name)
			}
		}
		if r.Failure == nil && len(r.Metrics) == 0 {
			return fmt.Errorf("trial %d: it has no number and no failure", i+1)
		}
	}
	return nil
}

// Cause returns err without the name of the file, which the caller puts in front of it.
func Cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// MergeFacts adds the facts of a further input; what differs between inputs is listed.
func MergeFacts(into, more facts.Facts) {
	for name, value := range more {
		if have, ok := into[name]; ok && !slices.Contains(strings.Split(have, " | "), value) {
			value = have + " | " + value
		} else if ok {
			value = have
		}
		into[name] = value
	}
}

// NetperfTests are the workloads of netperf's tests by their names on its command line, which other tools use too.
var NetperfTests = map[string]plan.Spec{
	"TCP_STREAM": plan.Stream{}, "UDP_STREAM": plan.Stream{Protocol: plan.UDP}, "TCP_RR": plan.RR{}, "UDP_RR": plan.RR{Protocol: plan.UDP},
	"TCP_CRR": plan.CRR{Close: "fin"},
}

// Sizes are what an output says of one of NetperfTests; 0 is not said.
type Sizes struct{ Flows, Message, Request, Response int }

// Sized returns one of NetperfTests with the sizes that its kind has.
func Sized(s plan.Spec, n Sizes) plan.Workload {
	switch w := s.(type) {
	case plan.Stream:
		w.Flows, w.MessageSize = n.Flows, n.Message
		s = w
	case plan.RR:
		w.Flows, w.RequestSize, w.ResponseSize = n.Flows, n.Request, n.Response
		s = w
	case plan.CRR:
		w.Flows, w.RequestSize, w.ResponseSize = n.Flows, n.Request, n.Response
		s = w
	}
	return plan.Workload{Spec: s}
}
