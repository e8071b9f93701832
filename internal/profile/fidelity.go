package profile

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Fidelity summarizes a comparison of a profile's CPU time in the lab with that on a real cluster. fidelity.tsv has the rows
// of all comparisons, which docs/results/fidelity.md summarizes, too.
type Fidelity struct {
	// Measured is the day of the comparison, NIC the lab's NIC model.
	Measured string `json:"measured"`
	NIC      string `json:"nic"`
	// All summarizes the rows of all workloads.
	All Compared `json:"all"`
	// Workloads are the compared workloads. Nothing is known about other workloads.
	Workloads []Compared `json:"workloads"`
}

// Compared summarizes the rows of one workload, or the rows of all workloads. For all workloads, Name is "", and Lab
// and Cluster are 0.
type Compared struct {
	// Name is the workload without sizes and congestion control, such as "stream(udp)".
	Name string `json:"name,omitempty"`
	// Rows is the number of compared rows. Within is the number of rows that are equal within 5 %, Differ the number of rows
	// that differ significantly.
	Rows   int `json:"rows"`
	Within int `json:"within"`
	Differ int `json:"differ"`
	// Distance is the median of Comparison.Distance over the rows. Farthest is the Comparison.Distance farthest from 0.
	Distance float64 `json:"distance"`
	Farthest float64 `json:"farthest"`
	// Lab and Cluster are the CPU times between pods of different nodes, in the lab and on the cluster, each divided by
	// the CPU time of the bare node there.
	Lab     float64 `json:"lab,omitempty"`
	Cluster float64 `json:"cluster,omitempty"`
}

// held is the largest absolute Distance, and most the largest absolute Farthest, at which the CPU time in the lab counts as
// accurate. Both are needed: on a noisy machine no row differs significantly, and the median may be near 0 by chance.
const held, most = 0.05, 0.10

// Holds reports whether the CPU time in the lab is close to that on the cluster: no row differs significantly, the median is
// within 5 %, and all rows are within 10 %.
func (c Compared) Holds() bool {
	return c.Differ == 0 && math.Abs(c.Distance) <= held && math.Abs(c.Farthest) <= most
}

// Holds reports whether the CPU time in the lab is close to that on the cluster for all compared workloads. It is false for
// nil.
func (f *Fidelity) Holds() bool {
	return f != nil && !slices.ContainsFunc(f.Workloads, func(c Compared) bool { return !c.Holds() })
}

// Covers reports whether the CPU time of a workload in the lab is known to be accurate under a NIC model. nic is "" for a
// workload that does not depend on NICs.
func (f *Fidelity) Covers(workload, nic string) bool {
	return f != nil && (nic == "" || nic == f.NIC) && slices.ContainsFunc(f.Workloads, func(c Compared) bool { return c.Name == workload && c.Holds() })
}

// Comparison is one row of fidelity.tsv: the CPU time of a profile or of the bare node, on a path under a workload, in the
// lab and on a cluster.
type Comparison struct {
	// Measured is the day of the comparison, NIC the lab's NIC model.
	Measured, NIC string
	// Repetitions is the number of repetitions, Window the window of each trial, such as 500ms.
	Repetitions, Window string
	// Dataplane is the profile of the cluster. Profile is the same profile, or host for the bare node of that cluster.
	Dataplane, Profile string
	// Path is in the format of results. Workload has no sizes and no congestion control.
	Path, Workload string
	// Verdict is the verdict of the comparison, relative to the bare node; "" for the bare node itself.
	Verdict string
	// Lab and Cluster are CPU times in ns per unit of work.
	Lab, Cluster float64
	// Quotient is Cluster divided by Lab, after each of them was divided by the CPU time of its own bare node.
	Quotient float64
}

// Distance returns the CPU time on the cluster divided by the CPU time in the lab, minus 1.
func (c Comparison) Distance() float64 { return c.Cluster/c.Lab - 1 }

