package plan

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// maxCases is the largest number of cases of a plan. It makes a typing error a fault before the cases use up the
// memory.
const maxCases = 100_000

// Validate returns everything that is wrong with p as Faults, nil if nothing is wrong.
func (p Plan) Validate() error {
	var fs faults
	fs.checkProfiles(p)
	fs.checkSweep(p)
	checkDistinct(&fs, "paths", p.Paths)
	checkDistinct(&fs, "workloads", p.Workloads)
	for _, w := range p.Workloads {
		if err := w.Validate(); err != nil {
			fs.Add("workloads", "%s", err)
		}
		if _, err := p.loadedWorkload(w); err != nil {
			fs.Add("workloads", "%s", err)
		}
		if c, ok := w.Capacity(); ok && !slices.Contains(p.Workloads, c) {
			fs.Add("workloads", "%s is a share of the capacity that %s measures, which is missing", w, c)
		}
		if barred := p.barredPaths(w); len(p.Paths) > 0 && len(barred) == len(p.Paths) {
			fs.Add("workloads", "%s can go over none of the paths: %s", w, w.Barred(p.Paths[0]))
		}
	}
	fs.checkPairs(p)
	fs.checkJobs(p)
	fs.checkNames(p)
	for _, s := range Settings() {
		if wrong := s.Check(p); wrong != "" && (s.Where != onClusters || p.OnCluster()) {
			fs.Add(s.Key, "%s", wrong)
		}
	}
	fs.checkNumbers(p)
	if p.OnCluster() {
		fs.checkCluster(p)
	}
	if n := len(p.Measured()) * len(p.Paths) * len(p.Workloads); n > maxCases {
		fs.Add("workloads", "the plan has %d cases, more than %d", n, maxCases)
	}
	return fs.Err()
}

// checkDistinct adds a fault for an empty list, and for each value that the list repeats.
func checkDistinct[T comparable](fs *faults, field string, all []T) {
	if len(all) == 0 {
		fs.Add(field, "none is given")
	}
	for i, v := range all {
		if slices.Index(all, v) != i {
			fs.Add(field, "%v is given twice", v)
		}
	}
}

// barredPaths returns the paths of the plan that w does not support.
func (p Plan) barredPaths(w Workload) []Path {
	return each.Where(p.Paths, func(path Path) bool { return w.Barred(path) != "" })
}

func (fs *faults) checkProfiles(p Plan) {
	checkDistinct(fs, "profiles", p.Profiles)
	for i, name := range p.Profiles {
		if slices.Index(p.Profiles, name) == i {
			fs.checkVariant(p, "profiles", name)
		}
	}
	if p.Baseline.IsZero() {
		fs.Add("baseline", "none is given")
		return
	}
	fs.checkVariant(p, "baseline", p.Baseline)
}

func (fs *faults) checkVariant(p Plan, field string, name Variant) {
	switch {
	case name.File() != "": // profilefile.Load reports its faults
	case p.OnCluster():
		fs.checkClusterProfile(field, name, p)
	case slices.Contains(environments, p.Environment): // the profiles of another are unknown
		fs.checkProfile(field, name, each.Of(p.Own, func(s OwnSource) string { return s.Name })...)
		fs.checkConditions(p, field, name)
		if field == "profiles" || !slices.Contains(p.Profiles, name) {
			fs.checkChurn(p, field, name)
		}
	}
}

// checkConditions adds faults for conditions of a variant that its profile does not support, and for contradictions
// between the conditions that apply to it.
func (fs *faults) checkConditions(p Plan, field string, v Variant) {
	for _, flag := range variantFlags() {
		if why := whyUseless(flag, v); v.setsCondition(flag) && why != "" {
			fs.Add(field, "%s: %s", v, why)
		}
	}
	if v.hasCondition(isRecipeCondition) {
		fs.Add(field, "%s: version and set.KEY are for clusters: nothing is installed in the lab", v)
	}
	l := v.Lab(p.Lab)
	if why := l.whyContradictory(); why != "" {
		fs.Add(field, "%s: %s", v, why)
	}
	if of, ok := profile.Lookup(v.Profile()); ok && of.OnNIC && l.PodMTU > l.MTU {
		fs.Add(field, "%s: pods of %s are on the NIC, so pod-mtu=%d requires --mtu %d", v, of.Name, l.PodMTU, l.PodMTU)
	}
	for _, w := range p.Workloads {
		own := l
		own.NIC = cmp.Or(w.nicModel(), l.NIC)
		if why := own.whyContradictory(); own.NIC != l.NIC && why != "" && l.whyContradictory() == "" {
			fs.Add("workloads", "%s under %s: %s", w, v, why)
		}
	}
	fs.checkLoad(p, field, v)
}

