package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/probe"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// idleTime is how long the load of other processes is measured.
const idleTime = 300 * time.Millisecond

// doctorSchema names the JSON format of doctor.
const doctorSchema = "cnibench.doctor/v1"

// machine is the JSON document of doctor.
type machine struct {
	Schema     string        `json:"schema"`
	Features   []feature     `json:"features"`
	Profiles   []raisability `json:"profiles"`
	Conditions facts.Facts   `json:"conditions"`
}

type feature struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
	About   string `json:"about"`
	Missing string `json:"missing,omitempty"`
	WayOut  string `json:"way_out,omitempty"`
}

// raisability says of a profile whether the lab can raise it on this machine, and which features are missing for it.
type raisability struct {
	Name    string   `json:"name"`
	Able    bool     `json:"able"`
	Title   string   `json:"title"`
	Missing []string `json:"missing,omitempty"`
}

func reportMachine(ctx context.Context, p *program, format string) error {
	found, err := probe.Check(ctx)
	if err != nil {
		return err
	}
	conditions, err := probe.Collect(ctx, probe.Collection{Idle: idleTime})
	if err != nil {
		return err
	}
	conditions[facts.Version] = buildVersion()
	m := newMachine(found, conditions)
	if err := p.writeDocument(format, m.document()); err != nil {
		return err
	}
	if !slices.ContainsFunc(m.Profiles, func(r raisability) bool { return r.Able }) {
		return advice.With(errors.New("no profile can be raised here"), "run as root, or in a user namespace: unshare -Urnm cnibench doctor; else get the missing features above")
	}
	return nil
}

// newMachine returns the document of doctor: the findings, and for each profile whether they allow the lab to raise it.
func newMachine(found []probe.Finding, conditions facts.Facts) machine {
	m := machine{Schema: doctorSchema, Conditions: conditions,
		Features: each.Of(found, func(f probe.Finding) feature {
			return feature{f.Feature, f.Outcome.String(), f.About, f.Missing, f.WayOut}
		})}
	for _, q := range profile.All() {
		lacks := missingFeatures(q.Needs, found)
		m.Profiles = append(m.Profiles, raisability{q.Name, len(lacks) == 0, q.Title, lacks})
	}
	return m
}

func (m machine) document() report.Document {
	features := report.Grid{Label: "feature", Columns: []string{"", ""}, Prose: true}
	for _, f := range m.Features {
		text := f.About
		if f.Missing != "" {
			text += ": " + f.Missing
		}
		if f.WayOut != "" {
			text += " (way out: " + f.WayOut + ")"
		}
		features.Add(f.Name, f.Outcome, oneLine(text))
	}
	profiles := report.Grid{Label: "profile", Columns: []string{"", ""}, Prose: true}
	for _, r := range m.Profiles {
		if r.Able {
			profiles.Add(r.Name, "yes", r.Title)
		} else {
			profiles.Add(r.Name, "no", "missing: "+strings.Join(r.Missing, ", "))
		}
	}
	conditions := report.Section{Heading: "Conditions",
		Items: each.Of(m.Conditions.Names(), func(name string) report.Item { return report.Item{Name: name, Text: oneLine(m.Conditions[name])} })}
	return report.Document{Data: m, Sections: []report.Section{
		{Heading: "Features", Grids: []report.Grid{features}}, {Heading: "Profiles", Grids: []report.Grid{profiles}}, conditions,
	}}
}

// missingFeatures returns the needs that are missing, and netns if that is missing. It does not list a feature whose
// presence is unknown: raising the profile will show it.
func missingFeatures(needs []string, findings []probe.Finding) []string {
	var lacks []string
	for _, f := range findings {
		if f.Outcome == probe.No && (f.Feature == "netns" || slices.Contains(needs, f.Feature)) {
			lacks = append(lacks, f.Feature)
		}
	}
	return lacks
}
