// Package kind is the environment `--env kind`: it creates a kind cluster for each profile, installs the profile's CNI
// there, and removes the cluster again. It needs a container engine.
//
// All nodes of a kind cluster are containers of one machine: the results are the cost of software, without a wire
// between the nodes. Tests replace containerEngine, and need no containers.
package kind

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// containerEngine makes and deletes kind clusters.
type containerEngine interface {
	// List returns the names of the existing clusters.
	List() ([]string, error)
	// Create makes a cluster from a configuration in YAML and writes its kubeconfig to a file.
	Create(name, config, kubeconfig string) error
	// Delete removes a cluster; a missing cluster is not an error.
	Delete(name, kubeconfig string) error
}

// upOptions describe the cluster to make.
type upOptions struct {
	// Variant is the profile to install, with the version and the values of its chart.
	Variant plan.Variant
	// Kubeconfig is the file to create for the cluster. It is removed with the cluster.
	Kubeconfig string
	// Charts is a file or a directory with charts and manifests to use instead of downloads. (optional)
	Charts string
	// Say reports slow steps. (optional)
	Say func(format string, args ...any)
}

// kindCluster is a kind cluster with its profile installed.
type kindCluster struct {
	// Name is the name in kind, Kubeconfig the file that gives access to it.
	Name, Kubeconfig string
	provider         containerEngine
}

// clusterName returns the name of the cluster for a variant: "cnibench-" and the profile. A hash follows if the variant
// has settings of its own.
func clusterName(v plan.Variant) string {
	name := "cnibench-" + v.Profile()
	if own := v.Conditions(); own != "" {
		h := fnv.New32a()
		_, _ = h.Write([]byte(own)) // it never fails
		name += fmt.Sprintf("-%08x", h.Sum32())
	}
	return name
}

// createCluster creates a cluster and installs the profile there. It fails if a cluster with this name exists already. After
// any other error it removes the new cluster. The error also says if the removal failed.
func createCluster(ctx context.Context, p containerEngine, o upOptions) (*kindCluster, error) {
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	config, params, err := renderConfig(o.Variant)
	if err != nil {
		return nil, err
	}
	c := &kindCluster{Name: params.Cluster, Kubeconfig: o.Kubeconfig, provider: p}
	if err := checkAbsent(p, o.Variant); err != nil {
		return nil, err
	}
	o.Say("making kind cluster %s", c.Name)
	if err := p.Create(c.Name, config, o.Kubeconfig); err != nil {
		return nil, errors.Join(fmt.Errorf("kind cluster %s: %w", c.Name, err), c.Close(ctx))
	}
	if err := c.installProfile(ctx, o, params); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return c, nil
}

// checkVariants returns an error that lists the variants for which no kind cluster can be made. It returns nil if
// there are none.
func checkVariants(variants ...plan.Variant) error {
	var faults []error
	for _, name := range variants {
		if _, _, err := renderConfig(name); err != nil {
			faults = append(faults, fmt.Errorf("no kind cluster for %s: %w", name, err))
		}
	}
	return errors.Join(faults...)
}

// checkAbsent returns an error that lists the clusters of variants that exist already. It also fails if the container engine
// does not answer.
func checkAbsent(p containerEngine, variants ...plan.Variant) error {
	there, err := p.List()
	if err != nil {
		return advice.With(fmt.Errorf("kind: %w", err), "see whether the container engine answers: docker ps (or podman ps, nerdctl ps)")
	}
	var errs []error
	for _, v := range variants {
		if name := clusterName(v); slices.Contains(there, name) {
			errs = append(errs, advice.With(fmt.Errorf("there is a kind cluster %s already", name), "kind delete cluster --name "+name+" removes it"))
		}
	}
	return errors.Join(errs...)
}

// renderConfig returns the configuration of the cluster for a variant, and the parameters of its recipe.
func renderConfig(v plan.Variant) (config string, params recipe.Params, err error) {
	r, err := recipe.Lookup(v.Profile())
	if err != nil {
		return "", params, err
	}
	params = recipe.Params{Cluster: clusterName(v)}.WithDefaults()
	out, err := recipe.Render(r, recipe.Kind, params, nil)
	for _, a := range out.Actions {
		if a.Kind == recipe.MakeKind {
			config = a.Text
		}
	}
	return config, params, err
}

func (c *kindCluster) installProfile(ctx context.Context, o upOptions, params recipe.Params) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("kind cluster %s: %w", c.Name, err)
	}
	version, sets := o.Variant.Recipe()
	i, err := recipe.NewInstaller(config, recipe.Options{For: recipe.Kind, Params: params, Version: version, Sets: sets, Source: o.Charts, Say: o.Say})
	if err != nil {
		return err
	}
	return i.Install(ctx, o.Variant.Profile())
}

// Close removes the cluster and its kubeconfig, even after ctx has ended.
func (c *kindCluster) Close(context.Context) error {
	err := c.provider.Delete(c.Name, c.Kubeconfig)
	if err != nil {
		err = advice.With(fmt.Errorf("kind cluster %s could not be removed: %w", c.Name, err), "kind delete cluster --name "+c.Name)
	}
	if gone := os.Remove(c.Kubeconfig); gone != nil && !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// engine implements containerEngine with the library of kind.
type engine struct{ *cluster.Provider }

// findEngine returns the library of the tool kind for this machine's container engine. If there is none, the error lists the
// engines that would work.
func findEngine() (containerEngine, error) {
	p, err := detectProvider()
	if err != nil {
		return nil, advice.With(err, "install docker, podman or nerdctl and check docker info, or use --env lab")
	}
	return engine{p}, nil
}

func detectProvider() (*cluster.Provider, error) {
	option, err := cluster.DetectNodeProvider()
	if err != nil {
		return nil, fmt.Errorf("no container engine that kind could use: %w", err)
	}
	return cluster.NewProvider(option), nil
}

func (e engine) Create(name, config, kubeconfig string) error {
	return e.Provider.Create(name, cluster.CreateWithRawConfig([]byte(config)), cluster.CreateWithKubeconfigPath(kubeconfig),
		cluster.CreateWithWaitForReady(0), cluster.CreateWithDisplayUsage(false), cluster.CreateWithDisplaySalutation(false))
}
