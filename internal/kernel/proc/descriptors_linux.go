package proc

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// NeedDescriptors raises the limit of open descriptors to n, if it is lower. It fails above the hard limit without
// CAP_SYS_RESOURCE.
func NeedDescriptors(n uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return os.NewSyscallError("getrlimit RLIMIT_NOFILE", err)
	}
	if n <= limit.Cur {
		return nil
	}
	more := unix.Rlimit{Cur: n, Max: max(n, limit.Max)}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &more); err != nil {
		return fmt.Errorf("%d open files are needed and %d allowed: %w", n, limit.Cur, os.NewSyscallError("setrlimit RLIMIT_NOFILE", err))
	}
	return nil
}
