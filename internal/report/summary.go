package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/judge/fidelity"
	"github.com/cnibench/cnibench/internal/judge/impact"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Summary is the report on one screen: the answer for each need, one table of all profiles, what to do next.
type Summary struct {
	Scene
	// Lists has the complete answer for each need: the best profile, the best with a function, the worst.
	Lists []Section
	// Grids are the tables of a report that is not about profiles. Lead has the first lines, such as budgets.
	Grids []Grid
	Lead  []string
	// Message is the first answer in a few words, to title a shared picture; "" if there is nothing to compare.
	Message string
	// Title is the title of the table. Rows has bare networks first, then dataplanes by their rank for the first need.
	Title   string
	Columns []SummaryColumn
	Rows    []SummaryRow
	Reading
	Next []Item
}

// Scene describes where a result comes from; each field may be "".
type Scene struct {
	// Model describes the environment, Machine the CPUs and the kernel. Lacks names functions that the best profiles lack.
	Model, Machine, Lacks string
}

// Reading explains how to read the table of a summary.
type Reading struct {
	// Loads names the workload and path of each column.
	Loads string
	// Certainty describes the basis of the answers. Margin is the largest difference that counts as the same: "3%".
	Certainty, Margin string
	// Equal counts the verdicts on the baseline compared with its twin; "" without a twin.
	Equal string
	// Letters and Proofs explain the codes in the rows. Notes are other remarks on the results.
	Letters, Proofs string
	Notes           []string
}

// SummaryColumn is the column of one need. For bulk data, Unit includes the NIC model: "10 Gbit/s, ideal NIC".
type SummaryColumn struct {
	Name, Unit string
	// Line is the answer in one line. Brief is the same answer without intervals.
	Line, Brief string
}

// SummaryRow is the row of one profile. The verdict of an entry compares the profile with the best dataplane. The verdict of
// the best itself is Better if another is worse. Otherwise it is Same if others are the same, or else None.
type SummaryRow struct {
	Profile string
	Entries []Entry
	// Bare is true for the host and for two bare namespaces, which are compared with the best but cannot be chosen.
	Bare bool
	// Letters has a letter or "-" for each function. Proof is the word from Proof.Word, with "*" if the lab imitates a part.
	Letters, Proof string
}

// Statistics says which statistic the bars show: medians or weighted means. If the columns differ, it names the columns of
// each. It returns "" if there are no values.
func (s Summary) Statistics() string {
	const mixed = ""            // stands for several
	of := map[string][]string{} // columns by their statistic
	var kinds []string
	for j, column := range s.Columns {
		var here []string
		for _, row := range s.Rows {
			if c := row.Entries[j].Cell; c != nil && row.Entries[j].Kind == Value {
				here = append(here, c.Statistic())
			}
		}
		switch here = each.Once(here); len(here) {
		case 0:
		case 1:
			of[here[0]] = append(of[here[0]], column.Name)
		default:
			of[mixed] = append(of[mixed], column.Name)
		}
		kinds = append(kinds, here...)
	}
	kinds = each.Once(kinds)
	switch len(kinds) {
	case 0:
		return ""
	case 1:
		return "A bar is a " + kinds[0] + "."
	}
	for i := range kinds {
		if names := each.Once(of[kinds[i]]); len(names) > 0 {
			kinds[i] += " (" + strings.Join(names, ", ") + ")"
		}
	}
	text := "A bar is a " + strings.Join(kinds, ", or a ")
	if names := each.Once(of[mixed]); len(names) > 0 {
		text += "; " + joinNames(names) + " have both"
	}
	return text + "."
}

// mostNeeds is how many needs a summary shows.
const mostNeeds = 6

