package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Thresholds as shares and quotients.
const (
	stoppedMuch   = 0.02   // of the prober's time, by a limit
	stolenMuch    = 0.05   // of the nodes' CPU time
	disturbedMuch = 0.5    // of the trials, by other work on the CPUs of the path
	foreignMuch   = 0.25   // of the time of the load's CPUs, by other tasks
	waitsMuch     = 3      // times the shortest round trip
	lostMuch      = 0.0005 // of the datagrams of an idle path
	resentMuch    = 0.0005 // of the segments of requests, one at a time
	tableFull     = 0.95   // of the entries of a table
)

// Counts below which a counter shows no fault.
const (
	fewPackets = 5
	fewErrors  = 3
)

func fault(v Verdict, where, format string, args ...any) []Statement {
	return []Statement{{State: Fault, Verdict: v, Where: where, Saw: fmt.Sprintf(format, args...)}}
}

func proven(s []Statement) []Statement {
	for i := range s {
		s[i].Proven = true
	}
	return s
}

func cleared(format string, args ...any) []Statement {
	return []Statement{{State: Clear, Saw: fmt.Sprintf(format, args...)}}
}

func unknown(format string, args ...any) []Statement {
	return []Statement{{State: Unknown, Saw: fmt.Sprintf(format, args...)}}
}

func nanoseconds(ns float64) string { return number.WithUnit("ns", ns) }

func bits(rate float64) string { return number.WithUnit("bit/s", rate) }

func cpuLimit(e *Evidence) []Statement {
	p := e.prober()
	if p.Elapsed == 0 {
		return unknown("no trial has an account of its CPUs")
	}
	share := p.Stopped.Seconds() / p.Elapsed.Seconds()
	if share > stoppedMuch {
		return proven(fault(Tester, "", "a limit stopped it for %s of %s (summed over CPUs)", number.Duration(p.Stopped), number.Duration(p.Elapsed)))
	}
	return cleared("a limit stopped the prober for %s of %s", number.Duration(p.Stopped), number.Duration(p.Elapsed))
}

func cpuSteal(e *Evidence) []Statement {
	p := e.prober()
	if p.Whole == 0 {
		return unknown("no trial has an account of its CPUs")
	}
	share := p.Steal.Seconds() / p.Whole.Seconds()
	if share > stolenMuch {
		return proven(fault(Node, "", "%s of the CPU time of the path", number.Percent(share)))
	}
	return cleared("a hypervisor took %s of the CPU time of the path", number.Percent(share))
}

// starved says why times and rates cannot be judged, "" if they can.
func (e *Evidence) starved() string {
	p := e.prober()
	switch {
	case e.blind:
		return ""
	case p.Stopped.Seconds() > stoppedMuch*p.Elapsed.Seconds():
		return "a limit of CPU time stopped the prober"
	case p.Whole > 0 && p.Steal.Seconds() > stolenMuch*p.Whole.Seconds():
		return "a hypervisor took the CPUs"
	}
	if why := e.crowded(); why != "" && e.slow() {
		return why
	}
	return ""
}

// crowded says that other work had the prober's CPUs, "" if not: other tasks took much of their time, or the hosts' usual round trip
// waits for a CPU where the shortest does not.
func (e *Evidence) crowded() string {
	p := e.prober()
	share := p.Foreign.Seconds() / max(p.Own.Seconds(), 1e-9)
	least, usual, ok := e.Paths[HostPath].trip()
	switch {
	case share > foreignMuch:
		return fmt.Sprintf("other tasks took %s of the time of its CPUs: in %d of %d trials %s", number.Percent(share), p.Disturbed, p.Of, p.Says)
	case ok && usual > waitsMuch*least && float64(p.Disturbed) > disturbedMuch*float64(p.Of):
		return fmt.Sprintf("a round trip between hosts takes %s and can take %s; in %d of %d trials %s", nanoseconds(usual), nanoseconds(least), p.Disturbed, p.Of, p.Says)
	}
	return ""
}

// slow says whether a rule of times or rates would find a fault if the prober's CPUs were its own.
func (e *Evidence) slow() bool {
	blind := *e
	blind.blind = true
	return slices.ContainsFunc([]func(*Evidence) []Statement{rate, roundTrip, overhead, service}, func(find func(*Evidence) []Statement) bool {
		return slices.ContainsFunc(find(&blind), func(s Statement) bool { return s.State == Fault })
	})
}

