package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Thresholds as shares and quotients.
const (
	stoppedMuch   = 0.02   // of the prober's time, by a limit
	stolenMuch    = 0.05   // of the nodes' CPU time
	disturbedMuch = 0.5    // share of trials with other work on the CPUs of the path
	foreignMuch   = 0.25   // of the time of the load's CPUs, by other tasks
	foreignMost   = 0.5    // share of their time above which times cannot be judged
	waitsMuch     = 3      // times the shortest round trip
	heldMuch      = 0.3    // share of the time of a trial with pauses, ready but without a CPU
	heldOften     = 0.25   // share of the ends of such trials
	lostMuch      = 0.0005 // of the datagrams of an idle path
	resentMuch    = 0.0005 // of the segments of requests, one at a time
	resentAlone   = 0.005  // the same without a lost datagram: a late answer also makes TCP repeat a segment
	tableFull     = 0.95   // of the entries of a table
)

// Delays in ns. If even the shortest of many times exceeds them, it did not wait for a CPU, unless other tasks use most
// of the CPUs. They are judgements, not measured.
const (
	lateConnect = 10e6
	lateName    = 500e6
)

// Counts below which a counter shows no fault.
const (
	fewPackets = 5
	fewErrors  = 3
	// fewTried datagrams and echoes are too few to show a loss.
	fewTried = 1000
)

func faultStatement(v Verdict, where, format string, args ...any) []Statement {
	return []Statement{{State: Fault, Verdict: v, Where: where, Saw: fmt.Sprintf(format, args...)}}
}

func markProven(s []Statement) []Statement {
	for i := range s {
		s[i].Proven = true
	}
	return s
}

func clearStatement(format string, args ...any) []Statement {
	return []Statement{{State: Clear, Saw: fmt.Sprintf(format, args...)}}
}

func unknownStatement(format string, args ...any) []Statement {
	return []Statement{{State: Unknown, Saw: fmt.Sprintf(format, args...)}}
}

func formatNanoseconds(ns float64) string { return number.WithUnit("ns", ns) }

func formatBitRate(rate float64) string { return number.WithUnit("bit/s", rate) }

func judgeCPULimit(e *Evidence) []Statement {
	p := e.proberSum()
	if p.Elapsed == 0 {
		return unknownStatement("no trial has an account of its CPUs")
	}
	share := p.Stopped.Seconds() / p.Elapsed.Seconds()
	if share > stoppedMuch {
		return markProven(faultStatement(Tester, "", "a limit stopped it for %s of %s (summed over CPUs)", number.Duration(p.Stopped), number.Duration(p.Elapsed)))
	}
	return clearStatement("a limit stopped the prober for %s of %s", number.Duration(p.Stopped), number.Duration(p.Elapsed))
}

func judgeCPUSteal(e *Evidence) []Statement {
	p := e.proberSum()
	if p.Whole == 0 {
		return unknownStatement("no trial has an account of its CPUs")
	}
	share := p.Steal.Seconds() / p.Whole.Seconds()
	if share > stolenMuch {
		return markProven(faultStatement(Node, "", "%s of the CPU time of the path", number.Percent(share)))
	}
	return clearStatement("a hypervisor took %s of the CPU time of the path", number.Percent(share))
}

// starvedReason returns why times and rates cannot be judged, "" if they can.
func (e *Evidence) starvedReason() string {
	p := e.proberSum()
	switch {
	case e.blind:
		return ""
	case p.Stopped.Seconds() > stoppedMuch*p.Elapsed.Seconds():
		return "a limit of CPU time stopped the prober"
	case p.Whole > 0 && p.Steal.Seconds() > stolenMuch*p.Whole.Seconds():
		return "a hypervisor took the CPUs"
	}
	if why := e.crowdedReason(); why != "" && e.looksSlow() {
		return why
	}
	return ""
}

// crowdedReason returns how other work used the prober's CPUs, "" if it did not. Other tasks took much of their time, ends
// were often ready without a CPU, or the usual round trip between hosts is much longer than the shortest while most
// trials saw other work.
func (e *Evidence) crowdedReason() string {
	p, share := e.proberSum(), e.foreignShare()
	least, usual, ok := e.tripTimes(HostPath)
	switch {
	case share > foreignMuch:
		return fmt.Sprintf("other tasks took %s of the time of its CPUs: in %d of %d trials %s", number.Percent(share), p.Disturbed, p.Of, p.Says)
	case float64(p.Held) > heldOften*float64(p.Paced):
		return fmt.Sprintf("ends of trials were ready and had no CPU for more than %s of the time, %d of %d", number.Percent(heldMuch), p.Held, p.Paced)
	case ok && usual > waitsMuch*least && float64(p.Disturbed) > disturbedMuch*float64(p.Of):
		return fmt.Sprintf("a round trip between hosts takes %s and can take %s; in %d of %d trials %s", formatNanoseconds(usual), formatNanoseconds(least), p.Disturbed, p.Of, p.Says)
	}
	return ""
}