// buildSummary builds the report on one screen. file is the result file in suggested commands; "" means the default file.
func (b *builder) buildSummary(d Document, file string) *Summary {
	s := &Summary{Title: "CPU cores that each load needs: both ends, and the kernel between them"}
	d.Needs = slices.SortedStableFunc(slices.Values(d.Needs), func(m, n Need) int { return m.screenRank() - n.screenRank() })
	needs := d.Needs[:min(mostNeeds, len(d.Needs))]
	if len(needs) == 0 {
		s.Lead = d.Lines
	}
	s.Model, s.Machine, s.Lacks = b.modelText(), b.machineText(), missingFunctionsText(needs)
	if others := slices.DeleteFunc(slices.Clone(needs), func(n Need) bool { _, ok := n.Cores(); return ok }); len(others) > 0 {
		s.Title = "CPU cores that each load needs; " + strings.Join(each.Of(others, func(n Need) string {
			return n.summaryColumn().Name + ": " + n.Metric.Title
		}), "; ")
	}
	if !slices.ContainsFunc(needs, func(n Need) bool { _, ok := n.Cores(); return ok }) {
		s.Title = cmp.Or(strings.TrimPrefix(s.Title, "CPU cores that each load needs; "), "Values")
	}
	s.Columns, s.Loads = each.Of(needs, Need.summaryColumn), columnLoadsText(needs)
	for i, n := range needs {
		var list []Item
		list, s.Columns[i].Line, s.Columns[i].Brief = n.answerList()
		s.Lists = append(s.Lists, Section{
			Heading: fmt.Sprintf("%s: %s %s, %s", n.Name, number.Clean(n.Workload.String()), n.Path, n.Metric.Title), Items: list,
		})
	}
	for _, p := range b.summaryOrder(needs) {
		row := SummaryRow{Profile: number.Clean(p.String()), Bare: !isDataplane(p), Entries: each.Of(needs, func(n Need) Entry { return b.summaryEntry(n, p) })}
		if !isDataplane(p) && !slices.ContainsFunc(row.Entries, func(e Entry) bool { return e.Kind == Value || e.Kind == Failed }) {
			continue
		}
		if a, ok := each.First(d.Abilities, func(a Ability) bool { return a.Profile == p }); ok {
			row.Letters, row.Proof = functionLetters(a), a.Proof.Word()
			if len(a.Models) > 0 {
				row.Proof += "*"
			}
		}
		s.Rows = append(s.Rows, row)
	}
	if len(needs) > 0 {
		s.Letters, s.Proofs = tableKeys(s.Rows, b.uncoveredNeeds(needs, d.Abilities))
		s.Message = needs[0].shareMessage()
	}
	s.Margin = number.Percent(b.analysis.Margin)
	var claims Conclusion
	var ranks []compare.Standing
	for _, n := range needs {
		claims.Claims = append(claims.Claims, slices.Concat(n.Conclusion.Claims, n.Conclusion.Ties)...)
		ranks = append(ranks, n.Choice...)
	}
	if len(ranks) > 0 {
		s.Certainty = b.certaintyText(claims, ranks)
	}
	if _, verdicts, ok := strings.Cut(b.twinVerdictsText(), ": "); ok {
		s.Equal = "A/A: " + verdicts
	}
	s.Notes = b.summaryNotes(needs, d)
	entries := slices.Concat(each.Of(s.Rows, func(r SummaryRow) []Entry { return r.Entries })...)
	if note := wholeWindowsNote(each.Of(entries, func(e Entry) *compare.Cell { return e.Cell }), nil); note != "" {
		s.Notes = append(s.Notes, note)
	}
	s.Next = b.nextSteps(d, file)
	return s
}

// screenRank returns the place of a need on the screen: 0 for requests, 1 for connections, 2 for bulk data, 3 for other
// workloads, and 4 for other needs.
func (n Need) screenRank() int {
	t := n.Workload.Traits()
	switch {
	case n.Name != string(n.Workload.Kind()) && !strings.HasPrefix(n.Name, n.Workload.Title()):
		return 4
	case t.Standing():
		return 0
	case t.Reconnecting():
		return 1
	case t.Bulk():
		return 2
	}
	return 3
}

