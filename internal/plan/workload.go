package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/plan/job"
	"github.com/cnibench/cnibench/internal/plan/names"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Workload is what is sent over a path, and the program that sends it. Normalized workloads with the same meaning are
// equal values.
type Workload struct {
	// Spec is what one kind of workload sends; nil means that the workload is missing.
	Spec Spec
	// Tool is the program that sends the workload, one of ToolNames; "" is our own engine.
	Tool string
	// Window is the measurement window of the workload's trials; 0 means the plan's.
	Window time.Duration
}

// Spec is what one kind of workload sends: Stream, RR, CRR, Ping, HTTP, Throughput, TTFR, jobSpec, dnsSpec or quietSpec,
// which sends nothing. Each is a comparable value with its defaults, its bounds and its options.
type Spec interface {
	// Traits returns the properties that every kind has. The spec must be normalized.
	Traits() Traits
	// kindEntry returns the entry of the kind in the registry.
	kindEntry() *kind
	// normalize returns the spec with its defaults filled in, and without settings that others make meaningless.
	normalize() Spec
	// addFaults adds faults for contradictions in a spec that is not normalized.
	addFaults(f *faultList)
}

// Kind is the name of a kind of workload.
type Kind string

// kind is the registry's entry of one kind of workload.
type kind struct {
	name Kind
	// about is a brief description of what is sent. title is the name of the kind in a report.
	about, title string
	zero         Spec
	// options are in the order of the text form.
	options []option
	// apart means that the kind is measured neither on raw nor between pairs of nodes.
	apart bool
	// unchanged is why the kind is not measured under churn, "" if it is measured. It is a format with %s for the
	// workload.
	unchanged string
	// window is the default window of its trials, 0 for the plan's.
	window time.Duration
	// wait is an estimate of how long a trial takes in addition to its window.
	wait time.Duration
}

// Optional methods of a Spec.
type (
	// chooser is a Spec that does not support every path. whyBarred returns why a normalized spec does not support p,
	// "" if it does.
	chooser interface{ whyBarred(p Path) string }
	// fitter is a Spec that needs a long window. whyUnfit returns why a window is too short for a normalized spec, ""
	// if it is not.
	fitter interface {
		whyUnfit(window time.Duration) string
	}
)

// kinds has the kinds of workload in report order. Quiet.Register appends the kinds that send nothing.
var kinds = []*kind{&streamKind, &rrKind, &crrKind, &pingKind, &httpKind, &throughputKind, &dnsKind, &ttfrKind, &jobKind}

// Protocol is the transport under a workload.
type Protocol string

// Transports.
const (
	TCP  Protocol = "tcp"
	UDP  Protocol = "udp"
	icmp Protocol = "icmp"
)

// work is a unit of work, the denominator of service demand.
type work = string

// Units of work.
const (
	Transaction work = "transaction"
	Request     work = "request"
	Kilobyte    work = "KB"
	Packet      work = "packet"
	NewPod      work = "pod"
	resolution  work = "resolution"
)

// Traits are the properties of a workload that other packages use, for all kinds. A trait is zero if the kind does not
// have it.
type Traits struct {
	Protocol Protocol
	Work     work
	// Flows is the number of concurrent flows, or of connections.
	Flows int
	// Message is the payload of one send call in bytes, if there is no response. With Mix it is the mean.
	Message int
	Mix     bool
	// Request and Response are the payloads of one exchange in bytes; Request is 0 for http.
	Request, Response int
	// Rate is the intended load, summed over all flows; 0 is as fast as possible. It is in bit/s of payload for
	// datagrams, in requests per second for requests, and in pods per second for new pods.
	Rate float64
	// Load is the intended load as a share of the capacity; 0 if it is not given as a share.
	Load float64
	// Arrival is when requests are scheduled: Constant, Poisson, Saturate, or "" for after each response.
	Arrival string
	// Burst is the number of requests that are scheduled together; 0 means one.
	Burst int
	// Interval is the time between requests that do not follow a rate.
	Interval time.Duration
	// Reconnect is true if each request has its own connection.
	Reconnect bool
	// Spin is true if threads poll instead of sleeping.
	Spin bool
	// Beside is true if a TCP stream uses the path at the same time as the requests.
	Beside bool
	// Reverse is true if the server sends, Bidirectional if both sides send.
	Reverse, Bidirectional bool
	// Congestion is the TCP congestion control of every socket.
	Congestion string
	rolling
	// Job is the exchange of a job's members in a step, the zero Shape for no job.
	Job job.Shape
	// Names is how a name is resolved, the zero Shape for no resolution.
	Names names.Shape
	// Timeout bounds the answer to a new pod, or to a query for a name.
	Timeout time.Duration
	// Searches is true if a trial searches for a rate, with many streams.
	Searches bool
	// Decides are the metrics by which dataplanes are compared. The first that was measured is used. If the load is
	// given, it has no rate, because a rate would only repeat the load.
	Decides []string
}

