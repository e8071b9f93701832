// Package config reads the configuration of a cluster's network and reports what will be in force.
//
// The settings asked for and those in force often differ: charts ignore unknown keys, agents fall back to other modes,
// distributions change defaults. A comparison of CNIs then measures another dataplane than its title says.
//
//	values ─► chart ─┐
//	files, cluster ──┴─► objects ─► settings in force ─► findings, profile
//
// There is one reader of objects, for files, for what a chart renders and for what a cluster has. What a chart decides
// is known from its rendering alone: without the chart, values are judged in part. The package is pure; the caller
// renders. Whether a setting is in force on the nodes is for package detect to prove.
package config

import (
	_ "embed" // the page
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/finding"
)

// Input is one file, or one object of a cluster.
type Input struct {
	// Name is its name in reports.
	Name string
	// Text is its contents, YAML or JSON.
	Text string
	// Unlined means that the input has no lines that a user could look up, such as an object of a cluster or values on
	// the command line.
	Unlined bool
}

// Chart is a chart that the caller can render.
type Chart struct {
	// Name, Version and AppVersion are from Chart.yaml.
	Name, Version, AppVersion string
	// Values are the chart's default values.
	Values map[string]any
	// Render returns the objects that the chart renders from values, without the templates in skip. The error is the
	// chart's own validation.
	Render func(values map[string]any, skip map[string]bool) ([]Rendered, error)
}

// Known is what the caller knows in addition to the inputs. The zero value knows nothing.
type Known struct {
	// Chart renders values among the inputs; it may be nil.
	Chart *Chart
	// Version is the version of Cilium's agent, such as v1.16.5; "" means the chart's appVersion, the agent's image, or
	// the version that fits the options.
	Version string
	// Underlay is the MTU of the nodes' NICs in bytes, 0 if unknown.
	Underlay int
}

// Rendered is one object that a chart makes.
type Rendered struct {
	// Template is the chart's file that rendered it. Text is YAML or JSON.
	Template, Text string
}

func (c Chart) String() string { return "chart " + c.Name + " " + c.Version }

// Origins of a setting: given by the user, the default of a component, or forced by other settings.
const (
	Given   = "given"
	Default = "default"
	Forced  = "forced"
)

// Setting is one setting in force.
type Setting struct {
	// Component is cilium, calico, flannel, canal, kube-proxy or the distribution.
	Component string `json:"component"`
	Name      string `json:"name"`
	Value     string `json:"value"`
	// Origin is Given, Default or Forced.
	Origin string `json:"origin"`
	// By is where it was set, whose default it is, or what forces it.
	By string `json:"by"`
}

// Document is one YAML or JSON document of the inputs, as the report lists it.
type Document struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Kind string `json:"kind"`
	// NotJudged is why the document was not judged, "" if it was.
	NotJudged string `json:"notJudged,omitempty"`
}

// Measured is the profile that a configuration amounts to.
type Measured struct {
	// Profile is the profile's name, "" if none fits.
	Profile string `json:"profile,omitempty"`
	// Title is the profile's title, or a description of the settings in force.
	Title string `json:"title"`
	// But lists the differences from the profile as the lab builds it.
	But []string `json:"but,omitempty"`
}

// Report is what Check found.
type Report struct {
	Documents []Document        `json:"documents"`
	Settings  []Setting         `json:"settings"`
	Findings  []finding.Finding `json:"findings"`
	Measured  []Measured        `json:"measured"`
	// Wire describes how packets travel between nodes, if the configuration defines it: settings called Encapsulation,
	// Encryption and MTU. An encapsulation is "none", "vxlan", "geneve", "ipip" or "wireguard", or one of them "between
	// subnets".
	Wire []Setting `json:"wire,omitempty"`
	// Needs are the charts of values that were judged without their chart.
	Needs []Needed `json:"-"`
}

// Schema names the JSON format of a Report.
const Schema = "cnibench.config/v2"

// Names of settings in Report.Wire.
const (
	Encapsulation = "encapsulation"
	Encryption    = "encryption"
	MTU           = "pod MTU"
)