// answerList returns the answer for a need: lines is a list, line has it in one line, and brief is line without intervals.
func (n Need) answerList() (lines []Item, line, brief string) {
	if text := n.Conclusion.Text; len(n.Conclusion.Claims) == 0 || n.Conclusion.Alone {
		return []Item{{Name: "answer", Text: text}}, text, text
	}
	first := number.Clean(n.Choice[0].Cell.Profile.String())
	first = joinAlternatives(append([]string{first}, n.Near...))
	line, brief = first, first
	add := func(name string, s compare.Standing, x compare.Comparison) {
		long, short := distanceText(x)
		line += "; " + name + " " + number.Clean(s.Cell.Profile.String()) + " " + long
		brief += "; " + strings.TrimPrefix(name, "with ") + " " + number.Clean(s.Cell.Profile.String()) + " " + short
	}
	lines = []Item{{Name: "best", Text: n.standingText(n.Choice, compare.Comparison{}, true)}}
	if slices.ContainsFunc(n.Choice, func(s compare.Standing) bool { return s.ToBest.Verdict == compare.Inconclusive }) {
		lines[0].Name = "leads"
	}
	var too []string
	for _, x := range n.Best {
		switch {
		case len(x.Choice) == 0:
		case x.ToBest.Profile.IsZero():
			too = append(too, x.With.Name)
		default:
			lines = append(lines, Item{Name: "with " + x.With.Name, Text: n.standingText(x.Choice, x.ToBest, false)})
			add("with "+x.With.Name, x.Choice[0], x.ToBest)
		}
	}
	if len(too) > 0 {
		lines[0].Name += ", " + strings.Join(too, " and ") + " too"
	}
	last := n.Choice[len(n.Choice)-1]
	if last.ToBest.Verdict == compare.Worse {
		name := "worst"
		if len(n.Choice) == 2 {
			name = "next"
		}
		lines = append(lines, Item{Name: name, Text: n.standingText([]compare.Standing{last}, last.ToBest, false)})
		add(name, last, last.ToBest)
	}
	return lines, line, brief
}

// distanceText describes how a value compares with the best. long has the interval of the ratio; short has only the ratio.
func distanceText(x compare.Comparison) (long, short string) {
	switch {
	case x.Verdict == compare.Worse && number.Finite(x.Ratio):
		return ratioText(x), number.Ratio(x.Ratio)
	case x.Verdict == compare.Worse:
		return "(worse)", "(worse)"
	case x.Verdict == compare.Same:
		return "(the same)", "(the same)"
	}
	return "(undecided)", "(undecided)"
}

// shareMessage returns a text that names the best and the worst dataplane, or says that no difference is decided. It returns
// "" if there is only one dataplane, if the values are lower bounds, or if the worst has no ratio to the best.
func (n Need) shareMessage() string {
	need := capitalized(cmp.Or(columnNames[n.Name], n.Name))
	last := n.Choice[len(n.Choice)-1]
	if n.Bounds || len(n.Choice) < 2 || last.ToBest.Verdict == compare.Worse && !number.Finite(last.ToBest.Ratio) {
		return ""
	}
	if last.ToBest.Verdict != compare.Worse {
		return fmt.Sprintf("%s: no difference between %d dataplanes is decided", need, len(n.Choice))
	}
	best := "is best"
	if bestVerdict(n.Choice[1:2]) != compare.Better {
		best = "leads"
	}
	what := "has " + number.Ratio(last.ToBest.Ratio) + " of its " + n.Metric.Title
	if n.Metric.Name == metric.ServiceDemand {
		what = "needs " + number.Ratio(last.ToBest.Ratio) + " its CPU time"
	}
	return fmt.Sprintf("%s: %s %s, %s %s", need, number.Clean(n.Choice[0].Cell.Profile.String()), best, number.Clean(last.Cell.Profile.String()), what)
}

// Cores returns the load at which CPU time per unit of work is converted into CPU cores. It returns false if the metric
// is not CPU time, or if the workload has no such load.
func (n Need) Cores() (impact.Load, bool) {
	if n.Metric.Name != metric.ServiceDemand {
		return impact.Load{}, false
	}
	return impact.LoadOf(n.Workload)
}

// shortName returns the name of a need for narrow places, without its NIC model.
func (n Need) shortName() string {
	name, _, _ := strings.Cut(n.Name, ", ")
	return cmp.Or(columnNames[name], name)
}

