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

// Margins between cells beyond their intervals, as shares.
const (
	beyondHosts  = 0.15 // in goodput
	beyondTimes  = 0.25 // in times and rates of exchanges, of which the node's own rules cost hosts a part
	beyondFar    = 0.05
	beyondDirect = 0.05
	beyondBare   = 0.10
	beyondModes  = 0.5
	beyondTunnel = 2
	slowerFlows  = 0.05
	atTheWire    = 0.03
)

// wireRules hold paths against the wire and against one another.
var wireRules = []rule{
	{Rule: Rule{ID: "line-rate", Title: "faster than the line between the nodes", Severity: Impossible,
		Why: "payload between two machines cannot arrive faster than their line carries it; where it does, it did not cross the line",
		Do:  "find out where the ends stood: virtual machines of one host reach each other through its memory, and that measures memory, not a network"},
		find: aboveLine},
	{Rule: Rule{ID: "faster-than-hosts", Title: "pods faster over the wire than bare hosts", Severity: Doubtful,
		Why: "between nodes pods use the same wire as the hosts: passing by the hosts' own rules saves a dataplane some microseconds, not a third of a round trip, and never outruns the wire",
		Do:  "measure the hosts in the same session as the pods, under the same CNI, interleaved; look for swapped or stale numbers"},
		beside: fasterThanHosts},
	{Rule: Rule{ID: "same-node-slower", Title: "slower within a node than between nodes", Severity: Doubtful,
		Why: "the path between nodes has all of the path within one, and the wire besides; only CPUs that both ends must share can turn that round",
		Do:  "look at the decimal point and at where the ends were placed; show the raw output of both"},
		beside: nearSlower},
	{Rule: Rule{ID: "service-faster", Title: "faster through a Service than without", Severity: Doubtful,
		Why: "a Service adds a translation to the path of its endpoint, or at best (socket load balancing) nothing",
		Do:  "repeat both, interleaved: the difference is likely to be the noise of a single run"},
		beside: serviceFaster},
	{Rule: Rule{ID: "encapsulation-free", Title: "faster with encapsulation than without", Severity: Doubtful,
		Why: "a mode that encapsulates does all that its sibling does, and adds headers",
		Do:  "check which mode was in force on the wire (capture), MTU and offloads of both, and repeat"},
		beside: encapsulationFree},
	{Rule: Rule{ID: "tunnels-disagree", Title: "one encapsulation, rates far apart", Severity: Doubtful,
		Why: "two CNIs that put the same headers around the same packets cannot differ so much by their rules: an offload, a checksum or an MTU does",
		Do:  "compare ethtool -k of the tunnel devices and of the NIC, the MTUs, and what a capture shows of segment sizes and checksums"},
		beside: tunnelsDisagree},
	{Rule: Rule{ID: "part-slower", Title: "part of a path slower than all of it", Severity: Doubtful,
		Why: "between nodes a pod's way to another pod has the way to that pod's node in it, and a hop more",
		Do:  "look for another route or encapsulation towards node addresses, and show the route and a capture of both"},
		beside: partSlower},
	{Rule: Rule{ID: "modes-disagree", Title: "modes of one CNI differ where they are the same", Severity: Doubtful,
		Why: "encapsulation is between nodes: within a node modes of a CNI that differ in it alone send packets the same way",
		Do:  "repeat the odd one: it is likely to be a disturbed run"},
		find: modesDisagree},
	{Rule: Rule{ID: "odd-one-out", Title: "one value far from its row and its neighbours", Severity: Doubtful,
		Why: "a dataplane that is several times worse, or better, than the others on one path is so on similar paths, too",
		Do:  "repeat the case: look for a disturbed run, a misplaced digit or a value of another path"},
		find: oddOneOut},
	{Rule: Rule{ID: "wire-time", Title: "a round trip shorter than the wire allows", Severity: Impossible,
		Why: "a round trip takes at least the time that its bits need on the line and that light needs in the cable",
		Do:  "check what was timed, and between which ends"},
		find: wireTime},
	{Rule: Rule{ID: "wire-bound", Title: "the wire decides, not the dataplane", Severity: Note,
		Why: "where several dataplanes fill the line they look alike, and the order among them is noise",
		Do:  "compare them by CPU time per byte, by small messages, or over a faster line"},
		find: wireBound},
	{Rule: Rule{ID: "one-machine", Title: "nodes on one machine", Severity: Doubtful,
		Why: "between containers or virtual machines of one machine there is no wire: both ends share its CPUs, caches and memory",
		Do:  "use two machines, or speak of software cost and not of a network"},
		find: oneMachine},
	{Rule: Rule{ID: "token-bucket", Title: "a line with credits that run dry", Severity: Doubtful,
		Why: "such an instance gives its peak rate only while credits last, and what is measured later in a session meets an emptier bucket",
		Do:  "use an instance with a fixed rate, or wait for full credits before each trial and interleave the systems"},
		find: tokenBucket},
}

