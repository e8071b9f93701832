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
	// recoverLimit bounds the wait for an API server or a node that does not answer. Either restarts in less time.
	recoverLimit = 2 * time.Minute
	// askLimit bounds one request to an API server that may not answer.
	askLimit = 5 * time.Second
)

// Recover waits, at most recoverLimit, until the API server answers and all pods of the run are ready. For node pairs it
// waits only for the API server. It returns the first problem that it waited for, or "". It fails at the limit or if a
// pod is lost: a new pod would have another address.
func (c *Cluster) Recover(ctx context.Context) (wrong string, err error) {
	return c.awaitRecovery(ctx, beat, recoverLimit)
}

func (c *Cluster) awaitRecovery(ctx context.Context, beat, limit time.Duration) (wrong string, err error) {
	var last error
	err = wait.PollUntilContextTimeout(ctx, beat, limit, true, func(ctx context.Context) (bool, error) {
		var lost *lostError
		if last = c.checkPods(ctx); last == nil || errors.As(last, &lost) {
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

// checkPods fails if the API server does not answer, or if a pod of the run is not ready. The error is a *lostError if a pod
// will never be ready. In a run over pairs it checks only the API server.
func (c *Cluster) checkPods(ctx context.Context) error {
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
		return fmt.Errorf("the API server at %s does not say how the pods are: %w", c.config.Host, withAdvice(plainRequestError(err)))
	}
	if c.place.mesh != nil {
		return nil
	}
	var waits error
	for _, s := range c.layout.pods {
		p := pods[s.Name]
		if p == nil {
			return &lostError{podGoneMessage(s.Name)}
		}
		switch now := api.StateOf(p); {
		case now.Hopeless:
			return &lostError{c.unreadyMessage(ctx, p, now.Why)}
		case !now.Ready && waits == nil:
			waits = errors.New(c.unreadyMessage(ctx, p, now.Why))
		}
	}
	return waits
}

// plainRequestError returns the error of a request without its URL. It replaces a timeout by "no answer within 5s".
func plainRequestError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", askLimit)
	}
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// unreadyMessage returns a message about a pod that is not ready. It contains why, or if that is "", the message of the
// pod's condition Ready. It also contains the fault of the pod's node, if there is one.
func (c *Cluster) unreadyMessage(ctx context.Context, p *corev1.Pod, why string) string {
	said := "pod " + p.Name + " on node " + p.Spec.NodeName + ": " + cmp.Or(why, unreadyReason(p), "it is not ready")
	if node := c.nodeFault(ctx, p); node != "" {
		said += "; " + node
	}
	return said
}

// podGoneMessage returns the message for a pod that has disappeared.
func podGoneMessage(pod string) string {
	return "pod " + pod + " is gone: it was deleted or evicted, or its node was removed"
}