// columnNames has the short names of needs.
var columnNames = map[string]string{
	"Requests on standing connections": "requests", "A connection for each request": "connects", "Bulk transfer": "bulk",
	"Requests on standing connections by UDP": "requests UDP", "Bulk transfer by UDP": "bulk UDP", "HTTP requests": "HTTP", "From outside": "outside", "Highest rate without loss": "throughput", "Tail latency": "tail", "CPU efficiency": "CPU",
}

func (n Need) summaryColumn() SummaryColumn {
	c := SummaryColumn{Name: n.shortName(), Unit: n.Scale().Unit}
	if l, ok := n.Cores(); ok {
		c.Unit = l.Short
	}
	if _, model, ok := strings.Cut(n.Name, ", "); ok {
		c.Unit += ", " + model
	}
	return c
}

// columnLoadsText describes the workload and path of each column: "requests rr, bulk stream: pod-to-pod/cross-node".
func columnLoadsText(needs []Need) string {
	var parts []string
	for _, same := range Grouped(needs, func(n Need) plan.Path { return n.Path }) {
		names := each.Of(same, func(n Need) string { return n.summaryColumn().Name + " " + number.Clean(n.Workload.String()) })
		parts = append(parts, strings.Join(names, ", ")+": "+same[0].Path.String())
	}
	return strings.Join(parts, "; ")
}

// summaryOrder returns the profiles that were not skipped: bare networks, then dataplanes by the first need that ranks them.
func (b *builder) summaryOrder(needs []Need) []plan.Variant {
	out := slices.DeleteFunc(slices.Clone(b.analysis.Profiles), func(p plan.Variant) bool { return b.wasSkipped(p) })
	place := func(p plan.Variant) int {
		if !isDataplane(p) {
			return -1
		}
		before := 0
		for _, n := range needs {
			if i := slices.IndexFunc(n.Choice, func(s compare.Standing) bool { return s.Cell.Profile == p }); i >= 0 {
				return before + i
			}
			before += len(n.Choice)
		}
		return before
	}
	slices.SortStableFunc(out, func(p, q plan.Variant) int { return cmp.Compare(place(p), place(q)) })
	return out
}

// summaryEntry returns the entry of a profile for a need: its value with the verdict, or why there is none.
func (b *builder) summaryEntry(n Need, p plan.Variant) Entry {
	key := compare.Key{Case: plan.Case{Profile: p, Path: n.Path, Workload: n.Workload}, Metric: n.Metric.Name}
	cell, tried := b.analysis.Cell(key)
	switch {
	case tried && cell.Failing():
		if cell.Failed > cell.N {
			return Entry{Kind: Failed, Text: fmt.Sprintf("failed %d/%d", cell.Failed, cell.Failed+cell.N)}
		}
		return Entry{Kind: Failed, Text: "failed " + number.Percent(cell.Lost)}
	case !tried && b.standInCell(n, p) != nil:
		cell = *b.standInCell(n, p)
	case !tried || cell.N == 0:
		if of, ok := b.headerProfile(p); ok && of.NotServed[n.Path.String()] != "" {
			return Entry{Kind: NotServed, Text: number.Absent}
		}
		return notMeasured
	}
	e := Entry{Value: cellValue(cell, n.Scale()), Spread: spreadText(cell.Summary), Cell: &cell}
	if l, ok := n.Cores(); ok {
		e.Value = number.Number(l.Cores(cell.Median))
	}
	i := slices.IndexFunc(n.Choice, func(s compare.Standing) bool { return s.Cell.Profile == p })
	switch {
	case n.Bounds:
	case i < 0:
		e.Verdict = b.bareVerdict(n, p)
	case len(n.Choice) < 2:
	case i > 0:
		e.Verdict = n.Choice[i].ToBest.Verdict
	default:
		e.Verdict = bestVerdict(n.Choice[1:])
	}
	return e
}

// bestVerdict returns the verdict on the best profile. It is Better if another is worse. Otherwise it is Same if others are
// the same, or else None.
func bestVerdict(others []compare.Standing) compare.Verdict {
	mark := compare.None
	for _, s := range others {
		switch {
		case s.ToBest.Verdict == compare.Worse:
			return compare.Better
		case s.ToBest.Verdict == compare.Same:
			mark = compare.Same
		}
	}
	return mark
}

