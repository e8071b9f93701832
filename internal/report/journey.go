package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/itinerary"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// JourneySchema names the JSON format of BuildJourney.
const JourneySchema = "cnibench.journey/v1"

// journeyNote explains the times of journeys.
const journeyNote = "Times are medians of undisturbed transactions: those that take at most 15 % longer than the fastest twentieth. Probes cost time. The cost is measured in the same run, and subtracted from each step and from the total where it is known."

// JourneyPage has the data of a report on journeys. Journeys are ordered by path, workload and profile.
type JourneyPage struct {
	Plan         plan.Plan
	Facts        facts.Facts
	Transactions int
	Journeys     []itinerary.Itinerary
	Left         []Left
}

// Left is a profile whose packets were not followed on a path under a workload, with the reason.
type Left struct {
	Profile  plan.Variant  `json:"profile"`
	Path     plan.Path     `json:"path"`
	Workload plan.Workload `json:"workload"`
	Reason   string        `json:"reason"`
}

func (l Left) String() string {
	return fmt.Sprintf("%s, %s, %s: %s", l.Profile, l.Path, l.Workload, l.Reason)
}

// Leave adds a profile to Left.
func (p *JourneyPage) Leave(v plan.Variant, path plan.Path, w plan.Workload, reason string) {
	p.Left = append(p.Left, Left{v, path, w, reason})
}

// Sets groups the journeys by path and workload; only journeys of one group can be compared.
func (p JourneyPage) Sets() [][]itinerary.Itinerary {
	return Grouped(p.Journeys, func(i itinerary.Itinerary) plan.Case { return plan.Case{Path: i.Path, Workload: i.Workload} })
}

// quickestJourney returns the journey with the shortest total time.
func quickestJourney(set []itinerary.Itinerary) itinerary.Itinerary {
	return slices.MinFunc(set, func(a, b itinerary.Itinerary) int { return cmp.Compare(a.Total.Median, b.Total.Median) })
}

// BuildJourney builds the report of journeys.
func BuildJourney(p JourneyPage) Document {
	d := Document{Title: "Where a packet is, when", Result: Result{Facts: p.Facts}}
	for _, set := range p.Sets() {
		d.Lines = append(d.Lines, whereaboutsLines(set)...)
		d.Sections = append(d.Sections, journeySections(set)...)
		for _, i := range set {
			d.Sections = append(d.Sections, Section{Heading: fmt.Sprintf("%s: %s, %s", i.Profile, i.Path, i.Workload), Grids: []Grid{stepGrid(i)}})
		}
	}
	if len(p.Journeys) > 0 {
		d.Sections = append(d.Sections, Section{Heading: "The journeys", ID: "journey", Lead: true, Figures: p.Figures(), Notes: []string{
			journeyNote, "A lane for each profile and a row for each host in it: the packet goes down from the client to the server and comes back up.",
		}})
	}
	if len(p.Left) > 0 {
		left := Section{Heading: "Not followed",
			Items: each.Of(p.Left, func(l Left) Item {
				return Item{Name: l.Profile.String(), Text: fmt.Sprintf("%s, %s: %s", l.Path, l.Workload, l.Reason)}
			})}
		d.Appendix = append(d.Appendix, left)
	}
	d.Data = struct {
		Schema       string                `json:"schema"`
		Facts        facts.Facts           `json:"facts"`
		Transactions int                   `json:"transactions"`
		Journeys     []itinerary.Itinerary `json:"journeys"`
		Left         []Left                `json:"left,omitempty"`
	}{JourneySchema, p.Facts, p.Transactions, p.Journeys, p.Left}
	return d
}

// whereaboutsLines describes where the packets of the other profiles are when the fastest has its response. It also
// names each journey that differs from the round trip without probes.
func whereaboutsLines(set []itinerary.Itinerary) []string {
	first := quickestJourney(set)
	lines := []string{fmt.Sprintf("%s has its response after %s (%s, %s).", first.Profile, microsText(first.Total.Median), first.Path, first.Workload)}
	for _, i := range set {
		if i.Profile == first.Profile {
			continue
		}
		at := i.Steps[max(0, i.Where(first.Total.Median))]
		lines = append(lines, fmt.Sprintf("%s then has its %s in %s, and needs %s more.", i.Profile, at.Direction, stepPlace(at), microsText(i.Total.Median-first.Total.Median)))
	}
	for _, i := range set {
		if i.Probes.Unknown == "" && !i.Probes.Meets {
			lines = append(lines, probesText(i))
		}
	}
	return lines
}

