package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Variant is a profile with the conditions in which it differs from the run and, on several clusters, with its context.
// String returns its text form, in files and on the command line:
//
//	calico-vxlan
//	calico-vxlan(service-proxy=nftables,services=10000)
//	host@east~twin
//
// ParseVariant returns the canonical form, so that equal variants are equal values. VariantOf also accepts names from
// other tools' archives: text that is not a condition is part of the profile's name.
type Variant struct {
	profile, context string
	// conditions has the text CONDITION=VALUE for each condition, separated by commas. It is one text so that variants
	// can be compared and can be keys of maps.
	conditions string
	twin       bool
}

// twinSuffix ends the name of the second instance of the baseline.
const twinSuffix = "~twin"

// VariantOf returns the variant that a text describes, without checking it. String of the variant returns the same
// text.
func VariantOf(text string) Variant {
	s, twin := strings.CutSuffix(text, twinSuffix)
	v := Variant{profile: s, twin: twin}
	if name, rest, ok := strings.Cut(s, "("); ok {
		if inner, closed := strings.CutSuffix(rest, ")"); closed && strings.Contains(inner, "=") {
			v.profile, v.conditions = name, inner
		}
	}
	if name, context, ok := strings.Cut(v.profile, "@"); ok && context != "" {
		v.profile, v.context = name, context
	}
	return v
}

// String returns the text form of v.
func (v Variant) String() string {
	s := v.profile
	if v.context != "" {
		s += "@" + v.context
	}
	if v.conditions != "" {
		s += "(" + v.conditions + ")"
	}
	if v.twin {
		s += twinSuffix
	}
	return s
}

// MarshalText returns String.
func (v Variant) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText decodes what MarshalText encodes, and any other name.
func (v *Variant) UnmarshalText(b []byte) error {
	*v = VariantOf(string(b))
	return nil
}

// IsZero reports whether v is empty.
func (v Variant) IsZero() bool { return v == Variant{} }

// Profile returns the name of v's profile, without context and conditions.
func (v Variant) Profile() string { return v.profile }

// Context returns the context of the cluster that v is measured on, or "".
func (v Variant) Context() string { return v.context }

// Conditions returns the conditions of v that differ from the run, such as "services=10000", or "".
func (v Variant) Conditions() string { return v.conditions }

// ownConditions is an iterator over the conditions that v itself sets, for use with range.
func (v Variant) ownConditions(yield func(flag, value string) bool) {
	for part := range strings.SplitSeq(v.conditions, ",") {
		if flag, value, _ := strings.Cut(part, "="); part != "" && !yield(strings.TrimSpace(flag), value) {
			return
		}
	}
}

// setsCondition reports whether v itself sets the condition with this flag.
func (v Variant) setsCondition(flag string) bool {
	return v.hasCondition(func(own string) bool { return own == flag })
}

// IsTwin reports whether v is the second instance of the baseline.
func (v Variant) IsTwin() bool { return v.twin }

// Twin returns the second instance of v.
func (v Variant) Twin() Variant { v.twin = true; return v }

// Original returns v, or the variant that v is a twin of.
func (v Variant) Original() Variant { v.twin = false; return v }

// At returns v with the context of one of several clusters.
func (v Variant) At(context string) Variant { v.context = context; return v }

// Local returns v without its context.
func (v Variant) Local() Variant { return v.At("") }

// Named returns v with another profile.
func (v Variant) Named(profile string) Variant { v.profile = profile; return v }

// Under returns v with one more condition, in canonical form. It fails if a condition is invalid or given twice. The
// error names every such condition.
func (v Variant) Under(flag, value string) (Variant, error) {
	return v.withCondition(flag, value).canonicalForm()
}

// withCondition returns v with one more condition, unchecked.
func (v Variant) withCondition(flag, value string) Variant {
	v.conditions = strings.TrimPrefix(v.conditions+","+flag+"="+value, ",")
	return v
}

// Lab returns the conditions that apply to v: the conditions of the run, overridden by those of v. NIC is NICWire if
// the links have delay or loss.
func (v Variant) Lab(run Lab) Lab { return v.appliedTo(Plan{Lab: run}).Lab.withLinkNIC() }

