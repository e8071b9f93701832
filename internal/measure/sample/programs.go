package sample

import "slices"

// Recorded is what was recorded during one trial in addition to the observations of its sides: stacks, or the runs of
// programs.
type Recorded struct {
	Stacks   *Stacks
	Programs *Programs
}

// Programs has the runs of BPF programs as the kernel counted them, from BeganNs to the end of the trial.
type Programs struct {
	// BeganNs is in ns after the start of the client's window, and negative before it.
	BeganNs int64 `json:"began_ns"`
	// Units is the number of units of work done since, 0 if unknown.
	Units float64 `json:"units"`
	// EmptyNs is the counted time of an empty program.
	EmptyNs float64 `json:"empty_ns"`
	// List has the programs that ran, by name.
	List []Program `json:"list"`
}

// Program is the number of runs of a BPF program, and their total time. The kernel truncates its name to 15 bytes.
type Program struct {
	Name string `json:"name"`
	Runs uint64 `json:"runs"`
	Ns   uint64 `json:"ns"`
}

// Windows returns the number of operations since the time ns, divided by the number of operations in the window; 0 if the
// window had none. It assumes that operations are evenly spread within a slice.
func Windows(all []Interval, ns int64) float64 {
	var since, window float64
	for _, i := range all {
		n := float64(i.Operations)
		if !i.Warmup {
			window += n
		}
		if length := float64(i.EndNs - i.StartNs); length > 0 {
			since += n * min(1, max(0, float64(i.EndNs-ns)/length))
		}
	}
	if !(window > 0) {
		return 0
	}
	return since / window
}

// Join adds the runs of another machine. EmptyNs becomes the mean of both, weighted by runs.
func (p *Programs) Join(o *Programs) {
	mine, others := p.totalRuns(), o.totalRuns()
	if all := mine + others; all > 0 {
		p.EmptyNs = (p.EmptyNs*mine + o.EmptyNs*others) / all
	}
	for _, x := range o.List {
		i := slices.IndexFunc(p.List, func(y Program) bool { return y.Name == x.Name })
		if i < 0 {
			p.List = append(p.List, x)
			continue
		}
		p.List[i].Runs, p.List[i].Ns = p.List[i].Runs+x.Runs, p.List[i].Ns+x.Ns
	}
}

func (p *Programs) totalRuns() (all float64) {
	for _, x := range p.List {
		all += float64(x.Runs)
	}
	return all
}
