package plan

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// TTFR creates pods at a rate. Each pod connects until one request is answered, and is then removed. The measured time
// is the time to first response.
type TTFR struct {
	// Rate is the number of new pods per second.
	Rate float64
	// Timeout is the longest time from a pod's intended start to its answer. A pod without an answer counts with this
	// time.
	Timeout time.Duration
}

// Limits and defaults of ttfr.
const (
	defaultPodRate    = 2
	minPodRate        = 0.01
	maxPodRate        = 200
	defaultPodTimeout = 5 * time.Second
	// fitPods is how many new pods there are in a window that Fit chooses. It is the smallest number for which a median
	// is reported.
	fitPods = 20
	// longestPodFit bounds that window.
	longestPodFit = 20 * time.Second
)

// podRates are the values of the option rate: pods per second.
var podRates = values[float64]{rang: "0.01 to 200 pods per second", format: formatRate, schema: position.Rate,
	parse: func(s string) (float64, error) {
		v, err := parseRate(s, 1e3)
		if err == nil && (v < minPodRate || v > maxPodRate) {
			err = fmt.Errorf("%s is out of range: want 0.01 to 200 pods per second", s)
		}
		return v, err
	}}

var ttfrKind = kind{name: "ttfr", about: "the first request of new pods, which come and go at a rate", title: "Time to first response of new pods", zero: TTFR{}, options: []option{
	singleTransportOption[TTFR](TCP),
	fieldOption("rate", "rate", "new pods per second", podRates, func(s *TTFR) *float64 { return &s.Rate }),
	fieldOption("timeout", "timeout", "time after which a pod without an answer has failed", durationValues(10*time.Millisecond, time.Minute), func(s *TTFR) *time.Duration { return &s.Timeout }),
}, apart: true, unchanged: "%s changes rules itself: measure it without churn"}

func (s TTFR) kindEntry() *kind { return &ttfrKind }

// Traits implements Spec.
func (s TTFR) Traits() Traits {
	return Traits{Protocol: TCP, Work: NewPod, Flows: 1, Request: 1, Response: 1, Reconnect: true, Rate: s.Rate, Arrival: Constant, Timeout: s.Timeout,
		Decides: []string{metric.FromDue + ".p50", metric.FromStart + ".p50", metric.FromDue + ".mean"}}
}

func (s TTFR) normalize() Spec {
	s.Rate, s.Timeout = cmp.Or(s.Rate, defaultPodRate), cmp.Or(s.Timeout, defaultPodTimeout)
	return s
}

func (s TTFR) addFaults(*faultList) {}

// whyBarred implements chooser: it returns why the spec does not support a path.
func (s TTFR) whyBarred(p Path) string {
	switch {
	case p.From != Pod:
		return "the client of the path is a new pod: want a path that begins at a pod"
	case p.To == Self:
		return "a new pod is not an endpoint of the Service that leads back to its client"
	}
	return ""
}

// whyUnfit implements fitter: it returns why a window is too short for one new pod.
func (s TTFR) whyUnfit(window time.Duration) string {
	if s.Rate*window.Seconds() >= 1 {
		return ""
	}
	least := time.Duration(math.Ceil(1/s.Rate*1e3)) * time.Millisecond
	return fmt.Sprintf("a window of %s has no new pod: give a longer window (--duration %s) or a higher rate", window, least)
}

// leastPodWindow returns the shortest window that Fit may choose for a workload of new pods. It returns 0 for other workloads.
func leastPodWindow(t Traits) time.Duration {
	if !t.NewPods() {
		return 0
	}
	least := time.Duration(math.Ceil(1/t.Rate)) * time.Second
	return min(time.Duration(fitPods/t.Rate*float64(time.Second)), max(longestPodFit, least)).Round(time.Millisecond)
}
