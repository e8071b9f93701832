package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

func judgeMTUBlackHole(e *Evidence) []Statement {
	var found, sizes []string
	var bad []Statement
	for _, s := range e.Sizes {
		if s.Failed != "" {
			found = append(found, fmt.Sprintf("%s to %s: %s", s.From, s.To, s.Failed))
			continue
		}
		sizes = append(sizes, fmt.Sprintf("%s %d bytes", s.Path, min(s.There, s.Back)))
		if s.dropsSilently() {
			bad = append(bad, markProven(faultStatement(pathVerdict(s.Path), s.From+" to "+s.To, "%s where the device has an MTU of %d; nothing says so to the sender", passingSizes(s), s.Own))...)
		}
	}
	slices.SortStableFunc(bad, func(x, y Statement) int { return strings.Compare(string(y.Verdict), string(x.Verdict)) }) // the node's before the CNI's
	slices.Sort(sizes)
	switch {
	case len(bad) > 0:
		return bad
	case len(sizes) == 0:
		return unknownStatement("no packet sizes were tried: %s", strings.Join(found, "; "))
	}
	return clearStatement("packets of the devices' MTU pass, or a router says what passes: %s", strings.Join(slices.Compact(sizes), ", "))
}

// dropsSilently reports whether packets that the device may send are dropped silently.
func (s Size) dropsSilently() bool { return s.Failed == "" && min(s.There, s.Back) < s.Own && s.Silent }

// passingSizes describes which packet sizes pass, and names the direction if only one direction limits them.
func passingSizes(s Size) string {
	switch {
	case s.There < s.Back && s.Back >= s.Own:
		return fmt.Sprintf("%d bytes pass one way (%s), and %d back", s.There, directionText(s.From, s.To), s.Back)
	case s.Back < s.There && s.There >= s.Own:
		return fmt.Sprintf("%d bytes pass one way (%s), and %d back", s.Back, directionText(s.To, s.From), s.There)
	}
	return fmt.Sprintf("%d bytes pass (%d there, %d back)", min(s.There, s.Back), s.There, s.Back)
}

func directionText(from, to string) string { return from + " to " + to }

// sent sums the messages with known content in one direction (way) of a path: small datagrams, large ones, those without a
// checksum (bare), and small and large parts of a stream (words, blocks).
type sent struct {
	path                              plan.Path
	way                               string
	small, large, bare, words, blocks netstate.Traffic
}

// sentByDirection returns what was sent on a path in each direction.
func (e *Evidence) sentByDirection(path plan.Path) (all []*sent) {
	at := func(way string) *sent {
		i := slices.IndexFunc(all, func(s *sent) bool { return s.way == way })
		if i < 0 {
			i, all = len(all), append(all, &sent{path: path, way: way})
		}
		return all[i]
	}
	for _, s := range e.Sizes {
		if s.Path != path || s.Failed != "" {
			continue
		}
		there, back, c := at(directionText(s.From, s.To)), at(directionText(s.To, s.From)), s.Content
		there.small, back.small = there.small.Plus(c.Small.There), back.small.Plus(c.Small.Back)
		there.large, back.large = there.large.Plus(c.Large.There), back.large.Plus(c.Large.Back)
		there.bare, back.bare = there.bare.Plus(c.Bare.There), back.bare.Plus(c.Bare.Back)
		there.words, back.words = there.words.Plus(c.Words.There), back.words.Plus(c.Words.Back)
		there.blocks, back.blocks = there.blocks.Plus(c.Blocks.There), back.blocks.Plus(c.Blocks.Back)
	}
	return all
}

// changedMessages describes the messages that arrived with changed content on a path, for each direction.
func (e *Evidence) changedMessages(path plan.Path) (saw []string) {
	for _, s := range e.sentByDirection(path) {
		if d := s.small.Plus(s.large); d.Wrong > 0 {
			saw = append(saw, fmt.Sprintf("%s: %d of %d datagrams", s.way, d.Wrong, d.Sent-d.Lost))
		}
		if s.bare.Wrong > 0 {
			saw = append(saw, fmt.Sprintf("%s: %d of %d datagrams without a checksum", s.way, s.bare.Wrong, s.bare.Sent-s.bare.Lost))
		}
		if s.words.Wrong > 0 {
			saw = append(saw, fmt.Sprintf("%s: %d of %d small parts of a stream", s.way, s.words.Wrong, s.words.Sent))
		}
		if s.blocks.Wrong > 0 {
			saw = append(saw, fmt.Sprintf("%s: %d of %d blocks of a stream", s.way, s.blocks.Wrong, s.blocks.Sent))
		}
	}
	return saw
}

