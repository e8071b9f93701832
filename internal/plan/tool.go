package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Own is the word for our own load engine where a tool can be chosen.
const Own = "own"

// Programs that can send a workload in place of our engine.
const (
	Iperf3   = "iperf3"
	Netperf  = "netperf"
	Wrk      = "wrk"
	Hey      = "hey"
	PingTool = "ping"
	Neper    = "neper"
	Sockperf = "sockperf"
)

// Tools are the names of the programs, in the order in which they are listed.
var Tools = []string{Iperf3, Netperf, Wrk, Hey, PingTool, Neper, Sockperf}

// Bounds that tools have and our engine has not.
const (
	iperf3Message   = 1 << 20
	iperf3Flows     = 128
	sockperfMessage = 14 // its header
)

// tool is what a program can be asked for.
type tool struct {
	kinds []Kind
	// lacks says what of a normalized workload of one of its kinds is beyond it, "" for nothing.
	lacks func(w Workload) string
	// seconds is true if its window has whole seconds.
	seconds bool
	// ports is how many ports of the server it dials.
	ports int
	// congestion is true if it can be told the congestion control.
	congestion bool
}

var tools = map[string]tool{
	Iperf3:   {kinds: []Kind{Stream}, lacks: lacksIperf3, seconds: true, ports: 1, congestion: true},
	Netperf:  {kinds: []Kind{Stream, RR, CRR}, lacks: lacksNetperf, seconds: true, ports: 2},
	Wrk:      {kinds: []Kind{HTTP}, lacks: lacksWrk, seconds: true, ports: 1},
	Hey:      {kinds: []Kind{HTTP}, lacks: lacksHey, ports: 1},
	PingTool: {kinds: []Kind{Ping}, lacks: oneFlow, seconds: true, ports: 1},
	Neper:    {kinds: []Kind{Stream, RR, CRR}, lacks: lacksNeper, seconds: true, ports: 2, congestion: true},
	Sockperf: {kinds: []Kind{RR}, lacks: lacksSockperf, seconds: true, ports: 1},
}

func lacksIperf3(w Workload) string {
	switch {
	case w.Flows > iperf3Flows:
		return fmt.Sprintf("it has at most %d flows", iperf3Flows)
	case w.Protocol == TCP && w.MessageSize > iperf3Message:
		return fmt.Sprintf("its messages have at most %d bytes", iperf3Message)
	}
	return ""
}

func lacksNetperf(w Workload) string {
	if w.Kind == Stream && w.Protocol == UDP {
		switch {
		case w.Rate != 0:
			return "it sends datagrams as fast as it can and at no rate"
		case w.Reverse:
			return "its datagrams go from the client to the server only"
		}
	}
	return oneFlow(w)
}

func lacksNeper(w Workload) string {
	switch {
	case w.Protocol == UDP:
		return "only its TCP workloads are known here"
	case w.Reverse:
		return "its streams go from the client to the server only"
	}
	return ""
}

func lacksWrk(w Workload) string {
	if w.Arrival != "" {
		return "it has no open loop"
	}
	return ""
}

func lacksHey(w Workload) string {
	if w.Arrival != "" && w.Arrival != Constant {
		return "its requests come at constant intervals only: say arrival=" + Constant
	}
	return ""
}

func lacksSockperf(w Workload) string {
	switch {
	case w.RequestSize != w.ResponseSize:
		return "its responses are as long as its requests"
	case w.RequestSize < sockperfMessage:
		return fmt.Sprintf("its messages have %d bytes at least: say request=%d,response=%[2]d", sockperfMessage, MinDatagram)
	case w.RequestSize > MaxDatagram:
		return fmt.Sprintf("its messages have at most %d bytes", MaxDatagram)
	}
	return oneFlow(w)
}

func oneFlow(w Workload) string {
	if w.Flows > 1 {
		return "it has one flow"
	}
	return ""
}

// Beyond returns what of the workload its tool cannot do, or "". Our own engine can do all.
func (w Workload) Beyond() string {
	if w.Tool == "" {
		return ""
	}
	t, ok := tools[w.Tool]
	n := w.Normalize()
	switch {
	case !ok:
		return fmt.Sprintf("there is no such tool (there are %s)", strings.Join(Tools, ", "))
	case !slices.Contains(t.kinds, n.Kind):
		return fmt.Sprintf("it sends no %s", n.Kind)
	case n.Load != 0:
		return "a load is a share of the capacity that our own engine measures: say a rate"
	case n.Kind != HTTP && n.Arrival != "":
		return "it has no open loop"
	case n.Burst != 0:
		return "it sends no bursts"
	case n.Wait != "":
		return "it waits in its own way"
	case n.Under != "":
		return "nothing is sent beside it"
	case n.Bidirectional:
		return "it is asked for one direction at a time"
	case n.Mix != "":
		return "its datagrams are of one size"
	case n.Buffer != 0:
		return "its buffers are its own choice here"
	case n.Mode != "" && n.Mode != "copy":
		return "it copies what it sends and receives"
	case !t.congestion && n.Congestion != "" && n.Congestion != DefaultCongestion:
		return "it takes the congestion control of the system"
	}
	return t.lacks(n)
}

