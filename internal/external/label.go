package external

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Label adds what a tool's output lacks. Zero fields add nothing.
type Label struct {
	Profile  string
	Path     plan.Path
	Workload plan.Workload
}

// Apply adds the fields of l to the readings of b (see setPart). If b has no title, it sets name as the title. It fails if a
// reading stays incomplete, or if l contradicts the input, such as one profile for an input that names several.
func (l Label) Apply(name string, b *Batch) error {
	b.Title = cmp.Or(b.Title, name)
	if err := l.apply(b); err != nil {
		return prefixError(name, err)
	}
	for i, r := range b.Readings {
		if err := checkComplete(r); err != nil {
			if len(b.Readings) > 1 {
				err = advice.With(fmt.Errorf("trial %d: %w", i+1, err), advice.Of(err))
			}
			return prefixError(name, err)
		}
	}
	return nil
}

func (l Label) apply(b *Batch) error {
	w := l.Workload.Normalize()
	for _, r := range b.Readings {
		if w.Spec != nil && r.Workload.Spec != nil && (w.Kind() != r.Workload.Kind() || w.Traits().Protocol != r.Workload.Traits().Protocol) {
			return fmt.Errorf("its workload is %s, not %s", r.Workload, l.Workload)
		}
	}
	err := cmp.Or(
		setPart(b, "profile", l.Profile, func(r *Reading) *string { return &r.Profile }),
		setPart(b, "path", l.Path, func(r *Reading) *plan.Path { return &r.Path }),
		setPart(b, "workload", w, func(r *Reading) *plan.Workload { return &r.Workload }),
	)
	for i := range b.Readings {
		if r := &b.Readings[i]; w.Spec != nil && r.Workload == w {
			r.Sizes, r.RateAssumed = adapter.SizeRange{}, false // the label names them
			r.Warnings = slices.DeleteFunc(r.Warnings, isAssumed)
		}
	}
	return err
}

// losesSetting reports whether the workload of r has a setting that the label's workload, said, does not have. It returns
// false if settings of r are assumed.
func losesSetting(r *Reading, said any) bool {
	settings := func(w any) []string {
		_, in, _ := strings.Cut(strings.TrimSuffix(fmt.Sprint(w), ")"), "(")
		return strings.Split(in, ",")
	}
	kept := append(settings(said), "")
	return !slices.ContainsFunc(r.Warnings, isAssumed) &&
		slices.ContainsFunc(settings(r.Workload), func(s string) bool { return !slices.Contains(kept, s) })
}

func isAssumed(w sample.Warning) bool { return w.ID == adapter.Assumed }

// setPart sets a part of the readings to said, the label's value. It does nothing if said is zero. what is the name of
// the part. If some readings lack the part, it sets only these readings, else all. It fails if no reading lacks the part
// and their values differ. It also fails if said would replace a path or the printed settings of a workload.
func setPart[T comparable](b *Batch, what string, said T, part func(*Reading) *T) error {
	var none T
	if said == none {
		return nil
	}
	var names []string
	missing := false
	for i := range b.Readings {
		if have := *part(&b.Readings[i]); have == none {
			missing = true
		} else {
			adapter.AddName(&names, fmt.Sprint(have))
		}
	}
	if len(names) > 1 && !missing {
		return advice.With(fmt.Errorf("one %s for all trials, but the file names several: %s", what, number.Few(names)),
			"leave out --"+what+" for this file")
	}
	for i := range b.Readings {
		r := &b.Readings[i]
		at := part(r)
		switch {
		case missing && *at != none || *at == said:
			continue
		case *at == none:
		case what == "path", what == "workload" && losesSetting(r, said):
			return advice.With(fmt.Errorf("its %s is %v, as it says itself, and not %v", what, *at, said), "leave out --"+what+" for this file")
		default:
			b.LeaveOut("the %s that the file names, %v: %v takes its place", what, *at, said)
		}
		*at = said
	}
	return nil
}
