package detect

import (
	"cmp"
	"strings"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// Finding is a verdict with its proofs.
type Finding struct {
	Verdict
	Proofs []Proof `json:"proofs,omitempty"`
}

// Document returns the finding as a report with a table of the verdict, of the settings and of the proofs.
func (f Finding) Document() report.Document {
	s := report.Section{Heading: "Dataplane", Grids: []report.Grid{f.verdictGrid()}}
	if len(f.Settings) > 0 {
		g := report.Grid{Title: "Settings", Label: "Setting", Columns: []string{"Asked", "In force", "Source"}, Prose: true}
		for _, x := range f.Settings {
			source := x.AskedBy
			if x.SeenBy != "" {
				source = strings.TrimPrefix(source+"; seen: "+x.SeenBy, "; ")
			}
			addRow(&g, x.Component+" "+x.Name, x.Asked, x.InForce, source)
		}
		s.Grids = append(s.Grids, g)
	}
	if len(f.Proofs) > 0 {
		g := report.Grid{Title: "Proofs", Label: "Proof", Columns: []string{"Seen", "Result"}, Prose: true}
		for _, x := range f.Proofs {
			result := x.Result.String()
			if x.Result != OK && x.Claimed != "" {
				result += ": " + x.Claimed + " is claimed"
			}
			addRow(&g, strings.TrimSuffix(x.What+", "+x.Where, ", "), x.Seen, strings.TrimSuffix(result+": "+x.Why, ": "))
		}
		s.Grids = append(s.Grids, g)
	}
	for _, text := range f.Doubts {
		s.Findings = append(s.Findings, finding.Finding{ID: "doubt", Severity: finding.Doubtful, Title: "speaks against the verdict", Saw: number.Clean(text)})
	}
	for _, text := range f.Unproven {
		s.Findings = append(s.Findings, finding.Finding{ID: "unproven", Severity: finding.Note, Title: "not seen", Saw: number.Clean(text)})
	}
	return report.Document{Data: f, Sections: []report.Section{s}}
}

// addRow adds a row called label to g. It replaces an empty cell by a dash.
func addRow(g *report.Grid, label string, cells ...string) {
	for i, c := range cells {
		cells[i] = cmp.Or(number.Clean(c), "-")
	}
	g.Add(number.Clean(label), cells...)
}

// verdictGrid returns the table of the verdict's main values.
func (f Finding) verdictGrid() report.Grid {
	v := f.Verdict
	g := report.Grid{Label: "What", Columns: []string{"Verdict", "Source"}, Prose: true}
	addRow(&g, "CNI", strings.TrimSpace(cmp.Or(v.CNI, "unknown")+" "+v.Version), v.Source)
	addRow(&g, "profile", strings.TrimSuffix(cmp.Or(v.Profile, "none")+": "+strings.Join(append([]string{v.Title}, v.But...), "; but "), ": "), "")
	addRow(&g, "Kubernetes", strings.TrimSpace(cmp.Or(v.Kubernetes, "unknown")+" "+v.Distribution), "")
	proxy := map[string]string{Yes: "mode " + cmp.Or(v.KubeProxy.Mode, "unknown"), no: "does not run", Unknown: "unknown"}[v.KubeProxy.Runs]
	if v.KubeProxy.Runs == Unknown && v.KubeProxy.Mode != "" {
		proxy = "unknown; its rules are of mode " + v.KubeProxy.Mode
	}
	addRow(&g, "kube-proxy", strings.TrimSpace(proxy+" "+v.KubeProxy.Version), v.KubeProxy.Source)
	for _, c := range []struct {
		name  string
		claim configClaim
	}{{"MTU of pods", v.MTU}, {"encapsulation", v.Encapsulation}, {"encryption", v.Encryption}} {
		addRow(&g, c.name, cmp.Or(c.claim.Value, "unknown"), c.claim.Source)
	}
	return g
}