func starved(e *Evidence) []Statement {
	p := e.prober()
	switch why := e.crowded(); {
	case p.Of == 0:
		return unknown("no trial was measured")
	case why != "" && e.slow():
		return proven(fault(Tester, "", "%s", why))
	}
	return cleared("other work was seen on the CPUs of the path in %d of %d trials, and no time or rate shows it", p.Disturbed, p.Of)
}

// side says whose fault something on a path is.
func side(p plan.Path) Verdict {
	switch p {
	case HostPath:
		return Node
	case ServicePath:
		return Service
	}
	return CNI
}

func mtu(e *Evidence) []Statement {
	var found, sizes []string
	var bad []Statement
	for _, s := range e.Sizes {
		if s.Failed != "" {
			found = append(found, fmt.Sprintf("%s to %s: %s", s.From, s.To, s.Failed))
			continue
		}
		pass := min(s.There, s.Back)
		sizes = append(sizes, fmt.Sprintf("%s %d bytes", s.Path, pass))
		if pass < s.Own && s.Silent {
			bad = append(bad, proven(fault(side(s.Path), s.From+" to "+s.To, "%d bytes pass (%d there, %d back) where the device has an MTU of %d; nothing says so to the sender", pass, s.There, s.Back, s.Own))...)
		}
	}
	slices.SortStableFunc(bad, func(x, y Statement) int { return strings.Compare(string(y.Verdict), string(x.Verdict)) }) // the node's before the CNI's
	slices.Sort(sizes)
	switch {
	case len(bad) > 0:
		return bad
	case len(sizes) == 0:
		return unknown("no packet sizes were tried: %s", strings.Join(found, "; "))
	}
	return cleared("packets of the devices' MTU pass, or a router says what passes: %s", strings.Join(slices.Compact(sizes), ", "))
}

// among lists counters with their places, the largest first.
func among(at []At) string {
	return strings.Join(each.Of(at[:min(len(at), 3)], func(a At) string { return fmt.Sprintf("%s %s %d", a.Place.Name, a.Counter, a.N) }), ", ")
}

func checksum(e *Evidence) []Statement {
	n, at := e.count(func(_ Place, counter string) bool { return strings.HasSuffix(counter, "InCsumErrors") })
	if n < fewErrors {
		return cleared("%d packets with a wrong checksum at %d places", n, len(e.Places))
	}
	verdict := CNI
	if t := e.Paths[HostPath]; t != nil && t.wrong() >= fewErrors {
		verdict = Node // the hosts' own packets are damaged, too
	}
	where := at[0].Place.Name
	return proven(fault(verdict, where, "%d packets were dropped for it: %s", n, among(at)))
}

// wrong counts the packets with wrong checksums that the ends of a path have received.
func (t *Trials) wrong() (n int64) {
	for name, k := range t.Counters {
		if strings.HasSuffix(name, "InCsumErrors") {
			n += k
		}
	}
	return n
}

func conntrackFull(e *Evidence) []Statement {
	most := 0.0
	for _, p := range e.Places {
		refused := p.Counters["conntrack.drop"] - p.Counters["conntrack.insert_failed"]
		early := p.Counters["conntrack.early_drop"]
		use := float64(p.Tracked) / float64(max(p.TrackedMax, 1))
		if p.TrackedMax > 0 {
			most = max(most, use)
		}
		if refused >= fewErrors || early >= fewErrors || p.TrackedMax > 0 && use >= tableFull {
			return proven(fault(Node, p.Name, "%d of %d entries are in use; %d new connections were dropped for it, %d old ones forgotten", p.Tracked, p.TrackedMax, max(refused, 0), early))
		}
	}
	return cleared("at most %s of a node's entries are in use, and no connection was refused", number.Percent(most))
}

func conntrackRace(e *Evidence) []Statement {
	n, at := e.count(func(_ Place, counter string) bool { return counter == "conntrack.insert_failed" })
	for _, path := range Paths {
		dead, _ := e.Paths[path].dead()
		// A node counts the collisions of all its pods: without an effect on our trials they do not count.
		if hurt := e.losses(path); n >= fewErrors && len(dead)+len(hurt) > 0 {
			saw := fmt.Sprintf("%d new connections were dropped for it (insert_failed)", n)
			return proven(fault(Node, at[0].Place.Name, "%s", strings.Join(append([]string{saw}, each.Of(hurt, func(l lost) string { return l.saw })...), "; ")))
		}
	}
	return cleared("%d collisions (insert_failed)", n)
}