// stepPlace describes the place of a step: its host, then its netfilter hook, its device or "socket".
func stepPlace(s itinerary.Step) string {
	switch {
	case s.Hook != "":
		return s.Host + ", netfilter " + s.Hook
	case s.Device != "":
		return s.Host + ", " + s.Device
	}
	return s.Host + ", socket"
}

func microsText(ns float64) string { return fmt.Sprintf("%.1f µs", ns/1e3) }

// journeySections returns two sections that compare journeys of one path and workload. The first draws them as letters; the
// second has the times and the cost of probes.
func journeySections(set []itinerary.Itinerary) []Section {
	about := fmt.Sprintf("%s, %s", set[0].Path, set[0].Workload)
	drawn := Section{Heading: about, Notes: []string{journeyNote}, Drawn: true, Grids: []Grid{lineGrid(set)}}
	s := Section{Heading: "Probes: " + about, Notes: each.Of(set[0].Missing, func(m string) string { return "Not seen here: " + m + "." })}
	steps := Grid{Label: "profile", Columns: []string{"to the server", "and back", "with probes", "events", "undisturbed", "same way", "followed", "rate", "without probes"}}
	cost := Grid{Title: "The journey less its probes, and the round trip without probes", Label: "profile",
		Columns: []string{"probes", "an event", "journey", "calls around it", "together", "without probes", "difference"}}
	for _, i := range set {
		there := number.Absent
		if n := i.Delivered(); n >= 0 {
			there = microsText(i.Steps[n].At)
		}
		steps.Add(i.Profile.String(), there, microsText(i.Total.Median), microsText(i.Probed), fmt.Sprint(i.Events), fmt.Sprint(i.Undisturbed), fmt.Sprint(i.Alike),
			fmt.Sprint(i.Sampled), number.Number(i.RateFollowed)+"/s", number.Number(i.Rate)+"/s")
		p := i.Probes
		if p.Unknown != "" {
			cost.Notes = append(cost.Notes, fmt.Sprintf("%s: the cost of probes is not known, and every time has it: %s.", i.Profile, p.Unknown))
			continue
		}
		cost.Add(i.Profile.String(), microsText(p.Sum.Value), fmt.Sprintf("%.3f µs", p.Event.Value/1e3), microsText(p.Total.Value), microsText(p.Outside.Value),
			microsText(p.Total.Value+p.Outside.Value), microsText(p.Unprobed.Value), fmt.Sprintf("%+.2f µs (%+.2f to %+.2f)", p.Off.Value/1e3, p.Off.Low/1e3, p.Off.High/1e3))
		cost.Notes = append(cost.Notes, probesText(i))
	}
	cost.Notes = append(cost.Notes,
		"Windows without probes, with probes at both ends of a transaction, and with all probes take turns. The first and the last are compared by the client's clock, the last two by that of the probes.",
		"The client's round trip has its calls before the first step and after the last as well.")
	s.Grids = []Grid{steps}
	if len(cost.Labels)+len(cost.Notes) > 0 {
		s.Grids = append(s.Grids, cost)
	}
	return []Section{drawn, s}
}

// probesText describes whether a journey, less the cost of its probes, takes as long as the client's round trip without
// probes.
func probesText(i itinerary.Itinerary) string {
	off := i.Probes.Off
	within := fmt.Sprintf("%+.2f to %+.2f µs", off.Low/1e3, off.High/1e3)
	switch {
	case i.Probes.Meets:
		return fmt.Sprintf("%s: the journey less its probes meets the round trip without probes (%s).", i.Profile, within)
	case off.Value < 0:
		return fmt.Sprintf("%s: the journey less its probes is %.2f µs shorter than the round trip without probes (%s).", i.Profile, -off.Value/1e3, within)
	}
	return fmt.Sprintf("%s: the journey less its probes is %.2f µs longer than the round trip without probes (%s).", i.Profile, off.Value/1e3, within)
}

// lineColumns is the number of letters that lineGrid draws for the longest journey.
const lineColumns = 60

