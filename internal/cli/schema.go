package cli

import (
	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/report/schema"
)

func (p *program) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema plan|profile|result|report",
		Short: "Print the JSON Schema of a file format",
		Long: `Print a JSON Schema (draft 2020-12): of plans, profile files, result lines, or report -f json.
Editors complete and check a plan file whose first line names the schema:

  # yaml-language-server: $schema=plan.json`,
		Example:   "  cnibench schema plan > plan.json\n  cnibench schema report",
		Args:      cobra.ExactArgs(1),
		ValidArgs: schema.Names,
		RunE: func(cmd *cobra.Command, args []string) error {
			return usageOf(cmd, schema.Write(p.stdout, args[0]))
		},
	}
}
