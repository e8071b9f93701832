package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// setupRules look at the recorded conditions.
var setupRules = []rule{
	{id: "cpu-limit", find: findCPULimits},
	{id: "hybrid-cpu", find: findHybridCPU},
	{id: "leftovers", find: findLeftovers},
	{id: "fixed-order", find: findFixedOrder},
	{id: "confounded", find: findConfoundedClaims},
	{id: "unequal-load", find: findUnequalLoads},
	{id: "dsr-path", find: findUnusedDSR},
	{id: "not-served", find: findUnservedPaths},
	{id: "encapsulation-unproven", find: findUnprovenEncapsulation},
	{id: "edited-output", find: findEditedOutput},
	{id: "asked-not-published", find: findUnpublishedMetrics},
	{id: "conditions", find: findMissingConditions},
}

func findCPULimits(v *View, found *list) {
	for _, name := range v.facts.Names() {
		if name != "cpu.limit" && !(strings.HasPrefix(name, "cpu.limit.") && !strings.HasSuffix(name, ".of")) {
			continue
		}
		say := "limit of " + v.facts[name]
		if of := v.facts[name+".of"]; of != "" {
			say += " on " + of
		}
		found.add(name, "%s", say+"; throttling is not reported")
	}
}

// hybrid matches Intel's desktop and laptop processors since the 12th generation with two kinds of cores. The small i3,
// and the i5 up to 12500, have one kind.
var hybrid = pattern.New(`\bi[79]-1[234]\d{3}|\bi5-1[34]\d{3}|Core\(TM\) Ultra`)

func findHybridCPU(v *View, found *list) {
	model := v.facts[facts.CPUModel]
	if !hybrid.MatchString(model) || v.facts["cpu.placement"] != "" || v.facts[facts.Placement] != "" {
		return
	}
	found.add(facts.CPUModel, "%s", model+", and no placement is stated")
}

func findLeftovers(v *View, found *list) {
	if s := v.facts["leftovers"]; s != "" {
		found.add("leftovers", "%s", s)
	}
	order := splitTrimmed(v.facts["order"], ",")
	clean := strings.ToLower(v.facts["cluster.cleanup"])
	if v.facts["cluster.reuse"] == "yes" && !strings.Contains(clean, "rebuil") && !strings.Contains(clean, "reboot") {
		say := "one cluster for all"
		if len(order) > 1 {
			say = "one cluster for " + strings.Join(order, ", then ")
		}
		found.add("cluster.cleanup", "%s", say+"; clean-up between them: "+cmp.Or(v.facts["cluster.cleanup"], "none stated"))
	}
}

func findFixedOrder(v *View, found *list) {
	order := splitTrimmed(v.facts["order"], ",")
	if len(order) < 2 || strings.Contains(v.facts["order"], "interleaved") || strings.Contains(v.facts["order"], "shuffled") {
		return
	}
	found.add("order", "first %s", strings.Join(order, ", then "))
}

// splitTrimmed splits s, trims the parts and drops empty ones.
func splitTrimmed(s, separator string) []string {
	var list []string
	for w := range strings.SplitSeq(s, separator) {
		if w = strings.TrimSpace(w); w != "" {
			list = append(list, w)
		}
	}
	return list
}

// profileSettings returns the values of a profile in the facts "setting.NAME: profile=value; profile=value", by name.
func (v *View) profileSettings(profile string) map[string]string {
	of := map[string]string{}
	for _, name := range v.facts.Names() {
		setting, ok := strings.CutPrefix(name, "setting.")
		if !ok {
			continue
		}
		for _, w := range splitTrimmed(v.facts[name], ";") {
			if who, what, ok := strings.Cut(w, "="); ok && strings.TrimSpace(who) == profile {
				of[setting] = strings.TrimSpace(what)
			}
		}
	}
	return of
}

