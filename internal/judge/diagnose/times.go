package diagnose

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/plan"
)

// shaperText describes a shaper's settings.
func shaperText(s netstate.Shaper) string {
	text := s.Kind + " on " + s.Device
	if s.Rate > 0 {
		text += " with " + formatBitRate(s.Rate)
	}
	if s.Says != "" {
		text += ": " + s.Says
	}
	return text
}

// judgeShapers finds a queueing discipline that explains the measurements. It delays or loses packets on purpose, or
// it limits the path's bulk data to its rate. Bulk data at exactly that rate are evidence even on a busy machine.
func judgeShapers(e *Evidence) []Statement {
	for _, p := range e.Places {
		for _, s := range p.Shapers {
			if s.Rate == 0 {
				return markProven(faultStatement(p.faultVerdict(), p.Name, "%s", shaperText(s)))
			}
			for _, path := range Paths {
				for _, kind := range []string{"stream", "stream reverse"} {
					got, ok := e.Paths[path].median(kind, "goodput")
					if !ok || got < 0.6*s.Rate || got > 1.05*s.Rate {
						continue
					}
					verdict := p.faultVerdict()
					if path != HostPath {
						verdict = CNI // the path between hosts is not limited
					}
					return markProven(faultStatement(verdict, p.Name, "%s; a stream (%s) got %s, no more", shaperText(s), path, formatBitRate(got)))
				}
			}
		}
	}
	return clearStatement("no queueing discipline on the path delays, loses or holds a stream to its rate")
}

// slowLine is a rate in bit/s that every NIC of a modern server exceeds.
const slowLine = 0.9e9

func judgeHostStreamRate(e *Evidence) []Statement {
	there, ok := e.Paths[HostPath].median("stream", "goodput")
	back, also := e.Paths[HostPath].median("stream reverse", "goodput")
	if !ok || !also {
		return unknownStatement("no stream between the hosts was measured both ways")
	}
	if why := e.starvedReason(); why != "" {
		return unknownStatement("%s", why)
	}
	speed := 0
	for _, p := range e.Places {
		for _, s := range p.SpeedMbit {
			if !p.Pod && s > 0 && (speed == 0 || s < speed) {
				speed = s
			}
		}
	}
	if long, _, _ := e.tripTimes(HostPath); long > longTrip {
		return unknownStatement("streams are short, and the round trip is long: %s there and %s back", formatBitRate(there), formatBitRate(back))
	}
	least := min(there, back)
	saw := fmt.Sprintf("a stream between the hosts gets %s there and %s back", formatBitRate(there), formatBitRate(back))
	switch {
	case speed > 0 && least < 0.5e6*float64(speed):
		return faultStatement(Node, "", "%s; the NIC has %s", saw, formatBitRate(1e6*float64(speed)))
	case 3*least < max(there, back), least < slowLine:
		return faultStatement(Node, "", "%s", saw)
	}
	return clearStatement("%s", saw)
}

const (
	// longTrip is a round trip in ns that nodes in one place do not reach: a switch takes 1 us, a zone of a cloud 500
	// us.
	longTrip = 0.6e6
	// queuedTrip is the usual round trip in ns above which packets wait in a queue, if the shortest round trip is not long.
	queuedTrip = 1e6
	// ownTrip is the round trip in ns that a CNI may add in any case, whatever the hosts take. It is a judgement, not
	// measured.
	ownTrip = 60e3
)

// lateEcho is a round trip in ns at which a trial of echoes may end before the first has returned.
const lateEcho = 50e6

// tripKind is a measurement of one round trip. kind is its workload, name its metric without the statistic, and text
// describes it.
type tripKind struct{ kind, name, text string }

// tripKinds has connections last: tripTimes uses them only if neither requests nor echoes were measured.
var tripKinds = []tripKind{{"rr", "rtt", "a request"}, {"ping", "rtt", "an echo"}, {"crr", "connect_time", "to connect"}}

// tripTimes returns the shortest and the usual round trip on a path in ns: of requests or echoes, whichever usually
// takes less; of connections if neither was measured.
func (e *Evidence) tripTimes(path plan.Path) (least, usual float64, ok bool) {
	for _, m := range tripKinds {
		l, u, has := e.tripOf(path, m.kind)
		if has && (!ok || m.kind != "crr" && u < usual) {
			least, usual, ok = l, u, true
		}
	}
	return least, usual, ok
}

