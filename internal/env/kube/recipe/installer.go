package recipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/env/kube/recipe/residue"
	"github.com/cnibench/cnibench/internal/env/kube/trait"
)

// FieldManager is the name under which objects are applied; Label marks them with the profile that they are of.
const (
	FieldManager = "cnibench"
	Label        = "cnibench.dev/recipe"
)

// Dry runs of Options.
const (
	// DryRunClient prints the objects and asks the API server nothing but what Render needs to know.
	DryRunClient = "client"
	// DryRunServer has the API server judge them, and keep none.
	DryRunServer = "server"
)

// Options say how to install.
type Options struct {
	// For names the variant; "" is the first that the API server can install.
	For string
	// Params that are not set are asked of the cluster.
	Params Params
	// Sets are --set expressions for the chart.
	Sets []string
	// Source is a chart or manifest, as file or directory, or a directory with several, to be used in place of those
	// that the recipe names. (optional)
	Source string
	// Image has this program as /cnibench: what is read and written on nodes is by pods of it.
	Image string
	// PullSecrets are copied beside those pods, to pull it with. (optional)
	PullSecrets []trait.PullSecret
	// Timeout bounds each wait; 0 is ten minutes.
	Timeout time.Duration
	// DryRun is DryRunClient, DryRunServer or "".
	DryRun string
	// Force installs although something speaks against it.
	Force bool
	// StopProxy stops the DaemonSet kube-proxy where the profile wants none; Uninstall starts it again.
	StopProxy bool
	// Out takes what a dry run prints; Say is told what takes its time. (both optional)
	Out io.Writer
	Say func(format string, args ...any)
	// Look reads what is on the nodes themselves; without it the API alone tells of residue. (optional)
	Look func(ctx context.Context, nodes []string) (map[string]residue.Node, error)
}

const (
	defaultTimeout = 10 * time.Minute
	// pause lies between two questions of the same thing.
	pause = 500 * time.Millisecond
)

// Installer installs recipes on one cluster and takes them away again. It is not safe for concurrent use.
type Installer struct {
	Options
	client  api.Interface
	dynamic dynamic.Interface
	mapper  *api.Mapper
}

// NewInstaller returns an Installer for the cluster that config leads to.
func NewInstaller(config *rest.Config, o Options) (*Installer, error) {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if o.DryRun != "" && o.DryRun != DryRunClient && o.DryRun != DryRunServer {
		return nil, fmt.Errorf("dry run %q: want %s or %s", o.DryRun, DryRunClient, DryRunServer)
	}
	client, err := api.New(config)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Installer{Options: o, client: client, dynamic: dyn, mapper: api.NewMapper(client)}, nil
}

// RefusedError lists what speaks against an installation. Nothing has been done.
type RefusedError struct {
	Profile string
	Reasons []string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s is not installed:\n%s", e.Profile, strings.Join(e.Reasons, "\n"))
}

// Install installs the recipe of a profile and waits until it carries pods. A *RefusedError lists what speaks against it,
// a *MissingError what must be told. What was applied before anything failed is recorded, so that Uninstall finds it.
func (i *Installer) Install(ctx context.Context, profile string) error {
	out, err := i.Prepare(ctx, profile)
	if err != nil {
		return err
	}
	if err := out.Installable(); err != nil {
		return err
	}
	reasons, err := i.against(ctx, out.Recipe)
	if err != nil {
		return err
	}
	if len(reasons) > 0 {
		if !i.Force && i.DryRun == "" {
			return &RefusedError{Profile: profile, Reasons: reasons}
		}
		for _, r := range reasons {
			i.Say("against it: %s", r)
		}
	}
	inv := newInventory(out)
	inv.Source = i.Source
	if i.DryRun == "" && out.Recipe.KubeProxy == "none" && i.StopProxy {
		if err := i.stopProxy(ctx, inv); err != nil {
			return err
		}
	}
	if err := i.actAll(ctx, inv, out); err != nil {
		return fmt.Errorf("%s: %w", profile, err)
	}
	if i.DryRun != "" {
		return nil
	}
	return i.wait(ctx, inv)
}

// Prepare fills the recipe of a profile in with what is given and what the cluster tells.
func (i *Installer) Prepare(ctx context.Context, profile string) (Rendered, error) {
	r, err := Lookup(profile)
	if err != nil {
		return Rendered{}, err
	}
	p, err := i.Learn(ctx)
	if err != nil {
		return Rendered{}, err
	}
	return Render(r, i.variant(r), p, i.Sets)
}

// variant is the one asked for, else the first that is no kind cluster's and no distribution's.
func (i *Installer) variant(r Recipe) string {
	if i.For != "" {
		return i.For
	}
	for _, v := range r.Variants {
		if v.Name != RKE2 && v.Name != Kind {
			return v.Name
		}
	}
	return ""
}

// actAll takes the actions in order; the conflists of all nodes are one.
func (i *Installer) actAll(ctx context.Context, inv *inventory, out Rendered) error {
	var conflists []Action
	for n, a := range out.Actions {
		if a.Kind == PlantConflist {
			conflists = append(conflists, a)
			continue
		}
		i.Say("%d/%d %s", n+1, len(out.Actions), a.Story()[0])
		if err := i.act(ctx, inv, a); err != nil {
			return fmt.Errorf("%s: %w", a.Story()[0], err)
		}
	}
	if len(conflists) == 0 {
		return nil
	}
	i.Say("%s on %d nodes", conflists[0].Story()[0], len(conflists))
	return i.plant(ctx, inv, conflists, out.Params.Nodes)
}

// act takes one action.
func (i *Installer) act(ctx context.Context, inv *inventory, a Action) error {
	switch a.Kind {
	case InstallChart:
		return i.chart(ctx, inv, a)
	case ApplyManifest:
		text, err := i.manifest(ctx, a.Manifest)
		if err != nil {
			return err
		}
		objects, err := merged(text, a.Text)
		if err != nil {
			return err
		}
		return i.apply(ctx, inv, objects)
	case ApplyObjects:
		objects, err := decoded(a.Text)
		if err != nil {
			return err
		}
		return i.apply(ctx, inv, objects)
	case MakeKind:
		i.Say("the cluster is there already: its configuration is not touched")
		return nil
	}
	return fmt.Errorf("%s cannot be done through the API server", a.Kind)
}

// Wait waits until everything that is installed has rolled out, the nodes are ready and a new pod on each gets an address.
func (i *Installer) Wait(ctx context.Context) error {
	all, err := i.inventories(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("nothing is installed that could be waited for: cnibench cni install records what it applies")
	}
	for _, inv := range all {
		if err := i.wait(ctx, inv); err != nil {
			return err
		}
	}
	return nil
}

// unknownKind reports whether err means that the API server does not know the kind, or not yet.
func unknownKind(err error) bool { return meta.IsNoMatchError(err) }