// Bytes around the payload of a small TCP packet on Ethernet with its gaps, and the speed of light in fibre in m/s.
const (
	framing    = 90
	fibreLight = 2e8
)

func aboveLine(v *View, found *list) {
	line := v.lineRate()
	for _, c := range v.cells {
		known := v.of[c.Case].warnings[outcome.AboveLineRate] != nil // said there, with the headers counted
		if line > 0 && c.Metric == metric.Goodput && crosses(c.Path) && !known && c.Low > line*(1+reached) {
			found.add(c.Key.String(), "%s over a line of %s: %.2f times", show(c.Key, c.Median), show(c.Key, line), c.Median/line)
		}
	}
}

func wireTime(v *View, found *list) {
	rate, distance := v.fact("line_rate", "bit/s"), v.fact("wire.metres", "1")
	for _, c := range v.cells {
		small := c.Workload.Work() == plan.Transaction
		if !strings.HasPrefix(c.Metric, metric.RTT+".") || c.Metric == metric.RTT+".stddev" || !crosses(c.Path) || !small {
			continue
		}
		least := 2 * distance / fibreLight * 1e9
		if rate > 0 {
			is := c.Workload.Traits()
			bytes := max(is.Request, is.Message) + max(is.Response, is.Message) + 2*framing
			least += 8 * float64(bytes) / rate * 1e9
		}
		if least > 0 && c.High < least {
			found.add(c.Key.String(), "%s, and the wire alone takes %s", show(c.Key, c.Median), show(c.Key, least))
		}
	}
}

func wireBound(v *View, found *list) {
	if v.withoutWire() {
		return
	}
	var full groups[plan.Case, string] // by path and workload
	for _, c := range v.cells {
		limit := v.lineRate()
		if host := v.cell(plan.Case{Profile: c.Profile, Path: hostsApart, Workload: c.Workload}, c.Metric); limit == 0 && host != nil {
			limit = host.Median
		}
		paced := c.Workload.Traits().Rate > 0
		if c.Metric == metric.Goodput && !paced && crosses(c.Path) && c.Path != hostsApart && limit > 0 && near(c.Median, limit, atTheWire) {
			full.add(plan.Case{Path: c.Path, Workload: c.Workload}, string(c.Profile))
		}
	}
	for at, names := range full.all() {
		if len(names) > 1 {
			found.add(at.Path.String()+" "+at.Workload.String(), "%s are within 3%% of what the wire gives", strings.Join(names, ", "))
		}
	}
}

func oneMachine(v *View, found *list) {
	if v.facts["nodes.machines"] != "1" {
		return
	}
	var paths []string
	for _, c := range v.cases {
		if p := c.Path.String(); crosses(c.Path) && !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	if len(paths) > 0 {
		found.add(number.Few(paths), "all nodes are on one machine: %s", cmp.Or(v.facts["nodes"], "nodes.machines is 1"))
	}
}

// burstable are instance types whose network or CPU runs on credits.
var burstable = pattern.New(`\b(t2|t3|t3a|t4g)\.[a-z0-9]+\b`)

func tokenBucket(v *View, found *list) {
	peak, kept := v.fact("line_rate", "bit/s"), v.fact("line_rate.sustained", "bit/s")
	of, instance := Key{Metric: metric.Goodput}, v.facts["instance"]
	if kept > 0 && peak > kept {
		found.add(instance, "%s while credits last, %s for good", show(of, peak), show(of, kept))
	} else if credits := burstable.FindString(instance); credits != "" {
		found.add(instance, "the CPU and the network of %s run on credits", credits)
	}
}
