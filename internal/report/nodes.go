package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/matrix"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/report/plot"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Limits on what a report shows about pairs of nodes.
const (
	// mostGridNodes is the largest number of nodes in a matrix as text. mostMapNodes is the largest number of rows in a
	// matrix as a picture. If there are more nodes, a row is a group of nodes.
	mostGridNodes, mostMapNodes = 24, 40
	// mostFindings is the number of findings that are listed.
	mostFindings = 20
	// mostEvidence is the number of values that are listed for each finding.
	mostEvidence = 4
)

var nodesNotes = []string{
	"A node is named if it differs with at least two thirds of its partners; a link if its nodes do not explain it; both beyond the margin and the spread of the others. What differs is measured again.",
	"beyond: so many values of all differ. out: what a node sends; in: what it receives. If the hosts differ too, it is not the CNI.",
}

// nodesPage returns the findings of a run over pairs of nodes. For other runs the page has no section.
func nodesPage(b *builder) page {
	p := page{subjects: []Subject{{"node_findings", []nodeFinding{}}, {"matrices", []matrixData{}}}}
	if b.from == nil || b.from.pairs.Empty() {
		return p
	}
	a := b.from.pairs.Analyse(b.header.Nodes, b.analysis.Margin)
	v := nodesView{a, b.header.Plan.Lab.Plants}
	found := Section{Heading: "Nodes and links", ID: "nodes", Asked: true, Lead: true, Notes: nodesNotes}
	found.Grids = append(found.Grids, v.findingGrids("Found", a.Findings)...)
	found.Grids = append(found.Grids, v.findingGrids("Undecided", a.Undecided)...)
	if worst, ok := v.worstShading(); ok {
		found.Grids = append(found.Grids, v.shadingGrids(worst)...)
		found.Figures = append(found.Figures, v.shadingFigure(worst))
	}
	found.Grids = append(found.Grids, v.hostComparisonGrids()...)
	p.sections = []Section{found}
	if len(a.Nodes) <= mostGridNodes {
		byMetric := Section{Heading: "Pairs by metric", ID: "pairs", Folded: true}
		for _, m := range a.Matrices {
			x := v.metricShading(m)
			byMetric.Grids, byMetric.Figures = append(byMetric.Grids, v.shadingGrids(x)...), append(byMetric.Figures, v.shadingFigure(x))
		}
		p.sections = append(p.sections, byMetric)
	}
	p.answer = v.answerLines()
	p.subjects = []Subject{{"node_findings", v.findingData()}, {"matrices", v.matrixData()}}
	return p
}

// nodesView formats the analysis of pairs of nodes. plants are the faults that the lab planted.
type nodesView struct {
	*matrix.Analysis
	plants []mesh.Plant
}

// answerLines returns the number of nodes and pairs, then a sentence for each finding, up to mostFindings.
func (v nodesView) answerLines() []string {
	pairs := 0
	for _, m := range v.Matrices {
		pairs = max(pairs, m.Pairs())
	}
	lines := []string{fmt.Sprintf("%s, %s measured.", number.Counted(len(v.Nodes), "node"), number.Counted(pairs, "pair"))}
	if len(v.Findings) == 0 {
		lines[0] += " No node and no link differs from the others."
	}
	for _, f := range v.Findings[:min(len(v.Findings), mostFindings)] {
		lines = append(lines, v.findingSentence(f))
	}
	if more := len(v.Findings) - mostFindings; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more are in the JSON format (-f json).", more))
	}
	if n := len(v.Undecided); n > 0 {
		lines = append(lines, fmt.Sprintf("%s undecided (see the table).", number.Counted(n, "suspicion")))
	}
	return lines
}

// findingSentence returns a sentence about a finding and its first evidence.
func (v nodesView) findingSentence(f matrix.Finding) string {
	e := f.Evidence[0]
	role := ""
	if e.Role != "" {
		role = " where it " + e.Role
	}
	s := fmt.Sprintf("%s%s: %s %s, others have %s (%s).", v.findingName(f), role, metricTitle(e.Metric), metricValue(e.Metric, e.Value), metricValue(e.Metric, e.Typical), scopes[f.Scope])
	return s + v.plantedText(f)
}

