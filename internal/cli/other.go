//go:build !linux

package cli

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// errNotLinux is the error of everything that needs network namespaces, on systems other than Linux.
var errNotLinux = advice.With(errors.New("the lab needs Linux"), "run it there; reports and plans can be read here")

func openLab(context.Context, plan.Plan, func(string, ...any)) (env.Environment, error) {
	return nil, errNotLinux
}

// linuxCommands returns nil: fidelity, and the commands that cnibench starts as child processes and in pods, need Linux.
func linuxCommands(*program) []*cobra.Command { return nil }

// sendFirstRequest stores a failure in r: pods run Linux.
func sendFirstRequest(_ context.Context, _ netip.AddrPort, _ time.Duration, r *kube.First) {
	r.Kind, r.Failure = "unsupported", errNotLinux.Error()
}

// findAgentCommand returns nil: agents run on Linux.
func findAgentCommand(*program, []string) *cobra.Command { return nil }

func reportMachine(context.Context, *program, string) error { return errNotLinux }

func (*labTest) run(context.Context, plan.Plan, []int) error { return errNotLinux }
func (*labUp) run(context.Context, plan.Plan) error          { return errNotLinux }
func execInLab(io.Writer, string, []string) error            { return errNotLinux }

func chooseLab(string) (string, error)        { return "", errNotLinux }
func labVariant(string) (plan.Variant, error) { return plan.Variant{}, errNotLinux }

// openLabOrCluster opens a cluster: there is no lab.
func (a *diagnosis) openLabOrCluster(ctx context.Context, want plan.Plan, _ string, say func(string, ...any)) (env.Environment, plan.Plan, error) {
	return a.openEnvironment(ctx, want, say)
}
