package diagnose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

func judgeConntrackFull(e *Evidence) []Statement {
	most := 0.0
	for _, p := range e.Places {
		refused := p.Counters["conntrack.drop"] - p.Counters["conntrack.insert_failed"]
		early := p.Counters["conntrack.early_drop"]
		use := float64(p.Tracked) / float64(max(p.TrackedMax, 1))
		if p.TrackedMax > 0 {
			most = max(most, use)
		}
		if refused >= fewErrors || early >= fewErrors || p.TrackedMax > 0 && use >= tableFull {
			return markProven(faultStatement(Node, p.Name, "%d of %d entries are in use; %d new connections were dropped for it, %d old ones forgotten", p.Tracked, p.TrackedMax, max(refused, 0), early))
		}
	}
	return clearStatement("at most %s of a node's entries are in use, and no connection was refused", number.Percent(most))
}

func judgeConntrackRace(e *Evidence) []Statement {
	n, at := e.sumCounters(func(_ Place, counter string) bool { return counter == "conntrack.insert_failed" })
	for _, path := range Paths {
		dead, _ := e.Paths[path].deadAndAlive()
		// A node counts the collisions of all its pods. They count only with an effect on our trials.
		hurt := append(each.Of(e.losses(path), func(l lost) string { return l.saw }), e.lateNamesText(path)...)
		if n >= fewErrors && len(dead)+len(hurt) > 0 {
			saw := fmt.Sprintf("%d new connections were dropped for it (insert_failed)", n)
			return markProven(faultStatement(Node, at[0].Place.Name, "%s", strings.Join(append([]string{saw}, hurt...), "; ")))
		}
	}
	return clearStatement("%d collisions (insert_failed)", n)
}

// droppingRules describes the two netfilter rules that dropped the most packets during the measurement. packets counts
// the drops of all rules.
func (e *Evidence) droppingRules() (all []string, packets int64) {
	type at struct {
		place string
		f     netstate.Filter
	}
	var met []at
	for _, p := range e.Places {
		for _, f := range p.Filters {
			met = append(met, at{p.Name, f})
			packets += f.Packets
		}
	}
	slices.SortStableFunc(met, func(x, y at) int { return int(y.f.Packets - x.f.Packets) })
	return each.Of(met[:min(len(met), 2)], func(a at) string {
		return fmt.Sprintf("%s: rule %d of %s (%s, %d packets)", a.place, a.f.Place, a.f.Chain, a.f.Verdict, a.f.Packets)
	}), packets
}

func judgeUnreachablePaths(e *Evidence) []Statement {
	if len(e.Paths) == 0 && len(e.Refused) == 0 {
		return unknownStatement("no trial was measured")
	}
	rules, dropped := e.droppingRules()
	for _, path := range Paths {
		dead, alive := e.Paths[path].deadAndAlive()
		// A stream may hang for other reasons, and over a long distance no echo returns in time. Names have their own
		// rule.
		far := e.isFar(path) || path.ByService() && e.isFar(PodPath) // which is a part of the path
		// Trials that had no CPU do not mean a closed path.
		noCPU := len(alive) > 0 && e.crowdedReason() != ""
		dead = slices.DeleteFunc(dead, func(k string) bool {
			p := e.Paths[path]
			return noCPU && (p.Failed[k] == 1 || strings.HasPrefix(p.Why[k], "no traffic")) || strings.HasPrefix(k, "stream") || k == resolver || k == "dns" && slices.Contains(alive, "udp") || far && slices.Contains([]string{"ping", "rr", "crr"}, k)
		})
		if len(dead) == 0 {
			continue
		}
		why, _, _ := strings.Cut(e.Paths[path].Why[dead[0]], ":")
		saw := fmt.Sprintf("%s: no answer to %s (%s)", path, strings.Join(dead, ", "), why)
		if len(alive) > 0 {
			saw += ", but to " + strings.Join(alive, ", ")
		}
		where := path.String()
		if dropped >= fewErrors {
			where = rules[0]
			return markProven(faultStatement(pathVerdict(path), where, "%s", saw))
		}
		return faultStatement(pathVerdict(path), where, "%s", saw)
	}
	for _, s := range e.Sizes {
		saw := s.oneWayText()
		switch {
		case saw == "":
		case dropped >= fewErrors:
			return markProven(faultStatement(pathVerdict(s.Path), rules[0], "%s", saw))
		default:
			return faultStatement(pathVerdict(s.Path), directionText(s.From, s.To), "%s", saw)
		}
	}
	for _, path := range Paths {
		if why := e.Refused[path.String()]; strings.Contains(why, "did not pass its proof") {
			return faultStatement(pathVerdict(path), path.String(), "%s", why)
		}
	}
	for _, s := range e.Sizes {
		if s.hasClosedPort() {
			return unknownStatement("%s, %s to %s: %s: a rule may close this port alone, or all UDP", s.Path, s.From, s.To, s.Failed)
		}
	}
	return clearStatement("every path that is served answered")
}

