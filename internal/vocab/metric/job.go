package metric

import "strconv"

// Metrics of jobs.
const (
	// StepTime, ExchangeTime and HopTime are families. Those of HopTime begin with the depth: hop_time.1.p50.
	StepTime           = "step_time"
	ExchangeTime       = "exchange_time"
	HopTime            = "hop_time"
	StepRate           = "step_rate"
	AlgorithmBandwidth = "algorithm_bandwidth"
	BusBandwidth       = "bus_bandwidth"
	// WaitedShare is how often the steps waited for one member, the one that most waited for.
	WaitedShare = "waited_share"
)

// MostDepth is the largest depth of HopTime.
const MostDepth = 6

const (
	jobPage   = "docs/how-to/run-a-job.md"
	ncclTests = "nccl-tests, doc/PERFORMANCE.md"
)

// jobs are the metrics of jobs.
func jobs() []Metric {
	all := []Metric{
		{Name: StepTime + ".p50", Title: "step time, median", Unit: "ns", Better: Lower, Headline: true,
			Definition: "Half of the steps of a job took at most this long: from the start of the step to the end of its last member.", Source: jobPage},
		{Name: StepTime + ".p95", Title: "step time, 95th percentile", Unit: "ns", Better: Lower, Headline: true,
			Definition: "19 of 20 steps took at most this long.", Source: "TailBench, IISWC 2016"},
		{Name: StepTime + ".p99", Title: "step time, 99th percentile", Unit: "ns", Better: Lower, Headline: true,
			Definition: "99 of 100 steps took at most this long.", Source: jobPage},
		{Name: StepTime + ".min", Title: "step time, minimum", Unit: "ns", Better: Lower, Definition: "The shortest step of the window.", Source: jobPage},
		{Name: StepTime + ".mean", Title: "step time, mean", Unit: "ns", Better: Lower, Headline: true, Definition: "The arithmetic mean of the step times, compute included.", Source: jobPage},
		{Name: StepTime + ".stddev", Title: "step time, standard deviation", Unit: "ns", Better: Lower, Definition: "The standard deviation of the step times.", Source: jobPage},
		{Name: StepTime + ".max", Title: "step time, maximum", Unit: "ns", Better: Lower, Definition: "The longest step of the window.", Source: jobPage},
		{Name: ExchangeTime + ".p50", Title: "exchange time, median", Unit: "ns", Better: Lower, Definition: "Half of the exchanges took at most this long.", Source: jobPage},
		{Name: ExchangeTime + ".p95", Title: "exchange time, 95th percentile", Unit: "ns", Better: Lower, Definition: "19 of 20 exchanges took at most this long.", Source: jobPage},
		{Name: ExchangeTime + ".p99", Title: "exchange time, 99th percentile", Unit: "ns", Better: Lower, Definition: "99 of 100 exchanges took at most this long.", Source: jobPage},
		{Name: ExchangeTime + ".mean", Title: "exchange time, mean", Unit: "ns", Better: Lower,
			Definition: "Mean time of a step without compute: that of the member that took longest, by its own clock.", Source: "coflow completion time, UCB/EECS-2012-184"},
		{Name: ExchangeTime + ".min", Title: "exchange time, minimum", Unit: "ns", Better: Lower, Definition: "The shortest exchange of the window.", Source: jobPage},
		{Name: ExchangeTime + ".stddev", Title: "exchange time, standard deviation", Unit: "ns", Better: Lower, Definition: "The standard deviation of the exchange times.", Source: jobPage},
		{Name: ExchangeTime + ".max", Title: "exchange time, maximum", Unit: "ns", Better: Lower, Definition: "The longest exchange of the window.", Source: jobPage},
		{Name: StepRate, Title: "step rate", Unit: "1/s", Better: Higher, Definition: "Steps of a job per second, one after the other.", Source: jobPage},
		{Name: AlgorithmBandwidth, Title: "algorithm bandwidth", Unit: "bit/s", Better: Higher,
			Definition: "Data of a step by its mean exchange time: the vector of a member, the data that are sent to all, or all answers.", Source: ncclTests + ": algbw"},
		{Name: BusBandwidth, Title: "bus bandwidth", Unit: "bit/s", Better: Higher, Headline: true,
			Definition: "Algorithm bandwidth times 2(n-1)/n for all-reduce, (n-1)/n for shuffle, 1 for broadcast: comparable with the rate of a link.", Source: ncclTests + ": busbw"},
		{Name: WaitedShare, Title: "steps that waited for one member", Unit: "ratio", Better: Neither,
			Definition: "Of all waits for the last data of a step, the share that was for one member, the one with the most; 1/n where none is slow.", Source: jobPage},
	}
	for depth := 1; depth <= MostDepth; depth++ {
		at := strconv.Itoa(depth)
		all = append(all,
			Metric{Name: HopTime + "." + at + ".p50", Title: "time of requests at depth " + at + ", median", Unit: "ns", Better: Lower,
				Definition: "Half of the requests that follow from " + at + " others took at most this long at their member, its own requests included.", Source: jobPage},
			Metric{Name: HopTime + "." + at + ".p99", Title: "time of requests at depth " + at + ", 99th percentile", Unit: "ns", Better: Lower,
				Definition: "99 of 100 of these requests took at most this long.", Source: jobPage})
	}
	return all
}