// withLinkNIC returns l with a NIC model that its links support. Links with delay or loss need NICWire, so that they
// lose a frame and not a super-packet.
func (l Lab) withLinkNIC() Lab {
	if l.Delay > 0 || l.Loss > 0 {
		l.NIC = NICWire
	}
	return l
}

// Impaired reports whether wires, or links with a planted fault, delay or lose packets.
func (l Lab) Impaired() bool {
	return l.Delay > 0 || l.Loss > 0 || slices.ContainsFunc(l.Plants, func(p mesh.Plant) bool { return p.Delay > 0 || p.Loss > 0 })
}

// appliedTo returns p with the conditions of v applied. It ignores unknown and invalid conditions.
func (v Variant) appliedTo(p Plan) Plan {
	for flag, text := range v.ownConditions {
		if s, ok := SettingOf(flag); ok && s.PerVariant {
			_ = s.Set(&p, text) // ParseVariant has checked it; a foreign name may have any text
		}
	}
	return p
}

// Loaded returns the case with the workload that is really sent, with the flows and the message size that the plan or
// the variant sets.
func (p Plan) Loaded(k Case) Case {
	if w, err := k.Profile.appliedTo(p).loadedWorkload(k.Workload); err == nil { // Validate has reported it
		k.Workload = w
	}
	return k
}

// loadedWorkload returns w with the flows and the message size of the plan. It fails if w does not support them or sets
// its own.
func (p Plan) loadedWorkload(w Workload) (Workload, error) {
	if w.Spec == nil {
		return w, nil // which is reported as another fault
	}
	out, k := w, w.Spec.kindEntry()
	for _, c := range []struct {
		flag  string
		value int
		keys  []string
	}{{"flows", p.Flows, []string{"flows"}}, {"message", p.Message, []string{"messageSize", "requestSize", "responseSize"}}} {
		if c.value == 0 {
			continue
		}
		had := false
		for _, key := range c.keys {
			o, ok := k.findOption(key)
			if !ok {
				continue
			}
			had = true
			if o.text(w.Normalize()) != o.text(w.Without(key)) {
				return w, fmt.Errorf("%s has %s of its own, which %s sets: leave out one of the two", w, o.Word, c.flag)
			}
			if err := o.set(&out, strconv.Itoa(c.value)); err != nil {
				return w, fmt.Errorf("%s=%d: %s: %w", c.flag, c.value, w, err)
			}
		}
		if !had {
			return w, fmt.Errorf("%s has no %s that can be set: leave it out", w, c.flag)
		}
	}
	return out.Normalize(), out.checkContradictions()
}

// checkLoad adds faults for workloads of the plan that do not support the flows or the message size that v itself sets.
func (fs *faults) checkLoad(p Plan, field string, v Variant) {
	if !v.setsCondition("flows") && !v.setsCondition("message") {
		return
	}
	for _, w := range p.Workloads {
		if _, err := v.appliedTo(p).loadedWorkload(w); err != nil {
			fs.Add(field, "%s: %s", v, err)
		}
	}
}

// ParseVariant parses a variant and returns it in canonical form. The error names every wrong condition. Whether the
// profile exists depends on the environment, so Validate checks that.
func ParseVariant(text string) (Variant, error) {
	return VariantOf(strings.TrimSpace(text)).canonicalForm()
}

// canonicalForm returns v with its conditions in the order of the settings, and with canonical values. It fails if a
// condition is invalid or given twice.
func (v Variant) canonicalForm() (Variant, error) {
	if v.conditions == "" {
		if strings.ContainsAny(v.profile, "()") {
			return Variant{}, fmt.Errorf("variant %q: want PROFILE or PROFILE(CONDITION=VALUE,...)", v)
		}
		return v, nil
	}
	said := map[string]string{}
	var wrong []string
	for part := range strings.SplitSeq(v.conditions, ",") {
		flag, value, err := parseCondition(strings.TrimSpace(part))
		switch {
		case err != nil:
			wrong = append(wrong, err.Error())
		case said[flag] != "":
			wrong = append(wrong, flag+" is given twice")
		default:
			said[flag] = value
		}
	}
	if wrong != nil {
		return Variant{}, fmt.Errorf("variant %q: %s", v, strings.Join(wrong, "; "))
	}
	flags := append(variantFlags(), each.Where(slices.Sorted(maps.Keys(said)), isRecipeCondition)...)
	sorted := each.Of(each.Where(flags, func(flag string) bool { return said[flag] != "" }), func(flag string) string { return flag + "=" + said[flag] })
	v.conditions = strings.Join(sorted, ",")
	return v, nil
}

