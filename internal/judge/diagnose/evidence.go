// Package diagnose answers "is it the CNI?" from what was measured on a few paths in the same minutes.
//
//	records, accounts, packet sizes ──► Evidence ──► rules ──► Statements ──► Answer
//
// It is pure. Each rule (page.md describes them) reads the evidence and states a fault or the absence of a fault, with
// its measurement. The first rule that finds a fault gives the answer, because the rules are in the order in which
// causes explain each other: a full table explains a loss, a loss explains a slow path. The answer lists what could not
// be judged, which does not count as fine.
//
// No rule compares a time or a rate only with a constant if the hosts' own path was measured at the same time.
package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// The paths that are measured.
var (
	HostPath    = plan.Path{From: plan.Host, To: plan.Host, Locality: plan.CrossNode}
	PodPath     = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	ServicePath = plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}
)

// Paths are all paths, the cheapest first.
var Paths = []plan.Path{HostPath, PodPath, ServicePath}

// Evidence is everything that was measured. The zero value has nothing.
type Evidence struct {
	// Encapsulation is the dataplane's, "" if unknown.
	Encapsulation string
	// Paths has the observations of the trials on each path.
	Paths map[plan.Path]*Trials
	// Places are the ends of the paths, their nodes and the hosts between them.
	Places []Place
	// Sizes are the packet sizes that pass.
	Sizes []Size
	// Backends has the results of connections to a Service and to each of its backends. (optional)
	Backends []Backend
	// Named is the Service or pod that the user named. (optional)
	Named *Named
	// Refused has the reasons why paths were not measured, by path.
	Refused map[string]string
	// Missing lists what could not be measured, with the reason.
	Missing []string
	// barred are the workloads that a prober may not send on some path.
	barred map[string]bool
	// blind makes the rules judge times and rates even if the prober was short of CPU time.
	blind bool
}

// Place is a pod or a node, with the changes of its counters during the measurement.
type Place struct {
	Name string
	// Pod means that it is a pod, not a node.
	Pod bool
	netstate.Account
}

// Size is the largest packet that passes from one end of a path to the other and back, and the results of messages with
// known content. Failed is the reason if it is unknown.
type Size struct {
	Path     plan.Path
	From, To string
	netstate.PathMTU
	Content netstate.Content
	Failed  string
}

// Backend is one address behind a Service; Name is "" for the Service itself.
type Backend struct {
	Name string
	netstate.Dialled
}

// Trials are the observations of the trials on one path.
type Trials struct {
	// Values has the metrics by workload and name, such as "rr rtt.p50": one value for each successful trial.
	Values map[string][]float64
	// Succeeded and Failed count trials by workload. Why has the last failure of each.
	Succeeded, Failed map[string]int
	Why               map[string]string
	// Counters has the changes of both ends' SNMP counters, summed over all trials except TCP streams. Counters of wrong
	// checksums include the streams.
	Counters map[string]int64
	// Prober has the CPU time that the ends had and lacked.
	Prober Prober
	// Datagrams and Echoes count what was sent, and what was lost.
	Datagrams, Echoes Lossy
	// Names counts resolutions by workload, and those that waited for a timeout. Stalled is the largest number of such waits
	// in one trial.
	Names   map[string]Lossy
	Stalled map[string]uint64
}

// Lossy counts what was sent, and what was lost on the path.
type Lossy struct{ Sent, Lost uint64 }

func (l Lossy) share() float64 { return float64(l.Lost) / float64(max(l.Sent, 1)) }

// Prober sums the CPU time that the ends of the trials had and lacked.
type Prober struct {
	// Elapsed sums the windows of the ends. Stopped is the time that a CPU limit stopped them, summed over CPUs.
	Elapsed, Stopped time.Duration
	// Steal is the time that a hypervisor took from the path's CPUs. Whole is the total time of these CPUs.
	Steal, Whole time.Duration
	// Foreign is the time that other tasks took of the load's CPUs, Own the total time of these CPUs.
	Foreign, Own time.Duration
	// Held counts ends of trials that were ready to send or answer and had no CPU for much of the time. Paced counts
	// the ends considered: only of trials with pauses, since ends that never rest wait for each other.
	Held, Paced int
	// Disturbed counts the trials, out of Of, during which other work used the path's CPUs. Says is the last warning about it.
	Disturbed, Of int
	Says          string
}

