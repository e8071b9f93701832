package spin

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// TestAttach: the kernel accepts the programs, on a device that exists.
func TestAttach(t *testing.T) {
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	for name, put := range map[string]func(*netns.NS, string, int32) (io.Closer, error){
		"instructions": Attach, "copies": Copy, "memory": Walk,
		"bursts": func(ns *netns.NS, device string, n int32) (io.Closer, error) {
			return Burst(ns, device, n, 10*time.Millisecond, 100*time.Millisecond)
		},
	} {
		c, err := put(ns, "lo", 10_000)
		if errors.Is(err, os.ErrPermission) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := put(ns, "eth0", 1); err == nil {
			t.Errorf("%s: attached to a device that does not exist", name)
		}
	}
}