// rolling describes the servers behind a Service. Backends is their number. If Roll is true, each server in turn is
// removed from the Service, serves on for the time Drain, ends, and is put back.
type rolling struct {
	Backends int
	Roll     bool
	Drain    time.Duration
}

// Limits and defaults that several kinds share.
const (
	maxFlows          = 1024
	MaxRequest        = 1 << 20
	DefaultCongestion = "cubic"
)

// Kinds returns the names of the kinds of workload in report order.
func Kinds() []Kind {
	return each.Of(kinds, func(k *kind) Kind { return k.name })
}

// Kind returns the name of the workload's kind. It returns "" without a Spec.
func (w Workload) Kind() Kind { return w.kindEntry().name }

// kindEntry returns the entry of the workload's kind in the registry. It returns an empty entry without a Spec.
func (w Workload) kindEntry() *kind {
	if w.Spec == nil {
		return &kind{}
	}
	return w.Spec.kindEntry()
}

// Normalize returns the workload with its defaults filled in, and without settings that others make meaningless.
func (w Workload) Normalize() Workload {
	if w.Spec != nil {
		w.Spec = w.Spec.normalize()
		w.Window = cmp.Or(w.Window, w.Spec.kindEntry().window)
	}
	return w
}

// Traits returns the properties of the workload that every kind has.
func (w Workload) Traits() Traits {
	if w.Spec == nil {
		return Traits{}
	}
	return w.Spec.normalize().Traits()
}

// Bulk reports whether the workload is a TCP stream.
func (t Traits) Bulk() bool { return t.Work == Kilobyte }

// Datagrams reports whether the workload is a stream of datagrams at one rate. The path may lose datagrams.
func (t Traits) Datagrams() bool { return t.Work == Packet && !t.Searches }

// Exchanges reports whether each request has a response.
func (t Traits) Exchanges() bool {
	return t.Work == Transaction || t.Work == Request || t.Work == resolution
}

// Standing reports whether requests use existing flows to a process of ours.
func (t Traits) Standing() bool { return t.Work == Transaction && !t.Reconnect && !t.Kernel() }

// Reconnecting reports whether each request has its own connection.
func (t Traits) Reconnecting() bool { return t.Work == Transaction && t.Reconnect }

// NewPods reports whether each request comes from a separate pod, which is created for it.
func (t Traits) NewPods() bool { return t.Work == NewPod }

// Kernel reports whether our own process does not answer the requests, but the server's kernel or a foreign name
// server.
func (t Traits) Kernel() bool { return t.Protocol == icmp || t.Names.Elsewhere() }

// RateMetric returns the name of the metric for the main rate of a trial, "" if there is none.
func (t Traits) RateMetric() string {
	if t.Searches {
		return metric.Throughput
	}
	return measured[t.Work].rate
}

// Times returns the name of the family of metrics for the times of a trial, "" if there is none.
func (t Traits) Times() string { return measured[t.Work].times }

// measured has the metrics that RateMetric and Times return, by the unit of work.
var measured = map[work]struct{ rate, times string }{
	Transaction: {metric.TransactionRate, metric.RTT},
	Request:     {metric.RequestRate, metric.ResponseTime},
	Kilobyte:    {metric.Goodput, ""},
	Packet:      {metric.PacketRate, ""},
	NewPod:      {"", metric.FromDue},
	resolution:  {metric.ResolutionRate, metric.ResolutionTime},
	gigabyte:    {metric.StepRate, metric.StepTime},
}

// nicModel returns the NIC model that the workload sets. It returns "" if it uses that of the run.
func (w Workload) nicModel() NIC {
	s, _ := w.Spec.(Stream)
	return s.NIC
}

// Open reports whether requests follow a schedule that does not wait for responses.
func (t Traits) Open() bool { return t.Arrival == Constant || t.Arrival == Poisson }

// Concurrency returns how many exchanges of a closed loop are under way at the same time. That is Burst (at least 1) on
// each flow or connection, times SaturationDepth if Arrival is Saturate.
func (t Traits) Concurrency() int {
	n := t.Flows * max(t.Burst, 1)
	if t.Arrival == Saturate {
		n *= SaturationDepth
	}
	return n
}

// Barred returns why the workload cannot be measured on a path under any profile, "" if it can.
func (w Workload) Barred(p Path) string {
	t := w.Traits()
	if t.Protocol == icmp && p.ByService() {
		return "a Service translates TCP and UDP ports; its address answers no ICMP echo"
	}
	if t.Backends > 1 && !p.Shared() {
		return "several backends require a Service"
	}
	if w.nicModel() != "" && !p.Crosses() {
		return "no NIC is on a path within a node"
	}
	if s, ok := w.Normalize().Spec.(chooser); ok {
		return s.whyBarred(p)
	}
	if by, _ := ToolNamed(w.Tool); by.Ports > 1 && p.ByService() {
		return fmt.Sprintf("%s connects to %d ports of its server; a Service has one", w.Tool, by.Ports)
	}
	return ""
}

