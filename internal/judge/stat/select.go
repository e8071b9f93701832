package stat

import (
	"math"
	"sort"
)

// differences are all x - y of two sorted samples: n times m numbers that are never written down, so that samples of
// thousands are compared in the memory that they take themselves.
type differences struct{ x, y []float64 }

// walsh are all averages (d[i]+d[j])/2 with i <= j of a sorted sample.
type walsh struct{ d []float64 }

// ordered is a set of numbers that can be counted without being listed.
type ordered interface {
	// size is how many there are.
	size() int
	// atMost is how many are <= v.
	atMost(v float64) int
	// bounds are the least and the largest.
	bounds() (low, high float64)
	// next is the least that is >= v.
	next(v float64) float64
}

func (s differences) size() int { return len(s.x) * len(s.y) }

func (s differences) bounds() (low, high float64) {
	return s.x[0] - s.y[len(s.y)-1], s.x[len(s.x)-1] - s.y[0]
}

// atMost walks down y as x rises: x - y <= v leaves fewer and fewer y.
func (s differences) atMost(v float64) int {
	n, j := 0, 0
	for _, x := range s.x {
		for j < len(s.y) && x-s.y[j] > v {
			j++
		}
		n += len(s.y) - j
	}
	return n
}

func (s differences) next(v float64) float64 {
	best, j := math.Inf(1), 0
	for _, x := range s.x {
		// The last y with x - y >= v is the one before the first with x - y < v.
		for j < len(s.y) && x-s.y[j] >= v {
			j++
		}
		if j > 0 {
			best = min(best, x-s.y[j-1])
		}
	}
	return best
}

func (s walsh) size() int { return len(s.d) * (len(s.d) + 1) / 2 }

func (s walsh) bounds() (low, high float64) { return s.d[0], s.d[len(s.d)-1] }

// average is written so that it is the same whichever way two equal numbers meet.
func average(x, y float64) float64 { return x + (y-x)/2 }

func (s walsh) atMost(v float64) int {
	n, j := 0, len(s.d)-1
	for i, x := range s.d {
		for j >= i && average(x, s.d[j]) > v {
			j--
		}
		if j < i {
			break
		}
		n += j - i + 1
	}
	return n
}

func (s walsh) next(v float64) float64 {
	best := math.Inf(1)
	for i, x := range s.d {
		rest := s.d[i:]
		at := sort.Search(len(rest), func(j int) bool { return average(x, rest[j]) >= v })
		if at < len(rest) {
			best = min(best, average(x, rest[at]))
		}
	}
	return best
}

// kth returns the k-th smallest of s, counted from 1, exactly: bisection closes in on it, and the last step takes the
// number itself.
func kth(s ordered, k int) float64 {
	low, high := s.bounds()
	if s.atMost(low) >= k {
		return low
	}
	// Invariant: atMost(low) < k <= atMost(high). Every step halves the gap; 60 leave less of it than a float64 shows
	// beside the larger end.
	const steps = 60
	for range steps {
		mid := low + (high-low)/2
		if mid <= low || mid >= high {
			break
		}
		if s.atMost(mid) >= k {
			high = mid
		} else {
			low = mid
		}
	}
	// What is left above low may be a few numbers that differ in their last digits.
	for {
		v := s.next(math.Nextafter(low, math.Inf(1)))
		if v >= high || s.atMost(v) >= k {
			return v
		}
		low = v
	}
}

// middle returns the median of s.
func middle(s ordered) float64 {
	n := s.size()
	if n%2 == 1 {
		return kth(s, n/2+1)
	}
	a, b := kth(s, n/2), kth(s, n/2+1)
	if a == b {
		return a
	}
	return a + (b-a)/2
}