// findingName returns the kind of a finding and the names of its nodes: "link a - b". If several profiles were measured, it
// adds the profile: "link a - b with canal".
func (v nodesView) findingName(f matrix.Finding) string {
	nodes := each.Of(f.Nodes, func(n string) string { return number.Clean(n) })
	nodes[len(nodes)-1] += v.profileSuffix(f.Profile)
	switch f.Kind {
	case matrix.Link:
		return "link " + strings.Join(nodes, " - ")
	case matrix.Direction:
		return "direction " + strings.Join(nodes, " to ")
	case matrix.Group:
		return strings.Join(nodes, " - ")
	}
	return "node " + nodes[0]
}

// profileSuffix returns " with " and the profile if several profiles were measured, otherwise "".
func (v nodesView) profileSuffix(p plan.Variant) string {
	if slices.ContainsFunc(v.Matrices, func(m *matrix.Matrix) bool { return m.Profile != p }) {
		return " with " + number.Clean(p.String())
	}
	return ""
}

var scopes = map[matrix.Scope]string{
	"": "the hosts were not measured", matrix.Hosts: "the hosts' network differs too: not the CNI", matrix.Pods: "the hosts do not differ: the CNI",
}

// plantedText returns a sentence about the fault that the lab planted at the nodes of a finding; "" if there is none.
func (v nodesView) plantedText(f matrix.Finding) string {
	p, ok := each.First(v.plants, func(p mesh.Plant) bool { return p.Found(f.Nodes) })
	if !ok {
		return ""
	}
	one := plan.Plan{}
	one.Lab.Plants = []mesh.Plant{p}
	s, _ := plan.SettingOf("plant")
	return " Planted: " + s.Text(one) + "."
}

func metricTitle(name string) string {
	if name == matrix.Failed {
		return "failed trials"
	}
	m, _ := metric.Lookup(name)
	return m.Title
}

// metricValue formats a value of a metric with its unit.
func metricValue(name string, v float64) string {
	if name == matrix.Failed {
		return number.Percent(v)
	}
	m, _ := metric.Lookup(name)
	return number.WithUnit(m.Unit, v)
}

// doubts describe why something is undecided and what would decide it.
var doubts = map[matrix.Doubt]string{
	matrix.FewPartners:  "has too few partners to tell the node from its links",
	matrix.SomePartners: "differs with a part of its partners: look for what those share",
	matrix.Sometimes:    "differs in a part of the measurements: more --repetitions would decide",
}

// findingGrids returns a table of findings with the evidence for each; nil without findings.
func (v nodesView) findingGrids(heading string, list []matrix.Finding) []Grid {
	if len(list) == 0 {
		return nil
	}
	g := Grid{Title: heading, Label: strings.ToLower(heading), Columns: []string{"metric", "path", "measured", "others", "beyond"}}
	roles := map[string]string{"sends": " out", "receives": " in"}
	for _, f := range list[:min(len(list), mostFindings)] {
		label := strings.TrimPrefix(strings.TrimPrefix(v.findingName(f), "node "), "link ")
		for _, e := range f.Evidence[:min(len(f.Evidence), mostEvidence)] {
			g.Add(label, e.Metric+roles[e.Role], string(e.Path.From), metricValue(e.Metric, e.Value), metricValue(e.Metric, e.Typical), fmt.Sprintf("%d/%d", e.Hits, e.Of))
			label = ""
		}
		if more := len(f.Evidence) - mostEvidence; more > 0 {
			g.Notes = append(g.Notes, v.findingName(f)+" differs in "+number.Counted(more, "more value")+" (-f json).")
		}
		if f.Doubt != "" {
			note := v.findingName(f) + " " + doubts[f.Doubt] + "."
			if len(f.Decide) > 0 && len(f.Nodes) == 1 {
				note += " Measure " + strings.Join(each.Of(f.Decide, mesh.Pair.String), ", ") + " (--pairs FILE)."
			}
			g.Notes = append(g.Notes, note)
		}
	}
	if more := len(list) - mostFindings; more > 0 {
		g.Notes = append(g.Notes, fmt.Sprintf("%d more are in the JSON format (-f json).", more))
	}
	return []Grid{g}
}

// shading is a matrix of nodes to draw.
type shading struct {
	title string
	// layer has the values of one metric; nil means the worst of all metrics.
	layer *matrix.Matrix
	// factor returns how many times worse the direction from node i to node j is than others, at least 1. It returns 0 if
	// the direction was not measured.
	factor func(i, j int) float64
}

