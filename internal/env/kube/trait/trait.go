// Package trait has what the objects of this program in a cluster have in common, whichever package makes them: what they
// are found by, when they may be swept, how a pod is put on one node, and what its image is pulled with.
package trait

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Labels and annotations.
const (
	// LabelManagedBy is ManagedBy on everything.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "cnibench"
	// LabelRun is the id of the run that made it; kube clean finds namespaces by it.
	LabelRun = "cnibench.dev/run"
	// AnnotationExpires is when it may be swept, RFC 3339.
	AnnotationExpires = "cnibench.dev/expires"
)

// Labels returns those of an object of a run, Owned those of any other.
func Labels(run string) map[string]string {
	return map[string]string{LabelManagedBy: ManagedBy, LabelRun: run}
}

// Owned returns a new map on each call, as Labels does: callers add to it.
func Owned() map[string]string { return map[string]string{LabelManagedBy: ManagedBy} }

// Until are the annotations of an object that may be swept from t on.
func Until(t time.Time) map[string]string {
	return map[string]string{AnnotationExpires: t.UTC().Format(time.RFC3339)}
}

// On asks the scheduler for one node. Unlike nodeName it keeps the scheduler's checks, which report a full node.
func On(node string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node},
		}}}},
	}}}
}
