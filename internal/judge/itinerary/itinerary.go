// Package itinerary turns what was seen of many transactions into one journey: the steps that they pass, with the time
// of each.
//
// Of aligns the transactions of a trace. Most take the same way, step by step; those that do not are counted and left
// out. What other programs do only makes a transaction slower, so times are those of undisturbed ones: the transactions
// that take at most 15 % longer than the fastest twentieth.
package itinerary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

const (
	// fastest is the share of transactions that defines the machine's full speed. tolerance is how many times slower an
	// undisturbed transaction may be. Both have the values of package compare.
	fastest, tolerance = 0.05, 1.15
	// fewest is how many undisturbed transactions a median needs.
	fewest = 10
)

// Itinerary is the journey of the transactions of one profile. Times are in ns.
type Itinerary struct {
	Profile  plan.Variant  `json:"profile"`
	Path     plan.Path     `json:"path"`
	Workload plan.Workload `json:"workload"`
	Client   string        `json:"client"`
	Server   string        `json:"server"`
	Steps    []Step        `json:"steps"`
	// Total is the time of undisturbed transactions without the cost of the probes. Probed includes that cost. Typical
	// is the median of all transactions of this journey, including that cost.
	Total   Time    `json:"total"`
	Probed  float64 `json:"probed"`
	Typical float64 `json:"typical"`
	// Probes is the cost of the probes.
	Probes Probes `json:"probes"`
	// Sampled is the number of followed transactions, Alike of those that took this journey, Undisturbed of those whose
	// times are used.
	Sampled     int `json:"sampled"`
	Alike       int `json:"alike"`
	Undisturbed int `json:"undisturbed"`
	// Events is the number of events of a transaction. Rate is the number of transactions per second without probes,
	// RateFollowed the number with all probes.
	Events       int      `json:"events"`
	Rate         float64  `json:"rate"`
	RateFollowed float64  `json:"rate_followed"`
	Missing      []string `json:"missing,omitempty"`
}

// Time is a median with its quartiles, in ns.
type Time struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Step is one point of the journey.
type Step struct {
	Host      string            `json:"host"`
	Kind      journey.Kind      `json:"kind"`
	Device    string            `json:"device,omitempty"`
	Driver    string            `json:"driver,omitempty"`
	Point     journey.Point     `json:"point"`
	Hook      string            `json:"hook,omitempty"`
	Direction journey.Direction `json:"way"`
	// Packet is SYN, SYN-ACK, ACK, close or data; "" at a socket.
	Packet string `json:"packet,omitempty"`
	// Depth is how many headers of tunnels are around the packet.
	Depth uint8 `json:"depth,omitempty"`
	// At is the median time since the start. After is the time since the previous step: its median is the difference of
	// both At, so that the medians add up. Both exclude the cost of the probes. Probe is what was subtracted from After.
	At    float64 `json:"at"`
	After Time    `json:"after"`
	Probe float64 `json:"probe"`
	// Activity is what the time since the previous step was used for. Programs are the BPF programs that ran in that
	// time. Functions are the functions registered at the netfilter hook that was passed in that time.
	Activity  Activity `json:"activity,omitempty"`
	Programs  []string `json:"programs,omitempty"`
	Functions []string `json:"functions,omitempty"`
}

// Delivered returns the index of the step at which the server's application has the request. If no application answers,
// it is the last step of the request's data on the server's host. It returns -1 if there is neither.
func (i Itinerary) Delivered() int {
	last := -1
	for n, s := range i.Steps {
		switch {
		case s.Host != i.Server || s.Direction != journey.Request:
		case s.Point == journey.Deliver:
			return n
		case s.Packet == "data":
			last = n
		}
	}
	return last
}

// Where returns the index of the last step that is passed at a time in ns, -1 before the first.
func (i Itinerary) Where(at float64) int {
	later := slices.IndexFunc(i.Steps, func(s Step) bool { return s.At > at })
	if later < 0 {
		later = len(i.Steps)
	}
	return later - 1
}