// Does returns two sentences. The first says which profiles have each function. The second says which profiles have each
// proof. It returns nil if no profile is known.
func (s Summary) Does() []string {
	if s.Letters == "" {
		return nil
	}
	names := func(rows []SummaryRow) string {
		return strings.Join(each.Of(rows, func(r SummaryRow) string { return r.Profile }), ", ")
	}
	var functions []string
	for _, f := range profile.Functions {
		has := func(r SummaryRow) bool { return strings.Contains(r.Letters, f.Letter) }
		with, without := each.Where(s.Rows, has), slices.DeleteFunc(slices.Clone(s.Rows), has)
		switch {
		case len(without) == 0:
			functions = append(functions, f.Name+" (all)")
		case len(with) > len(without):
			functions = append(functions, f.Name+" (all but "+names(without)+")")
		case len(with) > 0:
			functions = append(functions, f.Name+" ("+names(with)+")")
		}
	}
	proofs := each.Of(Grouped(s.Rows, func(r SummaryRow) string { return r.Proof }), func(rows []SummaryRow) string {
		if len(rows) == len(s.Rows) {
			return rows[0].Proof
		}
		return rows[0].Proof + " (" + names(rows) + ")"
	})
	return []string{"Functions: " + cmp.Or(strings.Join(functions, "; "), "none") + ".", "Proof: " + strings.Join(proofs, "; ") + "."}
}

// functionLetters returns a letter for each function of the profile, and "-" for each function that it lacks.
func functionLetters(a Ability) string {
	return strings.Join(each.Of(profile.Functions, func(f profile.Function) string {
		if a.Functions[f.Name] == "" {
			return "-"
		}
		return f.Letter
	}), "")
}

// proofWords explains the words of Proof.Word.
var proofWords = []struct{ word, text string }{
	{"wire", "its self-test held on real packets in this run"},
	{"both", "its self-test held, and the estimates of its costs are a real cluster's: within 5 % in the median, 10 % in each case"},
	{"real", "measured on a real cluster"},
	{"none", "nothing is proven"},
}

