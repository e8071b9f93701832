package lab

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// TestVerifierLogs finds what the verifier said behind the node and the profile that it was said of.
func TestVerifierLogs(t *testing.T) {
	refused := &attach.RefusedError{What: "cilium host", Err: errors.New("permission denied"), Log: "0: R1=ctx()\n"}
	deep := fmt.Errorf("profile: programs: %w", errors.Join(nil, fmt.Errorf("node-1: %w", refused)))
	l := &Lab{instances: []*Instance{{Name: "stands"}, {Name: "refused", Err: deep}, {Name: "other", Err: errors.New("no cgroup")}}}
	if diff := cmp.Diff(map[string]string{"refused": refused.Log}, l.VerifierLogs()); diff != "" {
		t.Error(diff)
	}
}