// filters lists the rules of netfilter that dropped packets while it was measured, the busiest first.
func (e *Evidence) filters() (all []string, packets int64) {
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

func unreachable(e *Evidence) []Statement {
	if len(e.Paths) == 0 {
		return unknown("no trial was measured")
	}
	rules, dropped := e.filters()
	for _, path := range Paths {
		dead, alive := e.Paths[path].dead()
		// A stream hangs for other reasons, too.
		dead = slices.DeleteFunc(dead, func(k string) bool { return strings.HasPrefix(k, "stream") })
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
			return proven(fault(side(path), where, "%s", saw))
		}
		return fault(side(path), where, "%s", saw)
	}
	for _, path := range Paths {
		if why := e.Refused[path.String()]; strings.Contains(why, "did not pass its proof") && (path == HostPath || e.Paths[HostPath] != nil) {
			return fault(side(path), path.String(), "%s", why)
		}
	}
	return cleared("every path that is served answered")
}

// badBackend is the share of connections to a backend that may fail while the others take all.
const badBackend = 0.25

func backend(e *Evidence) []Statement {
	failed := func(b Backend) (n int) {
		for _, k := range b.Failed {
			n += k
		}
		return n
	}
	var bad, good []string
	for _, b := range e.Backends {
		switch all := failed(b) + len(b.Times); {
		case b.Name == "" || all == 0:
		case float64(failed(b)) > badBackend*float64(all):
			bad = append(bad, fmt.Sprintf("%s (%s) failed %d of %d connections (%s)", b.Name, b.To, failed(b), all, strings.Join(slices.Sorted(maps.Keys(b.Failed)), ", ")))
		default:
			good = append(good, b.Name)
		}
	}
	switch {
	case len(good)+len(bad) < 2:
		return cleared("no Service with several backends was tried")
	case len(bad) > 0 && len(good) > 0:
		return proven(fault(Service, "", "%s; %s took all", strings.Join(bad, ", "), strings.Join(good, ", ")))
	}
	return cleared("%d backends of a Service behave alike", len(good)+len(bad))
}

// standing says in words what a shaper does.
func standing(s netstate.Shaper) string {
	text := s.Kind + " on " + s.Device
	if s.Rate > 0 {
		text += " with " + bits(s.Rate)
	}
	if s.Says != "" {
		text += ": " + s.Says
	}
	return text
}

// shaper finds a queueing discipline that explains what was measured: a rate that the bulk of a path does not exceed, or one that
// delays or loses by intention.
func shaper(e *Evidence) []Statement {
	starved := e.starved()
	for _, p := range e.Places {
		for _, s := range p.Shapers {
			verdict := Node
			if p.Pod {
				verdict = CNI
			}
			if s.Rate == 0 {
				return proven(fault(verdict, p.Name, "%s", standing(s)))
			}
			for _, path := range Paths {
				for _, kind := range []string{"stream", "stream reverse"} {
					got, ok := e.Paths[path].median(kind, "goodput")
					if ok && starved == "" && got > 0.6*s.Rate && got < 1.05*s.Rate {
						return proven(fault(verdict, p.Name, "%s; a stream (%s) got %s, no more", standing(s), path, bits(got)))
					}
				}
			}
		}
	}
	return cleared("no queueing discipline on the path delays, loses or holds a stream to its rate")
}

// lost is a loss that was measured on a path.
type lost struct {
	path  plan.Path
	share float64
	saw   string
}

// losses lists the losses on each path: of datagrams, of echoes, of segments of single requests.
func (e *Evidence) losses(path plan.Path) (all []lost) {
	t := e.Paths[path]
	if t == nil {
		return nil
	}
	add := func(n, of uint64, much float64, what string) {
		share := Lossy{of, n}.share()
		if n >= fewPackets && share >= much {
			all = append(all, lost{path, share, fmt.Sprintf("%s of %d %s (%s)", number.Percent(share), of, what, path)})
		}
	}
	add(t.Datagrams.Lost, t.Datagrams.Sent, lostMuch, "datagrams")
	if e.starved() == "" { // an echo that waits for a CPU counts as lost
		add(t.Echoes.Lost, t.Echoes.Sent, lostMuch, "echoes")
	}
	add(uint64(max(0, t.Counters["Tcp.RetransSegs"])), uint64(max(0, t.Counters["Tcp.OutSegs"])), resentMuch, "segments of requests, sent again")
	return all
}

