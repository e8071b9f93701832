package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/report/schema"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// listings are the subcommands of list that print a table or list of names.
var listings = []struct {
	noun, short, more string
	write             func(io.Writer) error
}{
	{"profiles", "CNI dataplanes with their settings", realCluster, writeProfiles},
	{"cnis", "the CNIs that are recognised on clusters", "", writeCNIs},
	{"paths", "from where to where traffic can go", "", writePaths},
	{"workloads", "what can be sent, with its options", "", writeWorkloads},
	{"metrics", "what is reported", "", writeMetrics},
}

// realCluster explains the last column of the profile list.
const realCluster = `

REAL CLUSTER is how much CPU time a real cluster needed beyond the lab's model: the
median of the cases, and the farthest one. A dash: it was never compared.
docs/results/fidelity.md has each case.`

func listCommand() *cobra.Command {
	list := addSubcommands(&cobra.Command{
		Use: "list", Short: "List profiles, recipes, CNIs, paths, workloads, metrics, schemas",
		Example: "  cnibench list profiles\n  cnibench list metrics",
	})
	for _, l := range listings {
		list.AddCommand(&cobra.Command{
			Use: l.noun, Short: "List " + l.short, Long: "List " + l.short + "." + l.more, Example: "  cnibench list " + l.noun + "\n  cnibench list " + l.noun + " | less", Args: takesNone,
			RunE: func(cmd *cobra.Command, _ []string) error { return l.write(cmd.OutOrStdout()) },
		})
	}
	list.AddCommand(recipesCommand(), &cobra.Command{
		Use: "schema plan|profile|result|report", Short: "Print the JSON Schema of a file format",
		Long: `Print a JSON Schema (draft 2020-12): of plans, profile files, result lines, or report -f json.
Editors complete and check a plan file whose first line names the schema:

  # yaml-language-server: $schema=plan.json`,
		Example: "  cnibench list schema plan > plan.json\n  cnibench list schema report",
		Args:    newArgumentCheck(1, 1, "one of "+strings.Join(schema.Names, ", ")), ValidArgs: schema.Names,
		RunE: func(cmd *cobra.Command, args []string) error {
			return commandUsageError(cmd, schema.Write(cmd.OutOrStdout(), args[0]))
		},
	})
	return list
}

func recipesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "recipes", Short: "List how to install each profile on clusters, and what it needs", Args: takesNone,
		Example: "  cnibench list recipes\n  cnibench list recipes | grep calico",
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := recipe.All()
			if err != nil {
				return err
			}
			return writeRecipes(cmd.OutOrStdout(), all)
		},
	}
}

// listWidth is the width of a list in columns of the terminal.
const listWidth = 80

// listed is a row of a list: its cells, and the text below them.
type listed struct {
	cells []string
	below string
}

// writeList writes rows under their titles, and each row's text below it, wrapped at listWidth.
func writeList(out io.Writer, titles []string, rows []listed) error {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	all := append([]listed{{cells: titles}}, rows...)
	for _, r := range all {
		fmt.Fprintln(w, strings.Join(r.cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for line := range strings.Lines(table.String()) {
		row := all[0]
		all = all[1:]
		line = strings.TrimRight(line, " \n")
		if last := row.cells[len(row.cells)-1]; number.Width(line) > listWidth {
			line = strings.TrimSuffix(line, last)
			line = strings.Join(number.Hang(line, strings.Repeat(" ", number.Width(line)), last, listWidth), "\n")
		}
		b.WriteString(line + "\n")
		if row.below != "" {
			b.WriteString(strings.Join(number.Hang("    ", "    ", row.below, listWidth), "\n") + "\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// writeRecipes writes a line for each way to install a profile, and below it what the profile needs.
func writeRecipes(out io.Writer, all []recipe.Recipe) error {
	var rows []listed
	for _, r := range all {
		for n, v := range r.Variants {
			name := ""
			if n == 0 {
				name = r.Profile
			}
			rows = append(rows, listed{cells: []string{name, v.Name, strings.Join(r.Versions(v), ", ")}})
		}
		rows[len(rows)-1].below = "needs: " + strings.Join(r.Conditions(), "; ")
	}
	return writeList(out, []string{"PROFILE", "FOR", "INSTALLS"}, rows)
}

// columns are the functions of a CNI that have a column in the list of profiles. The text below a profile names its other
// functions.
var columns = []string{"Services", "NetworkPolicy"}

func writeProfiles(out io.Writer) error {
	var rows []listed
	for _, q := range profile.All() {
		row := listed{[]string{q.Name, q.Encapsulation, fmt.Sprint(q.PodMTU())}, q.Title + ": " + q.Summary}
		if q.Model != "" {
			row.below += " (" + q.Model + ")"
		}
		for _, f := range profile.Functions {
			by := cmp.Or(f.By(q), "none")
			switch {
			case slices.Contains(columns, f.Name):
				row.cells = append(row.cells, by)
			case by == "none" && f.Name == "IPv6":
				row.below += "; no IPv6"
			case by != "none" && by != "yes":
				row.below += "; " + f.Name + ": " + by
			}
		}
		if len(q.DefaultOn) > 0 {
			row.below += "; default on " + strings.Join(q.DefaultOn, ", ")
		}
		held := "–"
		if q.Fidelity != nil {
			held = fmt.Sprintf("%+.0f (%+.0f) %%", 100*q.Fidelity.All.Distance, 100*q.Fidelity.All.Farthest)
		}
		row.cells = append(row.cells, held)
		rows = append(rows, row)
	}
	return writeList(out, slices.Concat([]string{"NAME", "TUNNEL", "MTU"}, each.Of(columns, strings.ToUpper), []string{"REAL CLUSTER"}), rows)
}

func writeCNIs(out io.Writer) error {
	var rows []listed
	for _, c := range profile.CNIs() {
		where := "lab and clusters"
		_, named := profile.Lookup(c.Name)
		p, described := profile.OfCNI(c.Name)
		switch {
		case named:
		case described:
			where = "lab (" + p.Name + ") and clusters"
		case c.Family == "":
			where = "clusters: run --env kubernetes"
		}
		rows = append(rows, listed{cells: []string{c.Name, where, strings.TrimPrefix(c.Title, "the ")}})
	}
	return writeList(out, []string{"NAME", "MEASURED IN", "WHAT IT IS"}, rows)
}

func writePaths(out io.Writer) error {
	_, err := fmt.Fprintln(out, strings.Join(plan.Texts(plan.Paths), "\n"))
	return err
}

func writeWorkloads(out io.Writer) error {
	rows := each.Of(plan.Kinds(), func(k plan.Kind) listed {
		return listed{[]string{string(k), fmt.Sprint(k.Default().Traits().Work), k.About()}, "options: " + strings.Join(k.Words(), ", ")}
	})
	return writeList(out, []string{"NAME", "UNIT OF WORK", "WHAT IT SENDS"}, rows)
}

func writeMetrics(out io.Writer) error {
	rows := each.Of(metric.All(), func(m metric.Metric) listed {
		shown := "on request"
		if m.Headline {
			shown = "always"
		}
		return listed{[]string{m.Name, m.Unit, fmt.Sprint(m.Better), shown}, m.Definition}
	})
	return writeList(out, []string{"NAME", "UNIT", "BETTER", "SHOWN"}, rows)
}
