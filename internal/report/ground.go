package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/judge/check"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// nicLabel returns the NIC model for a workload's bulk data: "ideal NIC" or "no NIC offload". It returns "" for workloads
// without bulk data and outside the lab. It also returns "" if profiles have different models: their names state these.
func (b *builder) nicLabel(w plan.Workload) string {
	models := each.Once(each.Of(b.analysis.Profiles, func(v plan.Variant) plan.NIC { return b.analysis.NIC(plan.Case{Profile: v, Workload: w}) }))
	if len(models) != 1 {
		return ""
	}
	return models[0].Label()
}

// titleWithNIC adds the NIC model to a workload's title, if the workload has one.
func (b *builder) titleWithNIC(title string, w plan.Workload) string {
	if label := b.nicLabel(w); label != "" {
		title += ", " + label
	}
	return title
}

// Ground returns up to two lines. The first is about the environment, the NIC model and the machine. The second names
// functions that the best profiles lack.
func (s Scene) Ground() []string {
	lines := []string{s.Lacks}
	if s.Model != "" {
		lines = []string{s.Model + " Machine: " + s.Machine + ".", s.Lacks}
	}
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// modelText describes whether a lab or a cluster was measured, and under which NIC model; "" for an imported result.
func (b *builder) modelText() string {
	nic := plan.NIC(b.header.Facts[facts.NIC])
	switch {
	case b.header.Origin != "":
		return ""
	case b.header.Plan.Beside():
		return "Lab model, NIC model " + string(b.header.Plan.Lab.NIC) + ", and real cluster (names with @)."
	case !b.inLab():
		return "Real cluster."
	case nic.Label() == "":
		return "Lab model."
	}
	text := "Lab model, NIC model " + string(nic)
	if labels := each.Of(b.analysis.Workloads, b.nicLabel); nic != plan.NICWire && slices.Contains(labels, plan.NICWire.Label()) {
		text += "; bulk with " + plan.NICWire.Label() + " beside it"
	}
	return text + "."
}

// machineText describes the machine: CPU model, number of CPUs, kernel.
func (b *builder) machineText() string {
	f := b.header.Facts
	parts := []string{number.Clean(cmp.Or(f[facts.CPUModel], "unknown"))}
	if f[facts.CPUs] != "" {
		parts = append(parts, number.Clean(f[facts.CPUs])+" CPUs")
	}
	if f[facts.Kernel] != "" {
		parts = append(parts, "kernel "+number.Clean(f[facts.Kernel]))
	}
	return strings.Join(parts, ", ")
}

// implausibleText names the rules of package check that raised an alarm about the result; "" if none did.
func implausibleText(r check.Report) string {
	alarms := each.Where(r.Findings, func(f finding.Finding) bool { return f.Severity.Alarm() })
	rules := each.Once(each.Of(alarms, func(f finding.Finding) string { return f.ID }))
	if len(rules) == 0 {
		return ""
	}
	return "Not plausible by " + number.Counted(len(rules), "rule") + ", " + joinNames(rules) + ": `cnibench check` says which numbers, and why."
}

// missingFunctionsText describes which of profile.Expected the best dataplanes of the needs lack; "" if they lack none.
func missingFunctionsText(needs []Need) string {
	var best []plan.Variant
	for _, n := range needs {
		if v := n.Choice[0].Cell.Profile; !n.Bounds && isDataplane(v) {
			best = append(best, v)
		}
	}
	var said []string
	for _, v := range each.Once(best) {
		p, known := profile.Lookup(v.Profile())
		if !known {
			continue
		}
		missing := each.Where(profile.Expected, func(f profile.Function) bool { return f.By(p) == "" })
		if len(missing) > 0 {
			said = append(said, "without "+joinNames(each.Of(missing, func(f profile.Function) string { return f.Name }))+": "+number.Clean(v.String()))
		}
	}
	if len(said) == 0 {
		return ""
	}
	return "Best, but " + strings.Join(said, "; ") + "."
}
