// Package pprof writes the stacks of sampled trials: Render as a profile for go tool pprof and other readers of its
// format, Folded as lines of text for flame graph tools.
//
// Each stack has the number of samples and their CPU time, and labels for the profile, path and workload. The network
// namespace of the packet is the outermost frame.
package pprof

import (
	"fmt"
	"io"

	"github.com/google/pprof/profile"

	"github.com/cnibench/cnibench/internal/report"
)

// Render writes the stacks of d as a gzipped profile. It fails if d has no stacks.
func Render(w io.Writer, d report.Document) error {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, TimeNanos: d.Run.Created.UnixNano(),
	}
	functions := map[string]*profile.Location{}
	location := func(name string) *profile.Location {
		l := functions[name]
		if l == nil {
			f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name, SystemName: name}
			l = &profile.Location{ID: uint64(len(p.Location) + 1), Line: []profile.Line{{Function: f}}}
			p.Function, p.Location = append(p.Function, f), append(p.Location, l)
			functions[name] = l
		}
		return l
	}
	for _, side := range d.Sides {
		labels := map[string][]string{"profile": {side.Profile.String()}, "path": {side.Path.String()}, "workload": {side.Workload.String()}}
		period := int64(1e9) / int64(max(1, side.Rate))
		p.Period = period
		for _, s := range side.Stacks() {
			x := &profile.Sample{Value: []int64{int64(s.Samples), int64(s.Samples) * period}, Label: labels}
			for i := len(s.Frames) - 1; i >= 0; i-- {
				x.Location = append(x.Location, location(s.Frames[i]))
			}
			p.Sample = append(p.Sample, x)
		}
	}
	if len(p.Sample) == 0 {
		return report.ErrNoStacks
	}
	if err := p.Write(w); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}
