package run

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/cnibench/cnibench/internal/control"
)

// pool keeps agents between trials, by the name of their endpoint: starting an agent takes longer than the pause
// between trials.
type pool struct {
	mu      sync.Mutex
	clients map[string]*control.Client
}

// lookup returns the agent called name, false if the pool does not have it. It never starts an agent.
func (p *pool) lookup(name string) (*control.Client, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.clients[name]
	return c, ok
}

// ensureAgent returns the agent called name. It starts the agent at e if the pool does not have it, or if it has
// ended since its last trial.
func (p *pool) ensureAgent(ctx context.Context, name string, e control.Endpoint) (*control.Client, error) {
	if c, ok := p.lookup(name); ok {
		if !c.Gone() {
			return c, nil
		}
		p.endAgent(name)
	}
	c, err := control.Dial(ctx, e)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[name] = c
	return c, nil
}

// cancelAgent cancels the work of an agent that still serves after its trial, so that it does not disturb the next trial. It
// ends the agent if that fails.
func (p *pool) cancelAgent(name string) {
	if c, ok := p.lookup(name); ok && c.Cancel() != nil {
		p.endAgent(name)
	}
}

// endAgent ends an agent and removes it from the pool.
func (p *pool) endAgent(name string) {
	p.mu.Lock()
	c, ok := p.clients[name]
	delete(p.clients, name)
	p.mu.Unlock()
	if ok {
		_ = c.Close() // an error is expected: the agent is discarded because it failed
	}
}

// close ends all agents.
func (p *pool) close() {
	for _, name := range slices.Collect(maps.Keys(p.clients)) {
		p.endAgent(name)
	}
}

// agentNames returns the names under which the pool keeps the agents of both ends. A path from a pod to itself has
// one endpoint and needs two agents: one listens while the other connects.
func agentNames(e control.Ends) (client string, servers []string) {
	for _, s := range e.Servers {
		if s.Name == e.Client.Name {
			s.Name += " (server)"
		}
		servers = append(servers, s.Name)
	}
	return e.Client.Name, servers
}

// ensureSides returns the agents of all ends, and starts those that do not run.
func (p *pool) ensureSides(ctx context.Context, e control.Ends) (s control.Sides, err error) {
	name, _ := agentNames(e)
	if s.Servers, err = p.ensureServers(ctx, e); err != nil {
		return s, err
	}
	if s.Client, err = p.ensureAgent(ctx, name, e.Client); err != nil {
		return s, &control.SideError{Side: control.SideClient, Err: err}
	}
	return s, nil
}

// ensureServers returns the agents of the servers in order, and starts those that do not run.
func (p *pool) ensureServers(ctx context.Context, e control.Ends) ([]*control.Client, error) {
	_, names := agentNames(e)
	var servers []*control.Client
	for i, end := range e.Servers {
		s, err := p.ensureAgent(ctx, names[i], end)
		if err != nil {
			return nil, &control.SideError{Side: control.SideServer, Err: err}
		}
		servers = append(servers, s)
	}
	return servers, nil
}

// cancelServers cancels what the servers of a path still do after a trial. The agents keep running; an agent ends if
// it does not answer.
func (p *pool) cancelServers(e control.Ends) {
	_, servers := agentNames(e)
	for _, name := range servers {
		p.cancelAgent(name)
	}
}

// endAgents ends the agents of a path. A failure may have left them in any state.
func (p *pool) endAgents(e control.Ends) {
	client, servers := agentNames(e)
	for _, name := range append(servers, client) {
		p.endAgent(name)
	}
}