// RequiredMTU and RouteMTU are names of settings that follow from others.
const (
	RequiredMTU = "underlay MTU required"
	RouteMTU    = "MTU of routes to other nodes"
)

// Alarm reports whether a finding is more than a note, such as a setting that has no effect or is refused.
func (r Report) Alarm() bool { return finding.Alarm(r.Findings) }

// Inconclusive reports whether a document could not be judged.
func (r Report) Inconclusive() bool {
	return slices.ContainsFunc(r.Documents, func(d Document) bool { return d.NotJudged != "" })
}

// Check judges inputs that together configure one cluster. It fails with position.Faults, which have every mistake of every
// input, or if no input configures a network.
func Check(inputs []Input, known Known) (Report, error) {
	var faults position.Faults
	wayOut := ""
	j := &judge{faults: &faults, known: known, chart: known.Chart, Report: Report{Documents: []Document{}, Settings: []Setting{}, Findings: []finding.Finding{}, Measured: []Measured{}}}
	for _, in := range inputs {
		j.passed = nil
		before := len(j.Documents)
		if readPrintedState(j, in) {
			continue
		}
		j.documents = position.Parse(position.Source{Name: in.Name, Text: in.Text}, &faults)
		for _, n := range j.documents {
			switch s := (source{name: in.Name, unlined: in.Unlined}); {
			case n.Kind == position.Mapping && len(n.Keys) > 0:
				j.readDocument(s, n)
			case isObjectList(n):
				j.readList(s, "", n, n)
			case n.Kind != position.Mapping && n.Kind != position.Null:
				faults = append(faults, position.Fault{File: in.Name, Line: n.Line, Message: "is not a mapping of keys to values"})
				wayOut = "give YAML or JSON (kubectl get -o yaml, helm get values); or the text of cilium status or cilium config view"
			}
		}
		if len(j.Documents) == before && len(j.passed) > 0 {
			j.beside = append(j.beside, Document{File: in.Name, Kind: fewNames(j.passed) + ": not about a cluster's network"})
		}
	}
	if len(faults) > 0 {
		return Report{}, advice.With(faults, wayOut)
	}
	if len(j.Documents) == 0 && (known.Chart == nil || len(j.beside) > 0) {
		return Report{}, nothingToJudgeError(j.beside)
	}
	j.renderValues()
	j.judgeAll()
	j.judgeSilence()
	j.Documents = append(j.Documents, j.beside...)
	finding.Sort(j.Findings)
	return j.Report, nil
}

// isObjectList reports whether n is a list of objects of Kubernetes, which older versions of calicoctl write.
func isObjectList(n *position.Node) bool {
	return n.Kind == position.List && len(n.Items) > 0 && !slices.ContainsFunc(n.Items, func(i *position.Node) bool { return i.ScalarAt("kind") == "" })
}

// nothingToJudgeError returns the error that no input configures a network, with what each input has instead.
func nothingToJudgeError(beside []Document) position.Faults {
	faults := position.Faults{{Message: "nothing to judge: no document configures a cluster's network (docs/reference/config.md lists what is read)"}}
	for _, d := range beside {
		faults = append(faults, position.Fault{File: d.File, Message: "has " + d.Kind})
	}
	return faults
}