// judgeDamagedPackets finds damaged packets: packets dropped for a wrong checksum, messages that arrived with changed
// content, and packets that connection tracking refused as invalid.
func judgeDamagedPackets(e *Evidence) []Statement {
	n, at := e.sumCounters(func(_ Place, counter string) bool { return isChecksumCounter(counter) })
	host, pod := e.changedMessages(HostPath), e.changedMessages(PodPath)
	if n < fewErrors && len(host)+len(pod) == 0 {
		if s := e.invalidPacketsFault(); s != nil {
			return s
		}
		refused, _ := e.countInvalid()
		return clearStatement("%d packets with a wrong checksum at %d places, %d that connection tracking calls invalid, and no message arrived with another content", n, len(e.Places), refused)
	}
	var saw []string
	where := ""
	if n >= fewErrors {
		saw, where = append(saw, fmt.Sprintf("%d packets were dropped for it: %s", n, placesText(at))), at[0].Place.Name
	}
	if all := slices.Concat(host, pod); len(all) > 0 {
		saw = append(saw, "messages arrived with another content: "+strings.Join(all, ", "))
	}
	return markProven(faultStatement(e.damageVerdict(at), where, "%s", strings.Join(saw, "; ")))
}

// damageVerdict returns the verdict on damaged packets: that of the first path that shows them, or CNI if no path does.
// at are the counters of wrong checksums. A node's counter points to the hosts' path only if packets are missing there.
func (e *Evidence) damageVerdict(at []At) Verdict {
	node := slices.ContainsFunc(at, func(a At) bool { return !a.Place.Pod && a.N >= fewErrors })
	switch {
	case len(e.changedMessages(HostPath)) > 0, e.Paths[HostPath].wrongChecksums() >= fewErrors, node && e.missingPackets(HostPath) > 0:
		return Node
	case len(e.changedMessages(PodPath)) > 0, e.Paths[PodPath].wrongChecksums() >= fewErrors, e.missingPackets(PodPath) > 0:
		return CNI
	case e.Paths[ServicePath].wrongChecksums() >= fewErrors, e.missingPackets(ServicePath) > 0:
		return Service
	}
	return CNI
}

// manyRefused is how many packets count as missing if a workload is never answered or a packet size is dropped. It is a
// judgement: among planted faults of that kind, the least was 320.
const manyRefused = 30

// missingPackets returns how many packets are missing on a path: the largest loss, but at least manyRefused if a
// workload is never answered or a packet size is dropped.
func (e *Evidence) missingPackets(path plan.Path) (missing uint64) {
	for _, l := range e.losses(path) {
		missing = max(missing, l.n)
	}
	dead, _ := e.Paths[path].deadAndAlive()
	if len(dead) > 0 || slices.ContainsFunc(e.Sizes, func(s Size) bool { return s.Path == path && (s.Failed != "" || s.dropsSilently()) }) {
		missing = max(missing, manyRefused)
	}
	return missing
}

// countInvalid counts the packets that the nodes' connection tracking called invalid. It also returns the counters,
// largest first.
func (e *Evidence) countInvalid() (int64, []At) {
	return e.sumCounters(func(p Place, counter string) bool { return !p.Pod && counter == "conntrack.invalid" })
}

// invalidPacketsFault returns a fault if a path misses packets and a node's connection tracking counts at least as many as
// invalid; otherwise nil. Connection tracking refuses a packet before a receiver could compare its checksum, and a rule of
// the CNI or of kube-proxy then drops it.
func (e *Evidence) invalidPacketsFault() []Statement {
	n, at := e.countInvalid()
	for _, path := range Paths {
		missing := e.missingPackets(path)
		if missing == 0 || n < fewPackets || uint64(n) < missing || e.dropsByOtherRules(path, missing) >= missing {
			continue
		}
		saw := fmt.Sprintf("its connection tracking called %d packets invalid, as it does with a wrong checksum", at[0].N)
		if dead, _ := e.Paths[path].deadAndAlive(); len(dead) > 0 {
			saw += fmt.Sprintf("; no answer to %s (%s)", strings.Join(dead, ", "), path)
		}
		for _, l := range e.losses(path)[:min(len(e.losses(path)), 2)] {
			saw += "; " + l.saw
		}
		return faultStatement(pathVerdict(path), at[0].Place.Name, "%s", saw)
	}
	return nil
}

