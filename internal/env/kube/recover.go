package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cnibench/cnibench/internal/env/kube/api"
)

const (
	// recoverLimit bounds the wait for an API server or a node that is away: a restart takes less.
	recoverLimit = 2 * time.Minute
	// askLimit bounds one request to an API server that may be away.
	askLimit = 5 * time.Second
)

// Recover waits until the API server answers and every pod of the run is ready. It returns what was wrong until then,
// "" for nothing. It fails if that will not happen: a pod is never replaced, because a new pod would be another
// placement with other addresses.
func (c *Cluster) Recover(ctx context.Context) (wrong string, err error) {
	return c.recover(ctx, beat, recoverLimit)
}

func (c *Cluster) recover(ctx context.Context, beat, limit time.Duration) (wrong string, err error) {
	var last error
	err = wait.PollUntilContextTimeout(ctx, beat, limit, true, func(ctx context.Context) (bool, error) {
		var lost *lostError
		if last = c.stands(ctx); last == nil || errors.As(last, &lost) {
			return true, last
		}
		if wrong == "" {
			wrong = last.Error()
			c.options.Say("waiting: %s", wrong)
		}
		return false, nil
	})
	if err != nil && ctx.Err() == nil && wait.Interrupted(err) {
		err = fmt.Errorf("after %s still %w", limit, last)
	}
	return wrong, err
}

// lostError is the error of an object that will not come back.
type lostError struct{ why string }

func (e *lostError) Error() string { return e.why }

// stands returns an error that describes what is wrong with the run's pods, or nil.
func (c *Cluster) stands(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, askLimit)
	defer stop()
	var pods map[string]*corev1.Pod
	var err error
	if c.place.mesh == nil {
		pods, err = c.listPods(ctx)
	} else { // nodes may go away: see Mesh
		_, err = c.client.Version(ctx)
	}
	if err != nil {
		return fmt.Errorf("the API server at %s does not say how the pods are: %w", c.config.Host, withAdvice(short(err)))
	}
	if c.place.mesh != nil {
		return nil
	}
	var waits error
	for _, s := range c.layout.pods {
		p := pods[s.Name]
		if p == nil {
			return &lostError{podGone(s.Name)}
		}
		switch now := api.StateOf(p); {
		case now.Hopeless:
			return &lostError{c.describe(ctx, p, now.Why)}
		case !now.Ready && waits == nil:
			waits = errors.New(c.describe(ctx, p, now.Why))
		}
	}
	return waits
}

// short returns an error of a request without the address of the server.
func short(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", askLimit)
	}
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// describe returns what is known of a pod that is not ready, and of its node.
func (c *Cluster) describe(ctx context.Context, p *corev1.Pod, why string) string {
	said := "pod " + p.Name + " on node " + p.Spec.NodeName + ": " + cmp.Or(why, unreadiness(p), "it is not ready")
	if node := c.unhealthyNode(ctx, p); node != "" {
		said += "; " + node
	}
	return said
}

// podGone describes why a pod may have disappeared.
func podGone(pod string) string {
	return "pod " + pod + " is gone: it was deleted or evicted, or its node was removed"
}
