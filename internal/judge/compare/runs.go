package compare

import (
	_ "embed"
	"strconv"
	"strings"
)

// runsTable is written by make aa: what two equal runs differ by beyond the errors of their values, as a standard deviation in
// percent, by kind of workload and metric. docs/results/aa.md has the runs.
//
//go:embed runs.tsv
var runsTable string

// runs are the shares of the table by "kind metric".
var runs = readRuns(runsTable)

func readRuns(table string) map[string]float64 {
	out := map[string]float64{}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "#") || len(fields) != 3 {
			continue
		}
		if percent, err := strconv.ParseFloat(fields[2], 64); err == nil {
			out[fields[0]+" "+fields[1]] = percent / 100
		}
	}
	return out
}

// RunToRun returns what two equal runs differ by in a metric of a kind of workload beyond the errors of their values, as a share and a
// standard deviation: 0 where that was not measured.
func RunToRun(kind, metric string) float64 { return runs[kind+" "+metric] }
