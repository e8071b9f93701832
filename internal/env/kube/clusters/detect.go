package clusters

import (
	"context"
	"errors"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/plan"
)

// DetectOptions say what to detect.
type DetectOptions struct {
	kube.Location
	// PullSecrets are for Image, which is that of pods that inspect Nodes; without it the API alone is asked. Nodes are one or
	// two; the first two ready nodes if there are none. (optional)
	PullSecrets, Nodes []string
	Lookouts           detect.LookoutOptions
}

// Detect finds out which CNI a cluster runs and, with an image, proves it from pods on the nodes.
func Detect(ctx context.Context, o DetectOptions, options Options) (detect.Finding, error) {
	var found detect.Finding
	s := site{Location: o.Location}
	var err error
	if s.cluster, err = kube.Connect(kube.Options{Kubeconfig: o.Kubeconfig, Context: o.Context, Cluster: plan.Cluster{PullSecrets: o.PullSecrets}, Say: options.Say}); err != nil {
		return found, err
	}
	if s.clients, err = detect.ClientsOf(s.cluster.Config()); err != nil {
		return found, err
	}
	if s.snapshot, err = detect.Read(ctx, s.clients, detect.ReadOptions{}); err != nil {
		return found, err
	}
	found.Verdict = detect.Detect(s.snapshot)
	if o.Lookouts.Image == "" {
		return found, nil
	}
	at := o.Lookouts
	at.Run, at.PullSecrets, at.Nodes = s.cluster.Run(), s.cluster.PullSecrets(), o.Nodes
	if len(at.Nodes) == 0 {
		at.Nodes = detect.ReadyNodes(s.snapshot.Nodes, 2)
	}
	if len(at.Nodes) == 0 {
		return found, errors.New("no ready Linux node to inspect: name one by --nodes")
	}
	options.Say("inspecting %v from pods", at.Nodes)
	gone := options.Leaves(s.leftovers())
	err = s.fromLookouts(ctx, at, func(post *detect.Lookout) (err error) {
		_, found.Verdict, found.Proofs, err = detect.Prove(ctx, s.snapshot, detect.Ground{Ends: post.Ends(), Routes: post.Routes()})
		return err
	}, gone)
	return found, err
}
