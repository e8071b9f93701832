package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// mostTraced bounds the values of a chart that are traced. The chart is rendered once more for each of them.
const mostTraced = 200

// layer is one document of values. Later layers replace earlier ones.
type layer struct {
	source
	node *position.Node
}

// renderValues renders the chart with the given values and reads its objects. To find what each value decides, it
// renders again without that value and compares.
func (j *judge) renderValues() {
	switch {
	case j.chart == nil:
		return
	case len(j.given) == 0 && len(j.Documents) > 0:
		if !j.hasOtherCNI() && len(j.plugins) == 0 && !j.Inconclusive() {
			j.Documents = append(j.Documents, Document{File: j.chart.String(), Kind: "chart", NotJudged: "no file has values for it; --set KEY=VALUE gives one"})
		}
		return
	}
	all := map[string]any{}
	at := map[string]value{}
	for _, l := range j.given {
		given, _ := l.node.Value().(map[string]any) // of the types that YAML gives
		merge(all, given)
		for _, leaf := range leavesOf(l.node, "") {
			by := l.placeOf(leaf.node)
			if l.unlined {
				by += " " + leaf.path
			}
			at[leaf.path] = value{path: leaf.path, text: leaf.text, origin: Given, by: by}
		}
	}
	maps.DeleteFunc(at, func(path string, _ value) bool { return valueAt(all, path) == nil })
	base, err := j.chart.Render(all, nil)
	if err != nil {
		j.addFinding("chart-refuses", j.refusedValue(all, at), "%v", err)
		return
	}
	t := &tracer{base: objectsOf(base), skip: map[string]bool{}, decides: map[string]map[string]value{}}
	if again, err := j.chart.Render(all, nil); err == nil { // certificates differ each time
		for _, c := range t.changesIn(objectsOf(again)) {
			t.skip[c.template] = true
		}
	}
	if len(at) > mostTraced {
		j.addFinding("not-traced", value{}, "%d values are given: more than %d are not traced", len(at), mostTraced)
		at = nil
	}
	for _, path := range slices.Sorted(maps.Keys(at)) {
		j.traceValue(t, all, at, at[path])
	}
	for _, o := range t.base {
		if o.node != nil {
			j.readDocument(source{name: j.chart.String(), unlined: true, chart: j.chart.String(), traced: t.decides[o.name()]}, o.node)
		}
	}
}

// refusedValue returns a value without which the chart renders. It returns the zero value if there is none, or if there are
// too many values to try.
func (j *judge) refusedValue(all map[string]any, at map[string]value) value {
	if len(at) > mostTraced {
		return value{}
	}
	for _, path := range slices.Sorted(maps.Keys(at)) {
		if _, err := j.chart.Render(withValue(all, path, nil), nil); err == nil {
			return at[path]
		}
	}
	return value{}
}

// traceValue stores what one value decides, and reports a value that decides nothing.
func (j *judge) traceValue(t *tracer, all map[string]any, at map[string]value, g value) {
	other, err := j.chart.Render(withValue(all, g.path, nil), t.skip)
	if err != nil { // the chart requires it
		return
	}
	changed := t.changesIn(objectsOf(other))
	for _, c := range changed {
		t.recordDecision(c, g)
	}
	if len(changed) > 0 || j.otherValueMatters(t, all, g.path) || j.agreesWithOther(t, all, at, g.path) {
		return
	}
	if group, within, known := lookupPath(j.chart.Values, g.path); known {
		j.addFinding("no-effect", g, "%s: %s changes nothing that %s makes", g.path, g.text, j.chart)
	} else {
		j.addFinding("unknown-key", g, "%s changes nothing: %s has no such value%s", g.path, j.chart, keySuggestion(g.path, within, group))
	}
}

// otherValueMatters reports whether another value at path would change the rendered chart. It returns true if the chart does
// not render with the other value. A value that is not a bool, a string or an int is not tried: the result is then false for
// a null, and true otherwise.
func (j *judge) otherValueMatters(t *tracer, all map[string]any, path string) bool {
	var other any
	switch v := valueAt(all, path).(type) {
	case bool:
		other = !v
	case string:
		other = v + "-other"
	case int:
		other = v + 1
	default: // a null or a list: its items have no defaults
		return v != nil
	}
	rendered, err := j.chart.Render(withValue(all, path, other), t.skip)
	return err != nil || len(t.changesIn(objectsOf(rendered))) > 0
}

// agreesWithOther reports whether another given value has the same effect as the value at path, as eni.enabled and
// ipam.mode=eni do: neither overrules the other.
func (j *judge) agreesWithOther(t *tracer, all map[string]any, at map[string]value, path string) bool {
	for other := range at {
		if other == path {
			continue
		}
		rest := withValue(all, other, nil)
		without, err := j.chart.Render(withValue(rest, path, nil), t.skip)
		if err != nil {
			continue
		}
		alone, err := j.chart.Render(rest, t.skip)
		if err != nil { // the chart wants both
			return true
		}
		decides := (&tracer{base: objectsOf(alone), skip: t.skip}).changesIn(objectsOf(without))
		missing := t.changesIn(objectsOf(alone))
		differs := func(c change) bool { return slices.Contains(missing, c) }
		if len(decides) > 0 && !slices.ContainsFunc(decides, differs) {
			return true
		}
	}
	return false
}

