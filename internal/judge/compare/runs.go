package compare

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/outcome"
)

// runsTable has the differences between equal runs beyond the errors of their values: standard deviations in percent, by
// kind of workload and metric. The first value is for two runs alone on the machine, the second for two runs of which one
// had other work beside it. make aa writes the table; docs/results/aa.md has the runs.
//
//go:embed runs.tsv
var runsTable string

// allowance has the shares of the table by "kind metric".
type allowance map[string]float64

// alone and besideWork are the two columns of runs.tsv: for runs alone on the machine, and if one run had other work
// beside it.
var alone, besideWork = readRuns(runsTable)

func readRuns(table string) (alone, beside allowance) {
	alone, beside = allowance{}, allowance{}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "#") || len(fields) != 4 {
			continue
		}
		for i, column := range []allowance{alone, beside} {
			if percent, err := strconv.ParseFloat(fields[2+i], 64); err == nil {
				column[fields[0]+" "+fields[1]] = percent / 100
			}
		}
	}
	return alone, beside
}

// RunToRun returns the standard deviation of the difference between equal runs beyond the errors of their values, as a
// share; 0 if it was not measured. kind is the kind of the workload. beside is true for a pair of which one run had other
// work on the machine.
func RunToRun(kind, metric string, beside bool) float64 {
	if beside {
		return besideWork[kind+" "+metric]
	}
	return alone[kind+" "+metric]
}

// OtherWork is the name of the difference between a run alone on the machine and a run during other work.
const OtherWork = "trials with other work on the path's CPUs"

// busyShare is the share of trials with other work from which a run counts as measured during other work. Runs alone
// have at most 2 %, runs during a compile job about 40 %.
const busyShare = 0.1

// otherWorkShare returns the share of trials during which other work took CPU time of the path.
func (a *Analysis) otherWorkShare() float64 {
	trials, busy := 0, 0
	seen := map[Key]bool{}
	for _, c := range a.cells {
		if seen[c.caseKey()] {
			continue
		}
		seen[c.caseKey()] = true
		trials += c.N
		for _, w := range c.Warnings {
			if w.ID == outcome.OtherLoad {
				busy += w.Trials
			}
		}
	}
	return float64(busy) / float64(max(1, trials))
}

// runAllowance returns the run-to-run differences to allow for. It adds to p.Differences if only one of the results was
// measured during other work.
func (p *Pair) runAllowance() allowance {
	a, b := p.A.otherWorkShare(), p.B.otherWorkShare()
	if max(a, b) < busyShare {
		return alone
	}
	if min(a, b) < busyShare {
		percent := func(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }
		p.Differences = append(p.Differences, Difference{OtherWork, percent(a), percent(b)})
	}
	return besideWork
}
