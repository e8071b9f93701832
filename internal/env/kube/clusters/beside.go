package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// checkComparable fails with a *kube.ConfigError that lists all faults, if the lab cannot be compared with the clusters. It
// sets the plan's mode of kube-proxy for the lab to the mode of the clusters.
func (e *Environment) checkComparable(ctx context.Context) error {
	var faults []error
	modes := map[condition.ProxyMode]string{}
	for _, s := range e.sites {
		faults = append(faults, s.withContext(s.checkProfile()), s.withContext(s.checkPaths(ctx)))
		if k := s.verdict.KubeProxy; k.Runs == detect.Yes && k.Mode != "" {
			modes[condition.ProxyMode(k.Mode)] = s.Context
		}
	}
	for mode, at := range modes {
		switch asked := e.plan.Lab.ServiceProxy; {
		case len(modes) > 1:
			faults = append(faults, advice.With(fmt.Errorf("context %s: kube-proxy is in %s mode, not in all clusters", at, mode), "compare clusters of each mode in a run of their own"))
		case asked != mode && asked != plan.Default().Lab.ServiceProxy:
			faults = append(faults, advice.With(fmt.Errorf("context %s: kube-proxy is in %s mode, not in %s mode", at, mode, asked), "leave out --service-proxy: the lab takes the mode of the cluster"))
		default:
			e.plan.Lab.ServiceProxy = mode
		}
	}
	if err := errors.Join(faults...); err != nil {
		return &kube.ConfigError{Err: err}
	}
	return nil
}

// checkProfile fails if package profile does not have the detected profile, because the lab then cannot raise it.
func (s *site) checkProfile() error {
	v := s.verdict
	if _, ok := profile.Lookup(s.profile); ok {
		return nil
	}
	if v.CNI == "" {
		why := strings.Join(append([]string{"the CNI is unknown"}, slices.Concat(v.Doubts, v.Unproven)...), "; ")
		return advice.With(errors.New(why), "--inspect looks at the nodes from privileged pods; cnibench cni detect prints what was seen")
	}
	why := "the lab has no profile for " + s.profileWithSource()
	if v.Title != "" {
		why += ": " + v.Title
	}
	return advice.With(errors.New(why), "cnibench cni detect prints what was seen, cnibench list profiles what the lab has")
}

// checkPaths fails if the cluster does not serve every path of the plan.
func (s *site) checkPaths(ctx context.Context) error {
	why, err := s.cluster.Unserved(ctx)
	if err != nil || why == "" {
		return err
	}
	return advice.With(fmt.Errorf("not all paths are served: %s", why), "choose paths that the cluster serves, such as --paths pod-to-pod/same-node,pod-to-service/local")
}
