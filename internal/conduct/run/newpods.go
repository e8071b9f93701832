package run

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// noNewPods is why a case is not measured where the environment cannot make pods within a trial.
const noNewPods = "no pods can be made there while it is measured"

// measureNewPods measures new pods: the servers are agents as in other trials, and the clients are pods that the environment
// starts during the window. It fails if the environment cannot start them or a server fails.
func (a attempt) measureNewPods(ctx context.Context) (seen, error) {
	servers, err := a.agents.ensureServers(ctx, a.ends)
	if err != nil {
		return seen{}, err
	}
	ask := a.agentRequest()
	ask.Warmup = 0 // the first pod comes before the servers' window
	is := a.workload.Traits()
	site := a.env.At(a.Profile).(env.PodMaker) // surveyPlan has asked it
	if site.LatePods() {
		ask.Window, ask.Timeout = ask.Window+is.Timeout, ask.Timeout+is.Timeout
	}
	port, err := control.Listen(ctx, servers, control.Hello{}, a.ends, ask)
	if err != nil {
		return seen{}, err
	}
	both, ctx := errgroup.WithContext(ctx)
	served := make([]*sample.Observation, len(servers))
	opens := func() error {
		for i, s := range servers {
			if err := s.Start(ctx, 0); err != nil {
				return &control.SideError{Side: control.SideServer, Err: err}
			}
			both.Go(func() (err error) {
				if served[i], err = s.Wait(ctx); err != nil {
					return &control.SideError{Side: control.SideServer, Err: err}
				}
				return nil
			})
		}
		return nil
	}
	of := control.Arrivals{Route: a.Route(), To: a.ends.Servers[0], Rate: is.Rate, Window: a.window, Timeout: is.Timeout + a.roundTripDelay(), Opens: opens}
	if of.To.Port == 0 {
		of.To.Port = port
	}
	client, err := site.NewPods(ctx, of)
	if err != nil {
		both.Go(func() error { return &control.SideError{Side: control.SideClient, Err: err} })
	}
	if err := both.Wait(); err != nil {
		return seen{}, err
	}
	return seen{client: client, server: sample.Merge(served, client.Machine), windowNs: client.ElapsedNs}, nil
}
