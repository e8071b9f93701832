package drive

import (
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/plan"
)

// NoteLimits is the id of the note that Limits is.
const NoteLimits = "tool-limits"

// Limits says in one line what of a trial by a tool is not as our engine would have it, "" if nothing is.
func Limits(a Ask) string {
	w := a.Workload
	window, warmup := w.Measured(a.Window, a.Warmup)
	var lines []string
	add := func(is bool, format string, args ...any) {
		if is {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	add(window != a.Window, "its window is %s and not %s", window, a.Window)
	add(a.Warmup > 0 && warmup == 0, "nothing is discarded before its window")
	add(warmup > 0 && warmup != a.Warmup, "its warm-up is %s and not %s", warmup, a.Warmup)
	add(w.Tool == plan.Wrk, "to its times it adds those of requests that it would have sent while it waited")
	add(w.Tool == plan.PingTool, "its times have steps of 1 µs")
	add(w.Congestion != "" && w.Tool != plan.Iperf3 && w.Tool != plan.Neper, "its congestion control is that of the system")
	add(w.Tool == plan.Netperf && w.Kind == plan.CRR && w.Close != "fin", "its connections end by FIN and not by RST")
	add(w.Tool == plan.Hey && w.Rate > 0, "a request that is due waits for the response before it, and its time counts from when it is sent")
	add(w.Tool == plan.PingTool && w.Interval == 0 && window >= pingQuiet, "it prints no percentiles for so long a window")
	if len(lines) == 0 {
		return ""
	}
	return w.Tool + ": " + strings.Join(lines, "; ")
}

// Life is about how long a client runs, from its start to its end.
func Life(a Ask) time.Duration {
	window, warmup := a.Workload.Measured(a.Window, a.Warmup)
	life := window + warmup
	if a.Workload.Tool == plan.Sockperf {
		life = window + plan.SockperfEdges
	}
	return life
}
