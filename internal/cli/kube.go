package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/plan/kubetext"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// kubeLimit bounds a command that queries or cleans a cluster.
const kubeLimit = 5 * time.Minute

// declareLocationFlags declares the flags that choose a cluster.
func declareLocationFlags(cmd *cobra.Command, where *kube.Location) {
	cmd.Flags().StringVar(&where.Kubeconfig, "kubeconfig", "", "`file` to reach the cluster by (default as for kubectl)")
	cmd.Flags().StringVar(&where.Context, "context", "", "`context` of the kubeconfig (default the current one)")
}

// podArgs are the flags of commands that put pods of this program on nodes.
type podArgs struct {
	image string
	pull  []string
}

func (a *podArgs) declareFlags(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&a.image, "image", "", usage)
	cmd.Flags().StringSliceVar(&a.pull, "pull-secrets", nil, "with --image: `names` of Secrets to pull it with, as namespace/name or name")
}

// argFaults returns the faults of the flags.
func (a podArgs) argFaults() []error {
	faults := kubetext.SecretFaults(a.pull)
	if len(a.pull) > 0 && a.image == "" {
		faults = append(faults, errors.New("--pull-secrets goes with --image"))
	}
	return faults
}

// connectionOptions returns the options by which kube.Connect reaches a cluster.
func (p *program) connectionOptions(where kube.Location) kube.Options {
	return kube.Options{Kubeconfig: where.Kubeconfig, Context: where.Context, Say: p.say}
}

// say prints a line of progress to stderr.
func (p *program) say(format string, args ...any) {
	fmt.Fprintf(p.stderr, format+"\n", args...)
}

func kubeCommand(p *program) *cobra.Command {
	return addSubcommands(&cobra.Command{
		Use: "kube", Short: "Check permissions in a cluster, clean up after runs",
		Example: "  cnibench kube access\n  cnibench kube clean",
	}, kubeAccessCommand(p), kubeCleanCommand(p))
}

const kubeAccessLong = `Ask a cluster for each right that a run needs there, and say what it is for. The exit code is 1 if one is missing that
is not optional. Nothing is made in the cluster. With --manifest no cluster is asked.`

// accessCheck is one invocation of kube access.
type accessCheck struct {
	*program
	where          kube.Location
	manifest, idle bool
	pull           []string
}

func kubeAccessCommand(p *program) *cobra.Command {
	a := accessCheck{program: p}
	cmd := &cobra.Command{
		Use: "access", Short: "Say which rights a run needs on a cluster, and which are missing", Long: kubeAccessLong,
		Example: "  cnibench kube access\n  cnibench kube access --manifest | kubectl apply -f -", Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd) },
	}
	declareLocationFlags(cmd, &a.where)
	cmd.Flags().BoolVar(&a.manifest, "manifest", false, "print a ClusterRole with these rights instead")
	cmd.Flags().BoolVar(&a.idle, "idle", false, "the right that the workload idle needs, too")
	cmd.Flags().StringSliceVar(&a.pull, "pull-secrets", nil, "`names` of Secrets that a run pulls its image with: the rights for them, too")
	return cmd
}

func (a *accessCheck) run(cmd *cobra.Command) error {
	if err := errors.Join(kubetext.SecretFaults(a.pull)...); err != nil {
		return commandUsageError(cmd, err)
	}
	if a.manifest {
		_, err := a.stdout.Write(kube.Manifest(a.idle, a.pull...))
		return err
	}
	ctx, stop := context.WithTimeout(cmd.Context(), kubeLimit)
	defer stop()
	o := a.connectionOptions(a.where)
	o.PullSecrets, o.Rests = a.pull, a.idle
	c, err := kube.Connect(o)
	if err != nil {
		return err
	}
	missing, err := c.Missing(ctx, c.Rights())
	if err != nil {
		return err
	}
	lacks := map[string]bool{}
	for _, r := range missing {
		lacks[r.String()] = true
	}
	needed := 0
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, r := range c.Rights() {
		state := "yes"
		if lacks[r.String()] {
			state = "no"
			if r.Optional {
				state = "no, optional"
			} else {
				needed++
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", r, state, r.Why)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if needed > 0 {
		return advice.With(fmt.Errorf("missing: %s that a run needs", number.Counted(needed, "right")), c.AdviceAccess())
	}
	return nil
}

const kubeCleanLong = `Find the namespaces that runs left in a cluster, by their label, and delete those whose time is up: a run that was
killed could not do it. With --all those go too whose run may still be under way. Nothing else is touched.`

// cleaning is one invocation of kube clean.
type cleaning struct {
	*program
	where kube.Location
	what  kube.CleanOptions
}

func kubeCleanCommand(p *program) *cobra.Command {
	a := cleaning{program: p}
	cmd := &cobra.Command{
		Use: "clean", Short: "Remove what killed runs left in a cluster", Long: kubeCleanLong,
		Example: "  cnibench kube clean --dry-run\n  cnibench kube clean --all", Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context()) },
	}
	declareLocationFlags(cmd, &a.where)
	cmd.Flags().BoolVar(&a.what.All, "all", false, "also what has not expired: a run that is under way fails")
	cmd.Flags().StringVar(&a.what.Run, "run", "", "what the run of this `id` left, expired or not")
	cmd.Flags().BoolVar(&a.what.DryRun, "dry-run", false, "say what would be removed, and remove nothing")
	cmd.MarkFlagsMutuallyExclusive("all", "run")
	return cmd
}

func (a *cleaning) run(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, kubeLimit)
	defer stop()
	found, err := kube.Clean(ctx, a.connectionOptions(a.where), a.what)
	if err != nil {
		return err
	}
	var faults []error
	kept := 0
	for _, r := range found {
		done := "removed"
		switch {
		case r.Err != nil:
			done = "not removed"
			faults = append(faults, r.Err)
		case r.Kept != "":
			done = "kept: " + r.Kept
			kept++
		case a.what.DryRun:
			done = "would be removed"
		}
		fmt.Fprintf(a.stdout, "%s\t%s\n", r.Namespace, done)
	}
	if len(found) == 0 {
		a.say("no run left anything in this cluster")
	}
	if kept > 0 && a.what.Run == "" {
		a.say("kept %s; --all removes them too", number.Counted(kept, "namespace"))
	}
	return errors.Join(faults...)
}
