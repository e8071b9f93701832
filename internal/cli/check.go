package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/judge/check"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/finding"
)

// checking is one invocation of check.
type checking struct {
	*program
	format string
	only   []string
	list   bool
	// config is --config: the files are the configuration of a cluster. The fields below are flags that require --config.
	config   bool
	chart    string
	sets     []string
	version  string
	underlay int
}

const checkLong = `Check whether results can be true: results of cnibench, outputs of other tools, and published numbers.

Each finding shows the evidence, the reason and what to do (--list names all rules). It is impossible (it cannot have been
measured as stated), doubtful (the conclusion is not proven) or a note.

Exit codes:
  0  no finding, or notes only
  2  a file cannot be read
  3  an impossible or doubtful finding

With --config the files are the configuration of one cluster's network: Helm values, Kubernetes objects,
files of RKE2, K3s, kind, Talos and flannel (docs/reference/config.md). check shows the settings in force, the settings without
effect, and the dataplane profile. The exit code is 3 if a setting has no effect, is refused, or is in force in another form.
It is 4 if a document could not be judged: no rule reads its CNI, or values need their chart.

` + inputs

func checkCommand(p *program) *cobra.Command {
	a := checking{program: p}
	cmd := &cobra.Command{
		Use:     "check [FILE...]",
		Short:   "Find impossible or doubtful numbers in results",
		Long:    checkLong,
		Example: "  cnibench check result.jsonl\n  cnibench check --config examples/configs/calico-ebpf-dsr.yaml",
		RunE:    a.run,
	}
	f := cmd.Flags()
	declareFormatFlag(cmd, &a.format, documentNames)
	f.StringSliceVar(&a.only, "only", nil, "`ids` of the rules to ask instead of all")
	f.BoolVar(&a.list, "list", false, "print the rules and end")
	a.declareConfigFlags(cmd)
	completeFlag(cmd, "only", func() []string { return each.Of(check.Rules(), func(r finding.Rule) string { return r.ID }) })
	return cmd
}

func (a *checking) run(cmd *cobra.Command, files []string) error {
	if a.config || slices.ContainsFunc(configFlags, cmd.Flags().Changed) {
		return a.checkConfig(cmd, files)
	}
	if err := check.Known(a.only); err != nil {
		return usageError(advice.With(err, "cnibench check --list names the rules"))
	}
	if a.list {
		return a.printRules(check.Rules())
	}
	if len(files) == 0 {
		files = []string{DefaultResult}
	}
	reports, unread := readAll(files, a.checkFile)
	if len(reports) > 0 {
		if err := a.writeDocument(a.format, report.BuildCheck(reports)); err != nil {
			return err
		}
	}
	switch {
	case unread != nil:
		return usageError(unread)
	case slices.ContainsFunc(reports, check.Report.Alarm):
		return quietError(exitWorse)
	}
	return nil
}

func (a *checking) checkFile(name string) (check.Report, error) {
	s, err := a.openResult(name)
	if err != nil {
		return check.Report{}, err
	}
	v := check.New(s.Header)
	err = a.forEachRecord(s, true, func(rec *result.Record) error { return v.Add(*rec) })
	if err != nil {
		return check.Report{}, err
	}
	return v.Report(displayName(name), a.only)
}

// printRules prints the id, severity and title of each rule.
func (a *checking) printRules(rules []finding.Rule) error {
	for _, r := range rules {
		if _, err := fmt.Fprintf(a.stdout, "%-22s  %-10s  %s\n", r.ID, r.Severity, r.Title); err != nil {
			return err
		}
	}
	return nil
}
