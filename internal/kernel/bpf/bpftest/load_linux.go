package bpftest

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/cilium/ebpf"
)

// SkipOrFail ends the test if err is not nil: skipped if the right to load programs is missing, failed with the verifier's log
// else.
func SkipOrFail(t *testing.T, err error) {
	t.Helper()
	var refused *ebpf.VerifierError
	switch {
	case err == nil:
	case errors.As(err, &refused):
		t.Fatalf("%v\n%+v", err, refused)
	case errors.Is(err, os.ErrPermission), errors.Is(err, ebpf.ErrNotSupported):
		t.Skipf("eBPF programs cannot be loaded here: %v", err)
	default:
		t.Fatal(err)
	}
}

// Loaded returns what was loaded, and closes it at the end of the test. An error ends the test as in SkipOrFail.
func Loaded[T io.Closer](t *testing.T, loaded T, err error) T {
	t.Helper()
	SkipOrFail(t, err)
	t.Cleanup(func() {
		if err := loaded.Close(); err != nil {
			t.Error(err)
		}
	})
	return loaded
}