// metricShading returns the matrix of one metric on one path.
func (v nodesView) metricShading(m *matrix.Matrix) shading {
	return shading{fmt.Sprintf("%s, %s, %s; others have %s", capitalized(metricTitle(m.Metric))+v.profileSuffix(m.Profile), m.Workload, m.Path, metricValue(m.Metric, m.TypicalValue())), m,
		func(i, j int) float64 { return m.Worse(i, j) }}
}

// worstShading returns a matrix in which each pair has the factor of its worst metric; false if nothing was measured.
func (v nodesView) worstShading() (shading, bool) {
	return shading{title: "How many times worse a pair is than others, by its worst metric", factor: func(i, j int) float64 {
		worst := 0.0
		for _, m := range v.Matrices {
			worst = max(worst, m.Worse(i, j))
		}
		return worst
	}}, len(v.Matrices) > 0
}

// factorMark formats a factor as one character. It is a space for 0 (no value), "·" below 1.25, "+" below 2, a digit below
// 9.5, and "#" otherwise.
func factorMark(f float64) string {
	switch {
	case f == 0:
		return " "
	case f < 1.25:
		return "·"
	case f < 2:
		return "+"
	case f < 9.5:
		return fmt.Sprintf("%.0f", f)
	}
	return "#"
}

const markNote = "From the node of the row to that of the column. · less than 1.25 times, + up to 2 times, digits are times, # 10 times and more."

// shadingGrids returns a matrix as text; nil if there are too many nodes.
func (v nodesView) shadingGrids(s shading) []Grid {
	if len(v.Nodes) > mostGridNodes {
		return nil
	}
	g := Grid{Title: s.title, Label: "from", Notes: []string{markNote}}
	for j := range v.Nodes {
		g.Columns = append(g.Columns, fmt.Sprint(j+1))
	}
	for i, n := range v.Nodes {
		cells := make([]string, len(v.Nodes))
		for j := range v.Nodes {
			cells[j] = factorMark(s.factor(i, j))
		}
		g.Add(fmt.Sprintf("%d %s", i+1, number.Truncate(number.Clean(n.Name), 14)), cells...)
	}
	return []Grid{g}
}

// shadingFigure returns a matrix as a picture. If there are too many nodes, it joins neighbours into groups and shows the
// worst pair of two groups.
func (v nodesView) shadingFigure(s shading) Figure {
	groups := min(len(v.Nodes), mostMapNodes)
	first := func(g int) int { return g * len(v.Nodes) / groups }
	f := Figure{Kind: "pairs", Heading: s.title, Wide: true}
	if s.layer != nil {
		f.Metric, f.Path, f.Workload = s.layer.Metric, s.layer.Path, s.layer.Workload
	}
	m := plot.Matrix{Title: s.title, Desc: markNote}
	for g := range groups {
		name := number.Clean(v.Nodes[first(g)].Name)
		if last := first(g+1) - 1; last > first(g) {
			name += " ... " + number.Clean(v.Nodes[last].Name)
		}
		m.Names = append(m.Names, name)
		row := make([]plot.HeatCell, groups)
		numbers := NumbersRow{Name: name}
		for h := range groups {
			worst := 0.0
			for i := first(g); i < first(g+1); i++ {
				for j := first(h); j < first(h+1); j++ {
					worst = max(worst, s.factor(i, j))
				}
			}
			if worst > 0 {
				row[h] = plot.HeatCell{Value: strings.Trim(factorMark(worst), "· "), Color: plot.Level(-shadeLevel(worst))}
			}
			numbers.Cells = append(numbers.Cells, factorMark(worst))
		}
		m.Cells = append(m.Cells, row)
		if groups <= mostGridNodes {
			f.Numbers.Rows = append(f.Numbers.Rows, numbers)
		}
	}
	if groups <= mostGridNodes {
		f.Numbers.Columns = m.Names
	}
	f.Drawing = m.Draw()
	return f
}

// shadeLevel returns the shade of a factor, from 0 for no difference to plot.Levels.
func shadeLevel(f float64) int {
	switch {
	case f < 1.25:
		return 0
	case f < 2:
		return 1
	case f < 4:
		return 2
	case f < 10:
		return 3
	}
	return plot.Levels
}

