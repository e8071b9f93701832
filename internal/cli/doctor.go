package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/report/schema"
)

const doctorLong = `Probe this machine: which kernel features and programs it has, which profiles it can raise, and the conditions of a
run. Each missing feature comes with a way to get it. The exit code is 1 if no profile can be raised.`

func (p *program) doctorCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Show which profiles this machine can measure, and what is missing", Long: doctorLong,
		Example: "  sudo cnibench doctor\n  sudo cnibench doctor -f json | jq '.features[] | select(.outcome == \"no\")'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.doctor(cmd.Context(), format)
		},
	}
	formatFlag(cmd, &format, documentNames)
	return cmd
}

func (p *program) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema plan|result|report",
		Short: "Print the JSON Schema of a file format",
		Long: `Print the JSON Schema (draft 2020-12) of plans, result lines or report -f json.
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

// version is set by the linker; "" asks the build information.
var version string

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of cnibench",
		Example: "  cnibench version\n  cnibench version | cut -d ' ' -f 2",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(p.stdout, "cnibench %s %s %s/%s\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// buildVersion returns the version that the linker set, else that of the module, else the commit.
func buildVersion() string {
	if version != "" {
		return version
	}
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := b.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range b.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "unknown"
}
