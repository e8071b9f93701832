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

// beginResult starts the view of a result with header h. If the view had a header before, it drops the trials so far.
func (l *live) beginResult(h result.Header) {
	if l.header != nil {
		l.trials, l.interim, l.at = report.Collector{}, report.Interim{}, text.Progress{}
	}
	l.header = &h
}

// hasTrial reports whether the view has a header and a trial to show.
func (l *live) hasTrial() bool { return l.header != nil && l.at.Total > 0 }

// addRecords adds the trials of a file that is resumed.
func (l *live) addRecords(records []result.Record) {
	for i := range records {
		l.addRecord(&records[i])
	}
}

func (l *live) addRecord(rec *result.Record) {
	if l.failed == nil {
		l.failed = l.trials.Add(rec) // the report at the end describes what is wrong with the file
	}
}

// addTrial adds a trial that has ended.
func (l *live) addTrial(e run.Event) {
	l.addRecord(e.Record)
	l.at = text.Progress{
		Done: e.Done, Total: e.Total, Left: e.Left, Repetition: e.Record.Repetition, Repetitions: l.header.Plan.Repetitions,
		Doing: "measured " + e.Record.Key(), Stops: l.header.Plan.Precision > 0,
	}
}

// judgeTrials computes the verdicts of the trials so far.
func (l *live) judgeTrials() {
	began := l.now()
	if i, err := l.trials.Interim(*l.header); err == nil {
		l.interim = i
	}
	l.judged, l.cost = l.now(), l.now().Sub(began)
}

// frameLines returns the lines to draw, after it has updated the verdicts if that is due.
func (l *live) frameLines(width, height int) []string {
	if l.now().Sub(l.judged) >= max(judging, judgingShare*l.cost) {
		l.judgeTrials()
	}
	l.last = l.now()
	o := l.options
	o.Width = width
	return text.Frame(l.interim, l.at, o, height)
}
