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

// Limits on input that is not trusted.
const (
	// MaxInput bounds a file, and the unpacked size of an archive, in bytes; some decoders have a lower limit.
	MaxInput = 64 << 20
	// MaxReadings bounds the trials of one input, MaxNames the distinct names in a list.
	MaxReadings = 200_000
	MaxNames    = 200
)

// Reading is one trial in the output of a tool. A zero field that identifies the trial means that the tool does not
// report it.
type Reading struct {
	Profile  string
	Path     plan.Path
	Workload plan.Workload
	// Repetition counts from 1; 0 uses the next number of its case.
	Repetition int
	// Started is when it began, Window how long it measured; zero if unknown.
	Started time.Time
	Window  time.Duration
	// Metrics are in base units, by the names of package metric. A failed trial has none.
	Metrics map[string]float64
	// Failure is why the trial failed; nil if it succeeded.
	Failure *result.Failure
	// Warnings are for readers of the numbers, for example about assumptions.
	Warnings []sample.Warning
	// Work is the client's number of units of work, warm-up included; 0 if it follows from Metrics.
	Work float64
	// Client is the client's time series, nil if the tool reports none.
	Client *sample.Observation
	// Run is the tool's id of the run, unique among all inputs; "" if it prints none. Two readings with the same Run are
	// copies, or the outputs of client and server.
	Run string
	// Conditions are the properties of the test in the tool's output that workloads do not have, as "key=value"; see
	// Condition.
	Conditions []string
	// Sizes is the range of possible message sizes if the tool printed too few digits: repetitions are given the same size
	// in that range. The zero value means that the size was printed.
	Sizes SizeRange
	// RateAssumed means that the rate of Workload was not printed. It was derived from the rate that was sent.
	RateAssumed bool
}

// Unpaced records that the sender was as fast as possible. It removes the rate that was assumed for the workload, and the
// warning about it.
func (r *Reading) Unpaced() {
	r.RateAssumed = false
	r.Workload = r.Workload.Without("rate")
	r.Warnings = slices.DeleteFunc(r.Warnings, func(w sample.Warning) bool { return w.ID == Assumed && strings.Contains(w.Message, "intended rate") })
}

// SizeRange has the least and the most bytes of a message; zero means unknown.
type SizeRange struct{ Low, High int }

// Ids of warnings of decoders.
const (
	// Assumed marks a setting that is missing from the tool's output.
	Assumed = "assumed"
	// Note carries a remark of the source.
	Note = "note"
	// Paced marks a rate limit of the tool.
	Paced = "paced"
	// Aggregated marks a reading that is a mean of several measurements.
	Aggregated = "aggregated"
	// Corrected marks times that the tool corrected for requests sent late: as if each request had been sent on schedule.
	Corrected = "corrected-times"
	// Rounded marks numbers that the tool printed with few digits.
	Rounded = "rounded"
	// Conditional marks a property of the test that workloads do not have.
	Conditional = "condition"
)

// Put records the value of a metric in its base unit, unless the trial has failed.
func (r *Reading) Put(name string, v float64) {
	if r.Failure != nil {
		return
	}
	if r.Metrics == nil {
		r.Metrics = map[string]float64{}
	}
	r.Metrics[name] = v
}

// Likely returns the largest power of two in the range. If there is none, it returns the middle of the range, rounded to
// three digits.
func (s SizeRange) Likely() int {
	if power := 1 << bits.Len(uint(s.High)) >> 1; power >= s.Low && s.High > 0 {
		return power
	}
	return ThreeDigits(float64(s.Low+s.High) / 2)
}

// Condition records properties of the test that workloads do not have, each as "key=value". Readings of one case with
// different conditions are not repetitions.
func (r *Reading) Condition(conditions ...string) {
	for _, c := range conditions {
		AddName(&r.Conditions, c)
	}
	slices.Sort(r.Conditions)
}

// Omitted is the prefix of the condition that says how much time was discarded before the window. Package external removes
// the condition unless runs of one case differ in it.
const Omitted = "omit="

// Omit records how many seconds the tool discarded before the window. It adds a condition to r, and raises the batch's
// warm-up to that time if the warm-up is shorter.
func (b *Batch) Omit(r *Reading, seconds float64) {
	if d := Seconds(seconds); d > 0 {
		b.Warmup = max(b.Warmup, d)
		r.Condition(Omitted + d.String())
	}
}

// Host records the condition "family=6" if address, to which the tool sent, is an IPv6 address.
func (r *Reading) Host(address string) {
	if strings.Contains(address, ":") && !strings.HasPrefix(address, "::ffff:") {
		r.Condition("family=6")
	}
}

// URL records the parts of a URL that change what is measured: TLS, and the family of an address.
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

// Received records the rate at which bytes arrived, in bit/s. If rate is 0, it turns r into a failed trial.
func (r *Reading) Received(rate float64) {
	if rate == 0 {
		r.Fail("error", "the receiver reported no bytes")
	}
	r.Put(metric.Goodput, rate)
}

// Lost records how many of the sent datagrams did not arrive.
func (r *Reading) Lost(lost, sent float64) {
	r.Put(metric.FrameLossRate, lost/sent)
	r.Put(metric.Datagrams, sent)
	r.Put(metric.DatagramsLost, lost)
}

// Retransmitted records how many segments were retransmitted while this number of bytes arrived.
func (r *Reading) Retransmitted(segments, bytes float64) {
	r.Put(metric.RetransmitsPerG, segments/(bytes/1e9))
	r.Put(metric.Retransmits, segments)
}

