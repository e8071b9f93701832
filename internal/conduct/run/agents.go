package run

import (
	"context"

	"github.com/cnibench/cnibench/internal/control"
)

// pool keeps agents between trials, by the name of their endpoint: starting one costs more than a trial's pause.
type pool struct{ clients map[string]*control.Client }

func newPool() *pool { return &pool{clients: map[string]*control.Client{}} }

// get returns the agent called name, which it starts at e if necessary. It replaces an agent that ended after its last
// trial: the next trial must not fail for that.
func (p *pool) get(ctx context.Context, name string, e control.Endpoint) (*control.Client, error) {
	if c, ok := p.clients[name]; ok {
		if !c.Gone() {
			return c, nil
		}
		p.discard(name)
	}
	c, err := control.Dial(ctx, e)
	if err != nil {
		return nil, err
	}
	p.clients[name] = c
	return c, nil
}

// release lets a server go that serves on after its answer, so that nothing of this trial is left in the next.
func (p *pool) release(name string) {
	if c, ok := p.clients[name]; ok && c.Cancel() != nil {
		p.discard(name)
	}
}

// discard ends an agent that cannot be trusted any more.
func (p *pool) discard(name string) {
	if c, ok := p.clients[name]; ok {
		delete(p.clients, name)
		_ = c.Close() // it is thrown away because something is wrong with it
	}
}

// close ends all agents.
func (p *pool) close() {
	for name := range p.clients {
		p.discard(name)
	}
}

// names returns what the agents of the ends are kept by. A path from a pod to itself has one endpoint and needs two
// agents: one listens while the other connects.
func names(e control.Ends) (client string, servers []string) {
	for _, s := range e.Servers {
		if s.Name == e.Client.Name {
			s.Name += " (server)"
		}
		servers = append(servers, s.Name)
	}
	return e.Client.Name, servers
}
