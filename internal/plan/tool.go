package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// ownEngine is the value of the option tool that means our own load engine.
const ownEngine = "own"

// Tool describes a program that sends workloads in place of our engine. Package external runs the programs and
// registers them here.
type Tool struct {
	// Name is the value of the option tool and of the flag --tool.
	Name string
	// Kinds has one spec of each kind of workload that the tool can send.
	Kinds []Spec
	// Lacks returns why the tool cannot send a normalized workload of one of Kinds, "" if it can. A nil Lacks means
	// that it can send all of them.
	Lacks func(w Workload) string
	// WholeSeconds is true if the tool runs for whole seconds only.
	WholeSeconds bool
	// Omits is true if the tool can discard whole seconds before its window.
	Omits bool
	// Lead and Tail are the times that the tool always discards at the start and at the end of its run.
	Lead, Tail time.Duration
	// Ports is how many ports of the server the tool connects to.
	Ports int
	// Congestion is true if the tool can set the congestion control.
	Congestion bool
	// LooseTimes is true if the tool corrects or rounds its times. Then the rate multiplied by the mean time is not the
	// number of requests under way.
	LooseTimes bool
}

// tools are the registered tools, in the order of lists.
var tools []Tool

// Register makes a tool known to plans. Call it before a plan is read.
func (t Tool) Register() { tools = append(tools, t) }

// ToolNamed returns the registered tool with this name. It returns false if there is none.
func ToolNamed(name string) (Tool, bool) {
	return each.First(tools, func(t Tool) bool { return t.Name == name })
}

// ToolNames returns the names of the registered tools.
func ToolNames() []string {
	return each.Of(tools, func(t Tool) string { return t.Name })
}

// sendsKindOf reports whether the tool can send workloads of this kind.
func (t Tool) sendsKindOf(w Workload) bool {
	return slices.ContainsFunc(t.Kinds, func(s Spec) bool { return s.kindEntry() == w.Spec.kindEntry() })
}

// OneFlow returns why a tool with only one flow cannot send the workload, "" if it can. Use it as Tool.Lacks.
func (w Workload) OneFlow() string {
	if w.Traits().Flows > 1 {
		return "it has one flow"
	}
	return ""
}

// Beyond returns why the workload's tool cannot send it, "" if it can. Our own engine can send every workload.
func (w Workload) Beyond() string {
	if w.Tool == "" {
		return ""
	}
	by, ok := ToolNamed(w.Tool)
	n := w.Normalize()
	t := n.Traits()
	stream, _ := n.Spec.(Stream)
	switch {
	case !ok:
		return fmt.Sprintf("unknown tool (supported: %s)", strings.Join(ToolNames(), ", "))
	case !by.sendsKindOf(n):
		return fmt.Sprintf("it sends no %s", n.Kind())
	case t.Load != 0:
		return "a load is a share of the capacity that our own engine measures: say a rate"
	case t.Work != Request && t.Arrival != "":
		return "it has no open loop"
	case t.Burst != 0:
		return "it sends no bursts"
	case t.Spin:
		return "it waits in its own way"
	case t.Beside:
		return "nothing is sent beside it"
	case t.Roll:
		return "only our own servers can be rolled"
	case t.Bidirectional:
		return "it is asked for one direction at a time"
	case t.Mix:
		return "its datagrams are of one size"
	case stream.Buffer != 0:
		return "its buffers are its own choice here"
	case stream.Mode != "" && stream.Mode != "copy":
		return "it copies what it sends and receives"
	case !by.Congestion && t.Congestion != "" && t.Congestion != DefaultCongestion:
		return "it takes the congestion control of the system"
	}
	if by.Lacks == nil {
		return ""
	}
	return by.Lacks(n)
}

// Measured returns the window and the warm-up that the workload really has. The arguments are those of the plan. Some
// tools support only whole seconds, and discard less or more than the plan's warm-up.
func (w Workload) Measured(window, warmup time.Duration) (time.Duration, time.Duration) {
	window = cmp.Or(w.Window, window)
	t, ok := ToolNamed(w.Tool)
	if !ok {
		return window, warmup
	}
	if t.WholeSeconds {
		edges := t.Lead + t.Tail
		window = roundUpToSecond(window+edges) - edges
	}
	if t.Omits {
		return window, roundUpToSecond(warmup)
	}
	return window, t.Lead
}

func roundUpToSecond(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// WithTools returns the workloads, each followed by a copy for every named tool that can send it. left describes which
// workloads a tool does not send, and why. The name "own" has no effect, because our engine sends every workload
// anyway. It fails for an unknown tool, and for a tool that cannot send any of the workloads.
func WithTools(list []Workload, names []string) (all []Workload, left []string, err error) {
	var asked []Tool
	var errs []error
	for _, name := range names {
		if t, ok := ToolNamed(name); ok {
			asked = append(asked, t)
		} else if name != ownEngine {
			errs = append(errs, fmt.Errorf("unknown tool %q%s (supported: %s)",
				name, advice.DidYouMean(name, ToolNames()), strings.Join(ToolNames(), ", ")))
		}
	}
	sent, refused := map[string]bool{}, map[string][]string{}
	for _, w := range list {
		all = append(all, w)
		if w.Tool != "" {
			continue
		}
		if !slices.ContainsFunc(asked, func(t Tool) bool { return t.sendsKindOf(w) }) {
			left = append(left, fmt.Sprintf("%s is sent by our engine alone: %s no %s", w, toolsAndVerb(asked), w.Kind()))
		}
		for _, t := range asked {
			by := Workload{Spec: w.Spec, Tool: t.Name, Window: w.Window}.Normalize()
			why := by.Beyond()
			switch {
			case why != "":
				refused[t.Name] = append(refused[t.Name], fmt.Sprintf("%s: %s", w, why))
				if t.sendsKindOf(w) {
					left = append(left, fmt.Sprintf("%s is not sent by %s: %s", w, t.Name, why))
				}
				continue
			case !slices.Contains(list, by) && !slices.Contains(all, by):
				all = append(all, by)
			}
			sent[t.Name] = true
		}
	}
	for _, t := range asked {
		if !sent[t.Name] {
			errs = append(errs, fmt.Errorf("%s can send none of the workloads: %s", t.Name, strings.Join(refused[t.Name], "; ")))
		}
	}
	return all, left, errors.Join(errs...)
}

// toolsAndVerb returns the start of a sentence: the names of tools, and "sends" or "send" to match their number.
func toolsAndVerb(tools []Tool) string {
	names := each.Of(tools, func(t Tool) string { return t.Name })
	if len(names) == 1 {
		return names[0] + " sends"
	}
	return strings.Join(names, ", ") + " send"
}

// Tools returns the names of the tools of a plan, each once.
func (p Plan) Tools() []string {
	named := each.Where(p.Workloads, func(w Workload) bool { return w.Tool != "" })
	return each.Once(each.Of(named, func(w Workload) string { return w.Tool }))
}

// wholeSecondTools returns the names of the tools that run for whole seconds only. It leaves out workloads with a window of
// their own.
func (p Plan) wholeSecondTools() []string {
	slow := each.Where(p.Workloads, func(w Workload) bool {
		t, _ := ToolNamed(w.Tool)
		return t.WholeSeconds && w.Window == 0
	})
	return each.Once(each.Of(slow, func(w Workload) string { return w.Tool }))
}
