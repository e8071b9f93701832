package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxLoss is the greatest share of datagrams that a throughput search may accept to be lost, or a lab lose on purpose.
const MaxLoss = 0.5

// MaxDelay is the most that a lab may delay what a host sends.
const MaxDelay = time.Second

// lossGrain is what losses are rounded to: a millionth.
const lossGrain = 1e6

// search takes over from w the fields of a throughput search.
func (n *Workload) search(w Workload) {
	n.Protocol = UDP
	n.Rate, n.Loss = w.Rate, w.Loss
	n.datagram(w)
}

// Probe returns what a throughput search sends at rate in bit/s of payload, 0 for as fast as possible: a UDP stream with
// the same datagrams on the same flows.
func (w Workload) Probe(rate float64) Workload {
	n := w.Normalize()
	n.Kind, n.Rate, n.Loss = Stream, rate, 0
	return n.Normalize()
}

// ParseLoss reads a share of lost datagrams: "0.1%" or "0.001", from 0 to 50 %, to a millionth.
func ParseLoss(s string) (float64, error) {
	digits, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || strings.ContainsAny(digits, "xXpP_") {
		return 0, fmt.Errorf("%q is not a loss: want a share of the datagrams such as 0.1%% or 0.001", s)
	}
	if percent {
		v /= 100
	}
	if !(v >= 0 && v <= MaxLoss) {
		return 0, fmt.Errorf("loss %s is out of range: want 0 to %.0f%%", s, 100*MaxLoss)
	}
	return math.Round(v*lossGrain) / lossGrain, nil
}

// FormatLoss writes a loss the way ParseLoss reads it: "0.1%".
func FormatLoss(loss float64) string {
	return strconv.FormatFloat(math.Round(loss*lossGrain)/(lossGrain/100), 'f', -1, 64) + "%"
}
