package nft

import (
	"fmt"
	"strings"
)

// String returns the table as input of nft -f. The result is deterministic: flowtables, sets, then chains, each in
// the order of declaration.
func (t *Table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %s %s {\n", t.Family, t.Name)
	if t.Comment != "" {
		fmt.Fprintf(&b, "\tcomment \"%s\"\n", t.Comment)
	}
	for _, f := range t.flowtables {
		fmt.Fprintf(&b, "\tflowtable %s {\n\t\thook ingress priority %d\n\t\tdevices = { %s }\n\t}\n", f.Name, f.Priority, strings.Join(f.Devices, ", "))
	}
	for _, s := range t.sets {
		s.render(&b, t.Family)
	}
	for _, c := range t.chains {
		c.render(&b, t.Family)
	}
	b.WriteString("}\n")
	return b.String()
}

// String returns the rule as one line, with address fields as in an IPv4 table.
func (r Rule) String() string { return r.text(IPv4) }

func (r Rule) text(family Family) string {
	parts := make([]string, len(r))
	for i, t := range r {
		parts[i] = t.text(family)
	}
	return strings.Join(parts, " ")
}

func (c *Chain) render(b *strings.Builder, family Family) {
	fmt.Fprintf(b, "\tchain %s {\n", c.Name)
	if h := c.Hook; h != nil {
		fmt.Fprintf(b, "\t\ttype %s hook %s priority %d; policy accept;\n", h.Type, h.Hook, h.Priority)
	}
	for _, r := range c.Rules {
		b.WriteString("\t\t" + r.text(family) + "\n")
	}
	b.WriteString("\t}\n")
}

func (s *Set) render(b *strings.Builder, family Family) {
	kind, types := "set", make([]string, len(s.Key))
	for i, k := range s.Key {
		types[i] = k.shape(family).name
	}
	of := strings.Join(types, " . ")
	if s.Map {
		kind, of = "map", of+" : verdict"
	}
	fmt.Fprintf(b, "\t%s %s {\n\t\ttype %s\n", kind, s.Name, of)
	if s.Interval {
		b.WriteString("\t\tflags interval\n")
	}
	if s.Timeout > 0 {
		fmt.Fprintf(b, "\t\tflags dynamic,timeout\n\t\ttimeout %ds\n", int(s.Timeout.Seconds()))
	}
	if s.Collect > 0 {
		fmt.Fprintf(b, "\t\tgc-interval %dms\n", s.Collect.Milliseconds())
	}
	if s.Comment != "" {
		fmt.Fprintf(b, "\t\tcomment \"%s\"\n", s.Comment)
	}
	if len(s.Elements) > 0 {
		b.WriteString("\t\telements = {\n")
		for _, e := range s.Elements {
			b.WriteString("\t\t\t" + e.text(family) + ",\n")
		}
		b.WriteString("\t\t}\n")
	}
	b.WriteString("\t}\n")
}

func (e Element) text(family Family) string {
	parts := make([]string, len(e.Key))
	for i, v := range e.Key {
		parts[i] = valueText(v)
	}
	out := strings.Join(parts, " . ")
	if e.Verdict != (Verdict{}) {
		out += " : " + e.Verdict.text(family)
	}
	return out
}
