package findings

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// sharedCPUReason returns why a claim cannot be compared with a result of one machine whose ends share CPUs; "" if it
// can be, or if the result is not of a single machine. Ratios of CPU time and of rates between profiles can be
// compared on any number of CPUs. But if the ends share a CPU, the losses of a full socket buffer and the gain of a
// second flow depend on how the CPU is shared, and not on the path.
func sharedCPUReason(known facts.Facts, c Claim) string {
	placement := known[facts.Placement]
	if placement == "" {
		return ""
	}
	needed, why := neededCPUs(c)
	have, where := 1, "the ends share one"
	if strings.HasPrefix(placement, "split") {
		have, _ = strconv.Atoi(known[facts.CPUs]) // 0 if the fact is absent
		where = fmt.Sprintf("there were %d", have)
	}
	if have >= needed {
		return ""
	}
	return fmt.Sprintf("%s: that needs at least %d CPUs (--cpu split), and %s", why, needed, where)
}

// neededCPUs returns how many CPUs a claim needs so that the ends do not share them: at both ends one for each flow and
// one for the kernel's receive work; 0 if sharing does not affect the claim.
func neededCPUs(c Claim) (needed int, why string) {
	flows := func(w plan.Workload) int {
		s, _ := w.Spec.(plan.Stream) // connections of http need no thread each
		return s.Flows
	}
	n := max(1, flows(c.Workload))
	lossy := c.Metric == metric.FrameLossRate || c.Metric == metric.DatagramsLost || c.Metric == metric.Jitter
	if c.Metric == metric.Goodput && c.Workload.Spec != nil { // for traffic at a fixed rate, goodput is what was not lost
		lossy = c.Workload.Traits().Protocol == plan.UDP && c.Workload.Traits().Rate > 0
	}
	if lossy {
		return 2 * (n + 1), "sender and receiver of datagrams must each have CPUs of their own"
	}
	if r := c.Ratio; r != nil && r.AgainstWorkload.Spec != nil && flows(r.AgainstWorkload) != flows(c.Workload) {
		return 2 * (max(n, flows(r.AgainstWorkload)) + 1), "numbers of flows compare only if each flow has a CPU of its own at both ends"
	}
	return 0, ""
}
