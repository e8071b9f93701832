package load

import "math"

const (
	// quantum is the shortest sleep of a paced sender in ns. Datagrams that are due within one quantum go out together, so
	// the sender never spins: its CPU time remains the cost of the path.
	quantum = 100_000
	// backlogNs bounds what a stalled sender catches up: it skips datagrams that were due longer ago.
	backlogNs = 10_000_000
)

// pacer schedules the datagrams of one flow at a constant rate: datagram i is due at start + i*gap. It is plain
// arithmetic on times in ns; rates from one datagram in minutes to tens of millions per second.
type pacer struct {
	start   int64
	gap     float64 // ns between datagrams
	done    uint64  // datagrams sent or given up
	skipped uint64  // datagrams given up
}

// newPacer starts a schedule at start for perSecond datagrams per second, which must be positive.
func newPacer(start int64, perSecond float64) pacer { return pacer{start: start, gap: 1e9 / perSecond} }

// due returns how many datagrams may go out now. After a stall, it skips and counts what is older than backlogNs.
func (p *pacer) due(now int64) uint64 {
	if now < p.start {
		return 0
	}
	scheduled := uint64(float64(now-p.start)/p.gap) + 1
	if scheduled <= p.done {
		return 0
	}
	behind := scheduled - p.done
	if limit := uint64(math.Ceil(backlogNs/p.gap)) + 1; behind > limit {
		p.skipped += behind - limit
		p.done += behind - limit
		behind = limit
	}
	return behind
}

// sent notes that n datagrams went out.
func (p *pacer) sent(n uint64) { p.done += n }

// wake returns when to look again if nothing is due: at the time of the next datagram, but not within a quantum.
func (p *pacer) wake(now int64) int64 {
	return max(p.start+int64(math.Ceil(float64(p.done)*p.gap)), now+quantum)
}
