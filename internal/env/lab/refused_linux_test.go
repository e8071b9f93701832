package lab

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/plan"
)

// TestVerifierLogs finds what the verifier said behind the node and the profile that it was said of.
func TestVerifierLogs(t *testing.T) {
	refused := &ebpf.VerifierError{Cause: errors.New("permission denied"), Log: []string{"0: R1=ctx()", "1: R1 is not readable"}}
	deep := fmt.Errorf("profile: programs: %w", errors.Join(nil, fmt.Errorf("node-1: %w", refused)))
	l := &Lab{instances: []*Instance{{Name: plan.VariantOf("stands")}, {Name: plan.VariantOf("refused"), Err: deep}, {Name: plan.VariantOf("other"), Err: errors.New("no cgroup")}}}
	if diff := cmp.Diff(map[string]string{"refused": fmt.Sprintf("%+v", refused)}, l.VerifierLogs()); diff != "" {
		t.Error(diff)
	}
}