// CheckProfile returns Faults if the catalogue does not have the profile of v, or if v is not in canonical form. For an
// unknown name, the Faults suggest a similar one.
func (v Variant) CheckProfile() error {
	var fs faults
	fs.checkProfile("profiles", v)
	return fs.Err()
}

// checkProfile adds a fault if the profile of v is neither in the catalogue nor among own, or if v is not in canonical form.
func (fs *faults) checkProfile(field string, v Variant, own ...string) {
	name := v.Profile()
	if _, ok := profile.Lookup(name); ok || slices.Contains(own, name) {
		if canonical, err := ParseVariant(v.String()); err != nil {
			fs.Add(field, "%s", err)
		} else if canonical != v {
			fs.Add(field, "%s is not in canonical form: want %s", v, canonical)
		}
		return
	}
	fs.Add(field, "unknown profile %q%s", name, profileAdvice(name, own))
}

// profileAdvice returns advice for an unknown profile name, to append to an error message. own has the names of the user's
// profiles.
func profileAdvice(name string, own []string) string {
	if platform, p, ok := profile.DefaultOf(name); ok {
		return fmt.Sprintf(": the default of %s is %s", platform, p.Name)
	}
	names := append(profile.Names(), own...)
	of := slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, name+"-") })
	if c, ok := profile.LookupCNI(name); ok && !of {
		return fmt.Sprintf(": %s is measured on a cluster that runs it: cnibench run --env kubernetes (cnibench list cnis)", c.Title)
	}
	return cmp.Or(advice.DidYouMean(name, names), " (names: cnibench list profiles)")
}

func (fs *faults) checkNumbers(p Plan) {
	if p.MaxRepetitions != 0 {
		if p.MaxRepetitions < p.Repetitions {
			fs.Add("maxRepetitions", "%d is less than the %d repetitions", p.MaxRepetitions, p.Repetitions)
		}
		if p.Precision == 0 && p.MaxRepetitions > p.Repetitions {
			fs.Add("maxRepetitions", "has no meaning without precision")
		}
	}
	for _, w := range p.Workloads {
		if why := w.whyUnfit(cmp.Or(w.Window, p.Duration)); why != "" {
			fs.Add("workloads", "%s: %s", w, why)
		}
	}
	if p.Budget < 0 {
		fs.Add("budget", "%s is negative", p.Budget)
	} else if p.Budget > 0 && p.Budget < p.TrialTime() {
		fs.Add("budget", "%s is less than one trial takes (%s)", p.Budget, p.TrialTime())
	}
}

// Validate returns everything that is wrong with the conditions of the lab as Faults, nil if nothing is wrong.
func (l Lab) Validate() error {
	var fs faults
	for _, s := range Settings() {
		if wrong := s.Check(Plan{Lab: l}); wrong != "" && s.Group() == GroupLab {
			fs.Add(s.Key, "%s", wrong)
		}
	}
	if why := l.whyContradictory(); why != "" {
		fs.Add("lab.services", "%s", why)
	}
	return fs.Err()
}

// Filled returns l with each zero field set to its default.
func (l Lab) Filled() Lab {
	all, usual := reflect.ValueOf(&l).Elem(), reflect.ValueOf(Default().Lab)
	for _, f := range reflect.VisibleFields(all.Type()) {
		if own := all.FieldByIndex(f.Index); !f.Anonymous && own.IsZero() {
			own.Set(usual.FieldByIndex(f.Index))
		}
	}
	return l
}

