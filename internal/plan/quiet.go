package plan

import "time"

// Quiet describes a kind of workload that sends nothing. During the window, the environment is observed. A package
// under conduct implements the observation and registers the kind.
type Quiet struct {
	Name Kind
	// About is a brief description of what is observed. Title is the name of the kind in a report.
	About, Title string
	// Window is the default window of the kind's trials. Wait is an estimate of how long a trial takes in addition to
	// the window.
	Window, Wait time.Duration
	// Decides are the metrics by which dataplanes are compared.
	Decides []string
	// Barred returns why the kind cannot be measured on a path, "" if it can. Unfit returns why a window is too short,
	// "" if it is not.
	Barred func(p Path) string
	Unfit  func(window time.Duration) string
}

// quiet is a registered Quiet with its entry in the registry of kinds.
type quiet struct {
	Quiet
	row kind
}

// Register makes the kind known to plans. Call it before a plan is read.
func (q Quiet) Register() {
	own := &quiet{Quiet: q}
	own.row = kind{name: q.Name, about: q.About, title: q.Title, zero: quietSpec{own}, options: []option{byWindow},
		apart: true, unchanged: "nothing changes at rest: measure %s without churn", window: q.Window, wait: q.Wait}
	kinds = append(kinds, &own.row)
}

// quietSpec is the Spec of a workload that sends nothing.
type quietSpec struct{ *quiet }

func (s quietSpec) kindEntry() *kind { return &s.row }

// Traits implements Spec.
func (s quietSpec) Traits() Traits { return Traits{Decides: s.Decides} }

func (s quietSpec) normalize() Spec { return s }

func (s quietSpec) addFaults(*faultList) {}

// whyBarred implements chooser: it returns why the spec does not support a path.
func (s quietSpec) whyBarred(p Path) string { return s.Barred(p) }

// whyUnfit implements fitter: it returns why a window is too short.
func (s quietSpec) whyUnfit(window time.Duration) string { return s.Unfit(window) }

// Rests returns the kind of a workload that sends nothing. It returns "" for other workloads.
func (w Workload) Rests() Kind {
	if _, ok := w.Spec.(quietSpec); ok {
		return w.Kind()
	}
	return ""
}