// uncoveredNeeds names the needs for which no profile's cost was validated on a real cluster.
func (b *builder) uncoveredNeeds(needs []Need, all []Ability) []string {
	var names []string
	for _, n := range needs {
		known := slices.ContainsFunc(all, func(a Ability) bool {
			nic := b.analysis.NIC(plan.Case{Profile: a.Profile, Workload: n.Workload})
			return a.Proof.Word() == "both" && a.Proof.Fidelity.Covers(fidelity.Name(n.Workload), string(nic))
		})
		if name := strings.TrimSuffix(n.shortName()+" with "+b.nicLabel(n.Workload), " with "); !known && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// tableKeys returns texts that explain the letters and the proofs in rows; both are "" if no row has a proof. uncovered
// names the needs for which the proof "both" does not hold.
func tableKeys(rows []SummaryRow, uncovered []string) (functions, proofs string) {
	var words []string
	for _, x := range proofWords {
		if slices.ContainsFunc(rows, func(r SummaryRow) bool { return strings.TrimSuffix(r.Proof, "*") == x.word }) {
			text := x.word + ": " + x.text
			if x.word == "both" && len(uncovered) > 0 {
				text += ", but not for " + joinNames(uncovered)
			}
			words = append(words, text)
		}
	}
	if len(words) == 0 {
		return "", ""
	}
	if slices.ContainsFunc(rows, func(r SummaryRow) bool { return strings.HasSuffix(r.Proof, "*") }) {
		words = append(words, "*: the lab imitates a part")
	}
	names := each.Of(profile.Functions, func(f profile.Function) string { return f.Letter + " " + f.Name })
	return strings.Join(names, ", "), strings.Join(words, "; ")
}

// summaryNotes returns remarks on the result, for example on an unfinished run, a busy machine or doubtful values.
func (b *builder) summaryNotes(needs []Need, d Document) []string {
	var notes []string
	if !slices.Contains([]string{result.Complete, result.Precise, ""}, d.Run.Reason) {
		notes = append(notes, capitalized(cmp.Or(reasons[d.Run.Reason], number.Clean(d.Run.Reason)))+".")
	}
	if _, measured, enough := b.analysis.Undisturbed(); measured && !enough {
		notes = append(notes, "The machine was never quiet: differences may be those of its other work.")
	}
	notes = append(notes, doubtNotes(needs)...)
	if text := b.cheaperThanHostReason(needs); text != "" {
		notes = append(notes, text)
	}
	if base := b.analysis.Baseline; slices.ContainsFunc(needs, func(n Need) bool { return b.standInCell(n, base) != nil }) {
		notes = append(notes, fmt.Sprintf("%s is the baseline, measured host to host.", number.Clean(base.String())))
	}
	if len(needs) > 0 && len(needs[0].Best) > 0 {
		for i, x := range needs[0].Best {
			if !slices.ContainsFunc(needs, func(n Need) bool { return len(n.Best) > i && len(n.Best[i].Choice) > 0 }) {
				notes = append(notes, fmt.Sprintf("With %s: none was measured; %s.", x.With.Name, functionProfilesText(x.With)))
			}
		}
	}
	if left := b.skippedItems(); len(left) > 0 {
		notes = append(notes, "Not measured here: "+skippedProfilesText(left)+".")
	}
	if text := b.twinVerdictsText(); text != "" && len(needs) > 0 {
		notes = append(notes, text)
	}
	if more := len(d.Needs) - len(needs); more > 0 {
		notes = append(notes, number.Counted(more, "more answer")+": --all.")
	}
	return notes
}

// skippedProfilesText lists the names of skipped profiles, grouped by the reason in their Text.
func skippedProfilesText(left []Item) string {
	var said []string
	for _, same := range Grouped(left, func(i Item) string { return i.Text }) {
		names := number.Few(each.Of(same, func(i Item) string { return i.Name }))
		if reason := strings.TrimSuffix(same[0].Text, "."); reason != "" {
			names += " (" + reason + ")"
		}
		said = append(said, names)
	}
	return strings.Join(said, "; ")
}

// functionProfilesText names the profiles that have a function.
func functionProfilesText(f profile.Function) string {
	having := each.Where(profile.All(), func(p profile.Profile) bool { return f.By(p) != "" })
	names := each.Of(having, func(p profile.Profile) string { return p.Name })
	if len(names) == 1 {
		return names[0] + " has it"
	}
	return joinFewNames(names) + " have it"
}

// nextSteps suggests commands for further work with the result.
func (b *builder) nextSteps(d Document, file string) []Item {
	const usual = "result.jsonl" // the default file of run
	file = advice.Quote(cmp.Or(file, usual))
	to := ""
	if file != usual {
		to = " -o " + file
	}
	items := []Item{
		{Name: "all tables", Text: "cnibench report --all " + file, Code: true},
		{Name: "a page to share", Text: "cnibench report -f html " + file + " > report.html", Code: true},
	}
	var open []compare.Comparison
	for _, n := range d.Needs {
		open = append(open, n.Conclusion.Ties...)
	}
	if _, run := decidingRepetitions(open); run > 0 && b.header.Origin == "" {
		items = append(items, Item{Name: "decide more" + b.remainingTimeText(d.Run, run), Text: fmt.Sprintf("cnibench run --resume%s --repetitions %d", to, run), Code: true})
	}
	if b.inLab() {
		items = append(items, Item{Name: "on your cluster", Text: "cnibench run --env kubernetes", Code: true})
	}
	return items
}

// remainingTimeText returns the estimated time until the run has this total number of repetitions: ", 4 min". It returns "" if
// that is unknown.
func (b *builder) remainingTimeText(r Run, repetitions int) string {
	done := 0
	for i := range b.analysis.Cells {
		done = max(done, b.analysis.Cells[i].N)
	}
	if done == 0 || r.Wall <= 0 || repetitions <= done {
		return ""
	}
	more := r.Wall / time.Duration(done) * time.Duration(repetitions-done)
	return fmt.Sprintf(", %.0f min", math.Ceil(more.Minutes()))
}
