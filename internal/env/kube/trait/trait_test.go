package trait

import (
	"maps"
	"testing"
	"time"
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