// looksSlow reports whether a rule about times or rates would find a fault if the prober had its CPUs alone.
func (e *Evidence) looksSlow() bool {
	blind := *e
	blind.blind = true
	return slices.ContainsFunc([]func(*Evidence) []Statement{judgeHostStreamRate, judgeRoundTrip, judgeResolutions, judgePodOverhead, judgeSlowService}, func(find func(*Evidence) []Statement) bool {
		return slices.ContainsFunc(find(&blind), func(s Statement) bool { return s.State == Fault })
	})
}

// foreignShare returns the share of the prober's CPU time that other tasks took.
func (e *Evidence) foreignShare() float64 {
	p := e.proberSum()
	return p.Foreign.Seconds() / max(p.Own.Seconds(), 1e-9)
}

// lateAnyway reports whether even the shortest time of a name, or of a connection to a Service, is longer than waiting for a
// CPU explains.
func (e *Evidence) lateAnyway() bool {
	_, _, late := e.serviceConnectTimes(lateConnect)
	return late && e.foreignShare() < foreignMost || slices.ContainsFunc(Paths, e.lateNamesAnyway)
}

// lateNamesAnyway reports whether even the shortest time of a name on a path is longer than waiting for a CPU explains. It
// is false if other tasks had most of the CPUs: with loops at the highest priority, the shortest name once took 884 ms.
func (e *Evidence) lateNamesAnyway(path plan.Path) bool {
	return e.leastNameTime(path) > lateName && e.foreignShare() < foreignMost
}

// triedPackets counts the datagrams and echoes of all trials.
func (e *Evidence) triedPackets() (n uint64) {
	for _, t := range e.Paths {
		n += t.Datagrams.Sent + t.Echoes.Sent
	}
	return n
}

// fewReason returns a text if too few datagrams and echoes were sent to show a loss; otherwise "".
func (e *Evidence) fewReason() string {
	if n := e.triedPackets(); n < fewTried {
		return fmt.Sprintf("only %d datagrams and echoes were sent", n)
	}
	return ""
}

// thinReason returns a text if much evidence is missing; otherwise "". Either over a quarter of the workloads have no
// successful trial, or too few datagrams and echoes were sent.
func (e *Evidence) thinReason() string {
	none, all := 0, 0
	for _, t := range e.Paths {
		dead, alive := t.deadAndAlive()
		none, all = none+len(dead), all+len(dead)+len(alive)
	}
	if 4*none > all {
		return fmt.Sprintf("of %d workloads of the paths %d had no trial", all, none)
	}
	return e.fewReason()
}

func judgeProber(e *Evidence) []Statement {
	p, thin := e.proberSum(), e.thinReason()
	switch why := e.crowdedReason(); {
	case p.Of == 0:
		return unknownStatement("no trial was measured")
	case why != "" && thin != "":
		return markProven(faultStatement(Tester, "", "%s; %s", why, thin))
	case why != "" && e.looksSlow() && !e.lateAnyway():
		return markProven(faultStatement(Tester, "", "%s", why))
	}
	return clearStatement("other work was seen on the CPUs of the path in %d of %d trials, and no time or rate shows it", p.Disturbed, p.Of)
}

// pathVerdict returns which component is at fault for something on a path.
func pathVerdict(p plan.Path) Verdict {
	switch p {
	case HostPath:
		return Node
	case ServicePath:
		return Service
	}
	return CNI
}

// placesText lists at most the first three counters, with their places and values.
func placesText(at []At) string {
	return strings.Join(each.Of(at[:min(len(at), 3)], func(a At) string { return fmt.Sprintf("%s %s %d", a.Place.Name, a.Counter, a.N) }), ", ")
}

// faultVerdict returns which component is at fault for something at a place.
func (p Place) faultVerdict() Verdict {
	if p.Pod {
		return CNI
	}
	return Node
}