// whyUnfit returns why a window is too short for the workload, "" if it is not. A window of 0 is unknown and never too
// short.
func (w Workload) whyUnfit(window time.Duration) string {
	if s, ok := w.Normalize().Spec.(fitter); ok && window != 0 {
		return s.whyUnfit(window)
	}
	return ""
}

// Servers returns how many servers the workload has on path p. A job has all members but the first, and a path to a
// Service has the backends. Other paths have 1 server.
func (w Workload) Servers(p Path) int {
	if members := w.Traits().Job.Members; members > 0 {
		return members - 1
	}
	if p.Shared() {
		return max(w.Traits().Backends, 1)
	}
	return 1
}

// String returns the workload's name in files, tables and on the command line: the kind, and in parentheses the options
// that differ from the default, for example "stream", "stream(udp,rate=1G)", "rr(request=1024,response=1024)".
// ParseWorkload is the inverse.
func (w Workload) String() string {
	if w.Spec == nil {
		return ""
	}
	w = w.Normalize()
	k := w.Spec.kindEntry()
	d := Workload{Spec: k.zero}
	var parts []string
	for _, o := range k.options {
		text := o.text(w)
		if text == o.text(d.Normalize()) {
			continue
		}
		switch {
		case o.Key == protocolKey:
			_ = o.set(&d, text) // the defaults of the other options depend on this transport
			parts = append(parts, text)
		case o.Key == patternKey || o.Key == serverKey:
			_ = o.set(&d, text) // and of this pattern, or server
			parts = append(parts, o.Word+"="+text)
		case o.bare:
			parts = append(parts, o.Word)
		default:
			parts = append(parts, o.Word+"="+text)
		}
	}
	if len(parts) == 0 {
		return string(k.name)
	}
	return string(k.name) + "(" + strings.Join(parts, ",") + ")"
}

// With returns the workload with the option of this key set from text. It fails if the kind does not have the option, or
// for an invalid text.
func (w Workload) With(key, text string) (Workload, error) {
	o, ok := w.Spec.kindEntry().findOption(key)
	if !ok {
		return w, w.Spec.kindEntry().unknownOptionError(key)
	}
	err := o.set(&w, text)
	return w, err
}

// Without returns the workload with the options of these keys at their defaults.
func (w Workload) Without(keys ...string) Workload {
	k := w.Spec.kindEntry()
	out := Workload{Spec: k.zero}
	for _, o := range k.options {
		if text := o.text(w); text != "" && !slices.Contains(keys, o.Key) {
			_ = o.set(&out, text) // text wrote it
		}
	}
	return out.Normalize()
}

// MarshalText returns String, which is one word in JSON.
func (w Workload) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText decodes what MarshalText encodes. It fails as ParseWorkload does.
func (w *Workload) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		*w = Workload{}
		return nil
	}
	*w, err = ParseWorkload(string(b))
	return err
}

// Validate returns what is wrong with a workload, nil if nothing is wrong. It is for workloads built by code, because
// ParseWorkload and Parse return only valid workloads.
func (w Workload) Validate() error {
	if w.Spec == nil {
		return errors.New("workload is missing")
	}
	n := w.Normalize()
	var errs []error
	for _, o := range w.Spec.kindEntry().options {
		if text := o.text(n); text != "" {
			q := n
			if err := o.set(&q, text); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", o.Word, err))
			}
		}
	}
	return errors.Join(append(errs, w.checkContradictions())...)
}

// findKind returns the entry of the kind with the name s in the registry. It fails for an unknown name, with a similar
// name in the error.
func findKind(s string) (*kind, error) {
	if found, ok := each.First(kinds, func(k *kind) bool { return string(k.name) == s }); ok {
		return found, nil
	}
	names := Texts(Kinds())
	return nil, fmt.Errorf("unknown workload %q%s (there are %s)", s, advice.DidYouMean(s, names), strings.Join(names, ", "))
}

// entry returns the entry of the kind in the registry. It returns an empty entry if the kind is unknown.
func (k Kind) entry() *kind {
	found, err := findKind(string(k))
	if err != nil {
		return &kind{about: "unknown"}
	}
	return found
}

// About returns a brief description of what a kind of workload sends.
func (k Kind) About() string { return k.entry().about }

// Title returns the name of a kind of workload in a report, "" for an unknown kind.
func (k Kind) Title() string { return k.entry().title }

// Default returns the workload of a kind with its defaults, the zero Workload for an unknown kind.
func (k Kind) Default() Workload { return Workload{Spec: k.entry().zero}.Normalize() }

// Options returns the options of a kind of workload in the order of the text form.
func (k Kind) Options() []option { return slices.Clone(k.entry().options) }

// Texts returns the text form of each of all, which may be variants, paths, workloads or kinds.
func Texts[T any](all []T) []string {
	return each.Of(all, func(v T) string { return fmt.Sprint(v) })
}