func findConfoundedClaims(v *View, found *list) {
	done := map[[2]string]bool{}
	for _, c := range v.claims {
		pair := [2]string{min(c.A, c.B), max(c.A, c.B)}
		if c.B == "" || done[pair] {
			continue
		}
		done[pair] = true
		a, b := v.profileSettings(c.A), v.profileSettings(c.B)
		var differ []string
		for _, name := range facts.Facts(a).Names() {
			if b[name] != "" && a[name] != b[name] {
				differ = append(differ, fmt.Sprintf("%s (%s, %s)", name, a[name], b[name]))
			}
		}
		if len(differ) > 1 {
			found.add(c.A+" over "+c.B, "%d settings differ: %s", len(differ), strings.Join(differ, ", "))
		}
	}
}

// datagramSizes returns the possible payloads of one datagram of a case in bytes. There are two if the tool may have
// counted the bytes of the offered or of the received datagrams. It returns nil if the metrics that it needs are missing.
func (v *View) datagramSizes(c plan.Case) []float64 {
	first := func(name string) float64 {
		if cell := v.cell(c, name); cell != nil {
			return cell.Samples[0].Value
		}
		return 0
	}
	bytes, offered := first(metric.Transferred), first(metric.Datagrams)
	if bytes > 0 && offered > 0 {
		arrived := offered - first(metric.DatagramsLost)
		if arrived == offered {
			arrived *= 1 - first(metric.FrameLossRate)
		}
		return []float64{bytes / offered, bytes / arrived}
	}
	if rate, packets := first(metric.Goodput), first(metric.PacketRate); rate > 0 && packets > 0 {
		return []float64{rate / packets / 8}
	}
	return nil
}

// haveCommonSize reports whether two cases may have sent datagrams of the same size. a and b are their possible sizes.
func haveCommonSize(a, b []float64) bool {
	return slices.ContainsFunc(a, func(x float64) bool {
		return slices.ContainsFunc(b, func(y float64) bool { return nearlyEqual(x, y, sameSum) })
	})
}

func findUnequalLoads(v *View, found *list) {
	first := map[plan.Case]plan.Case{} // by path and workload
	for _, t := range v.cases {
		sizes := v.datagramSizes(t.Case)
		at := plan.Case{Path: t.Path, Workload: t.Workload}
		if !t.Workload.Traits().Datagrams() || sizes == nil {
			continue
		}
		one, ok := first[at]
		if !ok {
			first[at] = t.Case
			continue
		}
		if others := v.datagramSizes(one); !haveCommonSize(others, sizes) {
			found.add(at.Path.String()+" "+at.Workload.String(), "datagrams of %.0f B under %s and of %.0f B under %s",
				others[0], one.Profile, sizes[0], t.Profile)
		}
	}
}

// dsrSuffix marks the profiles that answer clients outside directly.
const dsrSuffix = "-dsr"

func findUnusedDSR(v *View, found *list) {
	claimed := func(name string) (where []string) {
		for _, c := range v.claims {
			if (c.A == name || c.B == name) && !v.entersFromOutside(c.Path) {
				where = append(where, c.ID)
			}
		}
		return where
	}
	var done []string
	for _, t := range v.cases {
		name := t.Profile.Profile()
		if !strings.HasSuffix(name, dsrSuffix) || slices.Contains(done, name) {
			continue
		}
		done = append(done, name)
		outside := slices.ContainsFunc(v.cases, func(o *tally) bool { return o.Profile.Profile() == name && v.entersFromOutside(o.Path) })
		claims := claimed(name)
		switch {
		case len(claims) > 0:
			f := found.add(name, "compared on paths that DSR does not change: %s", strings.Join(claims, ", "))
			f.Severity = finding.Doubtful
		case !outside:
			found.add(name, "no path from a client outside to a NodePort or a load balancer")
		}
	}
}

// entersFromOutside reports whether a path enters a Service from outside the cluster. A load balancer does not count in
// our own runs on a cluster: there the client is on a node, which serves the load balancer's address itself.
func (v *View) entersFromOutside(p plan.Path) bool {
	return p.To == plan.NodePort || p.To == plan.LoadBalancer && (v.imported() || !v.header.Plan.OnCluster())
}

// tunnelPorts are what a firewall must allow for each encapsulation; each string is one way to write it.
var tunnelPorts = map[string][]string{"vxlan": {"4789", "8472"}, "ipip": {"protocol 4", "ipip"}, "wireguard": {"51820"}}

