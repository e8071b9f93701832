package child

import (
	"os"
	"os/exec"
	"syscall"
)

// Detach makes cmd start in a session of its own, out of reach of the terminal's Ctrl-C.
func Detach(cmd *exec.Cmd) { attributes(cmd).Setsid = true }

// InCgroup makes cmd start in the cgroup whose directory is open as fd.
func InCgroup(cmd *exec.Cmd, fd int) {
	a := attributes(cmd)
	a.UseCgroupFD, a.CgroupFD = true, fd
}

// Chroot makes cmd start with root as its root directory.
func Chroot(cmd *exec.Cmd, root string) { attributes(cmd).Chroot = root }

// Replace replaces this process by the program at path. It returns only when that fails.
func Replace(path string, argv, env []string) error {
	return os.NewSyscallError("execve", syscall.Exec(path, argv, env))
}

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}