// lineGrid draws each journey as a row of letters over a common time axis. A letter is the place of the packet at that
// time.
func lineGrid(set []itinerary.Itinerary) Grid {
	longest := slices.MaxFunc(set, func(a, b itinerary.Itinerary) int { return cmp.Compare(a.Total.Median, b.Total.Median) })
	last := longest.Steps[len(longest.Steps)-1].At
	g := Grid{Label: "profile", Columns: []string{fmt.Sprintf("place, one letter for %.2f µs", last/1e3/lineColumns)}}
	for _, i := range set {
		var b strings.Builder
		for column := range lineColumns {
			n := i.Where(last * (float64(column) + 0.5) / lineColumns)
			if n >= len(i.Steps)-1 {
				break
			}
			b.WriteString(stepLetter(i, i.Steps[n]))
		}
		g.Add(i.Profile.String(), b.String())
	}
	g.Notes = []string{"C client, 1 2 nodes, - switch, S server; # netfilter, * BPF program, = tunnel."}
	return g
}

// stepLetter returns the letter of a step. If netfilter, a BPF program or a tunnel takes the time until the next step, it is
// "#", "*" or "=". Otherwise it is the letter of the step's host.
func stepLetter(i itinerary.Itinerary, s itinerary.Step) string {
	n := slices.IndexFunc(i.Steps, func(o itinerary.Step) bool { return o.At == s.At && o.Point == s.Point && o.Host == s.Host })
	if n >= 0 && n+1 < len(i.Steps) {
		if mark, ok := map[itinerary.Activity]string{itinerary.Netfilter: "#", itinerary.BPF: "*", itinerary.Tunnel: "="}[i.Steps[n+1].Activity]; ok {
			return mark
		}
	}
	switch {
	case s.Host == i.Client:
		return "C"
	case s.Host == i.Server:
		return "S"
	case s.Kind == journey.Switch:
		return "-"
	case s.Kind == journey.Node:
		return s.Host[len(s.Host)-1:]
	}
	return "?"
}

// stepGrid lists the steps of a journey.
func stepGrid(i itinerary.Itinerary) Grid {
	g := Grid{Label: "µs", Columns: []string{"+", "host", "for", "step"}, Prose: true}
	for _, s := range i.Steps {
		g.Add(fmt.Sprintf("%6.2f", s.At/1e3), fmt.Sprintf("%5.2f", s.After.Median/1e3), s.Host, string(s.Activity), stepText(s))
	}
	return g
}

// stepText returns what happens at a step: "eth0 transmits (encapsulated)".
func stepText(s itinerary.Step) string {
	text := map[journey.Point]string{
		journey.Send: "the application sends", journey.Queue: s.Device + " queues", journey.Transmit: s.Device + " transmits",
		journey.Arrive: s.Device + " takes in", journey.Receive: s.Device + " receives", journey.HookBegin: "netfilter " + s.Hook + " begins",
		journey.HookEnd: "netfilter " + s.Hook + " ends", journey.Socket: "TCP gets the packet", journey.Wake: "the socket's owner is woken",
		journey.Deliver: "the application has the bytes",
	}[s.Point]
	var more []string
	if s.Driver != "" && s.Driver != "veth" && s.Driver != "device" {
		more = append(more, s.Driver)
	}
	if s.Packet != "" && s.Packet != "data" {
		more = append(more, s.Packet)
	}
	if s.Depth > 0 {
		more = append(more, "encapsulated")
	}
	if len(s.Programs) > 0 {
		more = append(more, "after "+strings.Join(s.Programs, ", "))
	}
	if len(s.Functions) > 0 {
		more = append(more, "after "+strings.Join(s.Functions, ", "))
	}
	if len(more) > 0 {
		text += " (" + strings.Join(more, "; ") + ")"
	}
	return text
}

// journeyRows returns the names of a journey's hosts, with the server last and the others in the order in which packets
// first pass them. row has the index of each host in names.
func journeyRows(i itinerary.Itinerary) (names []string, row map[string]int) {
	row = map[string]int{}
	hosts := each.Once(each.Of(i.Steps, func(s itinerary.Step) string { return s.Host }))
	// The response may pass hosts that the request did not pass.
	if at := slices.Index(hosts, i.Server); at > 0 {
		hosts = append(slices.Delete(hosts, at, at+1), i.Server)
	}
	for n, h := range hosts {
		row[h] = n
	}
	return each.Of(hosts, func(h string) string {
		switch h {
		case i.Client:
			return "client"
		case i.Server:
			return "server"
		}
		return h
	}), row
}

// activityColors has the colours of activities. Activities in which dataplanes differ have strong colours.
var activityColors = map[itinerary.Activity]plot.Color{
	itinerary.Socket: "s1", itinerary.Wake: plot.Same, itinerary.Stack: "s6", itinerary.Netfilter: "s2", itinerary.BPF: "s3",
	itinerary.Tunnel: "s4", itinerary.Bridge: "s5", itinerary.Link: "s7", itinerary.Queue: "s8",
}