// kindOf returns the name of a trial's workload: "udp" for a UDP stream, resolver for the cluster's resolver, "stream
// reverse" if the server sends; otherwise the plan's name.
func kindOf(w plan.Workload) string {
	is := w.Normalize().Traits()
	name, _, _ := strings.Cut(w.String(), "(")
	if name == "stream" && is.Protocol == plan.UDP {
		return "udp"
	}
	switch {
	case is.Names.Elsewhere():
		return resolver
	case is.Reverse:
		return name + " reverse"
	}
	return name
}

// Add adds a trial and ignores other records. Echoes that the prober had no right to send are listed in Missing. The
// error is always nil.
func (e *Evidence) Add(r *result.Record) error {
	if r.Type != result.TypeTrial {
		return nil
	}
	if e.Paths == nil {
		e.Paths = map[plan.Path]*Trials{}
	}
	t := e.Paths[r.Path]
	if t == nil {
		t = &Trials{Values: map[string][]float64{}, Succeeded: map[string]int{}, Failed: map[string]int{}, Why: map[string]string{}, Counters: map[string]int64{}, Names: map[string]Lossy{}, Stalled: map[string]uint64{}}
		e.Paths[r.Path] = t
	}
	kind := kindOf(r.Workload)
	if lacksEchoRight(kind, r) {
		if e.barred == nil {
			e.barred = map[string]bool{}
		}
		e.barred[kind] = true
		what := fmt.Sprintf("echoes on %s: the prober has no right to send them", r.Path)
		if !slices.Contains(e.Missing, what) {
			e.Missing = append(e.Missing, what)
		}
		return nil
	}
	t.add(kind, r)
	return nil
}

// lacksEchoRight reports whether the prober had no right to open a socket for echoes (net.ipv4.ping_group_range). The
// path is then not at fault.
func lacksEchoRight(kind string, r *result.Record) bool {
	return kind == "ping" && r.Status != result.OK && r.Error != nil && strings.Contains(r.Error.Message, "socket icmp: ")
}

func (t *Trials) add(kind string, r *result.Record) {
	paced := r.Workload.Traits().Rate > 0 && slices.Contains([]string{"crr", "dns", resolver}, kind)
	for _, o := range []*sample.Observation{r.Client, r.Server} {
		t.Prober.addObservation(o, paced)
		if o != nil && o.Host != nil {
			for name, n := range o.Host.SNMP {
				if !strings.HasPrefix(kind, "stream") || isChecksumCounter(name) {
					t.Counters[name] += n
				}
			}
		}
	}
	t.Prober.Of++
	for _, w := range r.Warnings {
		if w.ID == outcome.OtherLoad {
			t.Prober.Disturbed++
			t.Prober.Says = w.Message
		}
	}
	if r.Status != result.OK {
		t.Failed[kind]++
		if r.Error != nil {
			t.Why[kind] = r.Error.Kind + ": " + r.Error.Message
		}
		return
	}
	t.Succeeded[kind]++
	for name, v := range r.Metrics {
		t.Values[kind+" "+name] = append(t.Values[kind+" "+name], v)
	}
	switch c := r.Client; {
	case kind == "udp" && r.Server != nil && r.Server.Datagrams != nil:
		d := r.Server.Datagrams
		// Datagrams that the receiver's buffer had no room for were delivered by the path.
		own := uint64(r.Metrics[metric.Loss+".socket_buffer"]*float64(d.Expected) + 0.5)
		t.Datagrams.Sent += d.Expected
		t.Datagrams.Lost += d.Lost - min(own, d.Lost)
	case c != nil && c.Names != nil:
		l := t.Names[kind]
		l.Sent += c.Operations
		for _, failed := range c.Errors {
			l.Sent += failed
		}
		l.Lost += c.Names.Waited
		t.Names[kind], t.Stalled[kind] = l, max(t.Stalled[kind], c.Names.Waited)
	case kind == "ping" && c != nil:
		lost := c.Errors["timeout"]
		t.Echoes.Sent += c.Operations + lost
		t.Echoes.Lost += lost
	}
}

func (p *Prober) addObservation(o *sample.Observation, paced bool) {
	if o != nil && paced {
		p.Paced++
		if float64(o.CPU.WaitedNs) > heldMuch*float64(o.ElapsedNs) {
			p.Held++
		}
	}
	if o == nil || o.Host == nil {
		return
	}
	p.Elapsed += time.Duration(o.ElapsedNs)
	p.Stopped += time.Duration(o.Host.ThrottledNs)
	p.Own += time.Duration(o.Host.SpanNs * int64(len(o.LoadCPUs)))
	for _, task := range o.Host.Tasks {
		if slices.Contains(o.LoadCPUs, task.CPU) && !task.OfPath() {
			p.Foreign += time.Duration(task.Ns)
		}
	}
	for _, modes := range o.Host.CPUs {
		for mode, ns := range modes {
			p.Whole += time.Duration(ns)
			if mode == sample.Steal {
				p.Steal += time.Duration(ns)
			}
		}
	}
}

