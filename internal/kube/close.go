package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cnibench/cnibench/internal/hint"
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
	err := c.remove(ctx, c.created)
	if err == nil {
		c.created = nil
	}
	return err
}

// remove deletes namespaces and waits for all of them.
func (c *Cluster) remove(ctx context.Context, namespaces []string) error {
	var faults []error
	var going []string
	for _, ns := range namespaces {
		err := c.client.CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{})
		switch {
		case err == nil, apierrors.IsConflict(err):
			going = append(going, ns)
		case !apierrors.IsNotFound(err):
			faults = append(faults, fmt.Errorf("delete namespace %s: %w", ns, inWords(cause(ctx, err))))
		}
	}
	for _, ns := range going {
		if err := c.awaitGone(ctx, ns); err != nil {
			faults = append(faults, err)
		}
	}
	return hint.With(errors.Join(faults...), "cnibench kube clean removes it later; kubectl get namespaces -l app.kubernetes.io/managed-by=cnibench lists what is left")
}

// awaitGone returns when a namespace is gone, or when ctx ends with what keeps it.
func (c *Cluster) awaitGone(ctx context.Context, name string) error {
	why := "the API server does not say what keeps it"
	err := wait.PollUntilContextCancel(ctx, beat, true, func(ctx context.Context) (bool, error) {
		ns, err := c.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
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
	return fmt.Errorf("wait until namespace %s is gone: %w", name, inWords(err))
}
