package proc

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestNeedDescriptors: a need within the limit changes nothing, one beyond raises it as far as the kernel allows at all.
func TestNeedDescriptors(t *testing.T) {
	var before, after unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) })
	if err := NeedDescriptors(10); err != nil {
		t.Error(err)
	}
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &after); err != nil || after != before {
		t.Errorf("limits %+v, were %+v: %v", after, before, err)
	}
	if err := NeedDescriptors(before.Max + 1); err != nil {
		t.Skipf("no right to raise the hard limit of %d: %v", before.Max, err)
	}
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &after); err != nil || after.Cur != before.Max+1 {
		t.Errorf("limits %+v: %v", after, err)
	}
	if err := NeedDescriptors(1 << 40); err == nil {
		t.Error("2^40 open files are allowed")
	}
}
