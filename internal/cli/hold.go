package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env/kube"
)

// holding is one invocation of hold.
type holding struct {
	*program
	begin  time.Time
	span   time.Duration
	listen string
	// free, reach, answer, first and clock each select another task, which replaces keeping the pod running.
	free, reach, answer, first, clock bool
}

// holdCommand returns the command hold: the main process of a pod of a run, which keeps the pod running.
func holdCommand(p *program) *cobra.Command {
	a := holding{program: p, begin: time.Now()}
	cmd := &cobra.Command{
		Use: "hold", Short: "Keep a pod of a run alive until a signal ends it", Hidden: true,
		RunE: a.run,
	}
	cmd.Flags().DurationVar(&a.span, "for", 0, "end after this `time`; 0 is never")
	cmd.Flags().StringVar(&a.listen, "listen", "", "serve agents on this `address` with the token in "+kube.TokenVariable)
	cmd.Flags().BoolVar(&a.reach, "reach", false, "dial the addresses in the arguments until each has answered or the time is up, say which have not and why, and end")
	cmd.Flags().BoolVar(&a.answer, "answer", false, "take connections at the ports in the arguments until stdin ends")
	cmd.Flags().BoolVar(&a.free, "free", false, "say which of the ports in the arguments, each with the next, are free for TCP and UDP, and end")
	cmd.Flags().BoolVar(&a.first, "first", false, "dial the address in the argument until a request is answered, leave a report of its times for kubelet, and end")
	cmd.Flags().BoolVar(&a.clock, "clock", false, "write the time for each byte of stdin")
	cmd.MarkFlagsMutuallyExclusive("free", "reach", "answer", "first", "clock", "listen")
	return cmd
}

// run does the task that the flags select, or holds the pod.
func (a *holding) run(cmd *cobra.Command, args []string) error {
	switch {
	case a.free:
		ports, err := readAll(args, parsePort)
		if err != nil {
			return usageError(err)
		}
		return kube.FreePorts(cmd.Context(), ports, a.stdout)
	case a.reach:
		return kube.Reach(cmd.Context(), args, a.span, a.stdout)
	case a.answer:
		return kube.Answer(cmd.Context(), args, a.stdin, a.stdout)
	case a.clock:
		return kube.Clock(a.stdin, a.stdout)
	case a.first && len(args) == 1:
		return kube.ReportFirst(cmd.Context(), a.begin, args[0], a.span, sendFirstRequest)
	case a.first:
		return commandUsageError(cmd, fmt.Errorf("hold --first takes one address, and there are %d arguments", len(args)))
	case len(args) > 0:
		return commandUsageError(cmd, fmt.Errorf("hold takes no %q", args[0]))
	}
	return a.holdPod(cmd.Context())
}

// holdPod waits until a signal ends ctx or the time of --for is over, and returns nil. With --listen and a token it serves
// agents meanwhile.
func (a *holding) holdPod(ctx context.Context) error {
	if a.span > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, a.span)
		defer stop()
	}
	if token := os.Getenv(kube.TokenVariable); a.listen != "" && token != "" {
		if err := a.serveAgents(ctx, token); err != nil {
			// Exec does not need it.
			fmt.Fprintln(a.stderr, "cnibench:", err)
		}
	}
	<-ctx.Done()
	return nil
}

// serveAgents listens on the address of --listen until ctx ends, and starts an agent for each connection that sends token.
func (a *holding) serveAgents(ctx context.Context, token string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", a.listen)
	if err != nil {
		return fmt.Errorf("listen for port-forward: %w", err)
	}
	return kube.ServeForwarded(ctx, l, token, func(ctx context.Context, conn net.Conn) {
		cmd := exec.CommandContext(ctx, program, kube.AgentArguments()...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = conn, conn, a.stderr
		cmd.WaitDelay = time.Second
		if err := cmd.Run(); err != nil && ctx.Err() == nil {
			fmt.Fprintln(a.stderr, "cnibench: agent by port-forward:", err)
		}
	})
}

// parsePort parses a port and requires that the next port exists too.
func parsePort(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 65534 {
		return 0, fmt.Errorf("port %q: want 1 to 65534", text)
	}
	return n, nil
}
