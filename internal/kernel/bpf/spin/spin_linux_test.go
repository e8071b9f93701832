package spin

import (
	"errors"
	"os"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// TestAttach: the kernel accepts the program, on a device that exists.
func TestAttach(t *testing.T) {
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	c, err := Attach(ns, "lo", 2000)
	if errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Attach(ns, "eth0", 1); err == nil {
		t.Error("attached to a device that does not exist")
	}
}
