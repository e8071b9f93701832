package stat

import "math"

// order is a set of numbers that can be counted without being stored, so that samples of thousands are compared without
// further memory.
type order struct {
	size int
	// atMost returns how many of them are <= v.
	atMost func(v float64) int
}

// pairwiseDifferences returns all x - y of two sorted samples.
func pairwiseDifferences(xs, ys []float64) order {
	return order{len(xs) * len(ys), func(v float64) int {
		n, j := 0, 0
		for _, x := range xs { // the larger x, the fewer y have x - y <= v
			for j < len(ys) && x-ys[j] > v {
				j++
			}
			n += len(ys) - j
		}
		return n
	}}
}

// walshAverages returns all averages of d[i] and d[j] with i <= j of a sorted sample.
func walshAverages(d []float64) order {
	return order{len(d) * (len(d) + 1) / 2, func(v float64) int {
		n, j := 0, len(d)-1
		for i, x := range d {
			for j >= i && midpoint(x, d[j]) > v {
				j--
			}
			if j < i {
				break
			}
			n += j - i + 1
		}
		return n
	}}
}

// kth returns the k-th smallest number, counted from 1: the least float64 v with atMost(v) >= k.
func (o order) kth(k int) float64 {
	low, high := placeOf(math.Inf(-1)), placeOf(math.Inf(1))
	for low < high {
		if mid := low + (high-low)/2; o.atMost(floatAt(mid)) >= k {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return floatAt(low)
}

// median returns the median of o, which is not empty.
func (o order) median() float64 { return midpoint(o.kth((o.size+1)/2), o.kth(o.size/2+1)) }

const signBit = 1 << 63

// placeOf returns the position of x among all values of float64, in their order.
func placeOf(x float64) uint64 {
	bits := math.Float64bits(x)
	if bits&signBit != 0 {
		return ^bits
	}
	return bits | signBit
}

// floatAt returns the float64 at a position; it is the inverse of placeOf.
func floatAt(n uint64) float64 {
	if n&signBit == 0 {
		return math.Float64frombits(^n)
	}
	return math.Float64frombits(n &^ signBit)
}

// midpoint returns the mean of two numbers, without rounding if they are equal. Two infinities do not give NaN.
func midpoint(a, b float64) float64 {
	if a == b {
		return a
	}
	return a + (b-a)/2
}