// hostComparisonGrids returns a table that compares the network of pods with that of their hosts, over the same pairs. It
// returns nil unless both were measured.
func (v nodesView) hostComparisonGrids() []Grid {
	g := Grid{Title: "Pods beside hosts, of the same pairs", Label: "metric", Columns: []string{"workload", "hosts", "pods", "factor"},
		Notes: []string{"hosts, pods: medians over pairs. factor: how many times worse a pair is between pods than between its hosts, the median of that over pairs."}}
	for _, m := range v.Matrices {
		if m.Path.From != plan.Pod || m.Rare() {
			continue
		}
		h, ok := each.First(v.Matrices, func(h *matrix.Matrix) bool {
			return h.Path == plan.ZeroPath && h.Profile == m.Profile && h.Workload == m.Workload && h.Metric == m.Metric
		})
		if !ok {
			continue
		}
		share := number.Absent
		if q := m.Over(h); !math.IsNaN(q) && h.TypicalValue() > 0 {
			share = number.Ratio(q)
		}
		g.Add(metricTitle(m.Metric), m.Workload.String()+v.profileSuffix(m.Profile), metricValue(m.Metric, h.TypicalValue()), metricValue(m.Metric, m.TypicalValue()), share)
	}
	if len(g.Labels) == 0 {
		return nil
	}
	return []Grid{g}
}

// nodeFinding is a finding as JSON.
type nodeFinding struct {
	Kind     string         `json:"kind"`
	Profile  string         `json:"profile"`
	Nodes    []string       `json:"nodes"`
	Scope    string         `json:"scope,omitempty"`
	Doubt    string         `json:"doubt,omitempty"`
	Decide   []string       `json:"decide,omitempty"`
	Planted  string         `json:"planted,omitempty"`
	Evidence []evidenceData `json:"evidence"`
}

type evidenceData struct {
	Path     string  `json:"path"`
	Workload string  `json:"workload"`
	Metric   string  `json:"metric"`
	Value    float64 `json:"value"`
	Typical  float64 `json:"typical"`
	Factor   float64 `json:"factor"`
	Limit    float64 `json:"limit"`
	Hits     int     `json:"hits"`
	Of       int     `json:"of"`
	Role     string  `json:"role,omitempty"`
}

func (v nodesView) findingData() []nodeFinding {
	return each.Of(slices.Concat(v.Findings, v.Undecided), func(f matrix.Finding) nodeFinding {
		return nodeFinding{Kind: string(f.Kind), Profile: f.Profile.String(), Nodes: f.Nodes, Scope: string(f.Scope), Doubt: string(f.Doubt),
			Decide: each.Of(f.Decide, mesh.Pair.String), Planted: strings.TrimPrefix(v.plantedText(f), " Planted: "),
			Evidence: each.Of(f.Evidence, func(e matrix.Evidence) evidenceData {
				return evidenceData{e.Path.String(), e.Workload.String(), e.Metric, e.Value, e.Typical, e.Factor, e.Limit, e.Hits, e.Of, e.Role}
			})}
	})
}

// matrixData is one matrix as JSON. Nodes has two factors for each node: how many times worse values are if the node
// sends, and if it receives.
type matrixData struct {
	Profile  string       `json:"profile"`
	Path     string       `json:"path"`
	Workload string       `json:"workload"`
	Metric   string       `json:"metric"`
	Pairs    int          `json:"pairs"`
	Typical  float64      `json:"typical"`
	Spread   float64      `json:"spread"`
	Nodes    []effectData `json:"nodes"`
}

type effectData struct {
	Name    string  `json:"name"`
	Send    float64 `json:"send"`
	Receive float64 `json:"receive"`
}

func (v nodesView) matrixData() []matrixData {
	return each.Of(v.Matrices, func(m *matrix.Matrix) matrixData {
		d := matrixData{Profile: m.Profile.String(), Path: m.Path.String(), Workload: m.Workload.String(), Metric: m.Metric, Pairs: m.Pairs(), Typical: m.TypicalValue(), Spread: m.Spread}
		for i, n := range v.Nodes {
			send, receive := m.Effects(i)
			d.Nodes = append(d.Nodes, effectData{n.Name, send, receive})
		}
		return d
	})
}
