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

// locate declares the flags that choose a cluster.
func locate(cmd *cobra.Command, where *kube.Location) {
	cmd.Flags().StringVar(&where.Kubeconfig, "kubeconfig", "", "`file` to reach the cluster by (default as for kubectl)")
	cmd.Flags().StringVar(&where.Context, "context", "", "`context` of the kubeconfig (default the current one)")
}

// podArgs are the flags of commands that put pods of this program on nodes.
type podArgs struct {
	image string
	pull  []string
}

func (a *podArgs) bind(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&a.image, "image", "", usage)
	cmd.Flags().StringSliceVar(&a.pull, "pull-secrets", nil, "with --image: `names` of Secrets to pull it with, as namespace/name or name")
}

// check returns what is wrong with the flags.
func (a podArgs) check() []error {
	faults := kubetext.SecretFaults(a.pull)
	if len(a.pull) > 0 && a.image == "" {
		faults = append(faults, errors.New("--pull-secrets goes with --image"))
	}
	return faults
}

// reach returns the options that Connect needs for a cluster.
func (p *program) reach(where kube.Location) kube.Options {
	return kube.Options{Kubeconfig: where.Kubeconfig, Context: where.Context, Say: p.say}
}

// say reports progress on stderr.
func (p *program) say(format string, args ...any) {
	fmt.Fprintf(p.stderr, format+"\n", args...)
}

func (p *program) kubeCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use: "kube", Short: "Check permissions in a cluster, clean up after runs",
		Example: "  cnibench kube access\n  cnibench kube clean",
	}, p.kubeAccessCommand(), p.kubeCleanCommand())
}

const kubeAccessLong = `Ask a cluster for each right that a run needs there, and say what it is for. The exit code is 1 if one is missing that
is not optional. Nothing is made in the cluster. With --manifest no cluster is asked.`

func (p *program) kubeAccessCommand() *cobra.Command {
	var where kube.Location
	var manifest, idle bool
	var pull []string
	cmd := &cobra.Command{
		Use: "access", Short: "Say which rights a run needs on a cluster, and which are missing", Long: kubeAccessLong,
		Example: "  cnibench kube access\n  cnibench kube access --manifest | kubectl apply -f -", Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(kubetext.SecretFaults(pull)...); err != nil {
				return usageOf(cmd, err)
			}
			if manifest {
				_, err := p.stdout.Write(kube.Manifest(idle, pull...))
				return err
			}
			return p.kubeAccess(cmd.Context(), where, idle, pull)
		},
	}
	locate(cmd, &where)
	cmd.Flags().BoolVar(&manifest, "manifest", false, "print a ClusterRole with these rights instead")
	cmd.Flags().BoolVar(&idle, "idle", false, "the right that the workload idle needs, too")
	cmd.Flags().StringSliceVar(&pull, "pull-secrets", nil, "`names` of Secrets that a run pulls its image with: the rights for them, too")
	return cmd
}

func (p *program) kubeAccess(ctx context.Context, where kube.Location, idle bool, pull []string) error {
	ctx, stop := context.WithTimeout(ctx, kubeLimit)
	defer stop()
	o := p.reach(where)
	o.PullSecrets, o.Rests = pull, idle
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
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
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

func (p *program) kubeCleanCommand() *cobra.Command {
	var where kube.Location
	var what kube.CleanOptions
	cmd := &cobra.Command{
		Use: "clean", Short: "Remove what killed runs left in a cluster", Long: kubeCleanLong,
		Example: "  cnibench kube clean --dry-run\n  cnibench kube clean --all", Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.kubeClean(cmd.Context(), where, what)
		},
	}
	locate(cmd, &where)
	cmd.Flags().BoolVar(&what.All, "all", false, "also what has not expired: a run that is under way fails")
	cmd.Flags().StringVar(&what.Run, "run", "", "what the run of this `id` left, expired or not")
	cmd.Flags().BoolVar(&what.DryRun, "dry-run", false, "say what would be removed, and remove nothing")
	cmd.MarkFlagsMutuallyExclusive("all", "run")
	return cmd
}

func (p *program) kubeClean(ctx context.Context, where kube.Location, what kube.CleanOptions) error {
	ctx, stop := context.WithTimeout(ctx, kubeLimit)
	defer stop()
	found, err := kube.Clean(ctx, p.reach(where), what)
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
		case what.DryRun:
			done = "would be removed"
		}
		fmt.Fprintf(p.stdout, "%s\t%s\n", r.Namespace, done)
	}
	if len(found) == 0 {
		p.say("no run left anything in this cluster")
	}
	if kept > 0 && what.Run == "" {
		p.say("kept %s; --all removes them too", number.Counted(kept, "namespace"))
	}
	return errors.Join(faults...)
}
