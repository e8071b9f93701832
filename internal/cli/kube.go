package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/hint"
	"github.com/cnibench/cnibench/internal/kube"
)

// kubeLimit bounds a command that asks a cluster or cleans it.
const kubeLimit = 5 * time.Minute

// clusterArgs are the flags that choose a cluster.
type clusterArgs struct{ kubeconfig, context string }

func (a *clusterArgs) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.kubeconfig, "kubeconfig", "", "`file` to reach the cluster by (default as for kubectl)")
	cmd.Flags().StringVar(&a.context, "context", "", "`context` of the kubeconfig (default the current one)")
}

// options are what Connect takes of them.
func (a clusterArgs) options(say func(string, ...any)) kube.Options {
	return kube.Options{Kubeconfig: a.kubeconfig, Context: a.context, Say: say}
}

// say tells the story on stderr.
func (p *program) say(format string, args ...any) {
	fmt.Fprintf(p.stderr, format+"\n", args...)
}

func (p *program) kubeCommand() *cobra.Command {
	parent := &cobra.Command{
		Use: "kube", Short: "Look after what runs need and leave in a cluster", Args: cobra.NoArgs,
		Example: "  cnibench kube access\n  cnibench kube clean",
		RunE:    func(cmd *cobra.Command, _ []string) error { return usageOf(cmd, fmt.Errorf("kube what?")) },
	}
	parent.AddCommand(p.kubeAccessCommand(), p.kubeCleanCommand())
	return parent
}

const kubeAccessLong = `Ask a cluster for each right that a run needs there, and say what it is for. The exit code is 1 if one is missing that
is not optional. Nothing is made in the cluster.`

func (p *program) kubeAccessCommand() *cobra.Command {
	var where clusterArgs
	var manifest bool
	cmd := &cobra.Command{
		Use: "access", Short: "Say which rights a run needs on a cluster, and which are missing", Long: kubeAccessLong,
		Example: "  cnibench kube access\n  cnibench kube access --manifest | kubectl apply -f -", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if manifest {
				_, err := p.stdout.Write(kube.Manifest())
				return err
			}
			return p.kubeAccess(cmd.Context(), where)
		},
	}
	where.bind(cmd)
	cmd.Flags().BoolVar(&manifest, "manifest", false, "print a ClusterRole with these rights instead")
	return cmd
}

func (p *program) kubeAccess(ctx context.Context, where clusterArgs) error {
	ctx, stop := context.WithTimeout(ctx, kubeLimit)
	defer stop()
	c, err := kube.Connect(where.options(p.say))
	if err != nil {
		return configError(err)
	}
	missing, err := c.Missing(ctx, kube.Rights)
	if err != nil {
		return err
	}
	lacks := map[string]bool{}
	for _, r := range missing {
		lacks[r.String()] = true
	}
	needed := 0
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, r := range kube.Rights {
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
		return hint.With(fmt.Errorf("%d rights that a run needs are missing", needed), kube.AdviceAccess)
	}
	return nil
}

const kubeCleanLong = `Find the namespaces that runs left in a cluster, by their label, and delete those whose time is up: a run that was
killed could not do it. With --all those go too whose run may still be under way. Nothing else is touched.`

func (p *program) kubeCleanCommand() *cobra.Command {
	var where clusterArgs
	var what kube.CleanOptions
	cmd := &cobra.Command{
		Use: "clean", Short: "Remove what killed runs left in a cluster", Long: kubeCleanLong,
		Example: "  cnibench kube clean --dry-run\n  cnibench kube clean --all", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.kubeClean(cmd.Context(), where, what) },
	}
	where.bind(cmd)
	cmd.Flags().BoolVar(&what.All, "all", false, "also what has not expired: a run that is under way fails")
	cmd.Flags().Bool("expired", true, "what has expired alone, which is the default")
	cmd.Flags().StringVar(&what.Run, "run", "", "what the run of this `id` left, expired or not")
	cmd.Flags().BoolVar(&what.DryRun, "dry-run", false, "say what would be removed, and remove nothing")
	cmd.MarkFlagsMutuallyExclusive("all", "expired", "run")
	return cmd
}

func (p *program) kubeClean(ctx context.Context, where clusterArgs, what kube.CleanOptions) error {
	ctx, stop := context.WithTimeout(ctx, kubeLimit)
	defer stop()
	found, err := kube.Clean(ctx, where.options(p.say), what)
	if err != nil {
		return configError(err)
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
		p.say("no run has left anything in this cluster")
	}
	if kept > 0 && what.Run == "" {
		p.say("%d namespaces are kept; --all removes them too", kept)
	}
	return errors.Join(faults...)
}
