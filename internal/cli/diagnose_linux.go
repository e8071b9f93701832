package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab/attach"
	"github.com/cnibench/cnibench/internal/env/lab/standing"
	"github.com/cnibench/cnibench/internal/plan"
)

// labVariant returns the variant of a lab that is up.
func labVariant(name string) (plan.Variant, error) {
	all, err := attach.Describe(name, os.Getenv("SUDO_UID"))
	if err != nil {
		return "", err
	}
	if len(all) != 1 {
		return "", usage(fmt.Errorf("lab %q has %d profiles: want one, as lab up has", name, len(all)))
	}
	return all[0].Name, nil
}

// openDiagnosed opens the lab called lab, or with "" the environment of a plan. A lab that is raised for the purpose is looked
// into as one that is up.
func (p *program) openDiagnosed(ctx context.Context, want plan.Plan, lab string, say func(string, ...any)) (env.Environment, plan.Plan, error) {
	var raised env.Environment
	if lab == "" {
		e, found, err := p.openEnvironment(ctx, want, say)
		if err != nil || found.OnCluster() {
			return e, found, err
		}
		raised, lab = e, runLab()
	}
	e, err := standing.Open(ctx, standing.Options{
		Lab: lab, Profile: want.Profiles[0], Sudo: os.Getenv("SUDO_UID"), Program: []string{thisProgram}, Version: buildVersion(),
	})
	if err != nil {
		if raised != nil {
			err = env.Close(ctx, raised, err)
		}
		return nil, want, err
	}
	if raised == nil {
		return e, want, nil
	}
	return raisedLab{e, raised}, want, nil
}

// raisedLab is a lab that was raised to be diagnosed.
type raisedLab struct {
	*standing.Environment
	raised env.Environment
}

// Close ends the agents, and the lab.
func (r raisedLab) Close(ctx context.Context) error {
	return errors.Join(r.Environment.Close(ctx), r.raised.Close(ctx))
}