// checkTool refuses what the tool of a normalized workload cannot do.
func (w Workload) checkTool() error {
	if why := w.Beyond(); why != "" {
		return fmt.Errorf("tool %s: %s", w.Tool, why)
	}
	return nil
}

// Measured returns the window and the warm-up that the workload makes of those of a plan: a tool that takes whole
// seconds measures the next, and one that discards no warm-up has none.
func (w Workload) Measured(window, warmup time.Duration) (time.Duration, time.Duration) {
	if w.Tool == "" {
		return window, warmup
	}
	if w.Tool == Sockperf {
		return wholeSeconds(window+SockperfEdges) - SockperfEdges, SockperfWarmup
	}
	if tools[w.Tool].seconds {
		window, warmup = wholeSeconds(window), wholeSeconds(warmup)
	}
	if w.Tool != Iperf3 {
		warmup = 0
	}
	return window, warmup
}

// What sockperf leaves out of the whole seconds that it runs: SockperfWarmup at the beginning, SockperfEdges in all.
const (
	SockperfWarmup = 400 * time.Millisecond
	SockperfEdges  = 450 * time.Millisecond
)

func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// barredTool returns why the tool cannot go over p, or "".
func (w Workload) barredTool(p Path) string {
	if t := tools[w.Tool]; t.ports > 1 && p.ByService() {
		return fmt.Sprintf("%s dials %d ports of its server, and a Service has one", w.Tool, t.ports)
	}
	return ""
}

// WithTools returns the workloads with each followed by the same by every tool that can send it. left says what is not
// sent by a tool, and why. Own changes nothing: our engine sends them all in any case. A tool that can send none of the
// workloads is an error.
func WithTools(list []Workload, names []string) (all []Workload, left []string, err error) {
	var errs []error
	refused := map[string][]string{}
	sends := map[string]bool{}
	for _, w := range list {
		all = append(all, w)
		if w.Tool != "" {
			continue
		}
		sent := false
		for _, name := range names {
			if !slices.Contains(Tools, name) {
				continue
			}
			by := w
			by.Tool = name
			by = by.Normalize()
			if why := by.Beyond(); why != "" {
				refused[name] = append(refused[name], fmt.Sprintf("%s: %s", w, why))
				if slices.Contains(tools[name].kinds, w.Kind) {
					sent = true // said here, with the reason
					left = append(left, fmt.Sprintf("%s is not sent by %s: %s", w, name, why))
				}
				continue
			}
			sent, sends[name] = true, true
			if !slices.Contains(list, by) && !slices.Contains(all, by) {
				all = append(all, by)
			}
		}
		if !sent {
			left = append(left, fmt.Sprintf("%s is sent by our engine alone: %s no %s", w, phrase(names), w.Kind))
		}
	}
	for _, name := range names {
		switch {
		case name == Own || sends[name]:
		case !slices.Contains(Tools, name):
			errs = append(errs, fmt.Errorf("unknown tool %q%s (there are %s)", name, advice.DidYouMean(name, Tools), strings.Join(Tools, ", ")))
		default:
			errs = append(errs, fmt.Errorf("%s can send none of the workloads: %s", name, strings.Join(refused[name], "; ")))
		}
	}
	return all, left, errors.Join(errs...)
}

// phrase is the subject of what tools do not do.
func phrase(names []string) string {
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == Own })
	if len(names) == 1 {
		return names[0] + " sends"
	}
	return strings.Join(names, ", ") + " send"
}

// slowTools are the tools of the plan whose windows have whole seconds.
func (p Plan) slowTools() []string {
	var names []string
	for _, w := range p.Workloads {
		if tools[w.Tool].seconds && !slices.Contains(names, w.Tool) {
			names = append(names, w.Tool)
		}
	}
	return names
}

// toolNotes says where the windows of tools are not those of the plan.
func (p Plan) toolNotes() []string {
	names := p.slowTools()
	if window := wholeSeconds(p.Duration); len(names) > 0 && window != p.Duration {
		return []string{fmt.Sprintf("%s: whole seconds alone, so %s where the window of the plan is %s", strings.Join(names, ", "), window, p.Duration)}
	}
	return nil
}
