// Package openmetrics writes a report in the OpenMetrics text format 1.0, for Prometheus, VictoriaMetrics and similar
// systems.
//
// Each metric of the catalogue is a gauge, named cnibench_ + its name + its base unit (seconds, bytes, ratios). Its labels
// are plan, profile, path, workload and kind (of workload). Its value is the median or the weighted mean over repetitions;
// the bounds of the interval are two further families. The percentiles of a distribution are one summary, with the label
// quantile. CPU time has one family for each unit of work, since numbers of different units cannot be compared. Families
// about the run and its facts come first; comparisons, verdicts and differences of twins come last.
// docs/reference/reports.md lists all families.
//
// Every sample has the time at which the run began, if the file knows it, so that older runs can be backfilled. An
// unknown number has no sample.
package openmetrics

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// prefix begins the name of every family.
const prefix = "cnibench_"

// family is a metric family of OpenMetrics.
type family struct {
	// name is the whole name, with prefix and unit.
	name, unit, help string
	// info means that samples have the value 1 and the suffix _info. summary means that they have the label quantile.
	info, summary bool
}

func (f family) sampleName() string {
	if f.info {
		return f.name + "_info"
	}
	return f.name
}

// metadataText returns the lines before the samples of a family: type, unit and help.
func (f family) metadataText() string {
	name, kind := f.name, "gauge"
	switch {
	case f.info:
		kind = "info"
	case f.summary:
		kind = "summary"
	}
	out := "# TYPE " + name + " " + kind + "\n"
	if f.unit != "" {
		out += "# UNIT " + name + " " + f.unit + "\n"
	}
	return out + "# HELP " + name + " " + escapeText(f.help) + "\n"
}

// The families that are not metrics of the catalogue.
var (
	runInfo     = family{name: prefix + "run", help: "The run: environment, origin, baseline, seed, and why it ended.", info: true}
	factInfo    = family{name: prefix + "fact", help: "A recorded condition of the run.", info: true}
	profileInfo = family{name: prefix + "profile", help: "A profile of the run: measured, or skipped and why.", info: true}
	runTrials   = family{name: prefix + "run_trials", help: "Trials of the run, by status."}
	runWall     = family{name: prefix + "run_wall_seconds", unit: "seconds", help: "Wall time of the run."}
	runWindow   = family{name: prefix + "run_window_seconds", unit: "seconds", help: "The part of the wall time that lay in measurement windows."}

	cellValues     = family{name: prefix + "cell_values", help: "Repetitions that a value stands on."}
	cellConfidence = family{name: prefix + "cell_confidence_ratio", unit: "ratio", help: "Chance that the true value lies from low to high."}
	cellFailed     = family{name: prefix + "cell_failed_trials", help: "Trials of a case that failed."}
	cellDoubts     = family{name: prefix + "cell_doubts", help: "A doubt about a cell: how many trials raised it, 0 if it is about the cell as a whole."}
	ratio          = family{name: prefix + "comparison_ratio", unit: "ratio", help: "A profile's value over the baseline's, in the metric's own unit."}
	ratioLow       = family{name: prefix + "comparison_lower_bound_ratio", unit: "ratio", help: "Lower bound of the ratio of a comparison."}
	ratioHigh      = family{name: prefix + "comparison_upper_bound_ratio", unit: "ratio", help: "Upper bound of the ratio of a comparison."}
	pValue         = family{name: prefix + "comparison_p", help: "The p value of a comparison, alone and corrected for its family."}
	verdict        = family{name: prefix + "comparison_verdict", help: "1 for the verdict of a comparison: better, worse, same or inconclusive."}
	floor          = family{name: prefix + "noise_floor_ratio", unit: "ratio", help: "Share by which two instances of the baseline differ."}
)

// Render writes the result of d. It fails if a cell has a unit without a base unit, or if it cannot write to w.
func Render(w io.Writer, d report.Document) error {
	e := &exposition{common: labels{"plan", d.Run.Plan.Name}}
	if !d.Run.Created.IsZero() {
		e.time = " " + strconv.FormatInt(d.Run.Created.Unix(), 10)
	}
	a := cmp.Or(d.Analysis, &compare.Analysis{})
	e.writeRun(d, a)
	if err := e.writeMetrics(a); err != nil {
		return err
	}
	e.writeCells(a)
	e.writeComparisons(a)
	e.WriteString("# EOF\n")
	_, err := e.WriteTo(w)
	return err
}

