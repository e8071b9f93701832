package result

import (
	"os"
	"testing"
)

// A device is not replaced: --force -o /dev/null once made a regular file of it, for every program of the machine.
func TestDevicesStay(t *testing.T) {
	if err := Replaceable(os.DevNull); err == nil {
		t.Error("replaceable")
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Fatalf("%v, %v", info, err)
	}
	if err := Replaceable(t.TempDir() + "/new"); err != nil {
		t.Error(err)
	}
}
