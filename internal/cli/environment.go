package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/image"
	"github.com/cnibench/cnibench/internal/env/kind"
	"github.com/cnibench/cnibench/internal/env/kube/clusters"
	"github.com/cnibench/cnibench/internal/plan"
)

// openEnvironment opens the environment of a plan. The returned plan has the profile names that were detected on clusters.
func (p *program) openEnvironment(ctx context.Context, want plan.Plan, say func(string, ...any)) (env.Environment, plan.Plan, error) {
	if want.OnCluster() && want.Cluster.Image == "" && want.Environment != plan.EnvKind && len(want.Tools()) == 0 && !image.Released(buildVersion()) {
		say("%s is a development build, whose image is in no registry: bring %s to the nodes by cnibench image --load, or give --image", buildVersion(), image.DefaultName(buildVersion()))
	}
	tools := want.Tools()
	if want.OnCluster() && len(tools) > 0 && want.Environment != plan.EnvKind {
		if err := checkImageTools(ctx, want.Cluster.Image, tools, say); err != nil {
			return nil, want, err
		}
	}
	switch o := p.clusterOptions(say); {
	case want.Environment == plan.EnvKind:
		binary, err := ownBinary()
		if err != nil {
			return nil, want, err
		}
		own := image.Spec{Name: image.DefaultName(buildVersion()), Version: buildVersion(), Binaries: []image.Binary{binary}}
		if len(tools) > 0 { // before a cluster is made
			own.Name, own.Tools = image.ToolsName(own.Version, tools), tools
			if own.Programs, err = toolPrograms(tools); err != nil {
				return nil, want, usageError(err)
			}
		}
		agents, err := image.Build(own)
		if err != nil {
			return nil, want, err
		}
		return convertEnvironment(kind.Open(ctx, want, agents, o))
	case want.OnCluster() && want.Cluster.Install:
		e, found, err := convertEnvironment(clusters.OpenInTurn(ctx, want, o))
		return e, found, recipeError(err)
	case want.OnCluster():
		return convertEnvironment(clusters.Open(ctx, want, o))
	}
	e, err := p.openLab(ctx, want, say)
	return e, want, err
}

// checkImageTools fails if the image called agents is known to lack one of the tools. If neither its tag nor its registry
// tells the tools, it returns nil, because the pods are asked later. If agents is "", it only prints how to provide an
// image.
func checkImageTools(ctx context.Context, agents string, tools []string, say func(string, ...any)) error {
	if agents == "" {
		say("the pods need an image with %s: bring %s to the nodes by cnibench image --with %s --load, or give --image", strings.Join(tools, ", "),
			image.ToolsName(buildVersion(), tools), strings.Join(tools, ","))
		return nil
	}
	has, known := image.ToolsOf(ctx, agents)
	lacks := slices.DeleteFunc(slices.Clone(tools), func(t string) bool { return !known || slices.Contains(has, t) })
	if len(lacks) == 0 {
		return nil
	}
	return usageError(image.MissingTools(agents, lacks, tools))
}

// convertEnvironment returns its arguments, with e as the interface env.Environment. If err is not nil, it returns a nil
// interface, never an interface that holds a nil pointer.
func convertEnvironment[E env.Environment](e E, want plan.Plan, err error) (env.Environment, plan.Plan, error) {
	if err != nil {
		return nil, want, err
	}
	return e, want, nil
}

func (p *program) clusterOptions(say func(string, ...any)) clusters.Options {
	return clusters.Options{Kubeconfig: p.kubeconfig, Version: buildVersion(), Charts: p.charts, Say: say, Leaves: p.noteLeftover, Shared: p.shared, Settle: p.settle}
}