// tripOf returns the shortest and the usual round trip of a kind in ns. If no trial measured "crr", it uses the
// connections that were opened between the trials.
func (e *Evidence) tripOf(path plan.Path, kind string) (least, usual float64, ok bool) {
	t := e.Paths[path]
	for _, m := range tripKinds {
		l, has := t.least(m.kind, m.name+".min")
		u, too := t.median(m.kind, m.name+".p50")
		if m.kind == kind && has && too {
			return l, u, true
		}
	}
	if kind != "crr" {
		return 0, 0, false
	}
	for _, s := range e.Sizes {
		if n := len(s.Content.Dials.Times); s.Path == path && n > 0 {
			return float64(s.Content.Dials.Times[0]), float64(s.Content.Dials.Times[n/2]), true
		}
	}
	return 0, 0, false
}

// isFar reports whether a round trip of any kind on a path is so long that a trial may end before its first answer.
func (e *Evidence) isFar(path plan.Path) bool {
	return slices.ContainsFunc(tripKinds, func(m tripKind) bool {
		_, usual, ok := e.tripOf(path, m.kind)
		return ok && usual > lateEcho
	})
}

// allowedExcess returns by how many ns a round trip between pods may exceed host, the hosts' round trip, for
// encapsulation and processing at both ends. It is twice host and at least ownTrip; with WireGuard four times host and
// at least 4*ownTrip.
func (e *Evidence) allowedExcess(host float64) float64 {
	if e.Encapsulation == "wireguard" {
		return max(4*host, 4*ownTrip)
	}
	return max(2*host, ownTrip)
}

// carriedByUDP are the encapsulations whose packets are UDP datagrams between hosts.
var carriedByUDP = map[string]bool{"vxlan": true, "wireguard": true}

func judgeRoundTrip(e *Evidence) []Statement {
	_, host, ok := e.tripTimes(HostPath)
	_, pod, also := e.tripTimes(PodPath)
	if !ok || !also {
		return unknownStatement("the round trip of a path was not measured")
	}
	saw := fmt.Sprintf("%s between hosts, %s between pods", formatNanoseconds(host), formatNanoseconds(pod))
	// TCP may be late although echoes are not, and new connections although requests are not.
	requests := false
	for _, m := range tripKinds {
		hostLeast, _, ok := e.tripOf(HostPath, m.kind)
		podLeast, _, also := e.tripOf(PodPath, m.kind)
		if !ok || !also {
			continue
		}
		// There are fewer connections, so on a busy machine only a large delay counts.
		most := 0.0
		if requests && m.kind == "crr" && e.crowdedReason() != "" {
			most = lateConnect
		}
		requests = requests || m.kind == "rr"
		saw += fmt.Sprintf("; %s takes at least %s and %s", m.text, formatNanoseconds(hostLeast), formatNanoseconds(podLeast))
		// The shortest of thousands shows the path without other work on the CPUs, even on a busy machine.
		more := podLeast - hostLeast
		switch {
		case more > max(0.5e6, most, 0.2*hostLeast, e.allowedExcess(min(hostLeast, longTrip))) && (hostLeast < longTrip || more > hostLeast):
			if name := e.leastNameTime(HostPath); carriedByUDP[e.Encapsulation] && name > 0.9*podLeast {
				return faultStatement(Node, HostPath.String(), "%s; a name takes %s at least between hosts: datagrams are late there, and they carry the packets of pods", saw, formatNanoseconds(name))
			}
			return faultStatement(CNI, PodPath.String(), "%s", saw)
		case hostLeast > max(longTrip, most):
			return faultStatement(Node, HostPath.String(), "%s", saw)
		}
	}
	if s := e.largePacketsFault(); s != nil {
		return s
	}
	if why := e.starvedReason(); why != "" {
		return unknownStatement("%s; %s", saw, why)
	}
	if host > queuedTrip {
		return faultStatement(Node, HostPath.String(), "%s; the usual one waits, the shortest does not: a queue, or a delay that varies", saw)
	}
	if pod > queuedTrip && pod > 2*host {
		return faultStatement(CNI, PodPath.String(), "%s; the usual one waits, the shortest does not: a queue, or a delay that varies", saw)
	}
	if s := e.lateRequestsFault(); s != nil {
		return s
	}
	return clearStatement("%s", saw)
}

// largePacketsFault returns a fault if large packets are later than small ones on a path, otherwise nil. It compares
// the shortest round trips of both. On a busy machine only a large delay counts.
func (e *Evidence) largePacketsFault() []Statement {
	much := longTrip
	if e.crowdedReason() != "" {
		much = lateConnect
	}
	for _, path := range []plan.Path{HostPath, PodPath} {
		for _, s := range e.Sizes {
			t := s.Shortest
			if s.Path != path || s.Failed != "" || t.Small == 0 || e.foreignShare() > foreignMost {
				continue
			}
			for _, late := range []struct {
				way  string
				trip int64
			}{{directionText(s.From, s.To), t.There}, {directionText(s.To, s.From), t.Back}} {
				if float64(late.trip-t.Small) > much+2*float64(t.Small) {
					return faultStatement(pathVerdict(path), late.way, "a large packet and its answer take %s at least, small ones %s: large ones alone are late", formatNanoseconds(float64(late.trip)), formatNanoseconds(float64(t.Small)))
				}
			}
		}
	}
	return nil
}

