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

// known returns the agent called name.
func (p *pool) known(name string) (*control.Client, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.clients[name]
	return c, ok
}

// get returns the agent called name, which it starts at e if necessary. It replaces an agent that ended after its last
// trial: the next trial must not fail for that.
func (p *pool) get(ctx context.Context, name string, e control.Endpoint) (*control.Client, error) {
	if c, ok := p.known(name); ok {
		if !c.Gone() {
			return c, nil
		}
		p.discard(name)
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

// release ends the work of a server that continues to serve after its answer, so that nothing of this trial disturbs
// the next.
func (p *pool) release(name string) {
	if c, ok := p.known(name); ok && c.Cancel() != nil {
		p.discard(name)
	}
}

// discard ends an agent that cannot be trusted any more.
func (p *pool) discard(name string) {
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
		p.discard(name)
	}
}

// names returns the keys of the agents of both ends. A path from a pod to itself has one endpoint and needs two agents:
// one listens while the other connects.
func names(e control.Ends) (client string, servers []string) {
	for _, s := range e.Servers {
		if s.Name == e.Client.Name {
			s.Name += " (server)"
		}
		servers = append(servers, s.Name)
	}
	return e.Client.Name, servers
}
