//go:build unix && !solaris && !illumos && !aix

package result

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// lock locks the file for this process until it is closed; it fails if another process has the lock. The kernel
// releases the lock of a process that dies.
func lock(f *os.File, name string) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return advice.With(fmt.Errorf("result file %q is being written by another cnibench", name), "wait for it, or name another file by -o")
	}
	if err != nil {
		return fmt.Errorf("lock result file %q: %w", name, err)
	}
	return nil
}
