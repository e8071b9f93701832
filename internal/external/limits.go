package external

import (
	"fmt"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
)

// Ask describes what a tool must do as one side of one trial.
type Ask = adapter.Ask

// sender returns the Sender of the workload's tool; an empty Sender if there is no such tool, or if it cannot send.
func sender(w plan.Workload) *adapter.Sender {
	t, ok := Sending(w.Tool)
	if !ok {
		return &adapter.Sender{}
	}
	return t.Sender
}

// Program returns the name of the program file for w.
func Program(w plan.Workload) string {
	if s := sender(w); s.Program != nil {
		return s.Program(w)
	}
	return w.Tool
}

// Programs returns the names of the program files for w: the client's, and the server's if there is one.
func Programs(w plan.Workload) []string {
	if server := Server(Ask{Workload: w}); server != nil && server[0] != Program(w) {
		return []string{Program(w), server[0]}
	}
	return []string{Program(w)}
}

// Client returns the command line of the client. It panics if the workload's tool cannot send.
func Client(a Ask) []string { return sender(a.Workload).Client(a) }

// Server returns the command line of the server, nil if our engine (http) or the kernel (ping) is the server.
func Server(a Ask) []string {
	if s := sender(a.Workload); s.Server != nil {
		return s.Server(a)
	}
	return nil
}

// Ends reports whether the server ends by itself when its client has ended.
func Ends(w plan.Workload) bool { return sender(w).Ends }

// Transport returns "tcp" or "udp", the protocol that the server listens on.
func Transport(w plan.Workload) string {
	if sender(w).Datagrams && w.Traits().Protocol == plan.UDP {
		return "udp"
	}
	return "tcp"
}

// NoteLimits is the id of the note with the text of Limits.
const NoteLimits = "tool-limits"

// Limits describes in one line how a trial by the tool of a differs from a trial by our engine; "" if there is no
// difference.
func Limits(a Ask) string {
	w, s := a.Workload, sender(a.Workload)
	window, warmup := a.Measured()
	var lines []string
	add := func(is bool, format string, args ...any) {
		if is {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	add(window != a.Window, "its window is %s, not %s", window, a.Window)
	add(a.Warmup > 0 && warmup == 0, "nothing is discarded before its window")
	add(warmup > 0 && warmup != a.Warmup, "its warm-up is %s, not %s", warmup, a.Warmup)
	add(w.Traits().Congestion != "" && !s.Congestion, "its congestion control is that of the system")
	if s.Differs != nil {
		lines = append(lines, s.Differs(a)...)
	}
	if len(lines) == 0 {
		return ""
	}
	return w.Tool + ": " + strings.Join(lines, "; ")
}

// Life returns approximately how long a client runs, from its start to its end.
func Life(a Ask) time.Duration {
	window, warmup := a.Measured()
	return window + warmup + sender(a.Workload).Tail
}
