package external

import (
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Label says what a tool does not. Zero fields say nothing.
type Label struct {
	Profile  string
	Path     plan.Path
	Workload plan.Workload
}

// Apply sets the fields of l on every reading. It fails if a reading stays incomplete, or if the input, called name, names
// several profiles, paths or workloads where l has one.
func (l Label) Apply(name string, b *Batch) error {
	if b.Title == "" {
		b.Title = name
	}
	if err := l.apply(b); err != nil {
		return prefixed(name, err)
	}
	for i, r := range b.Readings {
		if err := whole(r); err != nil {
			if len(b.Readings) > 1 {
				err = advice.With(fmt.Errorf("trial %d: %w", i+1, err), advice.Of(err))
			}
			return prefixed(name, err)
		}
	}
	return nil
}

func (l Label) apply(b *Batch) error {
	for i := range b.Readings {
		r := &b.Readings[i]
		if w := l.Workload; w.Spec != nil && r.Workload.Spec != nil && (w.Kind() != r.Workload.Kind() || w.Normalize().Protocol() != r.Workload.Protocol()) {
			return fmt.Errorf("its workload is %s, not %s", r.Workload, w)
		}
	}
	for _, c := range []labelled{
		{l.Profile != "", "profile", func(r Reading) string { return r.Profile }, func(r *Reading) { r.Profile = l.Profile }},
		{l.Path != plan.Path{}, "path", pathName, func(r *Reading) { r.Path = l.Path }},
		{l.Workload.Spec != nil, "workload", workloadName, func(r *Reading) {
			r.Workload = l.Workload.Normalize()
			r.Warnings = slices.DeleteFunc(r.Warnings, func(w sample.Warning) bool { return w.ID == adapter.Assumed })
		}},
	} {
		if err := c.put(b); err != nil {
			return err
		}
	}
	return nil
}

// labelled is one part of a Label: what it is called, how it is read and how it is put.
type labelled struct {
	said bool
	what string
	name func(r Reading) string
	set  func(r *Reading)
}

// put sets one part of a label: where it is missing if it is missing anywhere, else in place of the one that is there.
func (c labelled) put(b *Batch) error {
	if !c.said {
		return nil
	}
	missing := slices.ContainsFunc(b.Readings, func(r Reading) bool { return c.name(r) == "" })
	if names := distinct(b, c.name); len(names) > 1 && !missing {
		return advice.With(fmt.Errorf("one %s for all trials, but the file names several: %s", c.what, number.Few(names)),
			"leave out --"+c.what+" for this file")
	}
	for i := range b.Readings {
		if r := &b.Readings[i]; !missing || c.name(*r) == "" {
			c.set(r)
		}
	}
	return nil
}

// distinct returns the names that readings have, in order.
func distinct(b *Batch, name func(Reading) string) []string {
	var names []string
	for _, r := range b.Readings {
		if n := name(r); n != "" && !slices.Contains(names, n) {
			if names = append(names, n); len(names) > adapter.MaxNames {
				break
			}
		}
	}
	return names
}

func pathName(r Reading) string {
	if r.Path == (plan.Path{}) {
		return ""
	}
	return r.Path.String()
}

func workloadName(r Reading) string {
	if r.Workload.Spec == nil {
		return ""
	}
	return r.Workload.String()
}
