package compare

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/outcome"
)

// runsTable is written by make aa: what two equal runs differ by beyond the errors of their values, as a standard deviation in
// percent, by kind of workload and metric: first if both were measured alone, then if other work took CPU time beside one of them.
// docs/results/aa.md has the runs.
//
//go:embed runs.tsv
var runsTable string

// allowance has the shares of the table by "kind metric".
type allowance map[string]float64

// alone and besideWork are the two columns of the table.
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

// RunToRun returns what two equal runs differ by in a metric of a kind of workload beyond the errors of their values, as a share and a
// standard deviation: 0 where that was not measured. beside is for runs of which one had other work beside it.
func RunToRun(kind, metric string, beside bool) float64 {
	if beside {
		return besideWork[kind+" "+metric]
	}
	return alone[kind+" "+metric]
}

// OtherWork is the name of the difference between a run that was measured alone and one beside other work.
const OtherWork = "trials with other work on the path's CPUs"

// busyShare is the share of trials with other work from which a run counts as measured beside it. Runs alone have at most 2 %, those
// beside a compile job about 40 %.
const busyShare = 0.1

// otherWork returns the share of trials during which other work took CPU time of the path.
func (a *Analysis) otherWork() float64 {
	trials, busy := 0, 0
	seen := map[Key]bool{}
	for _, c := range a.cells {
		if seen[c.whole()] {
			continue
		}
		seen[c.whole()] = true
		trials += c.N
		for _, w := range c.Warnings {
			if w.ID == outcome.OtherLoad {
				busy += w.Trials
			}
		}
	}
	return float64(busy) / float64(max(1, trials))
}

// runToRun returns what to allow for, and notes it as a difference if one of the results alone was measured beside other work.
func (p *Pair) runToRun() allowance {
	a, b := p.A.otherWork(), p.B.otherWork()
	if max(a, b) < busyShare {
		return alone
	}
	if min(a, b) < busyShare {
		percent := func(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }
		p.Differences = append(p.Differences, Difference{OtherWork, percent(a), percent(b)})
	}
	return besideWork
}
