package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Variant names what is measured: a profile, with the conditions in which it differs from the run and, on several
// clusters, with its context. It is its own text, so that a plain profile name is a variant and costs nothing more:
//
//	calico-vxlan
//	calico-vxlan(service-proxy=nftables,services=10000)
//	host@east~twin
//
// ParseVariant makes the canonical text, so that equal variants have equal texts. Names from other tools' archives may
// be converted: what is not a condition is part of the profile's name.
type Variant string

// twinSuffix ends the name of the second instance of the baseline.
const twinSuffix = "~twin"

// cut takes the text apart.
func (v Variant) cut() (profile, context, conditions string, twin bool) {
	s, twin := strings.CutSuffix(string(v), twinSuffix)
	if name, rest, ok := strings.Cut(s, "("); ok {
		if inner, closed := strings.CutSuffix(rest, ")"); closed && strings.Contains(inner, "=") {
			s, conditions = name, inner
		}
	}
	profile, context, _ = strings.Cut(s, "@")
	return profile, context, conditions, twin
}

// Profile returns the name of the profile alone.
func (v Variant) Profile() string { name, _, _, _ := v.cut(); return name }

// Context returns the cluster's context, or "".
func (v Variant) Context() string { _, context, _, _ := v.cut(); return context }

// Conditions returns what v has of its own, such as "services=10000", or "".
func (v Variant) Conditions() string { _, _, conditions, _ := v.cut(); return conditions }

// sets says whether v has a condition of its own.
func (v Variant) sets(flag string) bool { return strings.Contains(","+v.Conditions(), ","+flag+"=") }

// IsTwin reports whether v is the second instance of the baseline.
func (v Variant) IsTwin() bool { return strings.HasSuffix(string(v), twinSuffix) }

// Twin returns the second instance of v.
func (v Variant) Twin() Variant { return v + twinSuffix }

// Original returns v, or what v is the twin of.
func (v Variant) Original() Variant { return Variant(strings.TrimSuffix(string(v), twinSuffix)) }

// At returns v on one of several clusters.
func (v Variant) At(context string) Variant {
	name, _, conditions, twin := v.cut()
	return assemble(name, context, conditions, twin)
}

// Local returns v without its context.
func (v Variant) Local() Variant { return v.At("") }

func assemble(profile, context, conditions string, twin bool) Variant {
	if context != "" {
		profile += "@" + context
	}
	if conditions != "" {
		profile += "(" + conditions + ")"
	}
	if twin {
		profile += twinSuffix
	}
	return Variant(profile)
}

// Lab returns the conditions of v: those of the run, and over them its own.
func (v Variant) Lab(run Lab) Lab { return v.over(Plan{Lab: run}).Lab.carried() }

// carried returns l with the NIC model that its wires can carry: those with delay or loss carry frames of the MTU only, and lose a
// frame, not a super-packet.
func (l Lab) carried() Lab {
	if l.Delay > 0 || l.Loss > 0 {
		l.NIC = NICWire
	}
	return l
}

// over returns p with the conditions of v.
func (v Variant) over(p Plan) Plan {
	conditions := v.Conditions()
	if conditions == "" {
		return p
	}
	for part := range strings.SplitSeq(conditions, ",") {
		flag, text, _ := strings.Cut(part, "=")
		if s, ok := SettingOf(flag); ok && s.PerVariant {
			_ = s.Set(&p, text) // ParseVariant has tried it; a foreign name may have anything
		}
	}
	return p
}

// Loaded returns the case with the workload that is sent: under the flows and the message size of the plan or the variant.
func (p Plan) Loaded(k Case) Case {
	if w, err := k.Profile.over(p).loaded(k.Workload); err == nil { // Validate has reported it
		k.Workload = w
	}
	return k
}

// loaded returns w with the flows and the message size of the plan. The error names what w cannot have.
func (p Plan) loaded(w Workload) (Workload, error) {
	if w.Spec == nil {
		return w, nil // which is a fault by itself
	}
	out, k := w, w.Spec.kind()
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
			o, ok := k.option(key)
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
	return out.Normalize(), out.checkWhole()
}

// unloadable adds which workloads of the plan cannot have the flows or the message size of v.
func (fs *faults) unloadable(p Plan, field string, v Variant) {
	for _, w := range p.Workloads {
		if _, err := v.over(p).loaded(w); err != nil {
			fs.Add(field, "%s: %s", v, err)
		}
	}
}

