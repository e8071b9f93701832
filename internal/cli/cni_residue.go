package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/env/kube/recipe/residue"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/finding"
)

const cniResidueLong = `List what earlier CNIs left, with its effect on the next CNI and the command that removes it. In the API these are
definitions, annotations and taints. On the nodes they are configuration, devices, chains, tables, routes, BPF programs
and pins. The nodes are inspected only with --image, an image of this program, by a privileged pod on each node.

Objects of the installed CNI are not listed. The exit code is 3 if anything is left. --remove runs the commands.`

func (p *program) cniResidueCommand() *cobra.Command {
	var a recipeArgs
	var format string
	var remove bool
	cmd := &cobra.Command{
		Use: "residue", Short: "List what earlier CNIs left on a cluster, and what removes it", Long: cniResidueLong, Args: cobra.NoArgs,
		Example: "  cnibench cni residue --image registry.example/cnibench:1\n  cnibench cni residue -f json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if remove && a.own.image == "" {
				return usageOf(cmd, errors.New("--remove needs --image, an image of this program: cleaning nodes requires a pod on each"))
			}
			i, err := p.installer(a, recipe.Options{})
			if err != nil {
				return err
			}
			s, err := i.Survey(cmd.Context())
			if err != nil {
				return err
			}
			if err := p.write(format, residueDocument(s)); err != nil {
				return err
			}
			switch {
			case len(s.Left) == 0:
				return nil
			case remove:
				return i.Sweep(cmd.Context(), s.Left)
			}
			return failed(exitWorse)
		},
	}
	locate(cmd, &a.where)
	a.own.bind(cmd, "`image` of this program, for pods that look at the nodes")
	formatFlag(cmd, &format, documentNames)
	cmd.Flags().BoolVar(&remove, "remove", false, "run the commands in the root of each node, and remove the rest through the API")
	return cmd
}

// residueDocument lists what is left as findings.
func residueDocument(s recipe.Survey) report.Document {
	section := report.Section{Heading: "Left by earlier CNIs"}
	for _, l := range s.Left {
		where := "cluster"
		if l.Node != "" {
			where = "node " + l.Node
		}
		section.Findings = append(section.Findings, finding.Finding{ID: l.Kind, Severity: finding.Doubtful, Title: "left by " + l.Owner,
			Where: where, Saw: flat(l.Name), Why: flat(l.Harm), Do: flat(l.Remove)})
	}
	if len(s.Left) == 0 {
		section.Notes = []string{"No inspected place has anything left of an earlier CNI."}
	}
	for _, u := range s.Unseen {
		section.Findings = append(section.Findings, finding.Finding{ID: "unseen", Severity: finding.Note, Title: "not inspected", Saw: flat(u)})
	}
	data := struct {
		Left   []residue.Leftover `json:"left"`
		Unseen []string           `json:"unseen"`
	}{append([]residue.Leftover{}, s.Left...), append([]string{}, s.Unseen...)}
	return report.Document{Data: data, Sections: []report.Section{section}}
}
