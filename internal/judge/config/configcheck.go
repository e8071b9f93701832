// Package config reads the configuration of a cluster's network and says what will be in force: Helm values,
// HelmChartConfig, Installation, kube-proxy's configuration and what else classify.go names.
//
// What is asked for and what is in force differ more often than people think: charts ignore keys that they do not know,
// agents fall back to other modes and say so in a line of a log, distributions change defaults. A comparison of CNIs
// then measures something else than its title says. Check therefore answers three questions: which settings are in
// force and where each comes from, which of those given do nothing or something else, and which dataplane profile of
// ours this amounts to.
//
//	inputs ─► documents ─► setup (what each document is) ─► per component: settings, findings ─► profile
//
// The package is pure: it opens no files and asks no cluster. That what is configured is also in force on the nodes is
// for others to see. Each rule names its source and, where that matters, the version that it is about; what no source
// says is not said here either.
package config

import (
	"fmt"
	"slices"
	"strings"
)

// MaxInput bounds one input in bytes.
const MaxInput = 1 << 20

// Input is one file.
type Input struct {
	// Name is what reports and faults call it.
	Name string
	// Text is its contents, YAML or JSON.
	Text string
}

// Options say what the inputs do not.
type Options struct {
	// As is what documents without a kind are values or configuration of: one of Kinds, "" to tell by their keys.
	As string
	// Sets are --set expressions of Helm, applied after the inputs to the values of As.
	Sets []string
}

// Origins of a setting.
const (
	Given   = "given"
	Default = "default"
	Forced  = "forced"
)

// Setting is one setting as it is in force.
type Setting struct {
	// Component is whose it is: cilium, calico, flannel, canal, kube-proxy.
	Component string `json:"component"`
	Name      string `json:"name"`
	Value     string `json:"value"`
	// Origin is Given, Default or Forced.
	Origin string `json:"origin"`
	// By says where it was given, whose default it is, or what forces it.
	By string `json:"by"`
}

// Finding is one thing that a rule saw.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Where is file:line, or the name of a --set, "" where nothing that was given is at fault.
	Where string `json:"where,omitempty"`
	Saw   string `json:"saw"`
	Why   string `json:"why"`
	Do    string `json:"do"`
	// Source is where the rule's knowledge is from, with the version.
	Source string `json:"source"`
}

// Document is what one document was taken for.
type Document struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Kind string `json:"kind"`
}

// Measured is the profile that a configuration amounts to.
type Measured struct {
	// Profile is its name, "" if there is none that fits.
	Profile string `json:"profile,omitempty"`
	// Title is the profile's name for people; with no profile, what is in force in words.
	Title string `json:"title"`
	// But lists in what the configuration differs from the profile as the lab builds it.
	But []string `json:"but,omitempty"`
}

// Report is what Check found.
type Report struct {
	Documents []Document `json:"documents"`
	Settings  []Setting  `json:"settings"`
	Findings  []Finding  `json:"findings"`
	Measured  []Measured `json:"measured"`
}

// Alarm reports whether something given has no effect, is refused, or is otherwise than asked.
func (r Report) Alarm() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity > Note })
}

// Count returns how many findings have the severity.
func (r Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Check judges inputs that together configure one cluster. The error lists every fault of all of them, with its line.
func Check(inputs []Input, o Options) (Report, error) {
	var faults Faults
	if o.As != "" && !slices.Contains(Kinds, o.As) {
		return Report{}, fmt.Errorf("unknown kind %q: want %s", o.As, strings.Join(Kinds, ", "))
	}
	s := newSetup()
	s.onRKE2 = strings.HasPrefix(o.As, "rke2")
	parsed := make([][]*tree, len(inputs))
	for i, in := range inputs {
		parsed[i] = parse(source{name: in.Name, text: in.Text}, &faults)
		for _, t := range parsed[i] {
			s.scan(t)
		}
	}
	docs := []Document{}
	for i, in := range inputs {
		for _, t := range parsed[i] {
			if d, ok := s.add(in.Name, t, o.As, &faults); ok {
				docs = append(docs, d)
			}
		}
	}
	s.addSets(o, &faults)
	if len(faults) > 0 {
		return Report{}, faults
	}
	if s.empty() {
		return Report{}, Faults{{Message: "nothing to judge: no document that configures a cluster's network"}}
	}
	j := &judge{setup: s, Report: Report{Documents: docs, Settings: []Setting{}, Findings: []Finding{}, Measured: []Measured{}}}
	j.all()
	return j.Report, nil
}

// judge collects a report.
type judge struct {
	*setup
	Report
}

// all asks every component that is configured. The order is that of the report.
func (j *judge) all() {
	j.distribution()
	if j.cilium != nil || j.agent != nil {
		j.judgeCilium()
	}
	if j.installation != nil || j.felix != nil || len(j.pools) > 0 {
		j.judgeCalico()
	}
	if j.canal != nil {
		j.judgeCanal()
	}
	if j.flannel != nil || j.netconf != nil || j.k3s != nil {
		j.judgeFlannel()
	}
	j.judgeKubeProxy()
	j.judgePods()
	slices.SortStableFunc(j.Findings, func(f, g Finding) int { return int(g.Severity - f.Severity) })
}

// find adds what the rule called id saw at v; the zero value is nowhere.
func (j *judge) find(id string, v value, format string, args ...any) {
	r := ruleCalled(id)
	j.Findings = append(j.Findings, Finding{
		Rule: id, Severity: r.Severity, Where: v.where(), Saw: fmt.Sprintf(format, args...), Why: r.Why, Do: r.Do, Source: r.Source,
	})
}

// show adds a row to the table of settings.
func (j *judge) show(component, name, text, origin, by string) {
	j.Settings = append(j.Settings, Setting{component, name, text, origin, by})
}

// showGiven adds a setting with the value that is given for path, or its default.
func (j *judge) showGiven(component string, v *values, path string) {
	g := v.at(path)
	if g.origin == Given {
		j.show(component, path, g.text, Given, g.where())
		return
	}
	if g.text != "" {
		j.show(component, path, g.text, Default, v.defaultOf)
	}
}
