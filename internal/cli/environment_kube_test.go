package cli

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/hint"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/run"
)

// TestProfilesOfASite: which of a plan's profiles stand on a cluster; the only one is not named by its context.
func TestProfilesOfASite(t *testing.T) {
	one := &site{context: "a", profile: "canal"}
	e := &clusterEnvironment{sites: []*site{one}, plan: plan.Plan{Baseline: "host", Twin: true, Profiles: []string{"canal", "ptp"}}}
	if got, want := e.of(one), []string{"host", "host~twin", "canal"}; !slices.Equal(got, want) {
		t.Errorf("the only cluster: %q, want %q", got, want)
	}
	other := &site{context: "b", profile: "ptp"}
	e = &clusterEnvironment{sites: []*site{one, other}, plan: plan.Plan{Baseline: "host@a", Profiles: []string{"canal@a", "ptp@b", "host@b"}}}
	if a, b := e.of(one), e.of(other); !slices.Equal(a, []string{"host", "canal"}) || !slices.Equal(b, []string{"ptp", "host"}) {
		t.Errorf("two clusters: %q and %q", a, b)
	}
}

// TestLostRunIsToldHowToGoOn: the advice is a command that leads to the same cluster, after what the error itself advises.
func TestLostRunIsToldHowToGoOn(t *testing.T) {
	a := &runArgs{output: "r.jsonl"}
	for _, tt := range []struct {
		err        error
		kubeconfig string
		want       string
	}{
		{nil, "", ""},
		{errors.New("disk full"), "", ""},
		{&run.LostError{Err: errors.New("pod gone")}, "", "what was measured is kept; when the cluster is well again, go on with: cnibench run --resume -o r.jsonl"},
		{fmt.Errorf("x: %w", &run.LostError{Err: hint.With(errors.New("401"), "log in again")}), "/k",
			"log in again; what was measured is kept; when the cluster is well again, go on with: cnibench run --resume -o r.jsonl --kubeconfig /k"},
	} {
		p := &program{stderr: &bytes.Buffer{}, kubeconfig: tt.kubeconfig}
		err := p.goOn(a, tt.err)
		if (err == nil) != (tt.err == nil) || !errors.Is(err, tt.err) || hint.Of(err) != tt.want {
			t.Errorf("%v: hint %q, want %q", tt.err, hint.Of(err), tt.want)
		}
	}
}
