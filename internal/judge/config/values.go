package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// value is one leaf of an object.
type value struct {
	// path is the keys to it, with dots. The items of a list of scalars are one text, joined with ", ".
	path, text string
	// origin is Given or Default; "" means that the setting is absent.
	origin string
	// by is the file and line, or the component whose default it is.
	by string
	// from are the values of a chart that decide the setting.
	from []string
}

// isGiven reports whether the value was given.
func (v value) isGiven() bool { return v.origin == Given }

// isOn reports whether the value is true. Helm reads YAML 1.1, where yes and on are true.
func (v value) isOn() bool {
	switch strings.ToLower(v.text) {
	case "true", "yes", "on":
		return true
	}
	return false
}

// sourceText describes where the value comes from: a place, or the component whose default it is.
func (v value) sourceText() string {
	if v.origin == Default {
		return "default of " + v.by
	}
	return v.by
}

// is reports whether the value equals text, ignoring case.
func (v value) is(text string) bool { return strings.EqualFold(v.text, text) }

// number returns the value as a number, 0 for any other text.
func (v value) number() int {
	n, err := strconv.Atoi(v.text)
	if err != nil {
		return 0
	}
	return n
}

// isSet reports whether the value is given and is not the zero value of its type. Zero values are ignored because
// kubeadm writes all fields.
func (v value) isSet() bool {
	return v.isGiven() && !slices.Contains([]string{"", "0", "0s", "false", "null"}, v.text)
}

// values are the leaves of an object over the defaults of its reader.
type values struct {
	leaves []value
	// defaults apply if nothing is given; reader is the component with these defaults.
	defaults map[string]string
	reader   string
}

// emptyCopy returns empty values with the same defaults.
func (v values) emptyCopy() *values {
	v.defaults = maps.Clone(v.defaults)
	return &v
}

// at returns the value in force at path: the given one, or the default. Its origin is "" if there is neither.
func (v *values) at(path string) value {
	g, stated := v.statedAt(path)
	if v == nil || stated {
		return g
	}
	if text, ok := v.defaults[path]; ok {
		return value{path: path, text: text, origin: Default, by: v.reader}
	}
	return g
}

// statedAt returns the value that a file or a chart sets at path, and whether there is one. It ignores the reader's
// defaults.
func (v *values) statedAt(path string) (value, bool) {
	if v == nil {
		return value{path: path}, false
	}
	for i := len(v.leaves) - 1; i >= 0; i-- {
		if v.leaves[i].path == path {
			return v.leaves[i], true
		}
	}
	return value{path: path}, false
}

// leavesBelow returns the leaves under a path.
func (v *values) leavesBelow(path string) []value {
	var list []value
	if v != nil {
		for _, g := range v.leaves {
			if strings.HasPrefix(g.path, path+".") {
				list = append(list, g)
			}
		}
	}
	return list
}

// source is the origin of a document.
type source struct {
	name    string
	unlined bool
	// traced are the origins of the leaves of an object that a chart rendered, by their path; nil for a file.
	traced map[string]value
	// chart is the chart that rendered the object; "" if it is from a file or a cluster.
	chart string
}

// placeOf returns the place of a node of the source.
func (s source) placeOf(n *position.Node) string {
	if s.unlined {
		return s.name
	}
	return fmt.Sprintf("%s:%d", s.name, n.Line)
}

// newValue returns the leaf at path, with its origin.
func (s source) newValue(path string, n *position.Node, text string) value {
	switch v, traced := s.traced[path]; {
	case traced:
		v.path, v.text = path, text
		return v
	case s.chart != "":
		return value{path: path, text: text, origin: Default, by: s.chart}
	}
	return value{path: path, text: text, origin: Given, by: s.placeOf(n)}
}

// addLeaves adds the leaves of n under their paths within n. root is the path of n in its document.
func (v *values) addLeaves(s source, root string, n *position.Node) {
	for _, l := range leavesOf(n, "") {
		g := s.newValue(joinPath(root, l.path), l.node, l.text)
		g.path = l.path
		v.leaves = append(v.leaves, g)
	}
}

// leaf is one value of a document.
type leaf struct {
	path, text string
	node       *position.Node
}

// leavesOf returns the values below n. The items of a list of scalars are one value; the items of any other list are
// numbered.
func leavesOf(n *position.Node, prefix string) []leaf {
	var all []leaf
	switch {
	case n == nil:
	case n.Kind == position.Mapping:
		for i, key := range n.Keys {
			all = append(all, leavesOf(n.Items[i], joinPath(prefix, key.Name))...)
		}
	case n.Kind == position.List && slices.ContainsFunc(n.Items, func(i *position.Node) bool { return i.Kind != position.Scalar }):
		for i, item := range n.Items {
			all = append(all, leavesOf(item, joinPath(prefix, strconv.Itoa(i)))...)
		}
	case n.Kind == position.List:
		texts := each.Of(n.Items, func(item *position.Node) string { return item.Text })
		all = append(all, leaf{prefix, strings.Join(texts, ", "), n})
	default:
		all = append(all, leaf{prefix, n.Text, n})
	}
	return all
}

func joinPath(path, key string) string {
	if path == "" || key == "" {
		return path + key
	}
	return path + "." + key
}
