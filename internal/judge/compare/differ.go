package compare

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
)

// Difference is a condition that two results do not share.
type Difference struct {
	// Name is the name of a fact or of a setting of the plan, or a phrase such as "stand_in of canal".
	Name string
	// A and B are the two values; "" means not recorded.
	A, B string
}

// indifferent are the settings of a plan that determine what was measured and how often, but are not conditions.
var indifferent = []string{
	"name", "profiles", "paths", "workloads", "baseline", "twin", "repetitions", "max_repetitions", "precision", "margin", "budget", "seed",
}

// differingConditions returns the conditions in which two results differ: facts except those that change with every run,
// settings of the plan, and the stand-ins of a profile that both have. The order is facts, settings, profiles, each by
// name.
func differingConditions(a, b result.Header) []Difference {
	var out []Difference
	add := func(name, x, y string) {
		if x != y {
			out = append(out, Difference{name, x, y})
		}
	}
	add("origin", a.Origin, b.Origin)
	for _, name := range a.Facts.Differ(b.Facts) {
		if !facts.OfTheMoment(name) {
			add(name, a.Facts[name], b.Facts[name])
		}
	}
	inB := planSettings(b.Plan) // the same settings in the same order
	for i, s := range planSettings(a.Plan) {
		// The facts have most settings, as found instead of as requested.
		if a.Facts[s.name] == "" && b.Facts[s.name] == "" {
			add(s.name, s.value, inB[i].value)
		}
	}
	for _, p := range a.Profiles {
		i := slices.IndexFunc(b.Profiles, func(q result.Profile) bool { return q.Name == p.Name })
		if i >= 0 {
			add("stand_in of "+p.Name.String(), strings.Join(p.StandIn, "; "), strings.Join(b.Profiles[i].StandIn, "; "))
		}
	}
	return out
}

// setting is a condition of a plan.
type setting struct{ name, value string }

// planSettings returns the conditions of a plan by their names in its JSON form; those of the lab as "lab.mtu" and so on.
func planSettings(p any) []setting {
	var out []setting
	v := reflect.ValueOf(p)
	for _, f := range reflect.VisibleFields(v.Type()) { // fields of embedded structs included, as in JSON
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || slices.Contains(indifferent, name) {
			continue
		}
		if field := v.FieldByIndex(f.Index).Interface(); f.Type.Kind() == reflect.Struct {
			for _, s := range planSettings(field) {
				out = append(out, setting{name + "." + s.name, s.value})
			}
		} else {
			out = append(out, setting{name, fmt.Sprint(field)})
		}
	}
	return out
}