// Of aligns the transactions of a trace. It fails, with a hint, if events were lost, if no transaction is complete,
// or if too few undisturbed ones took the same way.
func Of(t journey.Trace) (Itinerary, error) {
	i := Itinerary{
		Profile: t.Profile, Path: t.Path, Workload: t.Workload, Client: t.Client, Server: t.Server,
		Missing: t.Missing, Rate: meanRate(t, func(r journey.Round) journey.Window { return r.Plain }),
		RateFollowed: meanRate(t, func(r journey.Round) journey.Window { return r.All }),
	}
	var ways []transaction
	ways, i.Sampled = completeTransactions(t, t.Events)
	if t.Lost > 0 {
		return i, advice.With(fmt.Errorf("%d events were lost: the buffer was full", t.Lost), "follow fewer transactions")
	}
	if len(ways) == 0 {
		return i, advice.With(fmt.Errorf("no transaction was seen from its beginning to its end: %d sampled, %d events", i.Sampled, len(t.Events)),
			"see that nothing else uses the lab's ports, and that cnibench doctor finds no fault")
	}
	whole := newFollowed(ways, t.Rounds, func(r journey.Round) journey.Window { return r.All })
	alike, undisturbed := whole.all, whole.undisturbedWithout(none)
	i.Alike, i.Undisturbed = len(alike), len(undisturbed)
	if len(undisturbed) < fewest {
		return i, advice.With(fmt.Errorf("%d of %d transactions took the same way, and %d of those were undisturbed: want at least %d",
			i.Alike, i.Sampled, i.Undisturbed, fewest), "follow more transactions, on a quieter machine")
	}
	i.Events = len(alike[0])
	i.Typical = quantile(each.Of(alike, totalTime), 0.5)
	i.Total = timeOf(each.Of(undisturbed, totalTime))
	i.Probed = i.Total.Median
	ends, _ := completeTransactions(t, t.Ends)
	i.Probes = estimateProbeCost(t, whole, newFollowed(ends, t.Rounds, func(r journey.Round) journey.Window { return r.Ends }))
	i.Steps = stepsOf(t, undisturbed)
	i.subtractProbes()
	return i, nil
}

// subtractProbes subtracts the cost of the probes from steps and total. No step becomes negative, since the cost of a probe
// has an error, too.
func (i *Itinerary) subtractProbes() {
	sum, probed := 0.0, each.Of(i.Steps, func(s Step) float64 { return s.At })
	for n, cost := range i.Probes.steps[:max(0, len(i.Probes.steps)-1)] {
		sum += cost
		before, s := i.Steps[n], &i.Steps[n+1]
		s.At = max(before.At, probed[n+1]-sum)
		s.After = Time{s.At - before.At, max(0, s.After.Low-cost), max(0, s.After.High-cost)}
		s.Probe = cost
	}
	less := i.Probed - i.Steps[len(i.Steps)-1].At
	i.Total = Time{i.Total.Median - less, i.Total.Low - less, i.Total.High - less}
}

// meanRate returns the mean rate of the windows that window selects, in transactions per second.
func meanRate(t journey.Trace, window func(journey.Round) journey.Window) (mean float64) {
	for _, r := range t.Rounds {
		mean += window(r).Rate / float64(len(t.Rounds))
	}
	return mean
}

// transaction is the events of one transaction in order, from its beginning to its end.
type transaction []journey.Event

func totalTime(x transaction) float64 { return float64(x[len(x)-1].Time - x[0].Time) }

// completeTransactions returns the complete transactions among events. of is the number of transactions, complete or not.
func completeTransactions(t journey.Trace, events []journey.Event) (all []transaction, of int) {
	by := map[uint32]transaction{}
	for _, e := range events {
		by[e.Transaction] = append(by[e.Transaction], e)
	}
	delivers := slices.ContainsFunc(events, func(e journey.Event) bool { return e.Point == journey.Deliver })
	for _, x := range by {
		slices.SortStableFunc(x, func(a, b journey.Event) int { return cmp.Compare(a.Time, b.Time) })
		for n, e := range slices.Backward(x) {
			if n > 0 && e.Host == t.Client && e.Direction == journey.Response && (!delivers || e.Point == journey.Deliver) {
				all = append(all, x[:n+1])
				break
			}
		}
	}
	slices.SortFunc(all, func(a, b transaction) int { return cmp.Compare(a[0].Transaction, b[0].Transaction) })
	return all, len(by)
}

