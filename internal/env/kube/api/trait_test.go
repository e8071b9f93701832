package api

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestMaps: what one object adds to its labels does not show on the next.
func TestMaps(t *testing.T) {
	Labels("a")["x"], Owned()["x"] = "y", "y"
	if want := map[string]string{LabelManagedBy: ManagedBy, LabelRun: "a"}; !maps.Equal(Labels("a"), want) || !maps.Equal(Owned(), map[string]string{LabelManagedBy: ManagedBy}) {
		t.Errorf("%v, %v", Labels("a"), Owned())
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("east", 3600))
	if got := Until(at)[AnnotationExpires]; got != "2026-03-01T11:00:00Z" {
		t.Errorf("expires %s", got)
	}
}

func TestOn(t *testing.T) {
	terms := On("n1").NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchFields) != 1 || terms[0].MatchFields[0].Key != "metadata.name" || terms[0].MatchFields[0].Values[0] != "n1" || terms[0].MatchExpressions != nil {
		t.Errorf("%+v", terms)
	}
}

// TestStateOfEnded: a container ends before the phase of its pod says so.
func TestStateOfEnded(t *testing.T) {
	for _, tt := range []struct {
		phase  corev1.PodPhase
		code   int32
		failed bool
	}{
		{corev1.PodRunning, 0, false}, {corev1.PodRunning, 2, true}, {corev1.PodSucceeded, 0, false}, {corev1.PodFailed, 1, true},
	} {
		state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: tt.code}}
		p := &corev1.Pod{Status: corev1.PodStatus{Phase: tt.phase, ContainerStatuses: []corev1.ContainerStatus{{State: state}}}}
		if s := StateOf(p); !s.Ended || s.Failed != tt.failed {
			t.Errorf("%s, code %d: %+v", tt.phase, tt.code, s)
		}
	}
}
