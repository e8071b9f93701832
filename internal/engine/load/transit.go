package load

import "github.com/cnibench/cnibench/internal/measure/sample"

// mostPassages is how many transit times one side keeps for their distribution. All flows share this number.
const mostPassages = 1 << 18

// passage is the arrival of a datagram: the time, and how long it was on its way. The two sides' clocks need not agree.
type passage struct{ at, transit int64 }

// transits stores transit times of the window, because the shortest is known only at the end. When the room is full, it
// drops every second transit time, and from then on keeps only every stride-th.
type transits struct {
	kept    []passage
	stride  int // one of this many datagrams is kept
	skipped int
	least   int64 // of all
}

func newTransits(flows int) transits {
	return transits{kept: make([]passage, 0, max(1024, mostPassages/flows)), stride: 1}
}

// openWindow begins the window and drops earlier transit times: before the window the path may have had no queue.
func (s *transits) openWindow() { s.kept, s.stride, s.skipped = s.kept[:0], 1, 0 }

func (s *transits) addPassage(at, transit int64) {
	if len(s.kept) == 0 || transit < s.least {
		s.least = transit
	}
	if s.skipped++; s.skipped < s.stride && len(s.kept) > 0 {
		return
	}
	s.skipped = 0
	if len(s.kept) == cap(s.kept) {
		for i := range len(s.kept) / 2 {
			s.kept[i] = s.kept[2*i]
		}
		s.kept, s.stride = s.kept[:len(s.kept)/2], 2*s.stride
	}
	s.kept = append(s.kept, passage{at, transit})
}

// excessHistogram returns the distribution of how much transit times exceed the shortest of the window (RFC 5481). It
// returns nil without datagrams. apart means that the sides are on two machines, whose clocks drift. The excess is then
// measured from the line of lowestLine, which follows the drift.
func (s *transits) excessHistogram(apart bool) *sample.Histogram {
	if len(s.kept) == 0 {
		return nil
	}
	h := sample.NewHistogram()
	a, b := passage{0, s.least}, passage{1, s.least}
	if apart {
		a, b = s.lowestLine()
	}
	for _, p := range s.kept {
		drift := float64(b.transit-a.transit) / float64(b.at-a.at) * float64(p.at-a.at)
		h.Record(max(0, p.transit-a.transit-int64(drift)))
	}
	return h
}

// lowestLine returns two points of a line that no passage is below and that is close to the passages. The line is an
// edge of their lower convex hull, at the middle of the time (Moon, Skelly and Towsley 1999).
func (s *transits) lowestLine() (a, b passage) {
	var hull []passage
	for _, p := range s.kept {
		for n := len(hull); n > 0 && (hull[n-1].at == p.at && hull[n-1].transit >= p.transit || n > 1 && !isBelow(hull[n-2], hull[n-1], p)); n-- {
			hull = hull[:n-1]
		}
		if len(hull) == 0 || hull[len(hull)-1].at < p.at {
			hull = append(hull, p)
		}
	}
	middle, i := (s.kept[0].at+s.kept[len(s.kept)-1].at)/2, 1
	for i < len(hull)-1 && hull[i].at < middle {
		i++
	}
	if len(hull) == 1 {
		return hull[0], passage{hull[0].at + 1, hull[0].transit}
	}
	return hull[i-1], hull[i]
}

// isBelow reports whether b lies below the line from a to c.
func isBelow(a, b, c passage) bool {
	return float64(b.transit-a.transit)*float64(c.at-a.at) < float64(c.transit-a.transit)*float64(b.at-a.at)
}
