package plan

import "time"

// Quiet is a kind of workload that sends nothing: the environment reads something meanwhile. A package of conduct
// implements it, and registers both.
type Quiet struct {
	Name Kind
	// About describes briefly what is read, Title is its name in a report.
	About, Title string
	// Window is the default window of its trials, Wait about how long a trial additionally takes.
	Window, Wait time.Duration
	// Decides are the metrics that tell dataplanes apart.
	Decides []string
	// Barred returns why it is not measured on a path, Unfit why a window is too short; "" if there is no reason.
	Barred func(p Path) string
	Unfit  func(window time.Duration) string
}

// quiet is a registered one.
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

// quietSpec is a workload of such a kind.
type quietSpec struct{ *quiet }

func (s quietSpec) kind() *kind { return &s.row }

// Traits implements Spec.
func (s quietSpec) Traits() Traits { return Traits{Decides: s.Decides} }

func (s quietSpec) normalize() Spec { return s }

func (s quietSpec) check(*faultList) {}

// barred implements chooser.
func (s quietSpec) barred(p Path) string { return s.Barred(p) }

// unfit implements fitter.
func (s quietSpec) unfit(window time.Duration) string { return s.Unfit(window) }

// Rests returns the kind of a workload that sends nothing, "" for any other.
func (w Workload) Rests() Kind {
	if _, ok := w.Spec.(quietSpec); ok {
		return w.Kind()
	}
	return ""
}
