package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// RunID returns an id of 12 hexadecimal digits. Every report of a result has the same id. It is derived from the time, the
// seed and the machine of the run. If the time is unknown, it is also derived from the plan.
func (d Result) RunID() string {
	of := fmt.Appendf(nil, "%s %d %s %s", d.Run.Created.UTC().Format(time.RFC3339Nano), d.Run.Plan.Seed, d.Facts[facts.Kernel], d.Facts[facts.CPUModel])
	if p := d.Run.Plan; d.Run.Created.IsZero() { // of another tool, which says neither
		of = fmt.Append(of, d.Run.Origin, p.Name, p.Profiles, p.Paths, p.Workloads)
	}
	sum := sha256.Sum256(of)
	return hex.EncodeToString(sum[:6])
}

// citation describes the run in one line: tool and version, id, date, machine and kernel.
func citation(d Document) string {
	fact := func(name, unknown string) string { return number.Clean(cmp.Or(d.Facts[name], unknown)) }
	tool := "cnibench " + fact(facts.Version, "of unknown version")
	if d.Run.Origin != "" {
		tool = number.Clean(d.Run.Origin)
		if v := number.Clean(d.Facts[facts.ToolVersion]); !strings.HasSuffix(tool, v) {
			tool += " " + v
		}
	}
	created := "unknown date"
	if !d.Run.Created.IsZero() {
		created = d.Run.Created.UTC().Format("2006-01-02 15:04 UTC")
	}
	return fmt.Sprintf("%s, run %s, %s, %s, %s CPUs (%s), kernel %s.", tool, d.RunID(), created,
		fact(facts.CPUModel, "unknown machine"), fact(facts.CPUs, "unknown number of"), fact(facts.Architecture, "unknown"), fact(facts.Kernel, "unknown"))
}

// methodsParagraph returns a paragraph for an article: how the numbers were measured.
func (b *builder) methodsParagraph(d Document) string {
	p := d.Run.Plan
	order, swept := b.summaryOrder(d.Needs), ""
	if !p.Sweep.IsZero() {
		order, swept = p.Profiles, ", each with "+p.Sweep.String()
	}
	profiles := each.Of(order, func(v plan.Variant) string { return number.Clean(v.String()) })
	said := []string{
		fmt.Sprintf("%s: %s%s.", b.measuredSentence(number.Counted(len(profiles), "profile")), strings.Join(profiles, ", "), number.Clean(swept)),
		fmt.Sprintf("The paths were %s; the workloads were %s.", strings.Join(plan.Texts(b.analysis.Paths), ", "), number.Clean(strings.Join(plan.Texts(b.analysis.Workloads), ", "))),
	}
	if d.Summary != nil && d.Summary.Certainty != "" {
		_, certainty, _ := strings.Cut(d.Summary.Certainty, ", ")
		said = append(said, b.repetitionsSentence(certainty))
	}
	if b.header.Origin == "" && p.Duration > 0 {
		said = append(said, fmt.Sprintf("A trial was a window of %s after %s of warm-up; the order of the trials was shuffled in each repetition by the seed %d, so that profiles alternate.",
			number.Duration(p.Duration), number.Duration(p.Warmup), p.Seed))
	}
	if b.inLab() {
		said = append(said, fmt.Sprintf("Conditions: NIC model %s, MTU %s, CPU placement %s.", number.Clean(cmp.Or(d.Facts[facts.NIC], string(p.Lab.NIC))),
			number.Clean(cmp.Or(d.Facts[facts.MTU], fmt.Sprint(p.Lab.MTU))), number.Clean(cmp.Or(d.Facts[facts.Placement], string(p.Lab.CPU)))))
	}
	values := "medians"
	if slices.ContainsFunc(b.analysis.Cells, func(c compare.Cell) bool { return c.Typical != nil }) {
		values = "undisturbed (weighted means of what was measured near the machine's full speed) for CPU time, rates and times, else medians"
	}
	said = append(said, fmt.Sprintf("Values are %s; a difference counts if its corrected interval excludes equal and is not within the margin of %s.", values, number.Percent(b.analysis.Margin)))
	return strings.Join(append(said, "Run: "+d.Citation), " ")
}

// measuredSentence says where the profiles were measured, or which tool or file their numbers are from. The sentence has no
// full stop.
func (b *builder) measuredSentence(profiles string) string {
	origin := number.Clean(b.header.Origin)
	if origin == "csv" {
		origin = "a CSV file"
	}
	const lab = "the lab of cnibench, which builds nodes and pods as network namespaces of one machine"
	switch imported := "The numbers of " + profiles + " are from " + origin; {
	case b.inLab():
		return "We measured " + profiles + " in " + lab
	case origin == "" && b.header.Plan.Beside():
		return "We measured " + profiles + ": names with @ on that Kubernetes cluster, the others in " + lab
	case origin == "":
		return "We measured " + profiles + " on a Kubernetes cluster"
	case b.header.Plan.Environment == "kubernetes":
		return imported + " on a Kubernetes cluster"
	case b.header.Plan.Environment == "lab":
		return imported + " in a lab"
	default:
		return imported + ", which does not say where it ran"
	}
}

// repetitionsSentence says how many repetitions cases have: one number, or the range and the most frequent number. It adds
// certainty, a text about the answers, unless that is "".
func (b *builder) repetitionsSentence(certainty string) string {
	times := map[plan.Case]int{}
	for _, c := range b.analysis.Cells {
		times[c.Case] = max(times[c.Case], c.N)
	}
	counts := map[int]int{}
	for _, n := range times {
		counts[n]++
	}
	none := counts[0]
	delete(counts, 0)
	all := slices.Sorted(maps.Keys(counts))
	if certainty != "" {
		certainty = ", " + certainty
	}
	if none > 0 {
		certainty += fmt.Sprintf("; %s failed in all trials", number.Counted(none, "case"))
	}
	switch {
	case len(all) == 0:
		return "All trials failed."
	case len(all) == 1 && none > 0:
		return fmt.Sprintf("Cases had %s%s.", repetitionRangeText(all[0], all[0]), certainty)
	case len(all) == 1:
		return fmt.Sprintf("Each case had %s%s.", repetitionRangeText(all[0], all[0]), certainty)
	}
	most := all[0]
	for _, n := range all {
		if counts[n] > counts[most] {
			most = n
		}
	}
	return fmt.Sprintf("Cases had %s (%d of %d had %d)%s.", repetitionRangeText(all[0], all[len(all)-1]), counts[most], len(times), most, certainty)
}

// methodsSection returns a section with two texts to paste: the paragraph and the citation.
func (b *builder) methodsSection(d Document) Section {
	return Section{Heading: "Methods, ready to paste", Items: []Item{
		{Name: "paragraph", Text: b.methodsParagraph(d), Quote: true}, {Name: "citation", Text: d.Citation, Quote: true},
	}}
}