// parseCondition parses CONDITION=VALUE and returns the value in canonical form. It fails for an unknown condition, for
// one that variants cannot have, and for an invalid value.
func parseCondition(part string) (flag, value string, err error) {
	flag, text, ok := strings.Cut(part, "=")
	if !ok {
		return "", "", fmt.Errorf("%q is not CONDITION=VALUE", part)
	}
	if isRecipeCondition(flag) {
		if !recipeValue.MatchString(text) || !recipeKey.MatchString(flag) {
			return "", "", fmt.Errorf("%s: want letters, digits and . _ : / + -", part)
		}
		return flag, text, nil
	}
	s, known := SettingOf(flag)
	switch {
	case !known:
		return "", "", fmt.Errorf("unknown condition %q%s", flag, advice.DidYouMean(flag, append(variantFlags(), conditionVersion)))
	case !s.PerVariant:
		return "", "", fmt.Errorf("%s is the same for the whole run; a variant may set %s", flag, strings.Join(variantFlags(), ", "))
	}
	p := Default()
	if err := s.Set(&p, text); err != nil {
		return "", "", fmt.Errorf("%s: %w", flag, err)
	}
	if fault := s.Check(p); fault != "" {
		return "", "", fmt.Errorf("%s: %s", flag, fault)
	}
	return flag, s.Text(p), nil
}

// Conditions of an installation on a cluster. conditionVersion is the version of its chart or manifest. conditionSet
// begins the name of a condition that sets a value of the chart.
const conditionVersion, conditionSet = "version", "set."

var recipeKey, recipeValue = pattern.New(`^[A-Za-z0-9_.-]+[A-Za-z0-9_-]$`), pattern.New(`^[A-Za-z0-9._:/+-]+$`)

// isRecipeCondition reports whether a condition changes what a recipe installs.
func isRecipeCondition(flag string) bool {
	return flag == conditionVersion || strings.HasPrefix(flag, conditionSet)
}

// isLabCondition reports whether a condition applies to the lab.
func isLabCondition(flag string) bool { return !isRecipeCondition(flag) }

// Recipe returns the version to install for v and values of its chart. The version is "" for that of the recipe. The
// values are in the format of helm --set.
func (v Variant) Recipe() (version string, sets []string) {
	for flag, value := range v.ownConditions {
		if key, ok := strings.CutPrefix(flag, conditionSet); ok {
			sets = append(sets, key+"="+value)
		} else if flag == conditionVersion {
			version = value
		}
	}
	return version, sets
}

// hasCondition reports whether v itself sets a condition for which is returns true.
func (v Variant) hasCondition(is func(flag string) bool) bool {
	for flag := range v.ownConditions {
		if is(flag) {
			return true
		}
	}
	return false
}

// variantFlags returns the flags of the conditions that a variant may have.
func variantFlags() []string {
	return flagsWhere(func(s Setting) bool { return s.PerVariant })
}

// flagsWhere returns the flags of the settings for which are returns true.
func flagsWhere(are func(Setting) bool) []string {
	return each.Of(each.Where(Settings(), are), func(s Setting) string { return s.Flag })
}

// parseList parses a list of values, separated by commas. Commas within parentheses belong to a value. The error lists
// every wrong value.
func parseList[T any](text string, parse func(string) (T, error)) ([]T, error) {
	var all []T
	var wrong []string
	for _, part := range pattern.SplitOutside(text, ',') {
		v, err := parse(strings.TrimSpace(part))
		if err != nil {
			wrong = append(wrong, oneLine(err))
		}
		all = append(all, v)
	}
	if wrong != nil {
		return nil, errors.New(strings.Join(wrong, "; "))
	}
	return all, nil
}

// Variants returns the variants that texts describe, without checking them.
func Variants(profiles ...string) []Variant {
	return each.Of(profiles, VariantOf)
}