// labels has label names and values in turn: a name, its value, the next name.
type labels []string

// exposition is the text written so far. Families have the same order in every document; a family without samples is
// omitted.
type exposition struct {
	bytes.Buffer
	// family is the current family. seen has the label sets of its samples, which must be unique.
	family family
	seen   map[string]bool
	// common are labels of every sample. time is the timestamp after each value, with a space before it; "" if unknown.
	common labels
	time   string
}

// beginFamily makes f the current family.
func (e *exposition) beginFamily(f family) { e.family, e.seen = f, map[string]bool{} }

// addSample writes a sample of the current family. It writes nothing if the value is not finite, or if the family already has
// a sample with these labels. It omits labels with an empty value, which mean the same as missing labels.
func (e *exposition) addSample(v float64, ls labels) {
	if !number.Finite(v) {
		return
	}
	var set []string
	named := map[string]bool{}
	ls = slices.Concat(e.common, ls)
	for i := 0; i+1 < len(ls); i += 2 {
		if ls[i+1] != "" && !named[ls[i]] {
			named[ls[i]] = true
			set = append(set, ls[i]+`="`+escapeText(ls[i+1])+`"`)
		}
	}
	text := strings.Join(set, ",")
	if e.seen[text] {
		return
	}
	if len(e.seen) == 0 {
		e.WriteString(e.family.metadataText())
	}
	e.seen[text] = true
	if text != "" {
		text = "{" + text + "}"
	}
	fmt.Fprintf(e, "%s%s %s%s\n", e.family.sampleName(), text, strconv.FormatFloat(v, 'g', -1, 64), e.time)
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// escapeText converts untrusted text into a label value or a help text.
func escapeText(s string) string { return escapes.Replace(number.Clean(s)) }

// addSingleSample writes the family f with a single sample of the value v. ls are label names and values in turn.
func (e *exposition) addSingleSample(f family, v float64, ls ...string) {
	e.beginFamily(f)
	e.addSample(v, ls)
}

// writeRun writes the families about the whole run.
func (e *exposition) writeRun(d report.Document, a *compare.Analysis) {
	r := d.Run
	e.addSingleSample(runInfo, 1, "environment", r.Plan.Environment, "origin", r.Origin, "baseline", a.Baseline.String(),
		"seed", strconv.FormatUint(r.Plan.Seed, 10), "reason", r.Reason)
	e.beginFamily(factInfo)
	for _, name := range d.Facts.Names() {
		e.addSample(1, labels{"name", name, "value", d.Facts[name]})
	}
	e.beginFamily(profileInfo)
	for _, p := range d.Profiles {
		state := "measured"
		if p.Skipped != "" {
			state = "skipped"
		}
		e.addSample(1, labels{"profile", p.Name.String(), "state", state, "reason", p.Skipped, "stand_in", strings.Join(p.StandIn, "; ")})
	}
	e.beginFamily(runTrials)
	e.addSample(float64(r.Trials-r.Failed), labels{"status", "ok"})
	e.addSample(float64(r.Failed), labels{"status", "failed"})
	if r.Wall > 0 {
		e.addSingleSample(runWall, r.Wall.Seconds())
		e.addSingleSample(runWindow, r.Windows.Seconds())
	}
}

// writeMetrics writes the families of the catalogue. It fails if a cell has a unit without a base unit.
func (e *exposition) writeMetrics(a *compare.Analysis) error {
	type cut struct{ metric, unit string }
	cells := map[cut][]*compare.Cell{}
	for i := range a.Cells {
		c := &a.Cells[i]
		if _, ok := bases[c.Unit]; !ok {
			return fmt.Errorf("metric %s: the unit %q has no base unit in OpenMetrics", c.Metric, c.Unit)
		}
		k := cut{c.Metric, c.Unit}
		cells[k] = append(cells[k], c)
	}
	for _, group := range catalogueGroups() {
		for _, bound := range bounds {
			e.beginFamily(group.boundFamily(bound.words, bound.help))
			for _, m := range group.metrics {
				_, quantile := splitQuantile(m)
				for _, c := range cells[cut{m, group.base}] {
					if v, ok := bound.of(c); ok {
						e.addSample(v/bases[group.base].size, append(caseLabels(c.Key), "quantile", quantile))
					}
				}
			}
		}
	}
	return nil
}

// bounds has the three families of a metric: its value, and both ends of its interval. of returns the number of a cell for
// the family. It returns false if the cell has too few values for an interval.
var bounds = []struct {
	words, help string
	of          func(c *compare.Cell) (float64, bool)
}{
	{"", "", func(c *compare.Cell) (float64, bool) { return c.Median, true }},
	{"_lower_bound", "Lower bound of the interval: ", func(c *compare.Cell) (float64, bool) { return c.Low, c.N > 1 }},
	{"_upper_bound", "Upper bound of the interval: ", func(c *compare.Cell) (float64, bool) { return c.High, c.N > 1 }},
}

// group is a family with its metrics: a single metric, or the percentiles of a distribution.
type group struct {
	family
	// stem is the name without prefix and unit. base is the unit of the catalogue, a key of bases.
	stem, base string
	metrics    []string
}

// boundFamily returns the family of a bound. It inserts words into the name before the unit, and help before the help text.
func (g group) boundFamily(words, help string) family {
	f := g.family
	f.name = strings.TrimSuffix(prefix+g.stem+words+"_"+f.unit, "_")
	f.help = help + f.help
	return f
}

// catalogueGroups returns the groups in the order of the catalogue. A distribution is at the place of its first percentile.
func catalogueGroups() []*group {
	var out []*group
	at := map[string]*group{}
	for _, m := range metric.All() {
		for _, u := range possibleUnits(m) {
			stem, quantile := splitQuantile(m.Name)
			help := m.Definition
			if quantile != "" {
				what, _, _ := strings.Cut(m.Title, ",")
				help = strings.ToUpper(what[:1]) + what[1:] + " at a quantile."
			}
			key := stem + " " + u
			if at[key] == nil {
				at[key] = &group{family: family{unit: bases[u].unit, help: help, summary: quantile != ""}, stem: stem, base: u}
				out = append(out, at[key])
			}
			at[key].metrics = append(at[key].metrics, m.Name)
		}
	}
	return out
}

// splitQuantile splits the name of a metric into the stem of its family and a quantile: "rtt.p99" into "rtt" and "0.99".
// The quantile is "" for other metrics.
func splitQuantile(name string) (stem, quantile string) {
	if head, percent, ok := strings.Cut(name, ".p"); ok {
		if v, err := strconv.ParseFloat(percent, 64); err == nil {
			return strings.ReplaceAll(head, ".", "_"), strconv.FormatFloat(v/100, 'g', 6, 64)
		}
	}
	if stem, ok := stems[name]; ok {
		return stem, ""
	}
	return strings.ReplaceAll(name, ".", "_"), ""
}

// caseLabels returns the labels of a case.
func caseLabels(k compare.Key) labels {
	return labels{"profile", k.Profile.String(), "path", k.Path.String(), "workload", k.Workload.String(), "kind", string(k.Workload.Kind())}
}

// cellLabels returns the labels of a cell: its case and its metric.
func cellLabels(k compare.Key) labels { return slices.Clip(append(caseLabels(k), "metric", k.Metric)) }

// writeCells writes the families about cells: number of values, confidence, failed trials, warnings.
func (e *exposition) writeCells(a *compare.Analysis) {
	each := func(f family, write func(c compare.Cell, at labels)) {
		e.beginFamily(f)
		for _, c := range a.Cells {
			write(c, cellLabels(c.Key))
		}
	}
	each(cellValues, func(c compare.Cell, at labels) { e.addSample(float64(c.N), at) })
	each(cellConfidence, func(c compare.Cell, at labels) {
		if c.N > 1 {
			e.addSample(c.Confidence, at)
		}
	})
	each(cellFailed, func(c compare.Cell, at labels) { e.addSample(float64(c.Failed), at) })
	each(cellDoubts, func(c compare.Cell, at labels) {
		for _, w := range c.Warnings {
			e.addSample(float64(w.Trials), append(at, "id", w.ID))
		}
	})
}

// writeComparisons writes the families of ratios, p values and verdicts, then the noise floors.
func (e *exposition) writeComparisons(a *compare.Analysis) {
	each := func(f family, write func(x compare.Comparison, at labels)) {
		e.beginFamily(f)
		for _, x := range a.Comparisons {
			at := append(cellLabels(x.Key), "baseline", x.Baseline.String())
			if x.BaselinePath != (plan.Path{}) {
				at = append(at, "baseline_path", x.BaselinePath.String())
			}
			write(x, slices.Clip(at))
		}
	}
	each(ratio, func(x compare.Comparison, at labels) { e.addSample(x.Ratio, at) })
	each(ratioLow, func(x compare.Comparison, at labels) { e.addSample(x.Low, at) })
	each(ratioHigh, func(x compare.Comparison, at labels) { e.addSample(x.High, at) })
	each(pValue, func(x compare.Comparison, at labels) {
		e.addSample(x.P, append(at, "corrected", "no"))
		e.addSample(x.Adjusted, append(at, "corrected", "yes"))
	})
	each(verdict, func(x compare.Comparison, at labels) {
		if x.Verdict != compare.None {
			e.addSample(1, append(at, "verdict", string(x.Verdict)))
		}
	})
	e.beginFamily(floor)
	for _, f := range a.Floors {
		e.addSample(f.Share, labels{
			"workload", f.Workload.String(), "kind", string(f.Workload.Kind()), "metric", f.Metric, "measured", strconv.FormatBool(f.Measured),
		})
	}
}

// base is a base unit of OpenMetrics: its name, which ends the name of a family, and its size.
type base struct {
	unit string
	// size is the size of the base unit in units of the catalogue: values are divided by it. It is a whole number, so that
	// decimal fractions remain exact.
	size float64
}

// bases has the base unit for each unit of the catalogue.
var bases = map[string]base{
	"ns":             {"seconds", 1e9},
	"ns/transaction": {"seconds_per_transaction", 1e9},
	"ns/request":     {"seconds_per_request", 1e9},
	"ns/packet":      {"seconds_per_packet", 1e9},
	"ns/pod":         {"seconds_per_pod", 1e9},
	"ns/resolution":  {"seconds_per_resolution", 1e9},
	"ns/KB":          {"seconds_per_byte", 1e12},
	"ns/GB":          {"seconds_per_job_byte", 1e18},
	"bit/s":          {"bytes_per_second", 8},
	"1/s":            {"per_second", 1},
	"1/GB":           {"per_byte", 1e9},
	"B":              {"bytes", 1},
	"ratio":          {"ratio", 1},
	"1":              {"", 1},
	"1/transaction":  {"per_transaction", 1},
	"1/request":      {"per_request", 1},
	"1/packet":       {"per_packet", 1},
	"1/pod":          {"per_pod", 1},
	"1/resolution":   {"per_resolution", 1},
	"1/KB":           {"per_byte", 1e3},
}

// works are the units of work by which a metric can be divided.
var works = func() []string {
	works := each.Of(plan.Kinds(), func(k plan.Kind) string { return k.Default().Traits().Work })
	return slices.DeleteFunc(each.Once(append([]string{plan.Packet}, works...)), func(work string) bool { return work == "" })
}()

// ofJobs is the unit of work of the workload kind job: a gigabyte.
const ofJobs = "GB"

// stems has the stem of a family for each metric whose own name includes a unit.
var stems = map[string]string{metric.RetransmitsPerG: "retransmits"}

// possibleUnits returns the units that a metric of the catalogue can have, for example one for each unit of work.
func possibleUnits(m metric.Metric) []string {
	var units []string
	for _, work := range works {
		if work == ofJobs && slices.Contains(metric.Counted, m.Name) {
			continue // no job is sampled
		}
		if u := metric.UnitFor(m.Name, work); len(units) == 0 || u != units[0] {
			units = append(units, u)
		}
	}
	return units
}