// keySuggestion returns `, did you mean "x"?` for the key of group that is most similar to the first unknown key of path.
// within are the known keys before it.
func keySuggestion(path, within string, group map[string]any) string {
	unknown, rest, nested := strings.Cut(strings.TrimPrefix(path, within), ".")
	near := advice.Nearest(unknown, slices.Sorted(maps.Keys(group)))
	if near == "" || near == unknown {
		return ""
	}
	if nested {
		near += "." + rest
	}
	return fmt.Sprintf(", did you mean %q?", within+near)
}

// lookupPath reports whether the chart has a value at path. It returns the mapping with the last known key, and the path to
// that mapping followed by a dot. A value within an empty mapping or an unset value is the user's own, and counts as
// known.
func lookupPath(own map[string]any, path string) (group map[string]any, within string, known bool) {
	group = own
	for key := range strings.SplitSeq(path, ".") {
		v, ok := group[key]
		if !ok {
			return group, within, len(group) == 0
		}
		inner, isMap := v.(map[string]any)
		if !isMap {
			return group, within, true
		}
		group, within = inner, within+key+"."
	}
	return group, within, true
}

// object is one rendered object.
type object struct {
	template string
	node     *position.Node
	leaves   map[string]string
}

func (o object) name() string {
	return strings.Join([]string{o.template, o.node.ScalarAt("kind"), o.node.ScalarAt("metadata", "namespace"), o.node.ScalarAt("metadata", "name")}, " ")
}

func objectsOf(rendered []Rendered) []object {
	var list []object
	for _, r := range rendered {
		var ignored position.Faults // the chart's text, not the user's
		for _, n := range position.Parse(position.Source{Name: r.Template, Text: r.Text}, &ignored) {
			if n.Kind == position.Mapping {
				list = append(list, object{r.Template, n, leafTexts(n, "")})
			}
		}
	}
	return list
}

// leafTexts returns the leaves of n. A text that is itself JSON or YAML, as in ConfigMaps, is split into its own leaves.
func leafTexts(n *position.Node, prefix string) map[string]string {
	all := map[string]string{}
	for _, l := range leavesOf(n, prefix) {
		all[l.path] = l.text
		if l.node.Kind != position.Scalar || !strings.ContainsAny(l.text, "{\n") {
			continue
		}
		var ignored position.Faults
		if inner := position.Parse(position.Source{Text: l.text}, &ignored); len(inner) == 1 && inner[0].Kind == position.Mapping {
			maps.Copy(all, leafTexts(inner[0], l.path))
		}
	}
	return all
}

// tracer compares a chart's objects with the objects rendered without a value.
type tracer struct {
	base []object
	// skip are templates whose objects differ each time.
	skip map[string]bool
	// decides has the values that decide the leaves of objects, by the name of the object and the path of the leaf.
	decides map[string]map[string]value
}

// change is a leaf of an object that differs from the base; path is "" for a whole object.
type change struct{ template, object, path string }

// changesIn returns the leaves and the objects that differ from the base.
func (t *tracer) changesIn(other []object) []change {
	var found []change
	add := func(o object, path string) { found = append(found, change{o.template, o.name(), path}) }
	byName := map[string]object{}
	for _, o := range other {
		byName[o.name()] = o
	}
	for _, o := range t.base {
		if t.skip[o.template] {
			continue
		}
		peer := byName[o.name()]
		delete(byName, o.name())
		for path, text := range o.leaves {
			if was, ok := peer.leaves[path]; !ok || was != text {
				add(o, path)
			}
		}
		for path := range peer.leaves {
			if _, ok := o.leaves[path]; !ok {
				add(o, path)
			}
		}
	}
	for _, o := range byName {
		add(o, "")
	}
	return found
}

// recordDecision records that the given value g decides the leaf of c. The caller has seen the leaf change when g was
// left out.
func (t *tracer) recordDecision(c change, g value) {
	if t.decides[c.object] == nil {
		t.decides[c.object] = map[string]value{}
	}
	v := t.decides[c.object][c.path]
	v.origin, v.from, v.by = Given, append(v.from, g.path), strings.TrimPrefix(v.by+", "+g.by, ", ")
	t.decides[c.object][c.path] = v
}

// merge overrides into with over: mappings merge, anything else replaces. A null stays; Helm then removes the key.
func merge(into, over map[string]any) {
	for key, v := range over {
		inner, isMap := v.(map[string]any)
		if have, both := into[key].(map[string]any); both && isMap {
			merge(have, inner)
			continue
		}
		into[key] = v
	}
}

// valueAt returns the value at path, nil if it is missing.
func valueAt(values map[string]any, path string) any {
	key, rest, nested := strings.Cut(path, ".")
	if inner, isMap := values[key].(map[string]any); nested && isMap {
		return valueAt(inner, rest)
	}
	if v, ok := values[path]; ok {
		return v
	}
	return values[key] // an item is a part of the list's value
}

// withValue returns a copy of values with v at path; nil removes the key. A path to an item of a list means the whole
// list.
func withValue(values map[string]any, path string, v any) map[string]any {
	copied := maps.Clone(values)
	key, rest, nested := strings.Cut(path, ".")
	inner, isMap := values[key].(map[string]any)
	if nested && isMap {
		copied[key] = withValue(inner, rest, v)
		return copied
	}
	if _, dotted := values[path]; dotted {
		key = path
	}
	if v == nil {
		delete(copied, key)
	} else {
		copied[key] = v
	}
	return copied
}