// dropsByOtherRules returns how many packets were dropped by rules other than rules for invalid packets; 0 if the rules
// for invalid packets explain all that is missing. Datagrams without a checksum are never invalid: if they are lost
// about as often as others, it returns math.MaxUint64.
func (e *Evidence) dropsByOtherRules(path plan.Path, missing uint64) (n uint64) {
	refusing := uint64(0)
	for _, p := range e.Places {
		for _, f := range p.Filters {
			if f.Invalid {
				refusing += uint64(f.Packets)
			} else {
				n += uint64(f.Packets)
			}
		}
	}
	if refusing >= missing {
		return 0
	}
	for _, s := range e.sentByDirection(path) {
		all, bare := s.small.Plus(s.large), s.bare
		if all.Lost >= fewPackets && 2*bare.Lost*all.Sent > all.Lost*bare.Sent {
			return math.MaxUint64
		}
	}
	return n
}

// isChecksumCounter reports whether a counter counts packets with a wrong checksum.
func isChecksumCounter(counter string) bool { return strings.HasSuffix(counter, "InCsumErrors") }

// wrongChecksums counts the packets with wrong checksums that the ends of a path received.
func (t *Trials) wrongChecksums() (n int64) {
	if t == nil {
		return 0
	}
	for name, k := range t.Counters {
		if isChecksumCounter(name) {
			n += k
		}
	}
	return n
}

// lost is a loss that was measured on a path.
type lost struct {
	path  plan.Path
	n     uint64
	share float64
	saw   string
}

// losses lists the losses on a path above their thresholds, the largest share first: messages in each direction, datagrams,
// echoes, and repeated segments of requests.
func (e *Evidence) losses(path plan.Path) (all []lost) {
	t := e.Paths[path]
	if t == nil {
		return nil
	}
	add := func(n, of uint64, much float64, what string) {
		share := Lossy{of, n}.share()
		if n >= fewPackets && share >= much {
			all = append(all, lost{path, n, share, fmt.Sprintf("%s of %d %s", number.Percent(share), of, what)})
		}
	}
	for _, s := range e.sentByDirection(path) {
		add(uint64(s.small.Lost), uint64(s.small.Sent), lostMuch, "small datagrams from "+s.way)
		add(uint64(s.large.Lost), uint64(s.large.Sent), lostMuch, "large datagrams from "+s.way)
		add(uint64(s.words.Resent), uint64(s.words.Sent), resentAlone, "small parts of a stream, sent again from "+s.way)
	}
	if len(all) > 0 || e.foreignShare() <= foreignMost { // datagrams that a trial without CPU time read too late are not lost; messages are waited for
		add(t.Datagrams.Lost, t.Datagrams.Sent, lostMuch, fmt.Sprintf("datagrams (%s)", path))
	}
	much := resentMuch
	if len(all) == 0 && t.Datagrams.Sent > 1/resentMuch {
		much = resentAlone
	}
	if e.starvedReason() == "" { // an echo that waits for a CPU counts as lost
		add(t.Echoes.Lost, t.Echoes.Sent, lostMuch, fmt.Sprintf("echoes (%s)", path))
	}
	// For a segment that was repeated only because of a late answer, the receiver reports that it has it already. If
	// answers are irregular, a connection may end before: then a probe was sent that repaired nothing.
	needless := t.Counters["TcpExt.TCPDSACKRecv"]
	if least, usual, ok := e.tripTimes(path); ok && usual > max(queuedTrip, waitsMuch*least) {
		needless = max(needless, t.Counters["TcpExt.TCPLossProbes"]-t.Counters["TcpExt.TCPLossProbeRecovery"])
	}
	again := t.Counters["Tcp.RetransSegs"] - needless
	add(uint64(max(0, again)), uint64(max(0, t.Counters["Tcp.OutSegs"])), much, fmt.Sprintf("segments of requests (%s), sent again", path))
	slices.SortStableFunc(all, func(a, b lost) int { return cmp.Compare(b.share, a.share) })
	return all
}

