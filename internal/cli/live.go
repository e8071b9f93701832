package cli

import (
	"time"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/text"
)

// Bounds of the cost of a live view. It is drawn only between trials, so it disturbs no measurement.
const (
	// redraw is the least time between two frames, judging the least time between two computations of the verdicts.
	redraw, judging = 100 * time.Millisecond, time.Second
	// judgingShare bounds the cost of the verdicts: the next computation waits this many times as long as the last one
	// took. So verdicts take at most 4 % of a run.
	judgingShare = 25
)

// live is the state of the live view of a run.
type live struct {
	now     func() time.Time
	options text.Options
	header  *result.Header
	trials  report.Collector
	interim report.Interim
	at      text.Progress
	// last is when the last frame was drawn. judged is when the verdicts were last computed; cost is how long that took.
	last, judged time.Time
	cost         time.Duration
	failed       error
}

// begin starts the view of a result with header h. If the view had a header before, it drops the trials so far.
func (l *live) begin(h result.Header) {
	if l.header != nil {
		l.trials, l.interim, l.at = report.Collector{}, report.Interim{}, text.Progress{}
	}
	l.header = &h
}

// begun reports whether the view has a header and a trial to show.
func (l *live) begun() bool { return l.header != nil && l.at.Total > 0 }

// resume adds the trials of a file that is resumed.
func (l *live) resume(records []result.Record) {
	for i := range records {
		l.add(&records[i])
	}
}

func (l *live) add(rec *result.Record) {
	if l.failed == nil {
		l.failed = l.trials.Add(rec) // the report at the end describes what is wrong with the file
	}
}

// trial adds a trial that has ended.
func (l *live) trial(e run.Event) {
	l.add(e.Record)
	l.at = text.Progress{
		Done: e.Done, Total: e.Total, Left: e.Left, Repetition: e.Record.Repetition, Repetitions: l.header.Plan.Repetitions,
		Doing: "measured " + e.Record.Key(), Stops: l.header.Plan.Precision > 0,
	}
}

// judge computes the verdicts of the trials so far.
func (l *live) judge() {
	began := l.now()
	if i, err := l.trials.Interim(*l.header); err == nil {
		l.interim = i
	}
	l.judged, l.cost = l.now(), l.now().Sub(began)
}

// frame returns the lines to draw, after it has updated the verdicts if that is due.
func (l *live) frame(width, height int) []string {
	if l.now().Sub(l.judged) >= max(judging, judgingShare*l.cost) {
		l.judge()
	}
	l.last = l.now()
	o := l.options
	o.Width = width
	return text.Frame(l.interim, l.at, o, height)
}
