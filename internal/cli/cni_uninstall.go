package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/env/kube/recipe/residue"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/finding"
)

const cniUninstallLong = `Remove exactly what "cnibench cni install" applied for a profile, the last object first. Then list what CNIs left, with its
effect on the next CNI and the command that removes it. Without a profile it only lists. In the API these are definitions,
annotations and taints. On the nodes they are configuration, devices, chains, tables, routes, BPF programs and pins, which
deleting a CNI does not remove. The nodes are inspected only with --image, by a privileged pod on each node.

Objects of the installed CNI are not listed. The exit code is 3 if anything is left. --remove runs the commands
until those CNIs have left nothing.`

func cniUninstallCommand(p *program) *cobra.Command {
	a := installation{program: p}
	var format string
	var remove bool
	cmd := &cobra.Command{
		Use: "uninstall [PROFILE]", Short: "Uninstall what install applied, and list what CNIs left", Long: cniUninstallLong, Args: newArgumentCheck(0, 1, "one profile or none"),
		ValidArgsFunction: recipeNames, Example: "  cnibench cni uninstall flannel-vxlan\n  cnibench cni uninstall --image registry.example/cnibench:1 --remove",
		RunE: func(cmd *cobra.Command, args []string) error {
			faults := a.optionFaults()
			if remove && a.own.image == "" {
				faults = append(faults, errors.New("--remove needs --image, an image of this program: cleaning nodes requires a pod on each"))
			}
			if _, err := a.lookUpRecipe(args, faults...); err != nil {
				return err
			}
			i, err := a.newInstaller()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if err := i.Uninstall(cmd.Context(), args[0]); err != nil {
					return recipeError(err)
				}
			}
			s, err := i.Survey(cmd.Context())
			if err != nil {
				return err
			}
			if err := p.writeDocument(format, residueDocument(s)); err != nil {
				return err
			}
			switch {
			case len(s.Left) == 0:
				return nil
			case remove:
				return i.Sweep(cmd.Context(), s.Left)
			}
			return quietError(exitWorse)
		},
	}
	declareLocationFlags(cmd, &a.where)
	a.own.declareFlags(cmd, "`image` of this program, for pods that look at the nodes")
	declareFormatFlag(cmd, &format, documentNames)
	f := cmd.Flags()
	f.DurationVar(&a.options.Timeout, "timeout", 10*time.Minute, "bound of each wait")
	f.BoolVar(&remove, "remove", false, "run the commands in the root of each node, and remove the rest through the API")
	return cmd
}

// residueDocument returns the report of a survey: a finding for each thing that a CNI left, and for each place that was not
// inspected.
func residueDocument(s recipe.Survey) report.Document {
	section := report.Section{Heading: "Left by earlier CNIs"}
	for _, l := range s.Left {
		where := "cluster"
		if l.Node != "" {
			where = "node " + l.Node
		}
		section.Findings = append(section.Findings, finding.Finding{ID: l.Kind, Severity: finding.Doubtful, Title: "left by " + l.Owner,
			Where: where, Saw: oneLine(l.Name), Why: oneLine(l.Harm), Do: oneLine(l.Remove)})
	}
	if len(s.Left) == 0 {
		section.Notes = []string{"No inspected place has anything left of an earlier CNI."}
	}
	for _, u := range s.Unseen {
		section.Findings = append(section.Findings, finding.Finding{ID: "unseen", Severity: finding.Note, Title: "not inspected", Saw: oneLine(u)})
	}
	data := struct {
		Left   []residue.Leftover `json:"left"`
		Unseen []string           `json:"unseen"`
	}{append([]residue.Leftover{}, s.Left...), append([]string{}, s.Unseen...)}
	return report.Document{Data: data, Sections: []report.Section{section}}
}
