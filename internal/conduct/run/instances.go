package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
)

// instances records which instances of the profiles the run has raised. Instances of a profile are numbered from 1.
type instances struct {
	// last is the number of a profile's latest instance. block is the block of repetitions, counted from 0, in which this
	// instance is measured.
	last, block map[plan.Variant]int
	// broken has the reason why the current instance of a profile cannot be measured on a path.
	broken map[plan.Route]error
}

// renewInstances raises new instances of the profiles of the next trials, if they were last measured in an earlier
// block of repetitions. It also checks their paths and writes what raising them cost. If the budget is too short, it
// returns a reason to stop the run.
func (c *conductor) renewInstances(ctx context.Context, trials []plan.Trial) (string, error) {
	if len(trials) == 0 {
		return "", nil
	}
	rep := trials[0].Repetition
	block := (rep - 1) / c.plan.Block()
	var old []plan.Variant
	for _, t := range trials {
		if at, measured := c.instances.block[t.Profile]; measured && at == block {
			continue
		}
		site, ok := c.env.At(t.Profile).(env.Renewer)
		if !ok {
			continue
		}
		for _, v := range site.Renews(t.Profile) {
			if _, measured := c.instances.block[v]; measured {
				old = append(old, v)
			}
			c.instances.block[v] = block
			c.instances.last[v]++
		}
	}
	if len(old) == 0 {
		return "", nil
	}
	if reason := c.stopReason(ctx, rep, c.plan.RaiseTime(old)); reason != "" {
		return reason, nil
	}
	began := time.Now()
	c.reportStep("raising %d profiles anew for repetition %d", len(old), rep)
	c.replaceInstances(ctx, old)
	c.checkPaths(ctx, old, trials)
	c.progress.spent += time.Since(began)
	return "", c.writeRaiseCosts(old)
}

// replaceInstances ends the agents of profiles, raises new instances of the profiles and finds their endpoints. It
// marks a path as broken if its profile cannot be raised or its endpoints are not found.
func (c *conductor) replaceInstances(ctx context.Context, old []plan.Variant) {
	routes := slices.DeleteFunc(c.plan.Routes(), func(r plan.Route) bool {
		_, served := c.survey.routes[r]
		return !served || !slices.Contains(old, r.Variant)
	})
	for _, r := range routes {
		c.agents.endAgents(c.survey.routes[r])
	}
	c.missing = slices.DeleteFunc(c.missing, func(b control.Backend) bool { return slices.Contains(old, b.Route.Variant) })
	failed := c.raiseInstances(ctx, old)
	for _, v := range old {
		if failed[v] != nil {
			c.instances.last[v]-- // nothing is measured on it
		}
	}
	for _, r := range routes {
		err, one := failed[r.Variant], plan.Single(r.Variant, r.Path)
		if err == nil {
			c.survey.routes[r], err = c.env.At(r.Variant).Endpoints(ctx, r)
		}
		if r == one {
			delete(c.instances.broken, one)
		}
		if err != nil {
			c.instances.broken[one] = fmt.Errorf("raised anew: %w", err)
		}
	}
}

// raiseInstances raises new instances of the variants in old, one site after the other. It returns an error for each
// variant that is not up afterwards.
func (c *conductor) raiseInstances(ctx context.Context, old []plan.Variant) map[plan.Variant]error {
	sites := map[string][]plan.Variant{}
	for _, v := range old {
		sites[v.Context()] = append(sites[v.Context()], v)
	}
	failed := map[plan.Variant]error{}
	for _, context := range slices.Sorted(maps.Keys(sites)) {
		names := sites[context]
		maps.Copy(failed, c.env.At(names[0]).(env.Renewer).Renew(ctx, names)) // renewInstances has asked it
	}
	return failed
}

// writeRaiseCosts writes to the file what it cost to raise the latest instances of variants. It omits variants that
// are skipped or whose cost the environment does not know.
func (c *conductor) writeRaiseCosts(variants []plan.Variant) error {
	for _, v := range variants {
		site, ok := c.env.At(v).(env.Raiser)
		if !ok {
			continue
		}
		metrics, skipped := site.Raised(v), func(p result.Profile) bool { return p.Name == v && p.Skipped != "" }
		if metrics == nil || slices.ContainsFunc(c.survey.profiles, skipped) {
			continue
		}
		if err := c.out.Raised(result.Raised{Profile: v, Instance: max(1, c.instances.last[v]), Metrics: metrics}); err != nil {
			return err
		}
	}
	return nil
}

// checkPaths tries a TCP connection on every path of the next trials under the profiles that were raised again. It
// marks a path as broken if the connection fails.
func (c *conductor) checkPaths(ctx context.Context, renewed []plan.Variant, trials []plan.Trial) {
	rr := plan.Workload{Spec: plan.RR{}}.Normalize()
	seen := map[plan.Route]bool{}
	for _, t := range trials {
		r := plan.Single(t.Profile, t.Path)
		if seen[r] || !slices.Contains(renewed, t.Profile) || c.instances.broken[r] != nil || rr.Barred(t.Path) != "" {
			continue
		}
		seen[r] = true
		k := plan.Case{Profile: t.Profile, Path: t.Path, Workload: rr}
		e := c.survey.routes[r]
		a := attempt{conductor: c, Case: k, route: k.Route(), ends: e, workload: rr, span: span{window: c.plan.Duration}}
		limit := a.timeLimit()
		bounded, stop := context.WithTimeout(ctx, limit)
		// The client connects when it is made ready.
		_, err := a.prepareSides(bounded)
		stop()
		if err != nil {
			c.agents.endAgents(e)
			c.instances.broken[r] = fmt.Errorf("raised anew, the path carries no connection: %s", trialFailure(err, limit).Message)
			continue
		}
		client, _ := agentNames(e)
		c.agents.cancelAgent(client)
		c.agents.cancelServers(e)
	}
}

// unraisedRecord returns the record of a trial that failed because its profile is not up.
func unraisedRecord(t plan.Trial, why error) result.Record {
	return result.Record{Type: result.TypeTrial, Trial: t, Status: result.Failed, Started: time.Now().UTC(),
		Error: &result.Failure{Kind: kindNotRaised, Message: fmt.Sprintf("profile %s: %s", t.Profile, why)}}
}
