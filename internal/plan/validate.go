package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// maxCases bounds the expansion, so that a slip in an axis is an error and not an hour of memory.
const maxCases = 100_000

// Validate returns everything that is wrong with p as Faults, or nil.
func (p Plan) Validate() error {
	var fs faults
	fs.oneOf("environment", p.Environment, environments...)
	fs.validProfiles(p)
	if len(p.Paths) == 0 {
		fs.Add("paths", "none is given")
	}
	for i, path := range p.Paths {
		if slices.Index(p.Paths, path) != i {
			fs.Add("paths", "%s is given twice", path)
		}
	}
	if len(p.Workloads) == 0 {
		fs.Add("workloads", "none is given")
	}
	for i, w := range p.Workloads {
		if err := w.Validate(); err != nil {
			fs.Add("workloads", "%s", err)
		}
		if slices.Index(p.Workloads, w) != i {
			fs.Add("workloads", "%s is given twice", w)
		}
		if c, ok := w.Capacity(); ok && !slices.Contains(p.Workloads, c) {
			fs.Add("workloads", "%s is a share of the capacity that %s measures, which is missing", w, c)
		}
		if barred := p.barred(w); len(p.Paths) > 0 && len(barred) == len(p.Paths) {
			fs.Add("workloads", "%s can go over none of the paths: %s", w, w.Barred(p.Paths[0]))
		}
	}
	fs.validNumbers(p)
	fs.validLab(p.Lab)
	if p.OnCluster() {
		fs.validCluster(p)
	}
	if n := len(p.Measured()) * len(p.Paths) * len(p.Workloads); n > maxCases {
		fs.Add("workloads", "the plan has %d cases, more than %d", n, maxCases)
	}
	return fs.Err()
}

// barred returns the paths of the plan that w cannot go over.
func (p Plan) barred(w Workload) []Path {
	var barred []Path
	for _, path := range p.Paths {
		if w.Barred(path) != "" {
			barred = append(barred, path)
		}
	}
	return barred
}

func (fs *faults) validProfiles(p Plan) {
	if len(p.Profiles) == 0 {
		fs.Add("profiles", "none is given")
	}
	for i, name := range p.Profiles {
		if slices.Index(p.Profiles, name) != i {
			fs.Add("profiles", "%s is given twice", name)
			continue
		}
		fs.validProfileOf(p, "profiles", name)
	}
	if p.Baseline == "" {
		fs.Add("baseline", "none is given")
		return
	}
	fs.validProfileOf(p, "baseline", p.Baseline)
}

func (fs *faults) validProfileOf(p Plan, field string, name Variant) {
	switch {
	case p.OnCluster():
		fs.validClusterProfile(field, name, p)
	case slices.Contains(environments, p.Environment): // of another nobody knows which profiles it has
		fs.validProfile(field, name)
	}
}

// CheckProfile returns what Validate says of a profile of this name: Faults with the nearest name, if the catalogue has none.
func CheckProfile(name string) error {
	var fs faults
	fs.validProfile("profiles", Variant(name))
	return fs.Err()
}

func (fs *faults) validProfile(field string, v Variant) {
	name := v.Profile()
	if _, ok := profile.Lookup(name); ok {
		if canonical, err := ParseVariant(string(v)); err != nil {
			fs.Add(field, "%s", err)
		} else if canonical != v {
			fs.Add(field, "%s is not in canonical form: want %s", v, canonical)
		}
		return
	}
	var names []string
	for _, q := range profile.All() {
		names = append(names, q.Name)
	}
	fs.Add(field, "unknown profile %q%s", name, advice.DidYouMean(name, names))
}

func (fs *faults) validNumbers(p Plan) {
	fs.within("repetitions", p.Repetitions, 1, MaxRepetitionsLimit)
	if p.MaxRepetitions != 0 {
		fs.within("maxRepetitions", p.MaxRepetitions, 1, MaxRepetitionsLimit)
		if p.MaxRepetitions < p.Repetitions {
			fs.Add("maxRepetitions", "%d is less than the %d repetitions", p.MaxRepetitions, p.Repetitions)
		}
		if p.Precision == 0 && p.MaxRepetitions > p.Repetitions {
			fs.Add("maxRepetitions", "has no meaning without precision")
		}
	}
	if math.IsNaN(p.Precision) || p.Precision < 0 || p.Precision >= 1 {
		fs.Add("precision", "%v is out of range: want more than 0 and less than 1, for example 0.05 for 5 %%", p.Precision)
	}
	if p.Duration != 0 {
		fs.duration("duration", p.Duration, MinWindow, MaxWindow)
		for _, w := range p.Workloads {
			if err := w.Rolls(p.Duration); err != nil {
				fs.Add("workloads", "%s", err)
			}
		}
	}
	fs.duration("warmup", p.Warmup, 0, MaxWindow)
	if p.Budget < 0 {
		fs.Add("budget", "%s is negative", p.Budget)
	} else if p.Budget > 0 && p.Budget < p.TrialTime() {
		fs.Add("budget", "%s is less than one trial takes (%s)", p.Budget, p.TrialTime())
	}
}

