package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
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

// listings are the nouns of the list command that are tables.
var listings = []struct {
	noun, short string
	write       func(io.Writer)
}{
	{"profiles", "CNI dataplanes with their settings", writeProfiles},
	{"cnis", "the CNIs that are recognised on clusters", writeCNIs},
	{"paths", "from where to where traffic can go", writePaths},
	{"workloads", "what can be sent, with its options", writeWorkloads},
	{"metrics", "what is reported", writeMetrics},
}

func (p *program) listCommand() *cobra.Command {
	list := parent(&cobra.Command{
		Use: "list", Short: "List profiles, recipes, CNIs, paths, workloads, metrics, schemas",
		Example: "  cnibench list profiles\n  cnibench list metrics",
	})
	for _, l := range listings {
		list.AddCommand(&cobra.Command{
			Use: l.noun, Short: "List " + l.short, Example: "  cnibench list " + l.noun + "\n  cnibench list " + l.noun + " | less", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
				l.write(w)
				return w.Flush()
			},
		})
	}
	list.AddCommand(p.recipesCommand(), &cobra.Command{
		Use: "schema plan|profile|result|report", Short: "Print the JSON Schema of a file format",
		Long: `Print a JSON Schema (draft 2020-12): of plans, profile files, result lines, or report -f json.
Editors complete and check a plan file whose first line names the schema:

  # yaml-language-server: $schema=plan.json`,
		Example: "  cnibench list schema plan > plan.json\n  cnibench list schema report",
		Args:    cobra.ExactArgs(1), ValidArgs: schema.Names,
		RunE: func(cmd *cobra.Command, args []string) error { return usageOf(cmd, schema.Write(p.stdout, args[0])) },
	})
	return list
}

func (p *program) recipesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "recipes", Short: "List how to install each profile on clusters, and what it needs", Args: cobra.NoArgs,
		Example: "  cnibench list recipes\n  cnibench list recipes | grep calico",
		RunE: func(*cobra.Command, []string) error {
			all, err := recipe.All()
			if err != nil {
				return err
			}
			return writeRecipes(p.stdout, all)
		},
	}
}

// recipeWidth is how wide a list of recipes is.
const recipeWidth = 100

// writeRecipes writes a line for each way to install a profile, and below them what the profile needs.
func writeRecipes(out io.Writer, all []recipe.Recipe) error {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROFILE\tFOR\tINSTALLS")
	needs := []string{""} // below each line
	for _, r := range all {
		for n, v := range r.Variants {
			name := ""
			if n == 0 {
				name = r.Profile
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", name, v.Name, strings.Join(r.Versions(v), ", "))
			needs = append(needs, "")
		}
		needs[len(needs)-1] = strings.Join(r.Conditions(), "; ")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	i := 0
	for line := range strings.Lines(table.String()) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
		if needs[i] != "" {
			b.WriteString(strings.Join(number.Hang("  needs: ", "         ", needs[i], recipeWidth), "\n") + "\n")
		}
		i++
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func writeProfiles(w io.Writer) {
	names := each.Of(profile.Functions, func(f profile.Function) string { return strings.ToUpper(f.Name) })
	fmt.Fprintf(w, "NAME\tENCAPSULATION\tPOD MTU\t%s\tREAL CLUSTER\tDEFAULT ON\tWHAT IT IS\n", strings.Join(names, "\t"))
	for _, q := range profile.All() {
		does := each.Of(profile.Functions, func(f profile.Function) string { return cmp.Or(f.By(q), "none") })
		compared := "none"
		if q.Fidelity != nil {
			all := q.Fidelity.All
			compared = fmt.Sprintf("%+.0f %%, at most %+.0f %%", 100*all.Distance, 100*all.Farthest)
		}
		what := q.Title + ": " + q.Summary
		if q.Model != "" {
			what += " (" + q.Model + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", q.Name, q.Encapsulation, q.PodMTU(), strings.Join(does, "\t"), compared,
			cmp.Or(strings.Join(q.DefaultOn, ", "), "none"), what)
	}
}

func writeCNIs(w io.Writer) {
	fmt.Fprintln(w, "NAME\tMEASURED IN\tWHAT IT IS")
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
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, where, strings.TrimPrefix(c.Title, "the "))
	}
}

func writePaths(w io.Writer) {
	for _, q := range plan.Paths {
		fmt.Fprintln(w, q)
	}
}

func writeWorkloads(w io.Writer) {
	fmt.Fprintln(w, "NAME\tUNIT OF WORK\tWHAT IT SENDS\tOPTIONS")
	for _, k := range plan.Kinds() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", k, k.Default().Traits().Work, k.About(), strings.Join(k.Words(), ", "))
	}
}

func writeMetrics(w io.Writer) {
	fmt.Fprintln(w, "NAME\tUNIT\tBETTER\tSHOWN\tDEFINITION")
	for _, m := range metric.All() {
		shown := "on request"
		if m.Headline {
			shown = "always"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.Name, m.Unit, m.Better, shown, m.Definition)
	}
}
