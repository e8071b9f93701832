package control

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Members are the agents of the members of a job: the client is the first, the servers are the others in order.
type Members Sides

// allEndpoints returns the endpoints of all members.
func (m Members) allEndpoints(e Ends) []Endpoint { return append([]Endpoint{e.Client}, e.Servers...) }

// allClients returns the agents of all members.
func (m Members) allClients() []*Client { return append([]*Client{m.Client}, m.Servers...) }

// sideOf returns the side of a member.
func sideOf(rank int) string {
	if rank == 0 {
		return SideClient
	}
	return SideServer
}

// Prepare prepares all members, the last first: each dials the members after it, which listen by then. It calls
// e.Ready first and e.Connected last.
func (m Members) Prepare(ctx context.Context, e Ends, ask Prepare) error {
	if e.Ready != nil {
		if err := e.Ready(); err != nil {
			return err
		}
	}
	ends, all := m.allEndpoints(e), m.allClients()
	peers := each.Of(ends, func(end Endpoint) Peer { return Peer{Name: end.Name, Address: end.Address, Port: end.Port} })
	for rank := len(all) - 1; rank >= 0; rank-- {
		ask.Side, ask.Seat = sideOf(rank), &Seat{Rank: rank, Members: peers}
		ask.Address, ask.Port, ask.CPUs = ends[rank].ListenAddress, ends[rank].ListenPort, ends[rank].CPUs
		if idle := all[rank].Hello().Idle; len(idle) > 0 {
			ask.Pinned = idle[rank%len(idle):][:1] // members of one machine take turns
		}
		ready, err := all[rank].Prepare(ctx, ask)
		if err != nil {
			return &SideError{ask.Side, err}
		}
		if peers[rank].Port == 0 {
			peers[rank].Port = ready.Port
		}
	}
	if e.Connected != nil {
		return e.Connected()
	}
	return nil
}

// settling is how long Run waits for errors of other members after the first error. The agent of a lost member shows
// the loss, but the member's neighbours may report it sooner.
const settling = 2 * time.Second

// LostError is the error of a job that continues without a member: the agent of the member with this rank is gone.
// Before is what the first member observed of the steps until then.
type LostError struct {
	Rank   int
	Before *sample.Observation
	Err    error
}

func (e *LostError) Error() string { return e.Err.Error() }
func (e *LostError) Unwrap() error { return e.Err }

// Without returns m and e without the member with this rank. The rank must not be 0.
func (m Members) Without(rank int, e Ends) (Members, Ends) {
	m.Servers = slices.Delete(slices.Clone(m.Servers), rank-1, rank)
	e.Servers = slices.Delete(slices.Clone(e.Servers), rank-1, rank)
	return m, e
}

// Run starts all members, from the last to the first, calls running, and waits for all of them. It returns their merged
// observation. If members fail, Run gives up the others and returns one error, preferably that of a member whose agent
// is gone. If continues is true and the other members can continue, that error is a *LostError.
func (m Members) Run(ctx context.Context, continues bool, running func()) (*sample.Observation, error) {
	all := m.allClients()
	for rank := len(all) - 1; rank >= 0; rank-- {
		if err := all[rank].Start(ctx, 0); err != nil {
			return nil, &SideError{sideOf(rank), err}
		}
	}
	running()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type end struct {
		rank int
		seen *sample.Observation
		err  error
	}
	ended := make(chan end, len(all))
	for rank, c := range all {
		go func() {
			o, err := c.Wait(ctx)
			ended <- end{rank, o, err}
		}()
	}
	seen, first := make([]*sample.Observation, len(all)), false // first is true once the first member has ended
	var failed error
	lost := 0
	for range all {
		e := <-ended
		seen[e.rank], first = e.seen, first || e.rank == 0
		if e.err != nil && (failed == nil || isLost(e.err) && !isLost(failed)) {
			failed = &SideError{sideOf(e.rank), e.err}
			time.AfterFunc(settling, stop)
			if lost = e.rank; isLost(failed) && continues && lost > 0 {
				_ = m.Client.Finish(ctx) // an error here fails the trial through its missing observation
			}
		}
		if isLost(failed) && (!continues || lost == 0 || first) {
			break
		}
	}
	switch before := seen[0]; {
	case failed == nil:
		return sample.Gather(seen), nil
	case continues && isLost(failed) && before != nil && before.Job != nil && before.Job.Loss != nil:
		return nil, &LostError{lost, before, failed}
	}
	return nil, failed
}

// isLost reports whether an error means that an agent is gone.
func isLost(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Kind == KindGone || e.Kind == KindLost)
}
