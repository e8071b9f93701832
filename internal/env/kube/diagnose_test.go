package kube

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// TestAdviceOnRefusals: each kind of refusal has its own way out, and kube access is named where a right is missing alone.
func TestAdviceOnRefusals(t *testing.T) {
	for _, c := range []struct{ pod, text, advice string }{
		{"client", `User "u" cannot create resource "pods" in API group "" in the namespace "n"`, adviceRights},
		{"client", `User "u" cannot create resource "pods/exec" in API group "" in the namespace "n": no RBAC policy matched`, adviceRights},
		{"client", "exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0", adviceQuota},
		{"client", "failed quota: small: must specify limits.cpu,limits.memory", adviceLimits},
		{"client", "failed quota: small: must specify limits.cpu for: agent; limits.memory for: agent", adviceLimits},
		{"client", "minimum cpu usage per Container is 500m, but request is 100m", adviceRange},
		{"client", "[minimum cpu usage per Container is 1, but request is 100m, maximum memory usage per Container is 16Mi, but request is 64Mi]", adviceRange},
		{"client", "maximum memory usage per Pod is 1Gi.  No limit is specified", adviceRange},
		{"client", "memory max limit to request ratio per Container is 2, but provided ratio is 4.000000", adviceRange},
		{"client", `unable to validate against any security context constraint: [provider "hostnetwork-v2": Forbidden: not usable by user or serviceaccount]`, adviceSCC},
		{"host-client", `unable to validate against any security context constraint: [provider restricted-v2: .spec.securityContext.hostNetwork: Invalid value: true]`, adviceSCCHost},
		{"client", `violates PodSecurity "restricted:latest"`, adviceAdmit},
		{"host-client", `violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`, adviceHost},
		{"client", "no PriorityClass with name gold was found", ""},
		{"client", "pods with this class are not admitted here", ""},
	} {
		err := withPodAdvice(c.pod, apierrors.NewForbidden(podResource, c.pod, errors.New(c.text)))
		if got := advice.Of(err); got != c.advice {
			t.Errorf("%s\nadvice %q\n  want %q", err, got, c.advice)
		}
	}
}