func findUnprovenEncapsulation(v *View, found *list) {
	open := strings.ToLower(v.facts["firewall"])
	if open == "" {
		return
	}
	for _, w := range splitTrimmed(v.facts["setting.encapsulation"], ";") {
		who, what, _ := strings.Cut(w, "=")
		needs := tunnelPorts[strings.TrimSpace(what)]
		if len(needs) > 0 && !slices.ContainsFunc(needs, func(n string) bool { return strings.Contains(open, n) }) {
			found.add(strings.TrimSpace(who), "%s is stated, and open between the nodes are %s",
				strings.TrimSpace(what), v.facts["firewall"])
		}
	}
}

// cannotServe reports whether a profile cannot serve a path.
func cannotServe(p profile.Profile, path plan.Path) bool {
	if p.Services != "none" {
		return false
	}
	if path.From == plan.Pod && path.ByService() {
		return true // the node's stack translates only for its own processes
	}
	ownNode := path.Locality == plan.SameNode && path.From != path.To || path.From == plan.Host && path.Locality == plan.Local
	return p.OnNIC && ownNode
}

func findUnservedPaths(v *View, found *list) {
	var served groups[string, string] // paths by profile
	for _, t := range v.cases {
		p, ok := profile.Lookup(t.Profile.Profile())
		path, known := t.Path.String(), served.of[p.Name]
		if ok && cannotServe(p, t.Path) && t.trials > t.failed && !slices.Contains(known, path) {
			served.add(p.Name, path)
		}
	}
	for name, paths := range served.all() {
		found.add(name, "numbers on %s", strings.Join(paths, ", "))
	}
}

// generatedPod matches the name of a pod that a controller created. Its groups are the hash of the pod template, "" if no
// Deployment made the pod, and the generated suffix.
var generatedPod = pattern.New(`^[a-z0-9-]+?(?:-([a-z0-9]{8,10}))?-([a-z0-9]{5})$`)

// Alphabets of k8s.io/apimachinery/pkg/util/rand: hashLetters encodes the digits of a template hash, generatedLetters is
// for generated names.
const (
	hashLetters      = "456789bcdf"
	generatedLetters = "bcdfghjklmnpqrstvwxz2456789"
)

func findEditedOutput(v *View, found *list) {
	for _, name := range strings.Fields(v.facts["pods"]) {
		parts := generatedPod.FindStringSubmatch(name)
		if parts == nil {
			continue
		}
		var wrong []string
		for i, letters := range []string{hashLetters, generatedLetters} {
			others := strings.FieldsFunc(parts[i+1], func(r rune) bool { return strings.ContainsRune(letters, r) })
			if len(others) > 0 {
				wrong = append(wrong, fmt.Sprintf("%q has %q", parts[i+1], strings.Join(others, "")))
			}
		}
		if len(wrong) > 0 {
			found.add(name, "%s", strings.Join(wrong, ", "))
		}
	}
}

func findUnpublishedMetrics(v *View, found *list) {
	var missing []string
	for _, name := range strings.Fields(v.facts["asked"]) {
		if !slices.ContainsFunc(v.cells, func(c *Cell) bool { return c.Metric == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		found.add("", "no number for %s", strings.Join(missing, ", "))
	}
}

func findMissingConditions(v *View, found *list) {
	if !v.imported() {
		return // our own run states a reason for a missing fact
	}
	var missing []string
	for _, want := range []struct {
		what  string
		facts []string
	}{
		{"kernel", []string{facts.Kernel}}, {"MTU", []string{"mtu", facts.MTU}}, {"line rate", []string{"line_rate"}},
		{"CPU", []string{facts.CPUModel}}, {"version of the tool", []string{facts.ToolVersion}},
		{"placement of processes and interrupts", []string{"cpu.placement", facts.Placement}}, {"order", []string{"order"}},
	} {
		if !slices.ContainsFunc(want.facts, func(n string) bool { s := v.facts[n]; return s != "" && s != "not stated" }) {
			missing = append(missing, want.what)
		}
	}
	if len(missing) > 0 {
		found.add("", "not stated: %s", strings.Join(missing, ", "))
	}
}
