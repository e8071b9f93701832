// Package kind makes a kind cluster for a profile, installs the profile's CNI there and takes the cluster away again:
// the environment `--env kind`, for who has no cluster and a container engine.
//
// All nodes of a kind cluster are containers of one machine: what is measured there is the cost of software, with no wire
// between the nodes. Provider is all that is asked of kind, so that the rest can be tested where no containers run.
package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Provider makes and deletes kind clusters.
type Provider interface {
	// List returns the names of the clusters that there are.
	List() ([]string, error)
	// Create makes a cluster of a configuration in YAML and writes the file to reach it by.
	Create(name, config, kubeconfig string) error
	// Delete takes a cluster away; one that is not there is no error.
	Delete(name, kubeconfig string) error
}

// Prefix begins the names of clusters that are made here: what a killed run left is found by it.
const Prefix = "cnibench-"

// Options say which cluster to make.
type Options struct {
	// Profile is the one to install.
	Profile string
	// Kubeconfig is the file that will lead to the cluster; it is made, and removed with the cluster.
	Kubeconfig string
	// Params and Install are those of the recipe; Install.For is ignored.
	Params  recipe.Params
	Install recipe.Options
	// Say is told what takes its time. (optional)
	Say func(format string, args ...any)
}

// Cluster is a kind cluster with its profile installed.
type Cluster struct {
	// Name is kind's, Kubeconfig the file to reach it by.
	Name, Kubeconfig string
	provider         Provider
}

// Name returns the name of the cluster for a profile.
func Name(profile string) string { return Prefix + profile }

// Up makes a cluster for the profile and installs it. On an error nothing of it is left, and what could not be taken away
// is told with it. A cluster of the name that is there already is not touched, and an error.
func Up(ctx context.Context, p Provider, o Options) (*Cluster, error) {
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	out, params, err := render(o)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Name: params.Cluster, Kubeconfig: o.Kubeconfig, provider: p}
	if err := Absent(p, o.Profile); err != nil {
		return nil, err
	}
	o.Say("making kind cluster %s", c.Name)
	if err := p.Create(c.Name, configOf(out), o.Kubeconfig); err != nil {
		return nil, errors.Join(fmt.Errorf("kind cluster %s: %w", c.Name, err), c.Close(ctx))
	}
	if err := c.install(ctx, o, params); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return c, nil
}

// Check returns an error that names every one of the profiles that Up cannot make a cluster for.
func Check(profiles []string, o Options) error {
	var faults []error
	for _, o.Profile = range profiles {
		if _, _, err := render(o); err != nil {
			faults = append(faults, fmt.Errorf("no kind cluster for %s: %w", o.Profile, err))
		}
	}
	return errors.Join(faults...)
}

// Absent returns an error that names every one of the profiles whose cluster is there already.
func Absent(p Provider, profiles ...string) error {
	there, err := p.List()
	if err != nil {
		return advice.With(fmt.Errorf("kind: %w", err), "see whether the container engine answers: docker ps (or podman ps, nerdctl ps)")
	}
	var errs []error
	for _, profile := range profiles {
		if name := Name(profile); slices.Contains(there, name) {
			errs = append(errs, advice.With(fmt.Errorf("there is a kind cluster %s already", name), "kind delete cluster --name "+name+" removes it"))
		}
	}
	return errors.Join(errs...)
}

// render returns what is to be made for a profile, and the parameters that it is made by.
func render(o Options) (out recipe.Rendered, params recipe.Params, err error) {
	r, err := recipe.Lookup(o.Profile)
	if err != nil {
		return out, params, err
	}
	params = o.Params.WithDefaults()
	params.Cluster = Name(o.Profile)
	out, err = recipe.Render(r, recipe.Kind, params, o.Install.Sets)
	return out, params, err
}

// configOf returns the configuration of the cluster itself.
func configOf(out recipe.Rendered) string {
	for _, a := range out.Actions {
		if a.Kind == recipe.MakeKind {
			return a.Text
		}
	}
	return ""
}

// install installs the profile on the cluster that stands.
func (c *Cluster) install(ctx context.Context, o Options, params recipe.Params) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("kind cluster %s: %w", c.Name, err)
	}
	o.Install.For, o.Install.Params, o.Install.Say = recipe.Kind, params, o.Say
	i, err := recipe.NewInstaller(config, o.Install)
	if err != nil {
		return err
	}
	return i.Install(ctx, o.Profile)
}

// Close takes the cluster and its kubeconfig away. It does so although ctx is done already.
func (c *Cluster) Close(context.Context) error {
	err := c.provider.Delete(c.Name, c.Kubeconfig)
	if err != nil {
		err = advice.With(fmt.Errorf("kind cluster %s could not be removed: %w", c.Name, err), "kind delete cluster --name "+c.Name)
	}
	if gone := os.Remove(c.Kubeconfig); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// Clean takes away every cluster that was made here and left, and returns their names.
func Clean(p Provider) ([]string, error) {
	there, err := p.List()
	if err != nil {
		return nil, err
	}
	var gone []string
	var errs []error
	for _, name := range there {
		if !strings.HasPrefix(name, Prefix) {
			continue
		}
		if err := p.Delete(name, ""); err != nil {
			errs = append(errs, fmt.Errorf("kind cluster %s: %w", name, err))
			continue
		}
		gone = append(gone, name)
	}
	return gone, errors.Join(errs...)
}

// engine is kind on the container engine of this machine.
type engine struct{ p *cluster.Provider }

// Engine returns kind on the container engine that this machine has. The error says which there may be.
func Engine() (Provider, error) {
	option, err := cluster.DetectNodeProvider()
	if err != nil {
		return nil, advice.With(fmt.Errorf("no container engine that kind could use: %w", err),
			"install docker, podman or nerdctl and see that it answers you (docker info), or measure the lab (--env lab) or a cluster (--env kubernetes)")
	}
	return engine{cluster.NewProvider(option)}, nil
}

func (e engine) List() ([]string, error) { return e.p.List() }

func (e engine) Create(name, config, kubeconfig string) error {
	return e.p.Create(name, cluster.CreateWithRawConfig([]byte(config)), cluster.CreateWithKubeconfigPath(kubeconfig),
		cluster.CreateWithWaitForReady(0), cluster.CreateWithDisplayUsage(false), cluster.CreateWithDisplaySalutation(false))
}

func (e engine) Delete(name, kubeconfig string) error { return e.p.Delete(name, kubeconfig) }