// alikeTransactions returns the transactions that take the most common way: those whose events have the same hosts, devices
// and points.
func alikeTransactions(all []transaction) []transaction {
	by := map[string][]transaction{}
	var most string
	for _, x := range all {
		key := strings.Join(each.Of(x, func(e journey.Event) string { // where it was
			return fmt.Sprint(e.Host, e.Index, e.Point, e.Hook, e.Direction, packetPurpose(e), e.Depth)
		}), "|")
		by[key] = append(by[key], x)
		if n := len(by[key]); n > len(by[most]) {
			most = key
		}
	}
	return by[most]
}

// packetPurpose returns the purpose of a packet: SYN, SYN-ACK, ACK, close or data; "" at a socket.
func packetPurpose(e journey.Event) string {
	const fin, syn, reset, ack = 1, 2, 4, 16
	switch {
	case e.Point == journey.Send || e.Point == journey.Wake || e.Point == journey.Deliver:
		return ""
	case e.Flags&syn != 0 && e.Flags&ack != 0:
		return "SYN-ACK"
	case e.Flags&syn != 0:
		return "SYN"
	case e.Flags&(fin|reset) != 0:
		return "close"
	case e.Length == 0:
		return "ACK"
	}
	return "data"
}

// undisturbedTransactions returns the transactions that are at most tolerance times slower than the fastest.
func undisturbedTransactions(all []transaction) []transaction {
	if len(all) == 0 {
		return nil
	}
	limit := quantile(each.Of(all, totalTime), fastest) * tolerance
	return slices.DeleteFunc(slices.Clone(all), func(x transaction) bool { return totalTime(x) > limit })
}

// stepsOf returns the steps of transactions with the same events.
func stepsOf(t journey.Trace, all []transaction) []Step {
	out := make([]Step, len(all[0]))
	for n, e := range all[0] {
		host, _ := t.Host(e.Host)
		device := host.Device(e.Index)
		s := Step{
			Host: e.Host, Kind: host.Kind, Device: e.Device, Driver: device.Kind, Point: e.Point, Direction: e.Direction,
			Packet: packetPurpose(e), Depth: e.Depth, Hook: e.Hook.String(),
		}
		s.At = quantile(each.Of(all, func(x transaction) float64 { return float64(x[n].Time - x[0].Time) }), 0.5)
		if n > 0 {
			s.After = timeOf(each.Of(all, func(x transaction) float64 { return float64(x[n].Time - x[n-1].Time) }))
			s.After.Median = s.At - out[n-1].At
			s.Activity = activityBetween(t, all[0][n-1], e)
			s.Programs = programsBetween(t, all[0][n-1], e)
			s.Functions = hookFunctions(host, all[0][n-1], e)
		}
		out[n] = s
	}
	return out
}

// programsBetween returns the BPF programs between two events: of the receiving device, then of the transmitting one.
func programsBetween(t journey.Trace, from, to journey.Event) []string {
	var names []string
	if from.Point == journey.Receive {
		names = append(names, deviceOf(t, from).Ingress...)
	}
	if transmits(to) && from.Point != journey.Queue {
		names = append(names, deviceOf(t, to).Egress...)
	}
	return names
}

// hookFunctions returns the functions that are registered at the hook between two events.
func hookFunctions(h journey.Host, from, to journey.Event) []string {
	if !passesHook(from, to) {
		return nil
	}
	var names []string
	for _, l := range h.Hooks {
		if l.Hook == to.Hook {
			names = append(names, each.Of(l.Functions, journey.Function.String)...)
		}
	}
	return names
}

func deviceOf(t journey.Trace, e journey.Event) journey.Device {
	h, _ := t.Host(e.Host)
	return h.Device(e.Index)
}

func transmits(e journey.Event) bool { return e.Point == journey.Queue || e.Point == journey.Transmit }

func passesHook(from, to journey.Event) bool {
	return from.Point == journey.HookBegin && to.Point == journey.HookEnd && from.Hook == to.Hook && from.Host == to.Host
}

// timeOf returns the median of xs with its quartiles. xs must not be empty.
func timeOf(xs []float64) Time {
	return Time{Median: quantile(xs, 0.5), Low: quantile(xs, 0.25), High: quantile(xs, 0.75)}
}

// quantile returns the interpolated value below which the given share of xs lies. xs must not be empty.
func quantile(xs []float64, share float64) float64 {
	xs = slices.Sorted(slices.Values(xs))
	at := share * float64(len(xs)-1)
	low := int(at)
	high := min(low+1, len(xs)-1)
	return xs[low] + (at-float64(low))*(xs[high]-xs[low])
}
