package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// resolver is the workload that queries the cluster's resolver; "dns" queries a server of cnibench.
const resolver = "resolver"

const (
	// lateNames is the share of resolutions that may wait for a timeout without a fault.
	lateNames = 0.005
	// mostNames is the share of timeouts above which waiting for a CPU is not the cause. It is a judgement, not measured.
	mostNames = 0.5
	// slowName is the usual time in ns of a name that the cluster's resolver knows and answers from memory.
	slowName = 20e6
)

// lateNamesText returns a text if many resolutions by our own DNS server waited for a timeout on a path; otherwise nil.
func (e *Evidence) lateNamesText(path plan.Path) []string {
	return e.waitedNamesText(path, "dns", "names")
}

// waitedNamesText returns a text if many resolutions of a workload waited for a timeout on a path; otherwise nil. It
// leaves out timeouts that a busy CPU or one stop of the machine explains.
func (e *Evidence) waitedNamesText(path plan.Path, kind, what string) []string {
	t := e.Paths[path]
	if t == nil {
		return nil
	}
	l := t.Names[kind]
	if l.Lost < fewErrors || l.share() < lateNames {
		return nil
	}
	// If other tasks use most of the CPUs, some timeouts are waits for a CPU. Not so if most names time out, or if a
	// rule drops them.
	if _, dropped := e.droppingRules(); !e.blind && e.foreignShare() > foreignMost && l.share() < mostNames && dropped < fewErrors {
		return nil
	}
	// A machine that stops for a second delays all pending names, in one trial.
	if few := l.Lost < 10*fewErrors; few && t.Succeeded[kind] > 1 && t.Stalled[kind] == l.Lost {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d %s waited for a timeout of the resolver (%s)", l.Lost, l.Sent, what, path)}
}

// leastNameTime returns the shortest time of a name from our server on a path in ns, 0 if unknown.
func (e *Evidence) leastNameTime(path plan.Path) float64 {
	least, _ := e.Paths[path].least("dns", "resolution_time.min")
	return least
}

// describeLateness describes whether other datagrams of a path are as late as names are. name is the time of a name in ns.
func (e *Evidence) describeLateness(path plan.Path, name float64) string {
	if path.ByService() {
		path = PodPath // which is a part of the path
	}
	for _, s := range e.Sizes {
		trip := s.Trip
		if s.Shortest.Small > 0 { // of a flow that has had packets before
			trip = min(trip, s.Shortest.Small)
		}
		if s.Path == path && trip > 0 && float64(trip) < name/2 {
			return fmt.Sprintf("names alone are late, or the first packet of a flow: another datagram takes %s there and back", formatNanoseconds(float64(trip)))
		}
	}
	return "datagrams are late"
}

// judgeResolutions finds names that are resolved late although datagrams are not lost. Two queries from one socket share an
// entry of the connection table, and may both be lost with it. If only the cluster's resolver is late or silent, the
// resolver itself is at fault.
func judgeResolutions(e *Evidence) []Statement {
	var seen []string
	for _, path := range Paths {
		if late := e.lateNamesText(path); len(late) > 0 {
			s := faultStatement(pathVerdict(path), path.String(), "%s, and other datagrams pass", late[0])
			if rules, dropped := e.droppingRules(); dropped >= fewErrors {
				s[0].Where, s[0].Proven = rules[0], true
			}
			return s
		}
		if dead, alive := e.Paths[path].deadAndAlive(); slices.Contains(dead, "dns") && slices.Contains(alive, "udp") && e.crowdedReason() == "" {
			why, _, _ := strings.Cut(e.Paths[path].Why["dns"], ":")
			return faultStatement(pathVerdict(path), path.String(), "no name was resolved (%s), and other datagrams pass", why)
		}
		least := e.leastNameTime(path)
		if trip, _, ok := e.tripTimes(path); ok && least > longTrip+2*trip && (e.lateNamesAnyway(path) || e.starvedReason() == "") {
			return faultStatement(pathVerdict(path), path.String(), "a name takes %s at least, and a request %s: %s", formatNanoseconds(least), formatNanoseconds(trip), e.describeLateness(path, least))
		}
		if v, ok := e.Paths[path].median("dns", "resolution_time.p50"); ok {
			seen = append(seen, formatNanoseconds(v)+" ("+path.String()+")")
		}
	}
	t := e.Paths[ServicePath]
	if t != nil && t.Failed[resolver] > 0 && t.Succeeded[resolver] == 0 {
		why, _, _ := strings.Cut(t.Why[resolver], ":")
		return faultStatement(Resolver, "", "it resolved no name (%s), and a server of ours behind a Service answers", why)
	}
	if late := e.waitedNamesText(ServicePath, resolver, "names of the cluster"); len(late) > 0 {
		return faultStatement(Resolver, "", "%s, and a server of ours behind a Service answers in time", late[0])
	}
	if v, ok := t.median(resolver, "resolution_time.p50"); ok {
		saw := fmt.Sprintf("the cluster's resolver takes %s for a name of the cluster", formatNanoseconds(v))
		if failed := t.Failed[resolver]; failed > 0 {
			saw += "; " + number.Counted(failed, "trial") + " failed"
		}
		if least, _, trip := e.tripTimes(ServicePath); trip && v > slowName+4*least && e.starvedReason() == "" {
			return faultStatement(Resolver, "", "%s", saw)
		}
		seen = append(seen, saw)
	}
	if len(seen) == 0 {
		return clearStatement("no name was resolved")
	}
	return clearStatement("names are resolved: %s", strings.Join(seen, ", "))
}
