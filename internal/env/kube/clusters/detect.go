package clusters

import (
	"context"
	"errors"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// DetectOptions say what to detect.
type DetectOptions struct {
	kube.Location
	// PullSecrets are for the image of Lookouts; without an image the API alone is asked. (optional)
	PullSecrets []string
	Lookouts    detect.LookoutOptions
}

// Detect finds out which CNI a cluster runs and, with an image, proves it from pods on the nodes.
func Detect(ctx context.Context, o DetectOptions, options Options) (detect.Finding, error) {
	s := site{Location: o.Location}
	var err error
	if s.cluster, err = kube.Connect(kube.Options{Kubeconfig: o.Kubeconfig, Context: o.Context, Cluster: plan.Cluster{PullSecrets: o.PullSecrets}, Say: options.Say}); err != nil {
		return detect.Finding{}, err
	}
	if err := s.read(ctx); err != nil || o.Lookouts.Image == "" {
		return detect.Finding{Verdict: s.verdict}, err
	}
	o.Lookouts.Run, o.Lookouts.PullSecrets = s.cluster.Run(), s.cluster.PullSecrets()
	proofs, err := s.inspect(ctx, o.Lookouts, options)
	if errors.Is(err, errNoNode) {
		err = advice.With(err, "name one by --nodes")
	}
	return detect.Finding{Verdict: s.verdict, Proofs: proofs}, err
}