// Silence reports whether one end answered no datagram, no connection and no echo.
func (s Size) Silence() bool {
	return strings.Contains(s.Failed, netstate.NoAnswer) && !s.hasClosedPort()
}

// hasClosedPort reports whether no datagram to a port was answered although its host answers otherwise. That proves
// neither a fault nor its absence.
func (s Size) hasClosedPort() bool { return strings.Contains(s.Failed, netstate.ButTo) }

// oneWayText returns a text if no datagram from s.From is answered, or if most new connections from s.From to
// s.To fail; otherwise "". The trials begin at the other end.
func (s Size) oneWayText() string {
	failed, why := s.Content.Dials.Failures()
	switch {
	case s.Silence():
		return fmt.Sprintf("%s: no answer to datagrams from %s to %s", s.Path, s.From, s.To)
	case failed > len(s.Content.Dials.Times):
		return fmt.Sprintf("%s: %d of %d new connections from %s to %s failed (%s), and datagrams pass", s.Path, failed, failed+len(s.Content.Dials.Times), s.From, s.To, why)
	}
	return ""
}

// badBackend is the share of failed connections above which a backend counts as bad.
const badBackend = 0.25

func judgeUnequalBackends(e *Evidence) []Statement {
	said := e.judgeBackends(e.Backends)
	if e.Named != nil && said[0].State != Fault && len(e.Named.Backends) > 1 {
		said = e.judgeBackends(e.Named.Backends)
	}
	return said
}

// judgeBackends returns a fault if only some backends of a Service accept connections, or if one accepts them much later
// than the others.
func (e *Evidence) judgeBackends(list []Backend) []Statement {
	var bad, good []string
	for _, b := range list {
		switch {
		case b.Name == "" || len(b.Failed)+len(b.Times) == 0:
		case b.isBad():
			bad = append(bad, b.String())
		default:
			good = append(good, b.Name)
		}
	}
	switch {
	case len(good)+len(bad) < 2:
		return clearStatement("no Service with several backends was tried")
	case len(bad) > 0 && len(good) > 0:
		return markProven(faultStatement(Service, "", "%s; %s took all", strings.Join(bad, ", "), strings.Join(good, ", ")))
	}
	return e.judgeSlowBackend(list, len(good)+len(bad))
}

// judgeSlowBackend returns a fault if the slowest of n backends accepts connections later than a backend on another
// node would. It compares the shortest connect times, which a busy CPU does not delay.
func (e *Evidence) judgeSlowBackend(list []Backend, n int) []Statement {
	var fast, slow Backend
	for _, b := range list {
		if b.Name == "" || len(b.Times) == 0 {
			continue
		}
		if fast.Name == "" || b.Times[0] < fast.Times[0] {
			fast = b
		}
		if slow.Name == "" || b.Times[0] > slow.Times[0] {
			slow = b
		}
	}
	if slow.Name == fast.Name {
		return clearStatement("%d backends of a Service behave alike", n)
	}
	least, usual, ok := e.tripOf(PodPath, "crr")
	if !ok {
		least, usual, _ = e.tripTimes(PodPath)
	}
	// If the pods' path itself is as late, the rule about that path covers it.
	if slices.ContainsFunc(e.Sizes, func(s Size) bool { return s.Path == PodPath && (s.From == slow.Name || s.To == slow.Name) }) {
		least = usual
	}
	most, few := float64(slow.Times[0]), float64(fast.Times[0])
	saw := fmt.Sprintf("to connect takes %s at least to %s (%s), and %s to %s", formatNanoseconds(most), slow.Name, slow.To, formatNanoseconds(few), fast.Name)
	if most-few > longTrip+2*least {
		return faultStatement(Service, slow.Name, "%s", saw)
	}
	return clearStatement("%d backends of a Service behave alike: %s", n, saw)
}

// judgeProxyModes finds nodes whose Service rules come from different components, or from several at once.
func judgeProxyModes(e *Evidence) []Statement {
	var seen, modes []string
	for _, p := range e.Places {
		if p.Pod || p.Proxies == nil {
			continue
		}
		text := strings.Join(p.Proxies, " and ")
		if text == "" {
			text = "none"
		}
		seen, modes = append(seen, p.Name+" "+text), append(modes, text)
	}
	if len(seen) == 0 {
		return clearStatement("the rules of no node could be read")
	}
	slices.Sort(modes)
	if modes = slices.Compact(modes); len(modes) > 1 || strings.Contains(modes[0], " and ") {
		return markProven(faultStatement(Service, "", "%s", strings.Join(seen, ", ")))
	}
	return clearStatement("every node has the same: %s", strings.Join(seen, ", "))
}
