package report

import (
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
)

// Collector takes in the records of a result as they are read and keeps what a report needs, in bounded memory but for
// two numbers a trial. The zero value is ready for use.
type Collector struct {
	judged compare.Collector
	run    account
}

// Add takes in a record. The error says that the result is larger than any that a plan makes.
func (c *Collector) Add(rec *result.Record) error {
	c.run.add(rec)
	return c.judged.Add(rec)
}

// account sums up how the numbers were made. An end speaks for the trials of its own invocation, which are the last ones
// before it; those of an invocation that was killed have none, and count with their own times.
type account struct {
	trials, failed int
	reason         string
	// ended are the times that the ends say, all those of every trial.
	ended, all span
	// open are the trials since the last end.
	open []span
}

// span is the wall time of something, and the part of it that was measured.
type span struct{ wall, window time.Duration }

func (s *span) add(t span) {
	s.wall += t.wall
	s.window += t.window
}

func (a *account) add(rec *result.Record) {
	switch {
	case rec.Type == result.TypeTrial:
		s := span{time.Duration(rec.WallNs), time.Duration(rec.WindowNs)}
		a.trials++
		if rec.Status != result.OK {
			a.failed++
		}
		a.all.add(s)
		a.open = append(a.open, s)
		a.reason = unfinished // a resumed run continues after an end
	case rec.Type == result.TypeEnd && rec.End != nil:
		a.reason = rec.End.Reason
		a.ended.add(span{time.Duration(rec.End.WallNs), time.Duration(rec.End.WindowNs)})
		a.ended.add(sum(a.open[:min(len(a.open), max(0, len(a.open)-rec.End.Trials))]))
		a.open = nil
	}
}

// in is the run that it tells of; h is the header of its result.
func (a *account) in(h result.Header) Run {
	r := Run{Plan: h.Plan, Origin: h.Origin, Created: h.Created, Reason: unfinished, Trials: a.trials, Failed: a.failed}
	if a.reason != "" {
		r.Reason = a.reason
	}
	r.Wall, r.Windows = a.ended.wall, a.ended.window
	if r.Wall <= 0 || r.Reason == unfinished {
		r.Wall, r.Windows = a.all.wall, a.all.window
	}
	if h.Origin == "" {
		r.Command = command(h.Plan)
	}
	return r
}

// sum adds up spans.
func sum(all []span) span {
	var out span
	for _, s := range all {
		out.add(s)
	}
	return out
}