// fewNames lists up to five names and counts the rest.
func fewNames(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// judge collects a report.
type judge struct {
	Report
	objects
	others
	faults *position.Faults
	known  Known
	chart  *Chart
	// given are the values of the chart.
	given []layer
	// documents are the documents of the current input.
	documents []*position.Node
	// firsts has the latest object of each kind that a cluster has only once.
	firsts map[string]first
	// passed are the objects of the current input that do not configure the network. beside are the inputs that have only such
	// objects.
	passed []string
	beside []Document
}

// judgeAll judges every configured component. The order is the report's.
func (j *judge) judgeAll() {
	setChainedTo(j)
	j.judgeDistribution()
	j.judgeTalos()
	if j.agent != nil {
		j.judgeCilium()
	}
	j.judgeOptions()
	if j.installation != nil || j.felix != nil || len(j.pools) > 0 {
		j.judgeCalico()
	}
	if j.netconf != nil {
		j.judgeFlannel()
	}
	judgeSettled(j)
	j.judgePlugin()
	j.judgeUnread()
	judgePolicies(j)
	j.judgeKubeProxy()
	for _, g := range j.limits {
		j.addFinding("cpu-limit", g, "%s: limits.cpu: %s", g.path, g.text)
	}
}

// markUnjudged marks documents as not judged, by their index in the report.
func (j *judge) markUnjudged(why string, documents ...int) {
	for _, i := range documents {
		j.Documents[i].NotJudged = why
	}
}

// documentsOf returns the indices in the report of the documents of a kind.
func documentsOf(kind string, documents []Document) []int {
	var places []int
	for i, d := range documents {
		if d.Kind == kind || strings.HasPrefix(d.Kind, kind+" ") {
			places = append(places, i)
		}
	}
	return places
}

// addFinding adds a finding of the rule called id. Its place is where v was given; a default has no place.
func (j *judge) addFinding(id string, v value, format string, args ...any) {
	where := ""
	if v.origin == Given {
		where = v.by
	}
	j.Findings = append(j.Findings, rules().Of(id).Found(where, fmt.Sprintf(format, args...)))
}

// showSetting adds a row to the table of settings, unless the row is there already.
func (j *judge) showSetting(component, name, text, origin, by string) {
	if s := (Setting{component, name, text, origin, by}); !slices.Contains(j.Settings, s) {
		j.Settings = append(j.Settings, s)
	}
}

// showValues adds the settings that are given or have a default.
func (j *judge) showValues(component string, v *values, paths ...string) {
	for _, p := range paths {
		if g := v.at(p); g.text != "" {
			j.showSetting(component, p, g.text, g.origin, g.by)
		}
	}
}

// showGiven adds the settings that are given.
func (j *judge) showGiven(component string, v *values, paths ...string) {
	for _, p := range paths {
		if v.at(p).isGiven() {
			j.showValues(component, v, p)
		}
	}
}

// addWire adds to Wire how packets travel between nodes. WireGuard counts as the encapsulation if there is no other. by
// decides the encapsulation, how the encryption.
func (j *judge) addWire(component, encapsulation string, by value, encryption string, how value) {
	if encryption == "wireguard" && encapsulation == "none" {
		encapsulation, by = encryption, how
	}
	if encapsulation != "" {
		j.Wire = append(j.Wire, Setting{component, Encapsulation, encapsulation, by.origin, by.by})
	}
	j.Wire = append(j.Wire, Setting{component, Encryption, encryption, how.origin, how.by})
}

// addWireMTU adds the MTU of pods to Wire, if it is given and not 0.
func (j *judge) addWireMTU(component string, g value) {
	if g.isGiven() && g.text != "" && g.text != "0" {
		j.Wire = append(j.Wire, Setting{component, MTU, g.text, g.origin, g.by})
	}
}

// addMeasured adds the profile that the configuration amounts to.
func (j *judge) addMeasured(name string, but ...string) {
	p, _ := profile.Lookup(name) // a test looks up every name that the readers use
	j.Measured = append(j.Measured, Measured{Profile: name, Title: p.Title, But: but})
}

// addUnmatched adds a configuration that no profile fits. title describes it.
func (j *judge) addUnmatched(title string, but ...string) {
	j.Measured = append(j.Measured, Measured{Title: title, But: but})
}

func joinReasons(list []string) string { return strings.Join(list, "; ") }

// page is docs/reference/config.md, which describes each rule.
//
//go:generate cp page.md ../../../docs/reference/config.md
//go:embed page.md
var page string

var rules = sync.OnceValue(func() finding.Rules { return finding.ParseRules(page) })

// Rules returns all rules in the order of the documentation.
func Rules() []finding.Rule { return rules() }
