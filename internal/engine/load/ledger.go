package load

import "math"

// memoryBits is how many of the latest sequence numbers a ledger remembers individually.
const memoryBits = 1 << 16

// ledger counts the datagrams of one flow by their sequence numbers, which begin at 0. The span of a window is from
// the highest number at its start to the highest at its end. A number missing in the span was lost or is late; late
// datagrams still count after the window, until the results are frozen. Duplicates that are more than memoryBits
// behind count as late.
type ledger struct {
	seen        [memoryBits / 64]uint64
	next        uint64 // one above the highest number seen
	first, last uint64 // the span, [first, last)
	received    uint64 // distinct numbers of the span
	reordered   uint64 // of these, how many came after a higher one
	duplicates  uint64
	jitter      jitter
}

// openWindow begins the window: it resets the counters, but remembers the numbers seen before.
func (l *ledger) openWindow() {
	l.first, l.last = l.next, math.MaxUint64
	l.received, l.reordered, l.duplicates = 0, 0, 0
	l.jitter.openWindow()
}

// closeWindow ends the window at the highest number seen.
func (l *ledger) closeWindow() { l.last = l.next }

// countDatagram counts the datagram with the number seq as received, reordered or a duplicate.
func (l *ledger) countDatagram(seq uint64) {
	inSpan := seq >= l.first && seq < l.last
	if seq >= l.next {
		l.advanceTo(seq)
		if inSpan {
			l.received++
		}
		return
	}
	word, bit := &l.seen[seq%memoryBits/64], uint64(1)<<(seq%64)
	known := l.next-seq <= memoryBits
	switch {
	case !inSpan:
	case known && *word&bit != 0:
		l.duplicates++
	default:
		l.received++
		l.reordered++
	}
	if known {
		*word |= bit
	}
}

// advanceTo moves the memory up to seq, the new highest number.
func (l *ledger) advanceTo(seq uint64) {
	if seq-l.next >= memoryBits {
		clear(l.seen[:])
	} else {
		for s := l.next; s < seq; s++ {
			l.seen[s%memoryBits/64] &^= 1 << (s % 64)
		}
	}
	l.seen[seq%memoryBits/64] |= 1 << (seq % 64)
	l.next = seq + 1
}

// jitter is the mean difference between the transit times of neighbouring datagrams, D of RFC 3550 6.4.1. All datagrams
// of a batch have one time of sending, or of receiving. Then the differences are those of batches, and the jitter is
// unknown.
type jitter struct {
	transit, sent int64 // of the previous datagram
	alone         bool  // whether the previous datagram came alone
	sum           float64
	pairs, all    uint64
}

func (j *jitter) openWindow() { j.sum, j.pairs, j.all = 0, 0, 0 }

// addDatagram adds a datagram by its transit time and its time of sending. alone means that it did not arrive in a batch.
func (j *jitter) addDatagram(transit, sent int64, alone bool) {
	alone = alone && sent != j.sent
	j.all++
	if alone && j.alone {
		j.sum += math.Abs(float64(transit - j.transit))
		j.pairs++
	}
	j.transit, j.sent, j.alone = transit, sent, alone
}

// mean returns the jitter in ns. It returns 0 (unknown) if more than a tenth of the pairs have a datagram that was
// sent or received in a batch.
func (j *jitter) mean() float64 {
	if j.pairs == 0 || float64(j.pairs) < 0.9*float64(j.all-1) {
		return 0
	}
	return j.sum / float64(j.pairs)
}

// expectedCount returns the number of datagrams of the span. It returns 0 before the span has ended.
func (l *ledger) expectedCount() uint64 {
	if l.last < l.first || l.last == math.MaxUint64 {
		return 0
	}
	return l.last - l.first
}

func (l *ledger) lostCount() uint64 { return l.expectedCount() - min(l.expectedCount(), l.received) }
