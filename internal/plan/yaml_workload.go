package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
)

// maxAxis is the largest number of workloads to which one item of a plan file may expand.
const maxAxis = 1000

// workloadsReader returns a Read for a list of workloads. An item is a name ("rr"), the form of the command line
// ("stream(udp,rate=1G)") or a mapping of one kind to its settings. An item whose settings are lists expands to every
// combination.
func (d *decoder) workloadsReader(at *[]Workload) position.Read {
	return func(field string, n *position.Node) {
		*at = nil
		seen := map[Workload]bool{}
		d.Each(field, n, func(item *position.Node) {
			for _, w := range d.readWorkload(field, item) {
				if seen[w] {
					d.Fault(item.Line, field, "%s is given twice", w)
					continue
				}
				seen[w] = true
				*at = append(*at, w)
			}
		})
	}
}

func (d *decoder) readWorkload(field string, n *position.Node) []Workload {
	if n.Kind == position.Scalar {
		w, err := ParseWorkload(n.Text)
		if err != nil {
			d.Fault(n.Line, field, "%s", oneLine(err))
			return nil
		}
		return []Workload{w}
	}
	if n.Kind != position.Mapping || len(n.Keys) != 1 {
		d.Fault(n.Line, field, "want one workload for each item, such as \"rr\" or \"rr: {flows: 8}\"")
		return nil
	}
	k, err := findKind(n.Keys[0].Name)
	if err != nil {
		d.Fault(n.Keys[0].Line, field, "%s", err)
		return nil
	}
	value := n.Items[0]
	if value.Kind == position.Null {
		return []Workload{Workload{Spec: k.zero}.Normalize()}
	}
	return d.expandWorkload(k, field+"."+string(k.name), value)
}

// axis is one option of a workload with its values in a plan file.
type axis struct {
	option option
	values []*position.Node
}

// expandWorkload reads the settings of a workload and returns every combination of their values. If it finds faults, it
// adds them and returns nil.
func (d *decoder) expandWorkload(k *kind, field string, n *position.Node) []Workload {
	before := d.Count()
	axes := map[string]axis{}
	known := position.Keys{}
	for _, o := range k.options {
		known[o.Key] = func(field string, n *position.Node) {
			if n.Kind != position.List {
				axes[o.Key] = axis{o, []*position.Node{n}}
				return
			}
			if len(n.Items) == 0 {
				d.Fault(n.Line, field, "the list is empty")
			}
			axes[o.Key] = axis{o, n.Items}
		}
	}
	d.Mapping(field, n, known)
	combinations := []Workload{{Spec: k.zero}}
	given := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(axes)) {
		given[key] = true
		combinations = d.multiplyWorkloads(combinations, field, axes[key])
		if len(combinations) > maxAxis {
			d.Fault(n.Line, field, "expands to more than %d workloads", maxAxis)
			return nil
		}
	}
	if d.Count() > before {
		return nil
	}
	for i, w := range combinations {
		if err := w.checkOptions(given); err != nil {
			d.Fault(n.Line, field, "%s", oneLine(err))
			return nil
		}
		combinations[i] = w.Normalize()
	}
	return combinations
}

// multiplyWorkloads returns each workload with each value of the axis. It leaves out invalid values and adds a fault
// for each.
func (d *decoder) multiplyWorkloads(workloads []Workload, field string, a axis) []Workload {
	field += "." + a.option.Key
	var texts []string
	for _, n := range a.values {
		s, ok := d.Scalar(field, n)
		if !ok {
			continue
		}
		// The value is checked once, so that a wrong one is one fault and not one for each combination.
		several, err := a.option.expandText(workloads[0], s)
		if err != nil {
			d.Fault(n.Line, field, "%s", err)
			continue
		}
		texts = append(texts, several...)
	}
	var product []Workload
	for _, w := range workloads {
		for _, s := range texts {
			q := w
			_ = a.option.set(&q, s) // it was checked above
			product = append(product, q)
			if len(product) > maxAxis {
				return product
			}
		}
	}
	if product == nil {
		return workloads // every value was a fault; find the others
	}
	return product
}

// oneLine returns the text of an error with its lines joined into one.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