func (fs *faults) validLab(l Lab) {
	fs.within("lab.nodes", l.Nodes, 2, MaxNodes)
	fs.within("lab.podsPerNode", l.PodsPerNode, 2, MaxPodsPerNode)
	fs.oneOf("lab.nic", l.NIC, "wire", "ideal")
	fs.oneOf("lab.cpu", l.CPU, "auto", "one", "split")
	fs.within("lab.mtu", l.MTU, 1280, 9000)
	if !(l.LineRate >= 0 && l.LineRate <= MaxRate) || l.LineRate > 0 && l.LineRate < 1e5 {
		fs.Add("lab.lineRate", "%s is out of range: want 100K to 1T bit/s, or 0 for none", formatRate(l.LineRate))
	}
	fs.duration("lab.delay", l.Delay, 0, MaxDelay)
	if !(l.Loss >= 0 && l.Loss <= MaxLoss) {
		fs.Add("lab.loss", "%v is out of range: want 0 to %v", l.Loss, MaxLoss)
	}
	fs.within("lab.services", l.Services, 0, MaxServices)
	fs.oneOf("lab.iptables", l.Iptables, "auto", "nft", "legacy")
	if l.ServiceProxy != "" {
		fs.oneOf("lab.serviceProxy", l.ServiceProxy, "iptables", "nftables", "ipvs")
	}
	if l.Family != 0 && l.Family != 4 && l.Family != 6 {
		fs.Add("lab.family", "%d is not 4 or 6", l.Family)
	}
	if l.TrafficPolicy != "" {
		fs.oneOf("lab.trafficPolicy", l.TrafficPolicy, "Cluster", "Local")
	}
	fs.within("lab.policies", l.Policies, 0, MaxPolicies)
	fs.within("lab.policiesUnselected", l.PoliciesUnselected, 0, MaxPolicies)
}

func (fs *faults) within(field string, v, low, high int) {
	if v < low || v > high {
		fs.Add(field, "%d is out of range: want %d to %d", v, low, high)
	}
}

func (fs *faults) duration(field string, v, low, high time.Duration) {
	if v < low || v > high {
		fs.Add(field, "%s is out of range: want %s to %s", v, low, high)
	}
}

func (fs *faults) oneOf(field, v string, allowed ...string) {
	if !slices.Contains(allowed, v) {
		fs.Add(field, "%q is not one of %s%s", v, strings.Join(allowed, ", "), advice.DidYouMean(v, allowed))
	}
}

// Notes are remarks on a valid plan that its author may want to act on. The plan has its window.
func (p Plan) Notes(cases int) []string {
	var notes []string
	if all := p.Expected(cases); p.Budget > 0 && all > p.Budget {
		whole := int(p.Budget / max(time.Duration(cases)*p.TrialTime(), 1))
		notes = append(notes, fmt.Sprintf("%d repetitions of %d cases need about %s, more than the budget of %s: about %d will be whole",
			p.Repetitions, cases, all.Round(time.Second), p.Budget, whole))
	}
	if ttl, most := p.Lifetime(), p.longest(); p.OnCluster() && p.Budget == 0 && ttl < most {
		notes = append(notes, fmt.Sprintf("the pods end after %s (ttl), and %d repetitions of %d cases may take %s: a run that needs them all is cut short",
			ttl, max(p.Repetitions, p.MaxRepetitions), cases, most.Round(time.Second)))
	}
	for _, w := range p.Workloads {
		if barred := p.barred(w); len(barred) > 0 {
			notes = append(notes, fmt.Sprintf("%s is not measured on %s: %s", w, join(barred), w.Barred(barred[0])))
		}
	}
	notes = append(notes, p.toolNotes()...)
	if size := p.largestDatagram(); p.Lab.Family == 6 && p.Lab.MTU-tunnelIPv6 < size {
		notes = append(notes, fmt.Sprintf("datagrams of %d bytes do not fit through every tunnel of IPv6 in one piece; message=%d does", size, p.Lab.MTU-tunnelIPv6))
	}
	return notes
}

// tunnelIPv6 is the most that headers take of a packet on an IPv6 underlay: WireGuard 80, and IPv6 and UDP within it 48.
const tunnelIPv6 = 128

// largestDatagram is the largest payload of the plan's UDP workloads in bytes, 0 without any.
func (p Plan) largestDatagram() int {
	size := 0
	for _, w := range p.Workloads {
		if t := w.Traits(); t.Protocol == UDP {
			size = max(size, t.Message, t.Request, t.Response)
		}
	}
	return size
}

func join(paths []Path) string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}
