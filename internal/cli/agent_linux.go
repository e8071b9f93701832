package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/engine/agent"
	"github.com/cnibench/cnibench/internal/engine/first"
	"github.com/cnibench/cnibench/internal/engine/load"
	"github.com/cnibench/cnibench/internal/engine/record"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

// agentVerb is the command that the lab starts at an endpoint.
const agentVerb = "agent"

// linuxCommands returns the commands that only Linux has: fidelity, and the hidden commands that cnibench starts as child
// processes and in its pods.
func linuxCommands(p *program) []*cobra.Command {
	return []*cobra.Command{agentCommand(p), samplerCommand(p), janitorCommand(p), socketsCommand(p), wireGuardCommand(p), fidelityCommand(p), containedCommand(p), lookCommand(), leftoversCommand(), plantCommand()}
}

// findAgentCommand returns the agent command if args begin with agentVerb, and otherwise nil.
func findAgentCommand(p *program, args []string) *cobra.Command {
	if len(args) == 0 || args[0] != agentVerb {
		return nil
	}
	return agentCommand(p)
}

func agentCommand(p *program) *cobra.Command {
	var lifeline time.Duration
	var lacks []string
	cmd := &cobra.Command{
		Use: agentVerb, Short: "Run one end of a trial for a controller on stdin and stdout", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(lacks) > 0 {
				for _, tool := range uninstalledTools(lacks) {
					fmt.Fprintln(p.stdout, tool)
				}
				return nil
			}
			// An interrupt at the terminal reaches the whole process group. The controller ends its agents: it closes
			// their input.
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			ctx, in := cmd.Context(), p.stdin
			if lifeline > 0 {
				ctx, in = agent.Lifeline(ctx, in, lifeline)
			}
			return agent.Serve(ctx, in, p.stdout, buildVersion())
		},
	}
	cmd.Flags().DurationVar(&lifeline, "lifeline", 0, "end when nothing has been heard of the controller for this `time`; 0 is never")
	cmd.Flags().StringSliceVar(&lacks, "lacks", nil, "print those of the `tools` that are not installed here, and end")
	return cmd
}

func samplerCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use: control.SamplerArgs[1], Short: "Sample the CPUs of a node for a controller on stdin and stdout", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return record.Serve(cmd.Context(), p.stdin, p.stdout) },
	}
}

// sendFirstRequest dials an address until a request is answered or limit has passed. It stores in r the number of dials and
// their CPU time. It also stores the times of the connection and of the answer, or the failure.
func sendFirstRequest(ctx context.Context, to netip.AddrPort, limit time.Duration, r *kube.First) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now, begin := time.Now(), thread.Monotonic()
	seen, err := first.Request(ctx, first.Options{To: to, Begin: begin, End: begin + int64(limit)})
	r.Dials, r.DialNs = seen.Dials, seen.CPUNs
	if err != nil {
		r.Kind, r.Failure = load.KindOf(err), err.Error()
		return
	}
	r.Connected, r.Answered = now.UnixNano()+seen.Connected-begin, now.UnixNano()+seen.Answered-begin
}

func janitorCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use: lab.JanitorVerb + " CGROUP", Short: "Remove a tree of cgroups when stdin ends", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			return lab.Janitor(args[0], p.stdin)
		},
	}
}

func socketsCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use: lab.SocketsVerb, Short: "Connect sockets for the lab at the other end of stdin", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			socket, ok := p.stdin.(*os.File)
			if !ok {
				return errors.New("stdin is not a socket of a lab")
			}
			return lab.ServeSockets(socket)
		},
	}
}

func wireGuardCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use: lab.WireGuardVerb + " DEVICE MTU", Short: "Be the WireGuard of a device of the lab until stdin ends", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			return lab.ServeWireGuard(args, p.stdin, p.stdout)
		},
	}
}