// Warn adds a warning with one of the ids above.
func (r *Reading) Warn(id, format string, args ...any) {
	r.Warnings = append(r.Warnings, sample.Warning{ID: id, Message: fmt.Sprintf(format, args...)})
}

// Fail turns r into a failed trial, which has a reason and no metrics.
func (r *Reading) Fail(kind, message string) {
	r.Failure = &result.Failure{Kind: kind, Message: message}
	r.Metrics, r.Client = nil, nil
}

// whole is the least share of the intended time that a run must last, and of the window that a time series must cover.
const whole = 0.9

// EndedEarly turns r into a failed trial if its window is clearly shorter than asked. It does nothing if one of them is
// unknown (0).
func (r *Reading) EndedEarly(asked time.Duration) {
	if r.Failure == nil && r.Window > 0 && float64(r.Window) < whole*float64(asked) {
		r.Fail("interrupted", fmt.Sprintf("the run ended after %s of %s", r.Window.Round(10*time.Millisecond), asked.Round(10*time.Millisecond)))
	}
}

// Rows stores the client's time series o in r if o covers at least the share whole of the window. Otherwise it lists o as
// left out. It does nothing if o is empty or the trial has failed.
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

// Batch is the content of one input.
type Batch struct {
	// Tool is the tool that measured, with its version if known: the origin of the result.
	Tool string
	// Title, Environment ("lab", "kubernetes" or "") and Baseline mean the same as in a plan. Most inputs leave them
	// empty.
	Title, Environment, Baseline string
	// Created is when it was measured. If it is zero, the earliest start of a reading is used.
	Created time.Time
	// Warmup is the time discarded before each window.
	Warmup   time.Duration
	Facts    facts.Facts
	Readings []Reading
	// LeftOut lists what was found and is not supported, each once.
	LeftOut []string
}

// AddName adds s to names unless s is empty or already present, or names has MaxNames items.
func AddName(names *[]string, s string) {
	if s != "" && len(*names) < MaxNames && !slices.Contains(*names, s) {
		*names = append(*names, s)
	}
}

// Join adds the readings of more, and what else more says. Tools and titles are listed once each. Of two warm-ups it keeps the
// longer, of two times the earlier.
func (b *Batch) Join(more Batch) {
	b.Tool, b.Title = addText(b.Tool, more.Tool, ", "), addText(b.Title, more.Title, "; ")
	b.Environment, b.Baseline = cmp.Or(b.Environment, more.Environment), cmp.Or(b.Baseline, more.Baseline)
	if b.Created.IsZero() || !more.Created.IsZero() && more.Created.Before(b.Created) {
		b.Created = more.Created
	}
	b.Warmup = max(b.Warmup, more.Warmup)
	if b.Facts == nil {
		b.Facts = facts.Facts{}
	}
	MergeFacts(b.Facts, more.Facts)
	b.Readings = append(b.Readings, more.Readings...)
	for _, s := range more.LeftOut {
		AddName(&b.LeftOut, s)
	}
}

// addText adds to a list of texts those of another that it lacks. An empty list is "".
func addText(list, more, separator string) string {
	var all []string
	for _, s := range strings.Split(list+separator+more, separator) {
		AddName(&all, s)
	}
	return strings.Join(all, separator)
}

// LeaveOut lists something that is not imported, once.
func (b *Batch) LeaveOut(format string, args ...any) {
	AddName(&b.LeftOut, fmt.Sprintf(format, args...))
}

// NoURL lists as left out what only the URL would show, for a tool that does not print the URL.
func (b *Batch) NoURL(tool string) {
	b.LeaveOut("whether it was over TLS or IPv6, since %s does not print the URL", tool)
}

// Fact records a fact of the input, unless its value is empty.
func (b *Batch) Fact(name, value string) {
	if value == "" {
		return
	}
	if b.Facts == nil {
		b.Facts = facts.Facts{}
	}
	b.Facts[name] = value
}

// SystemFacts records kernel and architecture from the output of uname: "Linux NODE RELEASE ... MACHINE". It ignores other
// text.
func (b *Batch) SystemFacts(uname string) {
	words := strings.Fields(uname)
	if len(words) < 4 || words[0] != "Linux" {
		return
	}
	b.Fact(facts.Kernel, words[2])
	machine := words[len(words)-1]
	b.Fact(facts.Architecture, cmp.Or(map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[machine], machine))
}

// Check returns an error if b has no trial, if a number is not finite, or if a trial has neither a number nor a failure.
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

// Cause returns err without the name of the file, which the caller adds.
func Cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// MergeFacts adds the facts of more to into, which must not be nil. If the values of a fact differ, it keeps all, separated
// by " | ".
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

// NetperfTests maps the names of netperf's tests on its command line, which other tools also use, to workloads.
var NetperfTests = map[string]plan.Spec{
	"TCP_STREAM": plan.Stream{}, "UDP_STREAM": plan.Stream{Protocol: plan.UDP}, "TCP_RR": plan.RR{}, "UDP_RR": plan.RR{Protocol: plan.UDP},
	"TCP_CRR": plan.CRR{Close: "fin"},
}

// Sizes are the number of flows and the sizes in bytes that the output of one of NetperfTests shows; 0 means unknown.
type Sizes struct{ Flows, Message, Request, Response int }

// Sized returns the workload of s, one of NetperfTests, with those sizes of n that its kind has.
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
