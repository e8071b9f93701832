package cli

import (
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestLabBesideClusters: where one plan is for clusters and for the lab beside them, both sides' flags count.
func TestLabBesideClusters(t *testing.T) {
	for _, labToo := range []bool{true, false} {
		a := planArgs{labToo: labToo}
		cmd := &cobra.Command{Use: "fidelity"}
		a.declareFlags(cmd)
		if err := cmd.ParseFlags([]string{"--env", "kubernetes", "--context", "a", "--delay", "2ms"}); err != nil {
			t.Fatal(err)
		}
		p, err := a.buildPlan(cmd)
		if !labToo {
			if err == nil {
				t.Error("a delay for clusters alone is accepted")
			}
			continue
		}
		if err != nil || p.Lab.Delay != 2*time.Millisecond || a.left != nil {
			t.Errorf("got a delay of %s, %q left out, %v", p.Lab.Delay, a.left, err)
		}
	}
}
