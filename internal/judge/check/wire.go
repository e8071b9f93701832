package check

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Margins of the comparisons between cells, as shares. They are counted between the near ends of the intervals.
const (
	beyondHosts  = 0.15 // in goodput
	beyondTimes  = 0.25 // for times and rates of exchanges, where the node's own rules cost hosts time, too
	beyondFar    = 0.05
	unitApart    = 199 // a wrong prefix is a factor of 1000; the wire accounts for some of it
	beyondDirect = 0.05
	beyondBare   = 0.10
	beyondModes  = 0.5
	beyondTunnel = 2
	slowerFlows  = 0.05
	belowHosts   = 2 // encapsulation costs a part of the hosts' rate, but not two thirds
	apartWays    = 2
	atTheWire    = 0.03
)

// wireRules compare paths with the wire and with one another.
var wireRules = []rule{
	{id: "line-rate", find: findAboveLineRate},
	{id: "faster-than-hosts", beside: fasterThanHosts},
	{id: "pods-below-hosts", beside: podsBelowHosts},
	{id: "directions-apart", beside: directionsApart, find: findWaysApart},
	{id: "same-node-slower", beside: nearSlower},
	{id: "unit-apart", beside: nearQuicker},
	{id: "service-faster", beside: serviceFaster},
	{id: "encapsulation-free", beside: encapsulationFree},
	{id: "tunnels-disagree", beside: tunnelsDisagree},
	{id: "part-slower", beside: partSlower},
	{id: "modes-disagree", find: findModesDisagree},
	{id: "odd-one-out", find: findOddOneOut},
	{id: "wire-time", find: findBelowWireTime},
	{id: "wire-bound", find: findWireBound},
	{id: "one-machine", find: findOneMachine},
	{id: "token-bucket", find: findTokenBucket},
}

// framing is the number of bytes around the payload of a small TCP packet on Ethernet, with the gap between packets.
// fibreLight is the speed of light in fibre in m/s.
const (
	framing    = 90
	fibreLight = 2e8
)

// directions returns in how many directions a stream sends. Its goodput and offered load are sums over them; a stated rate,
// flows and the rate of a line are of each.
func directions(is plan.Traits) float64 {
	if is.Bidirectional {
		return 2
	}
	return 1
}

func findAboveLineRate(v *View, found *list) {
	line := v.lineRate()
	for _, c := range v.cells {
		known := v.of[c.Case].warnings[outcome.AboveLineRate] != nil // that warning covers it, with the headers counted
		limit := line * directions(c.Workload.Traits())
		if line > 0 && c.Metric == metric.Goodput && c.Path.Crosses() && !known && c.Low > limit*(1+reached) {
			found.add(c.String(), "%s over a line of %s: %.2f times", medianText(c), formatValue(c.Key, limit), c.Median/limit)
		}
	}
}

func findBelowWireTime(v *View, found *list) {
	rate, distance := v.factInUnit("line_rate", "bit/s"), v.factInUnit("wire.metres", "1")
	for _, c := range v.cells {
		small := c.Workload.Traits().Work == plan.Transaction
		if !strings.HasPrefix(c.Metric, metric.RTT+".") || c.Metric == metric.RTT+".stddev" || !c.Path.Crosses() || !small {
			continue
		}
		least := 2 * distance / fibreLight * 1e9
		if rate > 0 {
			is := v.workloadTraits(c.Case)
			bytes := max(is.Request, is.Message) + max(is.Response, is.Message) + 2*framing
			least += 8 * float64(bytes) / rate * 1e9
		}
		if least > 0 && c.High < least {
			found.add(c.String(), "%s, and the wire alone takes %s", medianText(c), formatValue(c.Key, least))
		}
	}
}

func findWireBound(v *View, found *list) {
	if v.lacksWire() {
		return
	}
	var full groups[plan.Case, string] // by path and workload
	for _, c := range v.cells {
		limit := v.lineRate()
		if host := v.cell(plan.Case{Profile: c.Profile, Path: plan.ZeroPath, Workload: c.Workload}, c.Metric); limit == 0 && host != nil {
			limit = host.Median
		}
		paced := c.Workload.Traits().Rate > 0
		measured := c.Metric == metric.Goodput && !paced && c.Path.Crosses() && c.Path != plan.ZeroPath
		if measured && limit > 0 && nearlyEqual(c.Median, limit, atTheWire) {
			full.add(plan.Case{Path: c.Path, Workload: c.Workload}, c.Profile.String())
		}
	}
	for at, names := range full.all() {
		if len(names) > 1 {
			found.add(at.Path.String()+" "+at.Workload.String(), "%s are within 3%% of what the wire gives",
				strings.Join(names, ", "))
		}
	}
}

func findOneMachine(v *View, found *list) {
	if v.facts["nodes.machines"] != "1" {
		return
	}
	var paths []string
	for _, c := range v.cases {
		if p := c.Path.String(); c.Path.Crosses() && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	if len(paths) > 0 {
		found.add(number.Few(paths), "all nodes are on one machine: %s", cmp.Or(v.facts["nodes"], "nodes.machines is 1"))
	}
}

// burstable are instance types whose network or CPU runs on credits.
var burstable = pattern.New(`\b(t2|t3|t3a|t4g)\.[a-z0-9]+\b`)

func findTokenBucket(v *View, found *list) {
	peak, kept := v.factInUnit("line_rate", "bit/s"), v.factInUnit("line_rate.sustained", "bit/s")
	of, instance := Key{Metric: metric.Goodput}, v.facts["instance"]
	if kept > 0 && peak > kept {
		found.add(instance, "%s while credits last, %s for good", formatValue(of, peak), formatValue(of, kept))
	} else if credits := burstable.Regexp().FindString(instance); credits != "" {
		found.add(instance, "the CPU and the network of %s run on credits", credits)
	}
}