// Summarize returns the summary of rows. Its Name is name, its Lab and Cluster are 0.
func Summarize(name string, rows []Comparison) Compared {
	all := Compared{Name: name, Rows: len(rows)}
	var off []float64
	for _, r := range rows {
		off = append(off, r.Distance())
		switch r.Verdict {
		case "within 5 %":
			all.Within++
		case "differs":
			all.Differ++
		}
	}
	all.Distance, all.Farthest = Middle(off)
	return all
}

// Middle returns the median of the distances in off, and the distance farthest from 0. It returns 0 for both if off is
// empty.
func Middle(off []float64) (median, farthest float64) {
	off = slices.Sorted(slices.Values(off))
	n := len(off)
	if n == 0 {
		return 0, 0
	}
	farthest = off[0]
	if -off[0] < off[n-1] {
		farthest = off[n-1]
	}
	return (off[(n-1)/2] + off[n/2]) / 2, farthest
}

//go:embed fidelity.tsv
var comparisons string

// columns are the names of the columns of fidelity.tsv.
var columns = []string{"measured", "nic", "repetitions", "window", "dataplane", "profile", "path", "workload", "lab", "cluster", "quotient", "verdict"}

// ReadComparisons returns the rows of a file that WriteComparisons has written. It fails if the first line has other
// columns or a number is not positive.
func ReadComparisons(r io.Reader) ([]Comparison, error) {
	file := csv.NewReader(r)
	file.Comma, file.FieldsPerRecord = '\t', len(columns)
	lines, err := file.ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 || !slices.Equal(lines[0], columns) {
		return nil, fmt.Errorf("its first line is not %q", strings.Join(columns, " "))
	}
	var all []Comparison
	for i, x := range lines[1:] {
		c := Comparison{Measured: x[0], NIC: x[1], Repetitions: x[2], Window: x[3], Dataplane: x[4], Profile: x[5], Path: x[6], Workload: x[7], Verdict: x[11]}
		for at, v := range map[int]*float64{8: &c.Lab, 9: &c.Cluster, 10: &c.Quotient} {
			if *v, err = strconv.ParseFloat(x[at], 64); err != nil || !(*v > 0) { // NaN, too
				return nil, fmt.Errorf("line %d: %s: %q is not a positive number", i+2, columns[at], x[at])
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// WriteComparisons writes rows in the format of fidelity.tsv.
func WriteComparisons(w io.Writer, rows []Comparison) error {
	file := csv.NewWriter(w)
	file.Comma = '\t'
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }
	_ = file.Write(columns) // Error returns this error, too
	for _, c := range rows {
		_ = file.Write([]string{c.Measured, c.NIC, c.Repetitions, c.Window, c.Dataplane, c.Profile, c.Path, c.Workload,
			number(c.Lab), number(c.Cluster), number(c.Quotient), c.Verdict})
	}
	file.Flush()
	return file.Error()
}

// fidelityOf returns the summary of the rows of a profile, nil if there are none.
func fidelityOf(rows []Comparison, name string) *Fidelity {
	var f *Fidelity
	var all []Comparison
	by := map[string][]Comparison{}
	bare := map[string]Comparison{}
	for _, r := range rows {
		if r.Dataplane != name {
			continue
		}
		if r.Profile == Host {
			bare[r.Path+r.Workload] = r
			continue
		}
		if f == nil {
			f = &Fidelity{Measured: r.Measured, NIC: r.NIC}
		}
		if by[r.Workload] == nil {
			f.Workloads = append(f.Workloads, Compared{Name: r.Workload})
		}
		by[r.Workload], all = append(by[r.Workload], r), append(all, r)
	}
	if f == nil {
		return nil
	}
	f.All = Summarize("", all)
	for i, w := range f.Workloads {
		sum := Summarize(w.Name, by[w.Name])
		for _, r := range by[w.Name] {
			if node, ok := bare[r.Path+r.Workload]; ok && r.Path == "pod-to-pod/cross-node" {
				sum.Lab, sum.Cluster = r.Lab/node.Lab, r.Cluster/node.Cluster
			}
		}
		f.Workloads[i] = sum
	}
	return f
}
