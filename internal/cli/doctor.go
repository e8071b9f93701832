package cli

import "github.com/spf13/cobra"

const doctorLong = `Find out by trying what this machine has that the lab needs, which profiles it can raise, and under which
conditions it would measure. What is missing comes with the way out. The exit code is 1 if no profile can be raised.`

func (p *program) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Say what this machine can measure, and what it lacks", Long: doctorLong,
		Example: "  sudo cnibench doctor",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.doctor(cmd.Context()) },
	}
}
