package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Best is the best dataplane of a need among those with a function.
type Best struct {
	With profile.Function
	// Choice ranks the dataplanes that have the function; empty if none was measured.
	Choice []compare.Standing
	// ToBest compares the first of Choice with the best of all dataplanes. It is the zero value if both are the same.
	ToBest compare.Comparison
}

// bestByFunction returns two elements for a need: the best dataplane with NetworkPolicy, and the best with encryption.
func (b *builder) bestByFunction(n Need) []Best {
	var out []Best
	for _, f := range []profile.Function{profile.NetworkPolicy, profile.Encryption} {
		x := Best{With: f, Choice: b.rankProfiles(n.Path, n.Workload, n.Metric.Name, func(v plan.Variant) bool {
			p, _ := b.lookUpProfile(v)
			return isDataplane(v) && f.By(p) != ""
		})}
		if len(x.Choice) > 0 {
			at := slices.IndexFunc(n.Choice, func(s compare.Standing) bool { return s.Cell.Key == x.Choice[0].Cell.Key })
			x.ToBest = n.Choice[max(0, at)].ToBest
		}
		out = append(out, x)
	}
	return out
}

// lookUpProfile returns the profile of a variant, with the encryption under which it was measured. It returns false if the
// profile is unknown.
func (b *builder) lookUpProfile(v plan.Variant) (profile.Profile, bool) {
	known, ok := profile.Lookup(v.Profile())
	return known.WithEncryption(string(v.Lab(b.header.Plan.Lab).Encryption)), ok
}

// functionLines returns a sentence for each function: the best dataplane that has the function. It omits functions that
// the best of all dataplanes has, and functions that no measured dataplane has.
func (n Need) functionLines() []string {
	var out []string
	for _, x := range n.Best {
		if len(x.Choice) > 0 && !x.ToBest.Profile.IsZero() {
			out = append(out, fmt.Sprintf("Best with %s: %s.", x.With.Name, n.standingText(x.Choice, x.ToBest, false)))
		}
	}
	return out
}

// standingText describes the first of ranks: its value, and the profiles that do not differ from it. If toBest is set, the
// text also says how it compares with the best. If unit is true, the value has its unit.
func (n Need) standingText(ranks []compare.Standing, toBest compare.Comparison, unit bool) string {
	scale := n.Scale()
	text := number.Clean(ranks[0].Cell.Profile.String()) + ": " + scale.Format(ranks[0].Cell.Median)
	if unit {
		text += " " + scale.Unit
	}
	switch {
	case toBest.Profile.IsZero():
	case toBest.Verdict == compare.Worse && toBest.Ratio == toBest.Ratio:
		text += ", " + ratioText(toBest) + " of the best"
	case toBest.Verdict == compare.Worse:
		text += ", worse than the best"
	case toBest.Verdict == compare.Same:
		text += ", the same as the best"
	default:
		text += ", not significantly worse than the best"
	}
	var near []string
	for _, v := range []struct {
		words   string
		verdict compare.Verdict
	}{{"same", compare.Same}, {"undecided", compare.Inconclusive}} {
		if names := profileNames(comparisonsWithVerdict(comparisonsToBest(ranks[1:]), v.verdict)); len(names) > 0 {
			near = append(near, v.words+": "+joinFewNames(names))
		}
	}
	if len(near) > 0 {
		text += " (" + strings.Join(near, "; ") + ")"
	}
	return text
}

// joinFewNames joins up to three names with commas and "and". If there are more, it joins three and adds the number of the
// others.
func joinFewNames(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return joinNames(names)
}

// joinAlternatives joins up to four names with "or". If there are more, it joins four and adds the number of the others. It
// needs at least one name.
func joinAlternatives(names []string) string {
	const most = 4
	last := names[len(names)-1]
	switch {
	case len(names) == 1:
		return last
	case len(names) > most:
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" or %d more", len(names)-most)
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + last
}

// Validated describes which profiles of the lab have costs that were validated on a real cluster. For profiles whose
// costs differ from the cluster it gives the error. It returns "" if the lab measured no dataplane.
func (a Answer) Validated() string {
	var real, off []string
	lab, others := 0, "Others: path verified, cost not."
	for _, x := range a.Abilities {
		if !isDataplane(x.Profile) || x.Proof.Real {
			continue
		}
		lab++
		if x.Proof.Assertions == 0 {
			others = "Others: not."
		}
		switch f := x.Proof.Fidelity; {
		case f.Holds():
			real = append(real, number.Clean(x.Profile.String()))
		case f != nil:
			off = append(off, fmt.Sprintf("%s (%+.0f %%)", number.Clean(x.Profile.String()), 100*f.All.Distance))
		}
	}
	if lab == 0 {
		return ""
	}
	said := []string{"Costs validated on a real cluster: none."}
	if len(real) > 0 {
		said[0] = "Costs validated on a real cluster: " + joinFewNames(real) + "."
	}
	if len(off) > 0 {
		said = append(said, "Compared with one, and off: "+joinFewNames(off)+".")
	}
	if len(real)+len(off) < lab {
		said = append(said, others)
	}
	return strings.Join(said, " ")
}

