package recipe

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
)

// fieldManager is the field manager of applied objects. label is a label on each of them, with the profile's name.
const (
	fieldManager = "cnibench"
	label        = "cnibench.dev/recipe"
)

// Dry runs of Options.
const (
	// DryRunClient prints the objects. It reads from the API server only what Render requires.
	DryRunClient = "client"
	// DryRunServer lets the API server validate the objects without storing them.
	DryRunServer = "server"
)

// Options are the options of an installation.
type Options struct {
	// For is the name of the variant; "" is the first that the API server can install.
	For string
	// Params are the parameters of the cluster. Those that are not set are read from the cluster.
	Params Params
	// Version is the version of the chart or manifest; "" is the recipe's.
	Version string
	// Sets are --set expressions for the chart.
	Sets []string
	// Source is a chart or manifest, or a directory with several, that replaces the recipe's. (optional)
	Source string
	// Image has this program as /cnibench. Pods with this image read and write files on nodes. Without it, only leftovers
	// that the API shows are found. (optional)
	Image string
	// PullSecrets are copied to the pods' namespace to pull Image. (optional)
	PullSecrets []api.PullSecret
	// Timeout bounds each wait; 0 is ten minutes.
	Timeout time.Duration
	// DryRun is DryRunClient, DryRunServer or "".
	DryRun string
	// Force installs despite reasons not to.
	Force bool
	// StopProxy stops the DaemonSet kube-proxy if the profile replaces it. Uninstall starts it again.
	StopProxy bool
	// Out receives the output of a dry run; Say reports slow steps. (both optional)
	Out io.Writer
	Say func(format string, args ...any)
}

const (
	defaultTimeout = 10 * time.Minute
	// pause is the interval of polling.
	pause = 500 * time.Millisecond
)

// Installer installs and uninstalls recipes on one cluster. It is not safe for concurrent use.
type Installer struct {
	Options
	client  *api.Client
	dynamic dynamic.Interface
	mapper  *api.Mapper
}

// NewInstaller returns an Installer for the cluster of config.
func NewInstaller(config *rest.Config, o Options) (*Installer, error) {
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if o.DryRun != "" && o.DryRun != DryRunClient && o.DryRun != DryRunServer {
		return nil, fmt.Errorf("dry run %q: want %s or %s", o.DryRun, DryRunClient, DryRunServer)
	}
	clients, err := detect.ClientsOf(config)
	if err != nil {
		return nil, err
	}
	return &Installer{Options: o, client: clients.Kube, dynamic: clients.Dynamic, mapper: api.NewMapper(clients.Kube)}, nil
}

// RefusedError lists the reasons against an installation. The cluster is unchanged.
type RefusedError struct {
	Profile string
	Reasons []string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s is not installed:\n%s", e.Profile, strings.Join(e.Reasons, "\n"))
}

// Install installs the recipe of a profile and waits until pods get addresses. It fails with a *RefusedError if there are
// reasons against it, and with a *MissingError if parameters are missing. Objects applied before a failure are recorded,
// so that Uninstall finds them.
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
			i.Say("despite: %s", r)
		}
	}
	inv := &inventory{Profile: profile, Variant: out.Variant.Name, Versions: out.Recipe.Versions(out.Variant), Wait: out.Variant.Wait, Source: i.Source}
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

// Prepare renders the recipe of a profile. Parameters that are not given are read from the cluster.
func (i *Installer) Prepare(ctx context.Context, profile string) (Rendered, error) {
	r, err := Lookup(profile)
	if err != nil {
		return Rendered{}, err
	}
	p, err := i.Learn(ctx)
	if err != nil {
		return Rendered{}, err
	}
	r = r.At(i.Version)
	return Render(r, i.variant(r), p, i.Sets)
}

// variant returns the name of the variant in Options, else of the first that is not for RKE2 or kind, else "".
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

// actAll performs the actions in order. Actions that write conflists come last, all together.
func (i *Installer) actAll(ctx context.Context, inv *inventory, out Rendered) error {
	var conflists []Action
	for n, a := range out.Actions {
		if a.Kind == plantConflist {
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

// act performs one action. It fails for a kind that the API server cannot do.
func (i *Installer) act(ctx context.Context, inv *inventory, a Action) error {
	switch a.Kind {
	case installChart:
		return i.chart(ctx, inv, a)
	case applyManifest:
		text, err := i.manifest(ctx, a.Manifest)
		if err != nil {
			return err
		}
		objects, err := merged(text, a.Text)
		if err != nil {
			return err
		}
		return i.apply(ctx, inv, objects)
	case applyObjects:
		objects, err := decodeObjects(a.Text)
		if err != nil {
			return err
		}
		return i.apply(ctx, inv, objects)
	case MakeKind:
		i.Say("the cluster exists: its configuration is not changed")
		return nil
	}
	return fmt.Errorf("%s cannot be done through the API server", a.Kind)
}
