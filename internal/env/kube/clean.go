package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CleanOptions select the leftovers that Clean removes. The zero value selects the leftovers that have expired.
type CleanOptions struct {
	// All also selects leftovers of runs that may still be active.
	All bool
	// Run selects only the leftovers of one run, expired or not. (optional)
	Run string
	// DryRun means that Clean removes nothing and only returns what it found.
	DryRun bool
}

// removed is a namespace that a run left in a cluster, and whether Clean removed it.
type removed struct {
	Namespace string
	// Kept is the reason why the CleanOptions do not select the namespace, "" if they select it.
	Kept string
	// Err is why the removal failed, nil if it did not.
	Err error
}

// Clean finds the namespaces that runs left in a cluster, and removes the namespaces that f selects. It returns all
// namespaces that it found, sorted by name. If a removal fails, the error is in Err of that namespace.
func Clean(ctx context.Context, o Options, f CleanOptions) ([]removed, error) {
	c, err := Connect(o)
	if err != nil {
		return nil, err
	}
	return c.clean(ctx, f, time.Now())
}

func (c *Cluster) clean(ctx context.Context, f CleanOptions, now time.Time) ([]removed, error) {
	list, err := c.client.Namespaces().List(ctx, metav1.ListOptions{LabelSelector: LabelManagedBy + "=" + ManagedBy})
	if err != nil {
		return nil, fmt.Errorf("list the namespaces of runs: %w", withAdvice(withCause(ctx, err)))
	}
	var found []removed
	for _, ns := range list.Items {
		// Namespaces of other tools with this label have no run.
		if ns.Labels[LabelRun] == "" || !strings.HasPrefix(ns.Name, "cnibench-") {
			continue
		}
		found = append(found, removed{Namespace: ns.Name, Kept: keptReason(ns, f, now)})
	}
	slices.SortFunc(found, func(a, b removed) int { return strings.Compare(a.Namespace, b.Namespace) })
	// All at once: a namespace that stays in Terminating until ctx ends must not delay the others.
	var all sync.WaitGroup
	for i := range found {
		r := &found[i]
		if f.DryRun || r.Kept != "" {
			continue
		}
		c.options.Say("removing namespace %s", r.Namespace)
		all.Go(func() { r.Err = c.removeNamespaces(ctx, []string{r.Namespace}) })
	}
	all.Wait()
	return found, nil
}

// keptReason returns why f does not select a namespace, or "" if f selects it.
func keptReason(ns corev1.Namespace, f CleanOptions, now time.Time) string {
	text := ns.Annotations[annotationExpires]
	expires, err := time.Parse(time.RFC3339, text)
	switch {
	case f.Run != "" && f.Run != ns.Labels[LabelRun]:
		return "it is of another run"
	case f.All, f.Run != "":
		return ""
	case err != nil:
		return fmt.Sprintf("it does not say when it expires (%q)", text)
	case now.Before(expires):
		return "its run may last until " + expires.UTC().Format(time.RFC3339)
	}
	return ""
}
