package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/judge/fidelity"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// clusters adds the results of `cnibench fidelity`, one for each real cluster, to the comparisons that profiles carry, and
// sums them all up: how far the CPU times of a dataplane are from the lab's, by themselves and over the bare node of their
// place. Comparisons of dataplanes that no result is of stay. Results are the files fidelity-*.jsonl of the directory; none
// is measured.
type clusters struct{ table string }

func (c *clusters) flags(f *flag.FlagSet) {
	f.StringVar(&c.table, "table", "internal/profile/fidelity.tsv", "`file` of the comparisons")
}

func (c *clusters) measure(_ context.Context, in setting) (string, error) {
	text, err := os.ReadFile(c.table)
	if err != nil {
		return "", err
	}
	rows, err := profile.ReadComparisons(bytes.NewReader(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.table, err)
	}
	files, err := filepath.Glob(filepath.Join(in.dir, "fidelity-*.jsonl"))
	if err != nil {
		return "", err
	}
	for _, name := range files {
		content, err := result.Load(name)
		if err != nil {
			return "", err
		}
		p, err := fidelity.Assess(content.Header, content.Records)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		rows = merge(rows, comparisons(p))
	}
	var b bytes.Buffer
	if err := errors.Join(profile.WriteComparisons(&b, rows), os.WriteFile(c.table, b.Bytes(), 0o644)); err != nil {
		return "", err
	}
	return distances(rows), nil
}

// comparisons are the CPU times of a page: of each dataplane, and of the bare node of its cluster.
func comparisons(p *fidelity.Page) []profile.Comparison {
	var all []profile.Comparison
	for _, s := range p.Summaries() {
		for _, r := range p.Demand {
			if r.Context == s.Context && (r.Bare() || r.Profile == s.Profile) {
				all = append(all, profile.Comparison{
					Measured: p.Header.Created.UTC().Format(time.DateOnly), NIC: string(p.Header.Plan.Lab.NIC),
					Repetitions: strconv.Itoa(p.Repetitions), Window: p.Header.Plan.Duration.String(),
					Dataplane: s.Profile.String(), Profile: r.Profile.String(), Path: r.Path.String(), Workload: fidelity.Name(r.Workload), Verdict: string(r.Verdict),
					Lab: r.Lab, Cluster: r.Cluster, Quotient: r.Quotient.Ratio,
				})
			}
		}
	}
	return all
}

// merge puts new rows in the place of older ones of the same dataplanes.
func merge(old, rows []profile.Comparison) []profile.Comparison {
	old = slices.DeleteFunc(slices.Clone(old), func(c profile.Comparison) bool {
		return slices.ContainsFunc(rows, func(n profile.Comparison) bool { return n.Dataplane == c.Dataplane })
	})
	all := append(old, rows...)
	slices.SortStableFunc(all, func(a, b profile.Comparison) int { return cmp.Compare(a.Dataplane, b.Dataplane) })
	return all
}

// distances writes a line for each dataplane.
func distances(rows []profile.Comparison) string {
	var b strings.Builder
	b.WriteString("| Dataplane | measured | rows within 5 % | differ | CPU time: median | largest | over the bare node: median | largest | bare node: median | largest |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n")
	over := func(c profile.Comparison) float64 { return c.Quotient - 1 }
	for len(rows) > 0 {
		name := rows[0].Dataplane
		end := slices.IndexFunc(rows, func(c profile.Comparison) bool { return c.Dataplane != name })
		if end < 0 {
			end = len(rows)
		}
		var own, bare []profile.Comparison
		for _, c := range rows[:end] {
			if c.Profile == profile.Host {
				bare = append(bare, c)
			} else {
				own = append(own, c)
			}
		}
		s := profile.Summarize(name, own)
		fmt.Fprintf(&b, "| %s | %s, %s of %s | %d of %d | %d | %s | %s | %s |\n", name, rows[0].Measured, rows[0].Repetitions, rows[0].Window, s.Within, s.Rows, s.Differ,
			both(each.Of(own, profile.Comparison.Distance)), both(each.Of(own, over)), both(each.Of(bare, profile.Comparison.Distance)))
		rows = rows[end:]
	}
	return b.String()
}

// both are the median of distances and the farthest one, as cells.
func both(off []float64) string {
	median, farthest := profile.Middle(off)
	return fmt.Sprintf("%+.1f %% | %+.1f %%", 100*median, 100*farthest)
}