// Ability has the functions of a profile, and what is proven about its numbers.
type Ability struct {
	Profile plan.Variant `json:"profile"`
	// Functions says what provides each of profile.Functions; "" if nothing does.
	Functions map[string]string `json:"functions"`
	// Models describes what the lab only imitates.
	Models []string `json:"models,omitempty"`
	Proof  Proof    `json:"proof"`
}

// Proof is what is proven about a profile's numbers.
type Proof struct {
	// Assertions counts the assertions of the profile's self-test on real packets; 0 unless all passed in this run.
	Assertions int `json:"assertions"`
	// Real is true if the profile was measured on a real cluster.
	Real bool `json:"real_cluster"`
	// Fidelity compares the lab's cost with a real cluster's; nil if this was never measured.
	Fidelity *profile.Fidelity `json:"fidelity,omitempty"`
}

// Word returns the proof in a word: "wire" if only the self-test passed, "both" if the costs also match a real cluster's,
// "real" if the profile was measured on a real cluster, else "none".
func (p Proof) Word() string {
	switch {
	case p.Real:
		return "real"
	case p.Assertions > 0 && p.Fidelity.Holds():
		return "both"
	case p.Assertions > 0:
		return "wire"
	}
	return "none"
}

// text describes the proof in words: the self-test, and how the cost compares with a real cluster's.
func (p Proof) text() string {
	if p.Real {
		return "measured on a real cluster, whose dataplane was proven first"
	}
	if p.Assertions == 0 {
		return "none"
	}
	text := "on the wire: " + number.Counted(p.Assertions, "assertion") + " held"
	if f := p.Fidelity; f != nil {
		costs := each.Of(f.Workloads, func(w profile.Compared) string {
			return fmt.Sprintf("%s %+.0f %% (%+.0f %%)", w.Name, 100*w.Distance, 100*w.Farthest)
		})
		return text + fmt.Sprintf("; cost beside a real cluster (%s, %s): %d of %d cases proven equal within 5 %%, %d differ, %d undecided; the cluster's CPU time over the lab's, median (and farthest): %s",
			f.Measured, plan.NIC(f.NIC).Label(), f.All.Within, f.All.Rows, f.All.Differ, f.All.Rows-f.All.Within-f.All.Differ, strings.Join(costs, ", "))
	}
	return text + "; cost never compared with a real cluster"
}

// profileAbilities returns the abilities of the known profiles that were not skipped.
func (b *builder) profileAbilities() []Ability {
	var out []Ability
	for _, name := range b.analysis.Profiles {
		known, ok := b.lookUpProfile(name)
		if !ok || b.wasSkipped(name) {
			continue
		}
		a := Ability{Profile: name, Functions: map[string]string{}}
		for _, f := range profile.Functions {
			a.Functions[f.Name] = f.By(known)
		}
		of, _ := b.headerProfile(name)
		a.Models = slices.Clone(of.StandIn)
		if known.Model != "" && len(a.Models) == 0 {
			a.Models = []string{known.Model}
		}
		a.Proof = b.profileProof(of, known)
		out = append(out, a)
	}
	return out
}

func (b *builder) profileProof(of result.Profile, known profile.Profile) Proof {
	switch {
	case b.header.Origin != "":
		return Proof{}
	case of.Assertions > 0 && of.Failed == 0:
		return Proof{Assertions: of.Assertions, Fidelity: known.Fidelity}
	}
	return Proof{Real: b.header.Plan.OnCluster()}
}

// abilityHeading is the heading of the section about functions and proofs.
const abilityHeading = "What each profile does, and what is proven"

// abilitySection returns a section with the functions and the proofs of profiles; nil without profiles.
func abilitySection(all []Ability) []Section {
	if len(all) == 0 {
		return nil
	}
	does := Grid{Label: "profile", Columns: each.Of(profile.Functions, func(f profile.Function) string { return f.Name })}
	proven := Grid{Label: "profile", Columns: []string{"proven"}, Prose: true}
	var functions, proofs []Ability
	for _, a := range all {
		functions = mergeAbility(functions, a, func(a, b Ability) bool { return maps.Equal(a.Functions, b.Functions) })
		proofs = mergeAbility(proofs, a, func(a, b Ability) bool { return a.provenText() == b.provenText() })
	}
	for _, a := range functions {
		does.Add(number.Clean(a.Profile.String()), each.Of(profile.Functions, func(f profile.Function) string {
			return cmp.Or(a.Functions[f.Name], number.Absent)
		})...)
	}
	for _, a := range proofs {
		proven.Add(number.Clean(a.Profile.String()), a.provenText())
	}
	return []Section{{Heading: abilityHeading, Grids: []Grid{does, proven}}}
}

// provenText describes what is proven about a profile, and what the lab imitates of it.
func (a Ability) provenText() string {
	text := a.Proof.text()
	if len(a.Models) > 0 {
		text += "; the lab imitates: " + number.Clean(strings.Join(a.Models, "; "))
	}
	return text
}

// mergeAbility appends a to all. If all already has another variant of the same profile for which same returns true, it
// appends nothing. It then replaces that variant by the profile's name, which stands for both.
func mergeAbility(all []Ability, a Ability, same func(a, b Ability) bool) []Ability {
	for i, b := range all {
		if b.Profile.Profile() == a.Profile.Profile() && same(a, b) {
			all[i].Profile = plan.VariantOf(a.Profile.Profile())
			return all
		}
	}
	return append(all, a)
}
