package report

import (
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// statisticsOf returns the titles of the metrics whose values are weighted means. If only some workloads of a metric have
// weighted means, its text names them. medians reports whether some values are medians.
func statisticsOf(cells []*compare.Cell) (weighted []string, medians bool) {
	type kinds struct {
		metric         string
		means, medians []string // workloads
	}
	var all []*kinds
	for _, c := range cells {
		if c == nil || c.N == 0 {
			continue
		}
		i := slices.IndexFunc(all, func(k *kinds) bool { return k.metric == c.Metric })
		if i < 0 {
			i, all = len(all), append(all, &kinds{metric: c.Metric})
		}
		of := &all[i].medians
		if c.Typical != nil {
			of = &all[i].means
		}
		if w := c.Workload.String(); !slices.Contains(*of, w) {
			*of = append(*of, w)
		}
	}
	for _, k := range all {
		medians = medians || len(k.medians) > 0
		if len(k.means) == 0 {
			continue
		}
		m, _ := metric.Lookup(k.metric)
		text := m.Title
		if len(k.medians) > 0 {
			text += " of " + strings.Join(each.Of(k.means, func(w string) string {
				if slices.Contains(k.medians, w) {
					return w + " in part"
				}
				return w
			}), ", ")
		}
		weighted = append(weighted, text)
	}
	return weighted, medians
}

// statisticSentence says whether the values are medians or weighted means. It adds the text of after the name of the
// statistic: " of 5 repetitions".
func statisticSentence(weighted []string, medians bool, of string) string {
	switch {
	case len(weighted) == 0:
		return "Each value is " + statisticArticle(of) + "median" + of
	case !medians:
		return "Each value is a weighted mean" + of
	}
	return "Each value is " + statisticArticle(of) + "median" + of + ", or a weighted mean (" + strings.Join(weighted, "; ") + ")"
}

func statisticArticle(of string) string {
	if of == "" {
		return "a "
	}
	return "the "
}