// Notes returns remarks that may make the author of a valid plan change it. cases is the number of its cases. The plan
// must have its window.
func (p Plan) Notes(cases int) []string {
	var notes []string
	if all := p.Expected(cases); p.Budget > 0 && all > p.Budget {
		whole := int(float64(p.Repetitions) * float64(p.Budget) / float64(all))
		will := fmt.Sprintf("about %d will be complete", whole)
		if whole == 0 {
			will = "not one can be complete, and most cases will have no trial; give a longer budget or fewer cases"
		}
		notes = append(notes, fmt.Sprintf("%d repetitions of %d cases need about %s, more than the budget of %s: %s",
			p.Repetitions, cases, all.Round(time.Second), p.Budget, will))
	}
	if ttl, most := p.Lifetime(), p.longestRunTime(); p.OnCluster() && p.Budget == 0 && ttl < most {
		notes = append(notes, fmt.Sprintf("the pods end after %s (ttl), and %d repetitions of %d cases may take %s: a run that needs them all is cut short",
			ttl, max(p.Repetitions, p.MaxRepetitions), cases, most.Round(time.Second)))
	}
	notes = append(append(notes, duplicateNotes(p)...), p.ineffectiveNotes()...)
	for _, w := range p.Workloads {
		if barred := p.barredPaths(w); len(barred) > 0 && w.nicModel() == "" {
			notes = append(notes, fmt.Sprintf("%s is not measured on %s: %s", w, strings.Join(Texts(barred), ", "), w.Barred(barred[0])))
		}
	}
	if names, window := p.wholeSecondTools(), roundUpToSecond(p.Duration); len(names) > 0 && window != p.Duration {
		notes = append(notes, fmt.Sprintf("%s: window of %s instead of %s, in whole seconds", strings.Join(names, ", "), window, p.Duration))
	}
	if size := largestDatagram(p); p.Lab.Family == 6 && p.Lab.MTU-tunnelIPv6 < size {
		notes = append(notes, fmt.Sprintf("datagrams of %d bytes do not fit through every tunnel of IPv6 in one piece; message=%d does", size, p.Lab.MTU-tunnelIPv6))
	}
	return notes
}

// ineffectiveNotes returns a note for each of the settings encryption and flowtable that is set for the whole run but has
// no effect on some profiles.
func (p Plan) ineffectiveNotes() (notes []string) {
	encrypted := p.Lab.Encryption != "" && p.Lab.Encryption != condition.EncryptionOff
	for _, c := range []struct {
		flag string
		set  bool
	}{{"encryption", encrypted}, {"flowtable", p.Lab.Flowtable > 0}} {
		if !c.set || p.OnCluster() {
			continue
		}
		bare := []string{profile.Raw, profile.Host}
		without := each.Where(p.Profiles, func(v Variant) bool { return !slices.Contains(bare, v.Profile()) && whyUseless(c.flag, v) != "" })
		if len(without) > 0 {
			notes = append(notes, fmt.Sprintf("--%s has no effect on %s: measured without", c.flag, strings.Join(Texts(without), ", ")))
		}
	}
	return notes
}

// planInForce returns p with the conditions of v applied. If the pod MTU equals the default of the profile, it becomes 0.
func (v Variant) planInForce(p Plan) Plan {
	q := v.appliedTo(p)
	if of, ok := profile.Lookup(v.Profile()); ok && q.Lab.PodMTU == q.Lab.MTU-of.ReservedOn(q.Lab.Family) {
		q.Lab.PodMTU = 0
	}
	return q
}

// duplicateNotes returns a note for each variant that is measured under the same conditions as another variant of
// its profile. For example, mtu=1500 changes nothing if the MTU of the run is 1500.
func duplicateNotes(p Plan) []string {
	var notes []string
	installed := func(v Variant) string { version, sets := v.Recipe(); return fmt.Sprint(version, sets) }
	for i, v := range p.Profiles {
		for _, w := range p.Profiles[:i] {
			alike := v.Profile() == w.Profile() && v.Context() == w.Context() && installed(v) == installed(w)
			if alike && !v.IsTwin() && !w.IsTwin() && v != w && reflect.DeepEqual(v.planInForce(p), w.planInForce(p)) {
				notes = append(notes, fmt.Sprintf("%s and %s are measured under the same conditions: leave one out", w, v))
				break
			}
		}
	}
	return notes
}

// tunnelIPv6 is the largest size of the headers of a datagram on an IPv6 underlay, in bytes: 80 of a WireGuard tunnel,
// and 48 of the inner IPv6 and UDP.
const tunnelIPv6 = 128

// largestDatagram returns the largest payload of the plan's UDP workloads in bytes. It returns 0 if there are none.
func largestDatagram(p Plan) int {
	size := 0
	for _, w := range p.Workloads {
		if t := w.Traits(); t.Protocol == UDP {
			size = max(size, t.Message, t.Request, t.Response)
		}
	}
	return size
}

// faults collects what is wrong with a plan.
type faults struct{ position.Faults }
