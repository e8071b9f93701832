package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab/testbed"
	"github.com/cnibench/cnibench/internal/plan"
)

// labVariant returns the profile variant of the running lab called name. It fails if there is no such lab, or if the lab has
// several profiles.
func labVariant(name string) (plan.Variant, error) {
	all, err := testbed.Describe(name, os.Getenv("SUDO_UID"))
	if err != nil {
		return plan.Variant{}, unknownNameError(err)
	}
	if len(all) != 1 {
		return plan.Variant{}, usageError(fmt.Errorf("lab %q has %d profiles: want one, as lab up has", name, len(all)))
	}
	return all[0].Name, nil
}

// openLabOrCluster opens the lab named lab, or the environment of a plan if lab is "". A lab that is raised for the
// diagnosis is examined like one that is up.
func (a *diagnosis) openLabOrCluster(ctx context.Context, want plan.Plan, lab string, say func(string, ...any)) (env.Environment, plan.Plan, error) {
	var raised env.Environment
	if lab == "" {
		e, found, err := a.openEnvironment(ctx, want, say)
		if err != nil || found.OnCluster() {
			return e, found, err
		}
		raised, lab = e, runLabName()
	}
	e, err := testbed.OpenStanding(ctx, testbed.StandingOptions{
		Lab: lab, Profile: want.Profiles[0], From: a.from, To: a.to, Sudo: os.Getenv("SUDO_UID"), Program: []string{thisProgram}, Version: buildVersion(),
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

// raisedLab is a lab that the diagnosis raised itself, with the agents of the diagnosis.
type raisedLab struct {
	*testbed.Standing
	raised env.Environment
}

// Close ends the agents, then removes the lab.
func (r raisedLab) Close(ctx context.Context) error {
	return errors.Join(r.Standing.Close(ctx), r.raised.Close(ctx))
}
