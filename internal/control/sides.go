package control

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan/condition"
)

// SideError is an error of one side.
type SideError struct {
	// Side is SideClient or SideServer.
	Side string
	Err  error
}

func (e *SideError) Error() string { return e.Side + ": " + e.Err.Error() }
func (e *SideError) Unwrap() error { return e.Err }

// Sides are the agents at the ends of a route.
type Sides struct {
	Client  *Client
	Servers []*Client
}

// Apart reports whether all servers are on other machines than the client. An agent whose machine is unknown counts as
// not apart.
func (s Sides) Apart() bool {
	home := s.Client.Hello().Machine
	return !slices.ContainsFunc(s.Servers, func(x *Client) bool {
		there := x.Hello().Machine
		return home == "" || there == "" || there == home
	})
}

// Prepare prepares the servers for a workload, then the client. ask is the request to both sides. Prepare calls e.Ready
// first and e.Connected last.
func (s Sides) Prepare(ctx context.Context, e Ends, ask Prepare) error {
	ask.Apart = s.Apart()
	port, err := Listen(ctx, s.Servers, s.Client.Hello(), e, ask)
	if err != nil {
		return err
	}
	ask.Side, ask.Name = SideClient, ""
	ask.Address, ask.Port, ask.CPUs = e.Servers[0].Address, e.Servers[0].Port, e.Client.CPUs
	ask.Pinned = chooseCPUs(s.Client.Hello(), s.Servers[0].Hello(), ask, 0)
	if ask.Port == 0 {
		ask.Port = port
	}
	if _, err := s.Client.Prepare(ctx, ask); err != nil {
		return &SideError{SideClient, err}
	}
	if e.Connected != nil {
		return e.Connected()
	}
	return nil
}

// Listen prepares servers, and returns the port of the first: the client dials the port that the server chose. The
// servers avoid the CPUs of client. It calls e.Ready first.
func Listen(ctx context.Context, servers []*Client, client Hello, e Ends, ask Prepare) (port int, err error) {
	if e.Ready != nil {
		if err := e.Ready(); err != nil {
			return 0, err
		}
	}
	for i, s := range servers {
		end := e.Servers[i]
		ask.Side, ask.Name = SideServer, end.Name
		ask.Address, ask.Port, ask.CPUs = end.ListenAddress, end.ListenPort, end.CPUs
		ask.Pinned = chooseCPUs(s.Hello(), client, ask, 1)
		ready, err := s.Prepare(ctx, ask)
		if err != nil {
			return 0, &SideError{SideServer, err}
		}
		if i == 0 {
			port = ready.Port
		}
	}
	return port, nil
}

// chooseCPUs returns the CPUs for a side's load threads if the environment has chosen none. They are the idlest CPUs of
// its node, one for each thread. If both sides are on one machine, ask.Placement decides: they share the highest CPU,
// or each takes every second CPU. turn (0 or 1) is then the index of this side's first CPU.
func chooseCPUs(own, other Hello, ask Prepare, turn int) []int {
	cpus := own.Idle
	if own.Machine == other.Machine && len(cpus) > 1 {
		if ask.Placement.On(len(cpus)) == condition.PlacementOne {
			return []int{slices.Max(cpus)}
		}
		cpus = nil
		for i := turn; i < len(own.Idle); i += 2 {
			cpus = append(cpus, own.Idle[i])
		}
	}
	return cpus[:min(len(cpus), max(1, ask.Workload.Traits().Flows))]
}

// Run starts the servers, then the client, calls running, and waits for all of them. Each server delays its window by
// the time that the client's start takes, so that their windows coincide. If a side fails, the others are given up at
// once, and Run returns the first failure. It merges the observations of several servers.
func (s Sides) Run(ctx context.Context, running func()) (client, server *sample.Observation, err error) {
	later := s.Client.RoundTrip() / 2
	for _, x := range s.Servers {
		later += x.RoundTrip()
	}
	for _, x := range s.Servers {
		later -= x.RoundTrip() / 2
		if err := x.Start(ctx, later); err != nil {
			return nil, nil, &SideError{SideServer, err}
		}
		later -= x.RoundTrip() / 2
	}
	if err := s.Client.Start(ctx, 0); err != nil {
		return nil, nil, &SideError{SideClient, err}
	}
	running()
	both, ctx := errgroup.WithContext(ctx)
	seen := make([]*sample.Observation, len(s.Servers))
	for i, x := range s.Servers {
		both.Go(func() (err error) {
			if seen[i], err = x.Wait(ctx); err != nil {
				return &SideError{SideServer, err}
			}
			return nil
		})
	}
	both.Go(func() (err error) {
		if client, err = s.Client.Wait(ctx); err != nil {
			return &SideError{SideClient, err}
		}
		if client.Tool == nil {
			return nil
		}
		for _, x := range s.Servers { // servers of a tool do not notice that their client has ended
			if err := x.Finish(ctx); err != nil {
				return &SideError{SideServer, err}
			}
		}
		return nil
	})
	if err := both.Wait(); err != nil {
		return nil, nil, err
	}
	return client, sample.Merge(seen, client.Machine), nil
}