// lossDirectionText describes whether messages are lost in one direction or in both, "" without a loss.
func (e *Evidence) lossDirectionText() string {
	for _, path := range Paths {
		ways := e.sentByDirection(path)
		if len(ways) != 2 {
			continue
		}
		a, b := ways[0].small.Plus(ways[0].large), ways[1].small.Plus(ways[1].large)
		if a.Lost < b.Lost {
			a, b, ways[0] = b, a, ways[1]
		}
		switch {
		case a.Lost < fewPackets:
		case 5*b.Lost < a.Lost:
			return "one way alone, from " + ways[0].way
		default:
			return "both ways"
		}
	}
	return ""
}

func judgePacketLoss(e *Evidence) []Statement {
	host, pod, behind := e.losses(HostPath), e.losses(PodPath), e.losses(ServicePath)
	all := slices.Concat(host, pod, behind)
	if len(all) == 0 {
		if few := e.fewReason(); few != "" {
			return unknownStatement("%s", few)
		}
		return clearStatement("of %d datagrams and echoes no path lost more than %s", e.triedPackets(), number.Percent(lostMuch))
	}
	verdict := Service
	switch {
	case len(host) > 0 && (len(pod) == 0 || 3*host[0].share > pod[0].share):
		verdict = Node
	case len(pod) > 0:
		verdict = CNI
	}
	saw := strings.Join(each.Of(all[:min(len(all), 3)], func(l lost) string { return l.saw }), ", ")
	if ways := e.lossDirectionText(); ways != "" {
		saw += "; " + ways
	}
	where, direct := all[0].path.String(), false
	rules, dropped := e.droppingRules()
	n, at := e.dropCounts()
	switch {
	case dropped >= fewPackets:
		where, direct = rules[0], true
	case n >= fewPackets:
		where = placesText(at[:1]) // streams, which overflow queues, count too
	}
	return []Statement{{State: Fault, Verdict: verdict, Where: where, Saw: saw, Proven: direct}}
}

// dropCounts sums the drop and error counters of devices and backlogs. It also returns the counters, largest first.
func (e *Evidence) dropCounts() (int64, []At) {
	return e.sumCounters(func(_ Place, counter string) bool {
		return counter == "softnet.dropped" || strings.HasSuffix(counter, ".rx_dropped") || strings.HasSuffix(counter, ".tx_dropped") ||
			strings.HasSuffix(counter, ".rx_errors") || strings.HasSuffix(counter, ".tx_errors") || strings.HasSuffix(counter, ".rx_frame")
	})
}

// manyDrops is the number of drops of devices and backlogs that is a fault even without a measured loss. Bulk data alone
// overflow queues sometimes.
const manyDrops = 1000

func judgeDeviceDrops(e *Evidence) []Statement {
	n, at := e.dropCounts()
	if n >= manyDrops {
		return markProven(faultStatement(at[0].Place.faultVerdict(), at[0].Place.Name, "%d packets: %s", n, placesText(at)))
	}
	saw := fmt.Sprintf("devices and backlogs dropped %d packets", n)
	if n > 0 {
		saw += ": " + placesText(at)
	}
	return clearStatement("%s", saw)
}

func judgeAsymmetricPaths(e *Evidence) []Statement {
	for _, s := range e.Sizes {
		if s.HopsThere != s.HopsBack && s.HopsThere > 0 && s.HopsBack > 0 {
			return markProven(faultStatement(pathVerdict(s.Path), s.From+" to "+s.To, "packets pass %d hops there and %d back", s.HopsThere, s.HopsBack))
		}
	}
	n, at := e.sumCounters(func(_ Place, counter string) bool { return counter == "TcpExt.IPReversePathFilter" })
	if n >= fewErrors {
		return markProven(faultStatement(Node, at[0].Place.Name, "%d packets were dropped because their source is not routed to where they came from (rp_filter)", n))
	}
	return clearStatement("as many hops there as back, and no source address came from a wrong device")
}
