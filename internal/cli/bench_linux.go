package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/tool/bench"
)

type benchArgs struct {
	repetitions int
	length      time.Duration
}

const benchLong = `Compare the load engine with iperf3, netperf and wrk, where they are installed, and with a plain C program that is
compiled for it (cc): the same two namespaces, the same CPU, the same socket options, interleaved. Prints docs/bench.md.`

// benchCommand is for those who work on cnibench: make bench runs it.
func (p *program) benchCommand() *cobra.Command {
	var a benchArgs
	cmd := &cobra.Command{
		Use: "bench", Short: "Compare the load engine with other tools", Long: benchLong, Hidden: true, Args: cobra.NoArgs,
		Example: "  sudo cnibench bench > docs/bench.md",
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Not thisProgram: under strace that would be strace.
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			return bench.Run(cmd.Context(), p.stdout, bench.Options{
				Program: []string{program, agentVerb}, Repetitions: a.repetitions, Length: a.length, Progress: p.stderr,
			})
		},
	}
	cmd.Flags().IntVar(&a.repetitions, "repetitions", 10, "how `often` each tool does each task")
	cmd.Flags().DurationVar(&a.length, "length", time.Second, "`time` of each run, whole seconds")
	return cmd
}
