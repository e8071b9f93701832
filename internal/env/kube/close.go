package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cnibench/cnibench/internal/env/kube/trait"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Close ends every agent, deletes the run's namespaces and waits until they are gone, as long as ctx allows. The error
// says what could not be removed and what keeps it. Closing twice is as good as once.
func (c *Cluster) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	var open []*stream
	for s := range c.streams {
		open = append(open, s)
	}
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
		all.Go(func() { faults[i] = c.removeOne(ctx, ns) })
	}
	all.Wait()
	return advice.With(errors.Join(faults...), "cnibench kube clean removes it later; kubectl get namespaces -l app.kubernetes.io/managed-by=cnibench lists what is left")
}

func (c *Cluster) removeOne(ctx context.Context, ns string) error {
	err := c.deleteNamespace(ctx, ns)
	switch {
	case err == nil, apierrors.IsConflict(err):
		return c.awaitGone(ctx, ns)
	case apierrors.IsNotFound(err):
		return nil
	}
	return fmt.Errorf("delete namespace %s: %w", ns, withAdvice(cause(ctx, err)))
}

// deleteNamespace deletes a namespace, and bears that the API server is away for a while.
func (c *Cluster) deleteNamespace(ctx context.Context, name string) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, beat, true, func(ctx context.Context) (bool, error) {
		last = c.client.Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
		return last == nil || !trait.Passing(last), nil
	})
	if last == nil {
		return err
	}
	return last
}

// awaitGone returns when a namespace is gone, or when ctx ends with what keeps it.
func (c *Cluster) awaitGone(ctx context.Context, name string) error {
	why := "the API server does not say what keeps it"
	err := wait.PollUntilContextCancel(ctx, beat, true, func(ctx context.Context) (bool, error) {
		ns, err := c.client.Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			if trait.Passing(err) {
				return false, nil
			}
			return false, err
		}
		why = stuck(ns)
		return false, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("namespace %s is still there: %s", name, why)
	}
	return fmt.Errorf("wait until namespace %s is gone: %w", name, withAdvice(err))
}
