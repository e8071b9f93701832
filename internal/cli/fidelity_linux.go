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

// assessment is one invocation of fidelity.
type assessment struct {
	*program
	plan           planArgs
	output, format string
	verbose, quiet bool
	force          bool
}

func fidelityCommand(p *program) *cobra.Command {
	a := assessment{program: p}
	cmd := &cobra.Command{
		Use: "fidelity [RESULT]", Short: "Compare the lab with real clusters", Long: fidelityLong, Args: newArgumentCheck(0, 1, "one result file or none"),
		Example: "  sudo cnibench fidelity --context staging --workloads rr,crr -o fidelity.jsonl\n  cnibench fidelity --format markdown fidelity.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.assessFile(args[0])
			}
			return a.run(cmd)
		},
	}
	a.plan.declareFlags(cmd)
	f := cmd.Flags()
	f.StringVarP(&a.output, "output", "o", "fidelity.jsonl", "result `file`")
	f.BoolVar(&a.force, "force", false, "replace the result file if there is one")
	declareFormatFlag(cmd, &a.format, documentNames)
	f.BoolVarP(&a.verbose, "verbose", "v", false, "print a line for each trial to stderr")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "print only errors to stderr")
	f.StringVar(&p.kubeconfig, "kubeconfig", "", "`file` that says how to reach the clusters; default as for kubectl")
	groupFlags(cmd, plan.GroupCluster, true, "kubeconfig")
	hideFlags(cmd, "env", "sweep", "pairs", "concurrency", "sequential", "plant", "tool")
	return cmd
}

func (a *assessment) run(cmd *cobra.Command) error {
	began := time.Now()
	if err := cmd.Flags().Set("env", plan.EnvKubernetes); err != nil {
		return err
	}
	a.plan.labToo = true
	want, err := a.plan.buildPlan(cmd)
	if err != nil {
		return err
	}
	if len(want.Cluster.Contexts) == 0 {
		return commandUsageError(cmd, errors.New("no cluster: name one or more by --context"))
	}
	out, err := createResult(a.output, a.force)
	if err != nil {
		return err
	}
	open := func(ctx context.Context, say func(string, ...any)) (env.Environment, plan.Plan, error) {
		return env.Combine(ctx, want, a.environmentParts(say))
	}
	end, err := a.measurePlan(cmd.Context(), open, out, run.Options{Began: began}, a.newStory(a.verbose, a.quiet))
	if cannotCompare(err) {
		if errors.Is(err, os.ErrPermission) && advice.Of(err) == "" {
			err = advice.With(err, "run it as root: the lab needs namespaces and CPU groups of this machine")
		}
		err = usageError(err)
	}
	if err != nil {
		return err
	}
	if end.Reason == result.Interrupted {
		return &exitError{code: exitInterrupted, err: fmt.Errorf("interrupted; finished trials are in %s", a.output)}
	}
	return a.assessFile(a.output)
}

// cannotCompare reports whether err means that this machine or a cluster does not allow the comparison: a refused profile,
// no access to a cluster, or no permission here.
func cannotCompare(err error) bool {
	var refused *env.RefusedError
	var access *kube.AccessError
	return errors.As(err, &refused) || errors.As(err, &access) || errors.Is(err, os.ErrPermission)
}

// assessFile compares the lab with the clusters of a result file and prints the comparison.
func (a *assessment) assessFile(name string) error {
	c, err := result.Load(name)
	if err != nil {
		return usageError(err)
	}
	page, err := fidelity.Assess(c.Header, c.Records)
	if err != nil {
		return usageError(fmt.Errorf("%s: %w", name, err))
	}
	return a.writeDocument(a.format, report.BuildFidelity(page))
}

// environmentParts returns the functions that open the clusters and the lab. The lab's agents run under the conditions
// of a pod.
func (a *assessment) environmentParts(say func(string, ...any)) env.Parts {
	return env.Parts{
		Clusters: func(ctx context.Context, want plan.Plan, beside func(context.Context, plan.Plan) error) (env.Environment, plan.Plan, error) {
			o := a.clusterOptions(say)
			o.Beside = beside
			return convertEnvironment(clusters.Open(ctx, want, o))
		},
		Groups: claimGroups,
		Lab: func(ctx context.Context, want plan.Plan, tree string) (env.Environment, error) {
			return openLabWithAgent(ctx, want, []string{thisProgram, containedVerb, tree}, say)
		},
	}
}
