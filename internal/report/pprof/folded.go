package pprof

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Folded writes the stacks of d as lines: frames separated by semicolons, outermost first, then the number of samples.
// The first frames are the profile, the path, the workload and the network namespace. It fails if d has no stacks.
func Folded(w io.Writer, d report.Document) error {
	out := bufio.NewWriter(w)
	n := 0
	for _, side := range d.Sides {
		for _, s := range side.Stacks() {
			frames := append([]string{side.Profile.String(), side.Path.String(), side.Workload.String()}, s.Frames...)
			for i := range frames {
				frames[i] = strings.ReplaceAll(number.Clean(frames[i]), ";", ",")
			}
			fmt.Fprintf(out, "%s %d\n", strings.Join(frames, ";"), s.Samples)
			n++
		}
	}
	if n == 0 {
		return report.ErrNoStacks
	}
	return out.Flush()
}
