package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/clusters"
	"github.com/cnibench/cnibench/internal/judge/fidelity"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

const fidelityLong = `Measure the lab and real clusters in one interleaved run, and print how far the lab agrees with them. Each cluster is a
context of the kubeconfig. The lab raises the profile that is detected there, with the mode of its kube-proxy. Compared
are ratios to the bare node of each side. Absolute numbers compare only where the nodes run on this machine. A cluster
that cannot be compared is refused before anything is made there. With a result file it measures nothing.`

type fidelityArgs struct {
	plan           planArgs
	output, format string
	verbose, quiet bool
	force          bool
}

func (p *program) fidelityCommand() *cobra.Command {
	var a fidelityArgs
	cmd := &cobra.Command{
		Use: "fidelity [RESULT]", Short: "Compare the lab with real clusters", Long: fidelityLong, Args: takes(0, 1, "one result file or none"),
		Example: "  sudo cnibench fidelity --context staging --workloads rr,crr -o fidelity.jsonl\n  cnibench fidelity --format markdown fidelity.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return p.fidelityOf(a.format, args[0])
			}
			return p.fidelity(cmd, &a)
		},
	}
	a.plan.declare(cmd)
	f := cmd.Flags()
	f.StringVarP(&a.output, "output", "o", "fidelity.jsonl", "result `file`")
	f.BoolVar(&a.force, "force", false, "replace the result file if there is one")
	formatFlag(cmd, &a.format, documentNames)
	f.BoolVarP(&a.verbose, "verbose", "v", false, "print a line for each trial to stderr")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print only errors to stderr")
	f.StringVar(&p.kubeconfig, "kubeconfig", "", "`file` that says how to reach the clusters; default as for kubectl")
	group(cmd, plan.GroupCluster, true, "kubeconfig")
	hide(cmd, "env", "sweep", "explain", "pairs", "concurrency", "sequential", "plant", "tool")
	return cmd
}

func (p *program) fidelity(cmd *cobra.Command, a *fidelityArgs) error {
	began := time.Now()
	if err := cmd.Flags().Set("env", plan.EnvKubernetes); err != nil {
		return err
	}
	a.plan.labToo = true
	want, err := a.plan.plan(cmd)
	if err != nil {
		return err
	}
	if len(want.Cluster.Contexts) == 0 {
		return usageOf(cmd, errors.New("no cluster: name one or more by --context"))
	}
	out, err := createResult(a.output, a.force)
	if err != nil {
		return err
	}
	s := p.newStory(a.verbose, a.quiet)
	open := func(ctx context.Context) (env.Environment, plan.Plan, error) {
		return env.Combine(ctx, want, p.parts(s.step))
	}
	end, err := p.measure(cmd.Context(), open, out, run.Options{Began: began, Progress: s.event}, s)
	s.clear()
	if cannotCompare(err) {
		if errors.Is(err, os.ErrPermission) && advice.Of(err) == "" {
			err = advice.With(err, "run it as root: the lab needs namespaces and CPU groups of this machine")
		}
		err = usage(err)
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	if end.Reason == result.Interrupted {
		return &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted; finished trials are in %s", a.output)}
	}
	return p.fidelityOf(a.format, a.output)
}

// cannotCompare reports whether err means that this machine or a cluster does not allow the comparison. Nothing was
// created then.
func cannotCompare(err error) bool {
	var refused *env.RefusedError
	var access *kube.AccessError
	return errors.As(err, &refused) || errors.As(err, &access) || errors.Is(err, os.ErrPermission)
}

// fidelityOf prints the comparison in a result.
func (p *program) fidelityOf(format, name string) error {
	c, err := result.Load(name)
	if err != nil {
		return usage(err)
	}
	page, err := fidelity.Assess(c.Header, c.Records)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return p.write(format, report.BuildFidelity(page))
}

// parts opens real clusters, and the lab of this machine with its agents in the surroundings of a pod.
func (p *program) parts(say func(string, ...any)) env.Parts {
	return env.Parts{
		Clusters: func(ctx context.Context, want plan.Plan, beside func(context.Context, plan.Plan) error) (env.Environment, plan.Plan, error) {
			o := p.clusterOptions(say)
			o.Beside = beside
			return opened(clusters.Open(ctx, want, o))
		},
		Groups: claimGroups,
		Lab: func(ctx context.Context, want plan.Plan, tree string) (env.Environment, error) {
			return openLabWith(ctx, want, []string{thisProgram, containedVerb, tree}, say)
		},
	}
}