func loss(e *Evidence) []Statement {
	host, pod, behind := e.losses(HostPath), e.losses(PodPath), e.losses(ServicePath)
	tried := uint64(0)
	for _, t := range e.Paths {
		tried += t.Datagrams.Sent + t.Echoes.Sent
	}
	if tried == 0 {
		return unknown("no datagram was sent and counted")
	}
	all := slices.Concat(host, pod, behind)
	if len(all) == 0 {
		return cleared("of %d datagrams and echoes no path lost more than %s", tried, number.Percent(lostMuch))
	}
	verdict := Service
	switch {
	case len(host) > 0 && (len(pod) == 0 || 3*host[0].share > pod[0].share):
		verdict = Node
	case len(pod) > 0:
		verdict = CNI
	}
	saw := strings.Join(each.Of(all[:min(len(all), 3)], func(l lost) string { return l.saw }), ", ")
	where, direct := all[0].path.String(), false
	rules, dropped := e.filters()
	n, at := e.dropCounts()
	switch {
	case dropped >= fewPackets:
		where, direct = rules[0], true
	case n >= fewPackets:
		where, direct = among(at[:1]), true
	}
	return []Statement{{State: Fault, Verdict: verdict, Where: where, Saw: saw, Proven: direct}}
}

// dropCounts sums the counters of drops of devices and backlogs.
func (e *Evidence) dropCounts() (int64, []At) {
	return e.count(func(_ Place, counter string) bool {
		return counter == "softnet.dropped" || strings.HasSuffix(counter, ".rx_dropped") || strings.HasSuffix(counter, ".tx_dropped") ||
			strings.HasSuffix(counter, ".rx_errors") || strings.HasSuffix(counter, ".tx_errors") || strings.HasSuffix(counter, ".rx_frame")
	})
}

// manyDrops is how many drops of a device or a backlog are a fault without a measured loss: bulk overruns queues now and then.
const manyDrops = 1000

func drops(e *Evidence) []Statement {
	n, at := e.dropCounts()
	if n >= manyDrops {
		verdict := Node
		if at[0].Place.Pod {
			verdict = CNI
		}
		return proven(fault(verdict, at[0].Place.Name, "%d packets: %s", n, among(at)))
	}
	saw := fmt.Sprintf("devices and backlogs dropped %d packets", n)
	if n > 0 {
		saw += ": " + among(at)
	}
	return cleared("%s", saw)
}

// slowLine is a rate in bit/s that no NIC of a server of this century is below.
const slowLine = 0.9e9

func rate(e *Evidence) []Statement {
	there, ok := e.Paths[HostPath].median("stream", "goodput")
	back, also := e.Paths[HostPath].median("stream reverse", "goodput")
	if !ok || !also {
		return unknown("no stream between the hosts was measured both ways")
	}
	if why := e.starved(); why != "" {
		return unknown("%s", why)
	}
	speed := 0
	for _, p := range e.Places {
		for _, s := range p.SpeedMbit {
			if !p.Pod && s > 0 && (speed == 0 || s < speed) {
				speed = s
			}
		}
	}
	least := min(there, back)
	saw := fmt.Sprintf("a stream between the hosts gets %s there and %s back", bits(there), bits(back))
	switch {
	case speed > 0 && least < 0.5e6*float64(speed):
		return fault(Node, "", "%s; the NIC has %s", saw, bits(1e6*float64(speed)))
	case 3*least < max(there, back):
		return fault(Node, "", "%s", saw)
	case least < slowLine:
		return fault(Node, "", "%s", saw)
	}
	return cleared("%s", saw)
}

const (
	// longTrip is a round trip in ns that nodes of one place stay below: a switch takes 1 us, a zone of a cloud 500 us.
	longTrip = 1e6
	// ownTrip is what a CNI may add to a round trip in ns at least, whatever the hosts take. It was chosen, and not measured.
	ownTrip = 60e3
)

// trip returns the shortest and the usual round trip on a path, of requests and echoes.
func (t *Trials) trip() (least, usual float64, ok bool) {
	for _, kind := range []string{"rr", "ping"} {
		l, has := t.median(kind, "rtt.min")
		u, too := t.median(kind, "rtt.p50")
		if has && too && (!ok || u < usual) {
			least, usual, ok = l, u, true
		}
	}
	return least, usual, ok
}