const (
	// someMuch is how many times longer than the usual request the average request must be to show that some requests
	// wait long.
	// someMost is the same between hosts, which have no baseline. Both are judgements, not measured.
	someMuch, someMost = 3, 5
	// someTrip is the least average time of a request in ns for both.
	someTrip = 100e3
)

// lateRequestsFault returns a fault if a few requests wait so long that they take most of the time, while the usual
// request is short; otherwise nil.
func (e *Evidence) lateRequestsFault() []Statement {
	const text = "the usual request takes %s, the average one %s: some packets alone are late"
	host, pods := e.Paths[HostPath], e.Paths[PodPath]
	hostUsual, ok := host.median("rr", "rtt.p50")
	hostMean, also := host.least("rr", "rtt.mean")
	if !ok || !also {
		return nil
	}
	if hostMean > max(someMost*hostUsual, someTrip) {
		return faultStatement(Node, HostPath.String(), text, formatNanoseconds(hostUsual), formatNanoseconds(hostMean))
	}
	usual, ok := pods.median("rr", "rtt.p50")
	mean, also := pods.least("rr", "rtt.mean")
	if ok && also && mean > max(someMuch*usual, someMuch*slices.Max(host.Values["rr rtt.mean"]), someTrip) {
		return faultStatement(CNI, PodPath.String(), text, formatNanoseconds(usual), formatNanoseconds(mean))
	}
	return nil
}

func judgePodOverhead(e *Evidence) []Statement {
	host, ok := e.Paths[HostPath].median("rr", "rtt.p50")
	pod, also := e.Paths[PodPath].median("rr", "rtt.p50")
	hostBulk, bulk := e.Paths[HostPath].median("stream", "goodput")
	podBulk, both := e.Paths[PodPath].median("stream", "goodput")
	if !ok || !also {
		return unknownStatement("requests were not measured on both paths")
	}
	if why := e.starvedReason(); why != "" {
		return unknownStatement("%s", why)
	}
	saw := fmt.Sprintf("requests take %s between pods and %s between hosts", formatNanoseconds(pod), formatNanoseconds(host))
	least := 0.2
	if e.Encapsulation == "wireguard" {
		least = 0.02 // encryption costs as much as everything else together
	}
	if bulk && both {
		saw += fmt.Sprintf("; a stream gets %s and %s", formatBitRate(podBulk), formatBitRate(hostBulk))
	}
	noise := max(e.Paths[HostPath].relativeSpread("rr", "rtt.p50"), e.Paths[PodPath].relativeSpread("rr", "rtt.p50"))
	switch {
	case pod-host > e.allowedExcess(host)+noise*pod,
		bulk && both && podBulk < least*hostBulk && host < longTrip: // a short stream over a long path does not show a rate
		return faultStatement(CNI, PodPath.String(), "%s", saw)
	}
	return clearStatement("%s", saw)
}

// serviceConnectTimes returns the shortest times in ns to connect through the Service (least) and directly to the pod
// (shortest). late reports whether least exceeds shortest by more than much ns plus twice shortest.
func (e *Evidence) serviceConnectTimes(much float64) (least, shortest float64, late bool) {
	shortest, _ = e.Paths[PodPath].least("crr", "connect_time.min")
	least, ok := e.Paths[ServicePath].least("crr", "connect_time.min")
	return least, shortest, ok && least-shortest > much+2*shortest
}

func judgeSlowService(e *Evidence) []Statement {
	direct, ok := e.Paths[PodPath].median("crr", "connect_time.p50")
	through, also := e.Paths[ServicePath].median("crr", "connect_time.p50")
	if !ok || !also {
		return clearStatement("no Service was tried, or no connection came about")
	}
	saw := fmt.Sprintf("to connect takes %s through the Service and %s to the pod", formatNanoseconds(through), formatNanoseconds(direct))
	if least, shortest, late := e.serviceConnectTimes(longTrip); late {
		return faultStatement(Service, ServicePath.String(), "%s; at least %s, and %s", saw, formatNanoseconds(least), formatNanoseconds(shortest))
	}
	if why := e.starvedReason(); why != "" {
		return unknownStatement("%s", why)
	}
	noise := max(e.Paths[ServicePath].relativeSpread("crr", "connect_time.p50"), e.Paths[PodPath].relativeSpread("crr", "connect_time.p50"))
	if through-direct > e.allowedExcess(direct)+noise*through {
		return faultStatement(Service, ServicePath.String(), "%s", saw)
	}
	return clearStatement("%s", saw)
}