// ParseVariant reads a variant and returns it in canonical form. The error names every wrong condition. Whether the
// profile exists depends on the environment, so Validate decides it.
func ParseVariant(text string) (Variant, error) {
	name, context, conditions, twin := Variant(strings.TrimSpace(text)).cut()
	if conditions == "" {
		if strings.ContainsAny(name, "()") {
			return "", fmt.Errorf("variant %q: want PROFILE or PROFILE(CONDITION=VALUE,...)", text)
		}
		return assemble(name, context, "", twin), nil
	}
	said := map[string]string{}
	var wrong []string
	for part := range strings.SplitSeq(conditions, ",") {
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
		return "", fmt.Errorf("variant %q: %s", text, strings.Join(wrong, "; "))
	}
	var sorted []string
	for _, s := range Settings() {
		if value := said[s.Flag]; value != "" {
			sorted = append(sorted, s.Flag+"="+value)
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(said)) {
		if ofRecipe(flag) {
			sorted = append(sorted, flag+"="+said[flag])
		}
	}
	return assemble(name, context, strings.Join(sorted, ","), twin), nil
}

// parseCondition reads one condition and returns its value in canonical form.
func parseCondition(part string) (flag, value string, err error) {
	flag, text, ok := strings.Cut(part, "=")
	if !ok {
		return "", "", fmt.Errorf("%q is not CONDITION=VALUE", part)
	}
	if ofRecipe(flag) {
		if !recipeValue.MatchString(text) || !recipeKey.MatchString(flag) {
			return "", "", fmt.Errorf("%s: want letters, digits and . _ : / + -", part)
		}
		return flag, text, nil
	}
	s, known := SettingOf(flag)
	switch {
	case !known:
		return "", "", fmt.Errorf("unknown condition %q%s", flag, advice.DidYouMean(flag, append(perVariant(), conditionVersion)))
	case !s.PerVariant:
		return "", "", fmt.Errorf("%s is the same for the whole run; a variant may set %s", flag, strings.Join(perVariant(), ", "))
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

// Conditions of what a recipe installs on a cluster: the version of its chart or manifest, and values of the chart by their keys.
const conditionVersion, conditionSet = "version", "set."

var recipeKey, recipeValue = pattern.New(`^[A-Za-z0-9_.-]+[A-Za-z0-9_-]$`), pattern.New(`^[A-Za-z0-9._:/+-]+$`)

// ofRecipe says whether a condition changes what a recipe installs.
func ofRecipe(flag string) bool {
	return flag == conditionVersion || strings.HasPrefix(flag, conditionSet)
}

// Recipe returns the version of what is installed for v, "" for that of the recipe, and values of its chart as helm --set takes them.
func (v Variant) Recipe() (version string, sets []string) {
	for part := range strings.SplitSeq(v.Conditions(), ",") {
		flag, value, _ := strings.Cut(part, "=")
		if key, ok := strings.CutPrefix(flag, conditionSet); ok {
			sets = append(sets, key+"="+value)
		} else if flag == conditionVersion {
			version = value
		}
	}
	return version, sets
}

// conditioned says whether v has conditions that change, or do not change, what a recipe installs.
func (v Variant) conditioned(recipe bool) bool {
	return v.Conditions() != "" && slices.ContainsFunc(strings.Split(v.Conditions(), ","), func(part string) bool {
		flag, _, _ := strings.Cut(part, "=")
		return ofRecipe(flag) == recipe
	})
}

// perVariant returns the names of the conditions that a variant may have.
func perVariant() []string {
	return flagsOf(func(s Setting) bool { return s.PerVariant })
}

// flagsOf returns the flags of some settings.
func flagsOf(are func(Setting) bool) []string {
	return each.Of(each.Where(Settings(), are), func(s Setting) string { return s.Flag })
}

// parseList reads values separated by commas outside parentheses. The error names every wrong one.
func parseList[T any](text string, parse func(string) (T, error)) ([]T, error) {
	var all []T
	var wrong []string
	for _, part := range splitOutside(text) {
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

// splitOutside splits text at the commas outside parentheses.
func splitOutside(text string) []string {
	var parts []string
	depth, start := 0, 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth <= 0:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}

// JoinVariants joins the texts of variants.
func JoinVariants(all []Variant, separator string) string { return strings.Join(Texts(all), separator) }

// Variants returns plain profiles as variants.
func Variants(profiles ...string) []Variant {
	return each.Of(profiles, func(name string) Variant { return Variant(name) })
}
