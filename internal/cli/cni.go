package cli

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

func cniCommand(p *program) *cobra.Command {
	return addSubcommands(&cobra.Command{
		Use: "cni", Short: "Detect, install and uninstall the CNI of a cluster",
		Example: "  cnibench cni detect\n  cnibench cni show cilium-native --api-server 192.168.7.11:6443",
	}, cniDetectCommand(p), cniShowCommand(p), cniInstallCommand(p), cniUninstallCommand(p))
}

// installation is one invocation of cni show, install or uninstall.
type installation struct {
	*program
	where kube.Location
	// own has the flags for pods of this program on the nodes.
	own     podArgs
	options recipe.Options
	// podCIDR, subnet, pods and gateway are texts of flags, which parseParams parses into options.Params.
	podCIDR, subnet, pods, gateway string
}

func (a *installation) declareFlags(cmd *cobra.Command) {
	declareLocationFlags(cmd, &a.where)
	f := cmd.Flags()
	f.StringVar(&a.options.For, "for", "", "`way` to install it: helm, operator, manifest, conflist, rke2 or kind (default the recipe's first)")
	f.StringArrayVar(&a.options.Sets, "set", nil, "`key=value` as helm --set takes it, over the recipe's values of the chart")
	f.StringVar(&a.podCIDR, "pod-cidr", "", "IPv4 `range` of all pods (default what the cluster says; 10.244.0.0/16 where none is asked)")
	f.StringVar(&a.options.Params.APIServer, "api-server", "", "`host:port` where the API server answers without any Service's help (default what the cluster says)")
	f.IntVar(&a.options.Params.MTU, "mtu", 0, "`bytes` of the nodes' devices; 0 lets the CNI find it out")
	f.StringVar(&a.options.Params.Device, "device", "", "`name` of the nodes' device towards one another, for macvlan, ipvlan and sriov")
	f.StringVar(&a.subnet, "node-subnet", "", "`range` of the nodes' own addresses, for macvlan, ipvlan and sriov")
	f.StringVar(&a.pods, "pod-range", "", "`range` in the nodes' subnet that pods get, for macvlan, ipvlan and sriov")
	f.StringVar(&a.gateway, "gateway", "", "`address` of the router of the nodes' subnet, for macvlan, ipvlan and sriov")
	f.StringVar(&a.options.Params.Cluster, "cluster", "", "`name` of the kind cluster (default kind)")
	completeFlag(cmd, "for", fixedWords(recipe.Helm, recipe.Operator, recipe.ByFile, recipe.Conflist, recipe.RKE2, recipe.Kind))
}

// parseParams parses the flags about the cluster into options.Params. Its error lists all faults.
func (a *installation) parseParams() error {
	p := &a.options.Params
	var errs []error
	for _, f := range []struct {
		flag, text, want string
		into             encoding.TextUnmarshaler
	}{
		{"--pod-cidr", a.podCIDR, "a network such as 10.244.0.0/16", &p.PodCIDR},
		{"--node-subnet", a.subnet, "a network such as 10.244.0.0/16", &p.NodeSubnet},
		{"--pod-range", a.pods, "a network such as 10.244.0.0/16", &p.PodRange},
		{"--gateway", a.gateway, "an address such as 192.0.2.1", &p.Gateway},
	} {
		if f.into.UnmarshalText([]byte(f.text)) != nil {
			errs = append(errs, fmt.Errorf("%s %q: want %s", f.flag, f.text, f.want))
		}
	}
	return errors.Join(append(errs, p.Check())...)
}

