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

type checkArgs struct {
	format string
	only   []string
	list   bool
	config configArgs
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

func (p *program) checkCommand() *cobra.Command {
	var a checkArgs
	cmd := &cobra.Command{
		Use:     "check [FILE...]",
		Short:   "Find impossible or doubtful numbers in results",
		Long:    checkLong,
		Example: "  cnibench check result.jsonl\n  cnibench check --config examples/configs/calico-ebpf-dsr.yaml",
		RunE: func(cmd *cobra.Command, files []string) error {
			return p.check(cmd, files, a)
		},
	}
	f := cmd.Flags()
	formatFlag(cmd, &a.format, documentNames)
	f.StringSliceVar(&a.only, "only", nil, "`ids` of the rules to ask instead of all")
	f.BoolVar(&a.list, "list", false, "print the rules and end")
	a.config.declare(cmd)
	complete(cmd, "only", func() []string { return each.Of(check.Rules(), func(r finding.Rule) string { return r.ID }) })
	return cmd
}

func (p *program) check(cmd *cobra.Command, files []string, a checkArgs) error {
	if a.config.asked(cmd) {
		return p.checkConfig(cmd, files, a)
	}
	if err := check.Known(a.only); err != nil {
		return usage(advice.With(err, "cnibench check --list names the rules"))
	}
	if a.list {
		return p.listRules(check.Rules())
	}
	if len(files) == 0 {
		files = []string{DefaultResult}
	}
	reports, unread := readAll(files, func(name string) (check.Report, error) { return p.checkFile(name, a.only) })
	if len(reports) > 0 {
		if err := p.write(a.format, report.BuildCheck(reports)); err != nil {
			return err
		}
	}
	switch {
	case unread != nil:
		return usage(unread)
	case slices.ContainsFunc(reports, check.Report.Alarm):
		return failed(exitWorse)
	}
	return nil
}

func (p *program) checkFile(name string, only []string) (check.Report, error) {
	s, err := p.open(name)
	if err != nil {
		return check.Report{}, err
	}
	v := check.New(s.Header)
	err = p.each(s, true, func(rec *result.Record) error { return v.Add(*rec) })
	if err != nil {
		return check.Report{}, err
	}
	return v.Report(called(name), only)
}

// listRules prints what each rule finds.
func (p *program) listRules(rules []finding.Rule) error {
	for _, r := range rules {
		if _, err := fmt.Fprintf(p.stdout, "%-22s  %-10s  %s\n", r.ID, r.Severity, r.Title); err != nil {
			return err
		}
	}
	return nil
}
