package compare

import "github.com/cnibench/cnibench/internal/plan"

// Table is the part of an analysis for one workload and one metric.
type Table struct {
	Workload plan.Workload
	Metric   string
	Unit     string
	// Baseline is the profile that comparisons use.
	Baseline plan.Variant
	// Profiles are the columns, Paths the rows; Rows[i][j] is path i with profile j.
	Profiles []plan.Variant
	Paths    []plan.Path
	Rows     [][]Entry
	// Floor is the difference between twins for the workload and metric of the table.
	Floor Floor
}

// Entry is one place in a table. Cell is nil if nothing was tried (not served, or not measured: the header of the
// result has the reason). Comparison is nil if there is nothing to compare with.
type Entry struct {
	Cell       *Cell
	Comparison *Comparison
}

// Table returns the table of one workload and metric. It returns false if the table has no cell.
func (a *Analysis) Table(w plan.Workload, name string) (Table, bool) {
	t := Table{Workload: w, Metric: name, Baseline: a.Baseline, Profiles: a.Profiles, Paths: a.Paths, Floor: a.floorOf(w, name)}
	for range t.Paths {
		t.Rows = append(t.Rows, make([]Entry, len(t.Profiles)))
	}
	at := map[Key]*Entry{}
	for i, path := range t.Paths {
		for j, p := range t.Profiles {
			at[Key{plan.Case{Profile: p, Path: path, Workload: w}, name}] = &t.Rows[i][j]
		}
	}
	found := false
	for i := range a.Cells {
		if e := at[a.Cells[i].Key]; e != nil {
			e.Cell, t.Unit, found = &a.Cells[i], a.Cells[i].Unit, true
		}
	}
	for i := range a.Comparisons {
		if e := at[a.Comparisons[i].Key]; e != nil {
			e.Comparison = &a.Comparisons[i]
		}
	}
	return t, found
}

// Groups splits standings, in the order of Rank, into groups of neighbours of which no two differ. Starting with the
// best, each group is as long as possible.
func (a *Analysis) Groups(ranks []Standing) [][]Standing {
	all := a.newContest(ranks)
	var out [][]Standing
	from := 0
	for i := range ranks {
		for j := from; j < i; j++ {
			if v := all.comparePair(i, j).Verdict; v == Better || v == Worse {
				out = append(out, ranks[from:i])
				from = i
				break
			}
		}
	}
	if from < len(ranks) {
		out = append(out, ranks[from:])
	}
	return out
}