// lookUpRecipe checks the flags and returns the recipe of the profile, or the zero Recipe without a profile. Its error
// joins all faults, including the given ones, so that the user sees them before a cluster is contacted.
func (a *installation) lookUpRecipe(profile []string, faults ...error) (r recipe.Recipe, err error) {
	for _, name := range profile {
		// An unknown name gets the same error as in a plan, which suggests the nearest name.
		err = advice.With(plan.VariantOf(name).CheckProfile(), "cnibench list recipes names those that can be installed")
		if err == nil {
			r, err = recipe.Lookup(name)
		}
		if err == nil {
			_, err = r.Variant(a.options.For)
		}
	}
	faults = append([]error{err, a.parseParams()}, append(faults, a.own.argFaults()...)...)
	return r, usageError(errors.Join(faults...))
}

// optionFaults returns what is wrong with --timeout and --chart.
func (a *installation) optionFaults() []error {
	var faults []error
	if a.options.Timeout <= 0 {
		faults = append(faults, fmt.Errorf("--timeout %v: want more than 0", a.options.Timeout))
	}
	if a.options.Source != "" {
		if _, err := os.Stat(a.options.Source); err != nil {
			faults = append(faults, fmt.Errorf("--chart: %w", err))
		}
	}
	return faults
}

// newInstaller returns an installer for the cluster that the flags name. Call lookUpRecipe first: it parses the flags.
func (a *installation) newInstaller() (*recipe.Installer, error) {
	reach := a.connectionOptions(a.where)
	reach.PullSecrets = a.own.pull
	c, err := kube.Connect(reach)
	if err != nil {
		return nil, err
	}
	o := a.options
	o.Say, o.Image, o.PullSecrets = a.say, a.own.image, c.PullSecrets()
	i, err := recipe.NewInstaller(c.Config(), o)
	if err != nil {
		return nil, usageError(err)
	}
	return i, nil
}

const cniShowLong = `Print exactly what would be applied to install a profile: values of a Helm chart, objects, files, as one YAML stream whose
comments say where each belongs and why each value is what it is. What depends on the cluster is taken from the flags. A
cluster is asked with --context or --kubeconfig; without them only if --api-server is needed and not given, by the
kubeconfig that kubectl would take. Where none is asked, words in capitals stand for what differs between nodes. Nothing is
changed.

"cnibench check --config --chart CHART" shows which settings of the output are in force.`

func cniShowCommand(p *program) *cobra.Command {
	a := installation{program: p}
	cmd := &cobra.Command{
		Use: "show PROFILE", Short: "Print what would be applied to install a profile", Long: cniShowLong, Args: requireOneProfile,
		ValidArgsFunction: recipeNames,
		Example:           "  cnibench cni show flannel-host-gw\n  cnibench cni show calico-ebpf --for operator | cnibench check --config -",
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := a.renderRecipe(cmd.Context(), args[0])
			if err != nil {
				return recipeError(err)
			}
			return out.Write(p.stdout)
		},
	}
	a.declareFlags(cmd)
	return cmd
}

// renderRecipe fills in the recipe of a profile with values from the cluster that the flags name, or else from the
// flags. If the flags lack a value that a cluster can tell, it asks the cluster that kubectl would use.
func (a *installation) renderRecipe(ctx context.Context, profile string) (recipe.Rendered, error) {
	r, err := a.lookUpRecipe([]string{profile})
	if err != nil {
		return recipe.Rendered{}, err
	}
	if a.where != (kube.Location{}) {
		i, err := a.newInstaller()
		if err != nil {
			return recipe.Rendered{}, err
		}
		return i.Prepare(ctx, profile)
	}
	out, err := recipe.Render(r, a.options.For, a.options.Params.WithDefaults(), a.options.Sets)
	var missing *recipe.MissingError
	switch {
	case err == nil:
		return out, nil
	case !errors.As(err, &missing):
		return out, usageError(err)
	case !missing.Learnable:
		return out, err
	}
	return a.renderFromCluster(ctx, profile, err)
}

