package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/cnibench/cnibench/internal/env/image"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

const (
	// imageReportLimit is how long a kubelet may take to report an image that was loaded, and imageReportPoll the time
	// between two checks.
	imageReportLimit = time.Minute
	imageReportPoll  = 2 * time.Second
	// imagesReported is the maximum number of images that a kubelet reports by default.
	imagesReported = 50
)

// chooseImage chooses the run's image if the plan has tools and its image is in no registry. The image must have all tools,
// and every node must report it. chooseImage waits up to imageReportLimit for such an image, then fails with a *ConfigError.
// If a node reports no images, or so many that its list may be incomplete, it keeps the plan's image.
func (c *Cluster) chooseImage(ctx context.Context) error {
	if len(c.options.Tools) == 0 || !image.Local(c.options.Image) {
		return nil
	}
	said, silent := false, false
	err := wait.PollUntilContextTimeout(ctx, imageReportPoll, imageReportLimit, true, func(ctx context.Context) (bool, error) {
		list, err := c.client.Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		nodes := slices.DeleteFunc(list.Items, func(n corev1.Node) bool {
			return !slices.ContainsFunc(c.place.nodes, func(p corev1.Node) bool { return p.Name == n.Name })
		})
		present := commonImages(nodes)
		c.options.Image = image.Serving(c.options.Image, present)
		full := func(n corev1.Node) bool { return len(n.Status.Images) >= imagesReported }
		if slices.Contains(present, c.options.Image) || slices.ContainsFunc(nodes, full) {
			return true, nil
		}
		silent = slices.ContainsFunc(nodes, func(n corev1.Node) bool { return len(n.Status.Images) == 0 })
		if !said {
			said = true
			c.options.Say("waiting until the nodes report an image with %s", strings.Join(c.options.Tools, ", "))
		}
		return false, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		if silent {
			return nil
		}
		return &ConfigError{advice.With(fmt.Errorf("nodes %s have no image with %s, which the plan names", nodeNames(c.place.nodes), strings.Join(c.options.Tools, ", ")),
			"on each node: cnibench image --with "+strings.Join(c.options.Tools, ",")+" --load ctr; or --push REFERENCE, then --image REFERENCE")}
	}
	return withCause(ctx, err)
}

// Image returns the image of the run's pods. Once the nodes are chosen, it may differ from the plan's image: it may have more
// tools.
func (c *Cluster) Image() string { return c.options.Image }

// commonImages returns the names of the images that every node reports.
func commonImages(nodes []corev1.Node) []string {
	on := map[string]int{}
	for _, n := range nodes {
		for _, i := range n.Status.Images {
			for _, name := range i.Names {
				on[name]++
			}
		}
	}
	return slices.DeleteFunc(slices.Collect(maps.Keys(on)), func(name string) bool { return on[name] < len(nodes) })
}

// checkTools asks an agent in a pod which of the plan's tools the image lacks. It fails with a *ConfigError if a tool is
// missing. If the cluster forbids exec, it checks nothing and returns nil.
func (c *Cluster) checkTools(ctx context.Context) error {
	if len(c.options.Tools) == 0 {
		return nil
	}
	pod := c.place.presentPods(c.layout.pods)[0].Name
	out, err := c.Exec(ctx, pod, []string{"/cnibench", agentVerb, "--lacks", strings.Join(c.options.Tools, ",")})
	if missing := strings.Fields(string(out)); err == nil && len(missing) > 0 {
		return &ConfigError{image.MissingTools(c.options.Image, missing, c.options.Tools)}
	}
	if err != nil && isExecRefused(err) {
		return nil // agents are reached by port-forward; a missing tool fails its trials
	}
	return err
}
