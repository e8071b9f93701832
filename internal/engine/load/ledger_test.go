package load

import (
	"math/rand/v2"
	"testing"
)

// model is the ledger written down plainly: it remembers everything.
type model struct {
	seen                            map[uint64]bool
	next, first, last               uint64
	received, reordered, duplicates uint64
	open, shut                      bool
}

func (m *model) arrive(seq uint64) {
	inSpan := m.open && seq >= m.first && (!m.shut || seq < m.last)
	switch {
	case !inSpan:
	case m.seen[seq]:
		m.duplicates++
	default:
		m.received++
		if seq < m.next {
			m.reordered++
		}
	}
	m.seen[seq] = true
	m.next = max(m.next, seq+1)
}

// play feeds the same arrivals to both: an open after a third, a shut after two thirds.
func play(arrivals []uint64) (*ledger, *model) {
	l, m := &ledger{}, &model{seen: map[uint64]bool{}}
	for i, seq := range arrivals {
		if i == len(arrivals)/3 {
			l.openWindow()
			m.open, m.first = true, m.next
		}
		if i == len(arrivals)*2/3 {
			l.closeWindow()
			m.shut, m.last = true, m.next
		}
		l.countDatagram(seq)
		m.arrive(seq)
	}
	return l, m
}

func compare(t *testing.T, l *ledger, m *model) {
	t.Helper()
	if l.received != m.received || l.reordered != m.reordered || l.duplicates != m.duplicates {
		t.Fatalf("received %d reordered %d duplicates %d, want %d %d %d",
			l.received, l.reordered, l.duplicates, m.received, m.reordered, m.duplicates)
	}
	if m.shut && l.expectedCount() != m.last-m.first {
		t.Fatalf("expected %d, want %d", l.expectedCount(), m.last-m.first)
	}
	if l.received+l.lostCount() != l.expectedCount() && m.shut {
		t.Fatalf("received %d + lost %d is not expected %d", l.received, l.lostCount(), l.expectedCount())
	}
}

func TestLedgerAgreesWithAModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var arrivals []uint64
		seq := uint64(rng.IntN(10))
		for range 3000 {
			switch rng.IntN(20) {
			case 0: // lost, sometimes many
				seq += uint64(rng.IntN(300))
			case 1: // late or twice
				arrivals = append(arrivals, seq-min(seq, uint64(rng.IntN(50))))
			}
			arrivals = append(arrivals, seq)
			seq++
		}
		l, m := play(arrivals)
		compare(t, l, m)
	}
}

func TestLedgerSurvivesAGapBeyondItsMemory(t *testing.T) {
	l := &ledger{}
	l.openWindow()
	l.countDatagram(0)
	l.countDatagram(10 * memoryBits)
	l.countDatagram(1)                 // further back than it remembers
	l.countDatagram(10*memoryBits - 1) // just before
	l.countDatagram(10*memoryBits - 1) // again
	l.closeWindow()
	if l.received != 4 || l.reordered != 2 || l.duplicates != 1 || l.lostCount() != 10*memoryBits+1-4 {
		t.Errorf("received %d reordered %d duplicates %d lost %d", l.received, l.reordered, l.duplicates, l.lostCount())
	}
}

// TestTailInFlight: what is sent but not yet seen when the window closes is no loss, what a later number jumped over
// is, and a straggler takes it back.
func TestTailInFlight(t *testing.T) {
	l := &ledger{}
	l.countDatagram(0)
	l.openWindow()
	l.countDatagram(1)
	l.countDatagram(3)
	l.closeWindow()
	if l.expectedCount() != 3 || l.lostCount() != 1 {
		t.Fatalf("expected %d lost %d, want 3 and 1", l.expectedCount(), l.lostCount())
	}
	l.countDatagram(4) // belongs to the time after
	l.countDatagram(2) // the straggler
	if l.expectedCount() != 3 || l.lostCount() != 0 || l.reordered != 1 {
		t.Errorf("expected %d lost %d reordered %d, want 3, 0, 1", l.expectedCount(), l.lostCount(), l.reordered)
	}
}

// TestJitter: 20 us of jitter are read as 20 us, or not at all where a batch has one time for all its datagrams.
// Before, batches of 4, 12 and 45 datagrams were read as 4.5, 1.7 and 0.1 us.
func TestJitter(t *testing.T) {
	for _, tt := range []struct {
		together int
		want     float64
	}{{1, 20_000}, {2, 0}, {45, 0}} {
		var l ledger
		l.openWindow()
		for i := range int64(1000) {
			batch := i / int64(tt.together)
			l.jitter.addDatagram(100_000+20_000*(batch%2), 1_000_000*batch, tt.together == 1)
		}
		if got := l.jitter.mean(); got != tt.want {
			t.Errorf("%d at a time: %g ns, want %g", tt.together, got, tt.want)
		}
	}
	// One in twenty that comes with another leaves the others alone.
	var j jitter
	for i := range int64(1000) {
		j.addDatagram(10*(i%2), 1000*i, i%20 != 0)
	}
	if got := j.mean(); got != 10 {
		t.Errorf("mostly alone: %g ns, want 10", got)
	}
}

func FuzzLedger(f *testing.F) {
	f.Add([]byte{1, 1, 1, 200, 1, 1, 130, 130})
	f.Add([]byte{255, 255, 0, 0, 1})
	f.Fuzz(func(t *testing.T, steps []byte) {
		// Steps near the memory's size would make model and ledger differ by design.
		arrivals := make([]uint64, 0, len(steps))
		seq := int64(0)
		for _, s := range steps[:min(len(steps), 400)] {
			seq = max(seq+int64(int8(s)), 0)
			arrivals = append(arrivals, uint64(seq))
		}
		l, m := play(arrivals)
		compare(t, l, m)
	})
}