// renderFromCluster fills in a recipe with values from the cluster that kubectl would use. missing is the error about the
// values that the flags lack. If the cluster cannot be asked, the returned error contains both errors.
func (a *installation) renderFromCluster(ctx context.Context, profile string, missing error) (recipe.Rendered, error) {
	var out recipe.Rendered
	i, err := a.newInstaller()
	if err == nil {
		out, err = i.Prepare(ctx, profile)
	}
	var still *recipe.MissingError
	if err == nil || ctx.Err() != nil || errors.As(err, &still) {
		return out, err
	}
	return out, fmt.Errorf("%w; and no cluster tells it: %w", missing, err)
}

// recipeError returns err as a usage error, in some cases with a hint, if the user can correct it. It returns other errors
// as they are.
func recipeError(err error) error {
	var missing *recipe.MissingError
	var refused *recipe.RefusedError
	var absent *recipe.NotInstalledError
	var byHand *recipe.ByHandError
	switch {
	case errors.As(err, &missing) && missing.Learnable:
		return usageError(advice.With(err, "give it, or name a cluster that tells it by --context, --kubeconfig or KUBECONFIG"))
	case errors.As(err, &refused):
		return usageError(advice.With(err, "fix the items above, or install on top of them with --force: the run then measures more than that profile"))
	case missing != nil, errors.As(err, &absent), errors.As(err, &byHand):
		return usageError(err)
	}
	return err
}

// requireOneProfile fails unless there is exactly one argument. It does not check that the argument names a profile.
func requireOneProfile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return usageError(advice.With(fmt.Errorf("want one profile, and there are %d", len(args)), "cnibench list recipes names them"))
}

// recipeNames lets the shell complete the name of a profile that has a recipe.
func recipeNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _ := recipe.All() // the data is tested; without it there is nothing to complete
	return each.Of(all, func(r recipe.Recipe) string { return r.Profile }), cobra.ShellCompDirectiveNoFileComp
}

const cniInstallLong = `Install the CNI of a profile on a cluster and wait until it carries pods: its workloads have rolled out, the nodes are
ready, and a new pod on each gets an address. Objects are applied by the server under the name cnibench, charts are
releases of Helm, and the cluster records what was applied, so that uninstall can remove it.

Refused, with all reasons at once (exit code 2): another CNI that is installed or has left
something behind, a kube-proxy that the profile replaces or in another mode than it wants, an old kernel, nodes without a
podCIDR. What is on the nodes themselves is only seen with --image, an image of this program (see cnibench image).`

func cniInstallCommand(p *program) *cobra.Command {
	a := installation{program: p}
	o := &a.options
	cmd := &cobra.Command{
		Use: "install PROFILE", Short: "Install a profile's CNI on a cluster", Long: cniInstallLong, Args: requireOneProfile,
		ValidArgsFunction: recipeNames,
		Example:           "  cnibench cni install flannel-vxlan --dry-run server\n  cnibench cni install cilium-native --stop-kube-proxy",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Out = p.stdout
			if _, err := a.lookUpRecipe(args, a.optionFaults()...); err != nil {
				return err
			}
			i, err := a.newInstaller()
			if err != nil {
				return err
			}
			return recipeError(i.Install(cmd.Context(), args[0]))
		},
	}
	a.declareFlags(cmd)
	f := cmd.Flags()
	declareChoiceFlag(cmd, &o.DryRun, "dry-run", "client prints the objects, server has the API server judge them; nothing is kept; `where`",
		[]string{recipe.DryRunClient, recipe.DryRunServer})
	f.StringVar(&o.Source, "chart", "", "`file` or directory with the chart or manifest, in place of the recipe's address")
	f.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "bound of each wait")
	f.BoolVar(&o.Force, "force", false, "install despite failed preflight checks")
	f.BoolVar(&o.StopProxy, "stop-kube-proxy", false, "stop the DaemonSet kube-proxy where the profile replaces it; uninstall starts it again")
	a.own.declareFlags(cmd, "`image` of this program, for pods that look at the nodes and write their CNI configuration")
	return cmd
}
