package cli

import (
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
)

// TestAllPaths: a load balancer's address may be open to the world, so it is only made for who names the path.
func TestAllPaths(t *testing.T) {
	balanced := plan.Path{From: plan.External, To: plan.LoadBalancer}
	for text, want := range map[string]int{"all": len(plan.Paths) - 1, balanced.String(): 1} {
		paths, err := plan.ParsePaths(text)
		if err != nil {
			t.Fatal(err)
		}
		if len(paths) != want || slices.Contains(paths, balanced) != (want == 1) {
			t.Errorf("%s: %v", text, paths)
		}
	}
	for _, name := range plan.Presets {
		if p := plan.Preset(name); slices.Contains(p.Paths, balanced) {
			t.Errorf("preset %s: %v", name, p.Paths)
		}
	}
}
