package kube

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/cnibench/cnibench/internal/env/kube/trait"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Close ends every agent, deletes the run's namespaces and waits until they are gone, as long as ctx allows. The error
// says what could not be removed and what keeps it. Closing twice is as good as once.
func (c *Cluster) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	open := slices.Collect(maps.Keys(c.streams))
	c.mu.Unlock()
	var all sync.WaitGroup
	for _, s := range open {
		all.Go(func() { _ = s.Close() }) // never an error
	}
	all.Wait()
	if len(c.created) > 0 {
		c.options.Say("removing what the run made")
	}
	err := c.remove(ctx, c.created)
	if err == nil {
		c.created = nil
	}
	return err
}

// remove deletes namespaces and waits for all of them.
func (c *Cluster) remove(ctx context.Context, namespaces []string) error {
	faults := make([]error, len(namespaces))
	var all sync.WaitGroup
	for i, ns := range namespaces {
		all.Go(func() { faults[i] = withAdvice(trait.RemoveNamespace(ctx, c.client, ns, beat)) })
	}
	all.Wait()
	return advice.With(errors.Join(faults...), "cnibench kube clean removes it later; kubectl get namespaces -l app.kubernetes.io/managed-by=cnibench lists what is left")
}