// median returns the median of a metric under a workload, false if no trial has it.
func (t *Trials) median(kind, name string) (float64, bool) {
	if t == nil || len(t.Values[kind+" "+name]) == 0 {
		return 0, false
	}
	return stat.Median(t.Values[kind+" "+name]), true
}

// least returns the smallest value of a metric in the trials of a workload, false if no trial has it.
func (t *Trials) least(kind, name string) (float64, bool) {
	if _, ok := t.median(kind, name); !ok {
		return 0, false
	}
	return slices.Min(t.Values[kind+" "+name]), true
}

// relativeSpread returns the largest distance of a value from the median, as a share of the median: how much a number
// varies on this machine.
func (t *Trials) relativeSpread(kind, name string) float64 {
	mid, ok := t.median(kind, name)
	if !ok || mid == 0 {
		return 0
	}
	widest := 0.0
	for _, v := range t.Values[kind+" "+name] {
		widest = max(widest, max(v-mid, mid-v)/mid)
	}
	return widest
}

// triedKinds returns the workloads that were tried, sorted by name.
func (t *Trials) triedKinds() []string {
	all := maps.Clone(t.Succeeded)
	maps.Copy(all, t.Failed)
	return slices.Sorted(maps.Keys(all))
}

// deadAndAlive returns the workloads without a successful trial, and those with one.
func (t *Trials) deadAndAlive() (dead, alive []string) {
	if t == nil {
		return nil, nil
	}
	for _, k := range t.triedKinds() {
		if t.Succeeded[k] == 0 && t.Failed[k] > 0 {
			dead = append(dead, k)
		} else {
			alive = append(alive, k)
		}
	}
	return dead, alive
}

// proberSum returns the sum of Prober over all paths.
func (e *Evidence) proberSum() Prober {
	var sum Prober
	for _, t := range e.Paths {
		p := t.Prober
		sum.Elapsed += p.Elapsed
		sum.Stopped += p.Stopped
		sum.Steal += p.Steal
		sum.Whole += p.Whole
		sum.Foreign += p.Foreign
		sum.Own += p.Own
		sum.Held += p.Held
		sum.Paced += p.Paced
		sum.Disturbed += p.Disturbed
		sum.Of += p.Of
		if p.Says != "" {
			sum.Says = p.Says
		}
	}
	return sum
}

// sumCounters sums the increases of the counters that want selects. It also returns these counters, largest increase first.
func (e *Evidence) sumCounters(want func(place Place, counter string) bool) (sum int64, at []At) {
	for _, p := range e.Places {
		for name, n := range p.Counters {
			if n > 0 && want(p, name) {
				sum += n
				at = append(at, At{p, name, n})
			}
		}
	}
	slices.SortFunc(at, func(a, b At) int {
		return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Place.Name+a.Counter, b.Place.Name+b.Counter))
	})
	return sum, at
}

// At is a counter of a place that grew by N during the measurement.
type At struct {
	Place   Place
	Counter string
	N       int64
}

// mainNumbers returns the main numbers of each path for the reader.
func (e *Evidence) mainNumbers() (all []Number) {
	for _, path := range Paths {
		t := e.Paths[path]
		if t == nil {
			continue
		}
		for _, m := range []struct{ kind, name, title, unit string }{
			{"ping", "rtt.p50", "echo, median", "ns"}, {"rr", "rtt.p50", "request, median", "ns"}, {"rr", "rtt.p99", "request, 99th percentile", "ns"},
			{"crr", "connect_time.p50", "connect, median", "ns"}, {"stream", "goodput", "stream", "bit/s"}, {"stream reverse", "goodput", "stream back", "bit/s"},
			{"udp", "frame_loss_rate", "datagrams lost", "1"}, {"dns", "resolution_time.p50", "name, median", "ns"},
			{resolver, "resolution_time.p50", "name by the cluster's resolver, median", "ns"}, {resolver, "resolution_time.p90", "the same, 90th percentile", "ns"},
		} {
			if v, ok := t.median(m.kind, m.name); ok {
				all = append(all, Number{path, m.title, m.unit, v, t.relativeSpread(m.kind, m.name), len(t.Values[m.kind+" "+m.name])})
			}
		}
	}
	return all
}
