package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab/testbed"
	"github.com/cnibench/cnibench/internal/plan"
)

// thisProgram starts another process of this program, also when its file has been replaced.
const thisProgram = "/proc/self/exe"

func openLab(ctx context.Context, p plan.Plan, say func(string, ...any)) (env.Environment, error) {
	return openLabWith(ctx, p, []string{thisProgram, agentVerb}, say)
}

// openLabWith does so with another command line for agents.
func openLabWith(ctx context.Context, p plan.Plan, agent []string, say func(string, ...any)) (env.Environment, error) {
	o := testbed.Options{Agent: agent, Version: buildVersion(), Name: fmt.Sprintf("run-%d", os.Getpid()), Say: say}
	if path := os.Getenv("PATH"); path != "" {
		o.Env = []string{"PATH=" + path} // agents start tools
	}
	e, err := testbed.Open(ctx, p, o)
	if err != nil {
		return nil, err
	}
	return e, nil
}
