package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab/testbed"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/plan"
)

// thisProgram is the path by which this program starts itself, even if its file has been replaced.
const thisProgram = "/proc/self/exe"

func openLab(ctx context.Context, p plan.Plan, say func(string, ...any)) (env.Environment, error) {
	return openLabWithAgent(ctx, p, []string{thisProgram, agentVerb}, say)
}

// runLabName returns the name of the lab that this process raises for a run.
func runLabName() string { return fmt.Sprintf("run-%d", os.Getpid()) }

// openLabWithAgent opens the lab of a plan; agent is the command line of its agents.
func openLabWithAgent(ctx context.Context, p plan.Plan, agent []string, say func(string, ...any)) (env.Environment, error) {
	if err := checkCongestion(p); err != nil {
		return nil, err
	}
	o := testbed.Options{Agent: agent, Version: buildVersion(), Name: runLabName(), Say: say}
	if path := os.Getenv("PATH"); path != "" {
		o.Env = []string{"PATH=" + path} // agents start tools
	}
	e, err := testbed.Open(ctx, p, o)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// checkCongestion refuses congestion controls that this kernel does not have, before a profile is raised.
func checkCongestion(p plan.Plan) error {
	for _, w := range p.Workloads {
		name := w.Traits().Congestion
		if name == "" || sock.HasCongestion(name) {
			continue
		}
		have, _ := sock.Congestions() // the message is useful without them
		return usageError(fmt.Errorf("workload %q: this kernel has no congestion control %q: want %s", w, name, strings.Join(have, ", ")))
	}
	return nil
}