// Figures returns a picture for each followed path and workload.
func (p JourneyPage) Figures() []Figure {
	return each.Of(p.Sets(), func(set []itinerary.Itinerary) Figure {
		first := quickestJourney(set)
		t := plot.Trips{
			Title: fmt.Sprintf("Where a packet is, when: %s, %s", set[0].Path, set[0].Workload),
			Desc:  "For each profile a line from the client through nodes and switch to the server and back, over a common time axis.",
			Unit:  "µs since send",
			Lanes: each.Of(set, journeyLane),
			Kinds: each.Of(itinerary.Activities, func(a struct {
				Activity itinerary.Activity
				About    string
			}) plot.TripKind {
				return plot.TripKind{Name: a.About, Color: activityColors[a.Activity]}
			}),
		}
		if len(set) > 1 {
			t.Finish, t.FinishName = first.Total.Median/1e3, fmt.Sprintf("%s has its response", first.Profile)
		}
		return Figure{Kind: "journey", Heading: set[0].Path.String(), Path: set[0].Path, Workload: set[0].Workload, Drawing: t.Draw(), Wide: true}
	})
}

// journeyLane converts a journey into a lane of a diagram.
func journeyLane(i itinerary.Itinerary) plot.Trip {
	names, row := journeyRows(i)
	t := plot.Trip{
		Name: i.Profile.String(), Rows: names,
		Note: laneNote(i),
	}
	var visit []itinerary.Step
	leave := func(at float64) {
		if texts := landmarkTexts(visit); len(texts) > 0 {
			t.Labels = append(t.Labels, plot.TripLabel{Row: t.Spans[len(t.Spans)-1].Row, To: at / 1e3, Texts: texts})
		}
		visit = nil
	}
	for n := 1; n < len(i.Steps); n++ {
		before, s := i.Steps[n-1], i.Steps[n]
		kind := slices.IndexFunc(itinerary.Activities, func(a activity) bool { return a.Activity == s.Activity })
		span := plot.TripSpan{
			Row: row[before.Host], From: before.At / 1e3, To: s.At / 1e3, Kind: kind,
			Tip: fmt.Sprintf("%.2f to %.2f µs, %s, until %s", before.At/1e3, s.At/1e3, before.Host, stepText(s)),
		}
		if len(t.Spans) > 0 && t.Spans[len(t.Spans)-1].Row != span.Row {
			leave(before.At)
		}
		t.Spans = append(t.Spans, span)
		visit = append(visit, s)
	}
	leave(i.Steps[len(i.Steps)-1].At)
	return t
}

// laneNote describes how long a journey takes, with its interval, and what its probes cost.
func laneNote(i itinerary.Itinerary) string {
	p := i.Probes
	if p.Unknown != "" {
		return fmt.Sprintf("%.1f µs with %d probes", i.Total.Median/1e3, i.Events)
	}
	text := fmt.Sprintf("%.1f µs (%.1f to %.1f), less %.1f µs of %d probes", i.Total.Median/1e3, p.Total.Low/1e3, p.Total.High/1e3, p.Sum.Value/1e3, i.Events)
	if !p.Meets {
		text += fmt.Sprintf("; without probes %+.1f µs", -p.Off.Value/1e3)
	}
	return text
}

// activity is the element type of itinerary.Activities.
type activity = struct {
	Activity itinerary.Activity
	About    string
}

// landmarkTexts describes what a packet passes during a visit of a host: programs, bridges, tunnels, and the time in
// netfilter. It returns two alternatives at most, the longer first. It returns nil if there is nothing to describe.
func landmarkTexts(visit []itinerary.Step) []string {
	var devices []string
	netfilter := 0.0
	for _, s := range visit {
		names := s.Programs
		if s.Driver == "bridge" || s.Driver == "vxlan" || s.Driver == "ipip" || s.Driver == "wireguard" {
			names = []string{s.Device}
		}
		devices = append(devices, names...)
		if s.Activity == itinerary.Netfilter {
			netfilter += s.After.Median
		}
	}
	devices = each.Once(devices)
	var texts []string
	way := strings.Join(devices, ", ")
	hooks := fmt.Sprintf("netfilter %.1f µs", netfilter/1e3)
	switch {
	case way != "" && netfilter > 0:
		texts = []string{way + "; " + hooks, hooks}
	case netfilter > 0:
		texts = []string{hooks}
	case way != "":
		texts = []string{way, devices[0]}
	}
	return texts
}
