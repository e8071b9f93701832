package figure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/itinerary"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/chart"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// activityColors has what tells dataplanes apart in the strong colours.
var activityColors = map[itinerary.Activity]chart.Color{
	itinerary.Socket: "s1", itinerary.Wake: chart.Same, itinerary.Stack: "s6", itinerary.Netfilter: "s2", itinerary.BPF: "s3",
	itinerary.Tunnel: "s4", itinerary.Bridge: "s5", itinerary.Link: "s7", itinerary.Queue: "s8",
}

// Journeys returns a picture for each path and workload that was followed.
func Journeys(p report.JourneyPage) []Figure {
	return each.Of(p.Sets(), func(set []itinerary.Itinerary) Figure {
		first := report.Quickest(set)
		t := chart.Trips{
			Title: fmt.Sprintf("Where a packet is, when: %s, %s", set[0].Path, set[0].Workload),
			Desc:  "For each profile a line from the client through nodes and switch to the server and back, over a common time axis.",
			Unit:  "µs since send",
			Lanes: each.Of(set, trip),
		}
		for _, a := range itinerary.Activities {
			t.Kinds = append(t.Kinds, chart.TripKind{Name: a.About, Color: activityColors[a.Activity]})
		}
		if len(set) > 1 {
			t.Finish, t.FinishName = first.Total.Median/1e3, fmt.Sprintf("%s has its response", first.Profile)
		}
		return Figure{Kind: Journey, Heading: set[0].Path.String(), Path: set[0].Path, Workload: set[0].Workload, Drawing: t.Draw(), Wide: true}
	})
}

// trip is a journey as a lane.
func trip(i itinerary.Itinerary) chart.Trip {
	names, row := report.JourneyRows(i)
	t := chart.Trip{
		Name: string(i.Profile), Rows: names,
		Note: note(i),
	}
	var visit []itinerary.Step
	leave := func(at float64) {
		if texts := landmarks(visit); len(texts) > 0 {
			t.Labels = append(t.Labels, chart.TripLabel{Row: t.Spans[len(t.Spans)-1].Row, To: at / 1e3, Texts: texts})
		}
		visit = nil
	}
	for n := 1; n < len(i.Steps); n++ {
		before, s := i.Steps[n-1], i.Steps[n]
		kind := slices.IndexFunc(itinerary.Activities, func(a activity) bool { return a.Activity == s.Activity })
		span := chart.TripSpan{
			Row: row[before.Host], From: before.At / 1e3, To: s.At / 1e3, Kind: kind,
			Tip: fmt.Sprintf("%.2f to %.2f µs, %s, until %s", before.At/1e3, s.At/1e3, before.Host, report.Describe(s)),
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

// note says how long a journey is, and how far it is known.
func note(i itinerary.Itinerary) string {
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

type activity = struct {
	Activity itinerary.Activity
	About    string
}

// landmarks names what tells dataplanes apart in a visit of a host: programs, bridges and tunnels that are passed, and the
// time in netfilter; at length and in short.
func landmarks(visit []itinerary.Step) []string {
	var devices []string
	netfilter := 0.0
	for _, s := range visit {
		names := s.Programs
		if s.Driver == "bridge" || s.Driver == "vxlan" || s.Driver == "ipip" || s.Driver == "wireguard" {
			names = []string{s.Device}
		}
		for _, name := range names {
			if !slices.Contains(devices, name) {
				devices = append(devices, name)
			}
		}
		if s.Activity == itinerary.Netfilter {
			netfilter += s.After.Median
		}
	}
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
