package cli

import "github.com/spf13/cobra"

const doctorLong = `Probe this machine: which kernel features and programs it has, which profiles it can raise, and the conditions of a
run. Each missing feature comes with a way to get it. The exit code is 1 if no profile can be raised.`

func doctorCommand(p *program) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Show which profiles this machine can measure, and what is missing", Long: doctorLong,
		Example: "  sudo cnibench doctor\n  sudo cnibench doctor -f json | jq '.features[] | select(.outcome == \"no\")'",
		Args:    takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return reportMachine(cmd.Context(), p, format)
		},
	}
	declareFormatFlag(cmd, &format, documentNames)
	return cmd
}