// allowed is how much longer a round trip between pods may be than one between hosts: as much again twice, or what encapsulation and
// the processing of both ends take.
func (e *Evidence) allowed(host float64) float64 {
	if e.Encapsulation == "wireguard" {
		return max(4*host, 4*ownTrip)
	}
	return max(2*host, ownTrip)
}

func roundTrip(e *Evidence) []Statement {
	hostLeast, host, ok := e.Paths[HostPath].trip()
	podLeast, pod, also := e.Paths[PodPath].trip()
	if !ok || !also {
		return unknown("the round trip of a path was not measured")
	}
	saw := fmt.Sprintf("%s between hosts (at least %s), %s between pods (at least %s)", nanoseconds(host), nanoseconds(hostLeast), nanoseconds(pod), nanoseconds(podLeast))
	// The shortest of thousands is what the path takes when no other work has the CPUs: it needs no quiet machine.
	switch {
	case podLeast-hostLeast > max(0.5*longTrip, e.allowed(hostLeast)):
		return fault(CNI, PodPath.String(), "%s", saw)
	case hostLeast > 0.5*longTrip && host > longTrip:
		return fault(Node, HostPath.String(), "%s", saw)
	}
	if why := e.starved(); why != "" {
		return unknown("%s; %s", saw, why)
	}
	if host > longTrip {
		return fault(Node, HostPath.String(), "%s; the usual one waits, the shortest does not: a queue", saw)
	}
	return cleared("%s", saw)
}

func asymmetric(e *Evidence) []Statement {
	for _, s := range e.Sizes {
		if s.HopsThere != s.HopsBack && s.HopsThere > 0 && s.HopsBack > 0 {
			return proven(fault(side(s.Path), s.From+" to "+s.To, "packets pass %d hops there and %d back", s.HopsThere, s.HopsBack))
		}
	}
	n, at := e.count(func(_ Place, counter string) bool { return counter == "TcpExt.IPReversePathFilter" })
	if n >= fewErrors {
		return proven(fault(Node, at[0].Place.Name, "%d packets were dropped because their source is not routed to where they came from (rp_filter)", n))
	}
	return cleared("as many hops there as back, and no source address came from a wrong device")
}

func overhead(e *Evidence) []Statement {
	host, ok := e.Paths[HostPath].median("rr", "rtt.p50")
	pod, also := e.Paths[PodPath].median("rr", "rtt.p50")
	hostBulk, bulk := e.Paths[HostPath].median("stream", "goodput")
	podBulk, both := e.Paths[PodPath].median("stream", "goodput")
	if !ok || !also {
		return unknown("requests were not measured on both paths")
	}
	if why := e.starved(); why != "" {
		return unknown("%s", why)
	}
	saw := fmt.Sprintf("requests take %s between pods and %s between hosts", nanoseconds(pod), nanoseconds(host))
	least := 0.2
	if e.Encapsulation == "wireguard" {
		least = 0.02 // encryption costs as much as everything else together
	}
	if bulk && both {
		saw += fmt.Sprintf("; a stream gets %s and %s", bits(podBulk), bits(hostBulk))
	}
	noise := max(e.Paths[HostPath].spread("rr", "rtt.p50"), e.Paths[PodPath].spread("rr", "rtt.p50"))
	switch {
	case pod-host > e.allowed(host)+noise*pod:
		return fault(CNI, PodPath.String(), "%s", saw)
	case bulk && both && podBulk < least*hostBulk:
		return fault(CNI, PodPath.String(), "%s", saw)
	}
	return cleared("%s", saw)
}

func service(e *Evidence) []Statement {
	direct, ok := e.Paths[PodPath].median("crr", "connect_time.p50")
	through, also := e.Paths[ServicePath].median("crr", "connect_time.p50")
	if !ok || !also {
		return cleared("no Service was tried, or no connection came about")
	}
	if why := e.starved(); why != "" {
		return unknown("%s", why)
	}
	saw := fmt.Sprintf("to connect takes %s through the Service and %s to the pod", nanoseconds(through), nanoseconds(direct))
	noise := max(e.Paths[ServicePath].spread("crr", "connect_time.p50"), e.Paths[PodPath].spread("crr", "connect_time.p50"))
	if through-direct > e.allowed(direct)+noise*through {
		return fault(Service, ServicePath.String(), "%s", saw)
	}
	return cleared("%s", saw)
}
