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

// fieldManager is the field manager of applied objects. label is a label of each applied object; its value is the profile.
const (
	fieldManager = "cnibench"
	label        = "cnibench.dev/recipe"
)

// Dry runs of Options.
const (
	// DryRunClient prints the objects and changes nothing in the cluster.
	DryRunClient = "client"
	// DryRunServer sends the objects to the API server, which validates and does not store them.
	DryRunServer = "server"
)

// Options are the options of an installation.
type Options struct {
	// For is the name of the variant; "" is the first variant that is neither for RKE2 nor for kind.
	For string
	// Params are the parameters of the cluster. Missing parameters are read from the cluster.
	Params Params
	// Version is the version of the recipe's charts and manifests; "" is the recipe's own.
	Version string
	// Sets are --set expressions for the chart.
	Sets []string
	// Source is a chart or a manifest to use instead of the recipe's, or a directory with several of them. (optional)
	Source string
	// Image has cnibench as /cnibench. Pods with this image read and write files on nodes. Without Image, only the
	// leftovers that the API shows are found. (optional)
	Image string
	// PullSecrets are copied to the pods' namespace to pull Image. (optional)
	PullSecrets []api.PullSecret
	// Timeout bounds each wait; 0 is ten minutes.
	Timeout time.Duration
	// DryRun is DryRunClient, DryRunServer or "".
	DryRun string
	// Force installs even if there are reasons not to, such as leftovers of another CNI.
	Force bool
	// StopProxy stops the DaemonSet kube-proxy if the profile replaces it. Uninstall starts it again.
	StopProxy bool
	// Out receives the output of a dry run; Say reports slow steps. (both optional)
	Out io.Writer
	Say func(format string, args ...any)
}

const (
	defaultTimeout = 10 * time.Minute
	// pause is the time between two polls.
	pause = 500 * time.Millisecond
)

// Installer installs and uninstalls recipes on one cluster. It is not safe for concurrent use.
type Installer struct {
	Options
	// Begun is true if the last Install began to change the cluster. If it is false, that Install has installed nothing; an
	// earlier installation of the profile may exist.
	Begun   bool
	client  *api.Client
	dynamic dynamic.Interface
	mapper  *api.Mapper
}

// NewInstaller returns an Installer for the cluster of config. It fails if DryRun is unknown. It contacts no server.
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

// RefusedError means that Install has not changed the cluster, because there are reasons not to install.
type RefusedError struct {
	Profile string
	Reasons []string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s is not installed:\n%s", e.Profile, strings.Join(e.Reasons, "\n"))
}

// Install installs the recipe of a profile and waits until new pods get addresses. Unless Force is set, it fails with a
// *RefusedError if there are reasons not to install. It fails with a *MissingError if parameters are missing. After any
// later failure Uninstall can remove the objects that were applied.
func (i *Installer) Install(ctx context.Context, profile string) error {
	i.Begun = false
	out, err := i.Prepare(ctx, profile)
	if err != nil {
		return err
	}
	if err := out.Installable(); err != nil {
		return err
	}
	reasons, err := i.refusalReasons(ctx, out.Recipe)
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
	if err := inv.copyEarlierRecord(ctx, i); err != nil {
		return err
	}
	i.Begun = i.DryRun == ""
	if i.DryRun == "" && out.Recipe.KubeProxy == "none" && i.StopProxy {
		if err := i.stopProxy(ctx, inv); err != nil {
			return err
		}
	}
	if err := i.performActions(ctx, inv, out); err != nil {
		return fmt.Errorf("%s: %w", profile, err)
	}
	if i.DryRun != "" {
		return nil
	}
	return i.awaitInstallation(ctx, inv)
}

// Prepare renders the recipe of a profile in the variant of Options. It reads missing parameters from the cluster.
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
	return Render(r, i.variantName(r), p, i.Sets)
}

// variantName returns Options.For, or if that is "", the name of the first variant of r that is neither for RKE2 nor for
// kind. It returns "" if there is no such variant.
func (i *Installer) variantName(r Recipe) string {
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

// performActions performs the actions of out in order, except that conflists come last: one DaemonSet writes the conflists
// of all nodes.
func (i *Installer) performActions(ctx context.Context, inv *inventory, out Rendered) error {
	var conflists []Action
	for n, a := range out.Actions {
		if a.Kind == plantConflist {
			conflists = append(conflists, a)
			continue
		}
		i.Say("%d/%d %s", n+1, len(out.Actions), a.Story()[0])
		if err := i.performAction(ctx, inv, a); err != nil {
			return fmt.Errorf("%s: %w", a.Story()[0], err)
		}
	}
	if len(conflists) == 0 {
		return nil
	}
	i.Say("%s on %d nodes", conflists[0].Story()[0], len(conflists))
	return i.applyPlanter(ctx, inv, conflists, out.Params.Nodes)
}

// performAction performs one action. It fails for an action that requires files on the servers.
func (i *Installer) performAction(ctx context.Context, inv *inventory, a Action) error {
	switch a.Kind {
	case installChart:
		return i.applyChart(ctx, inv, a)
	case applyManifest:
		text, err := i.readManifest(ctx, a.Manifest)
		if err != nil {
			return err
		}
		objects, err := patchedObjects(text, a.Text)
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
