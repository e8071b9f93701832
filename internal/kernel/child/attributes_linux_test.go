package child

import (
	"os/exec"
	"testing"
)

func TestAttributesAddUp(t *testing.T) {
	cmd := exec.Command("/bin/true")
	Detach(cmd)
	InCgroup(cmd, 7)
	Chroot(cmd, "/proc")
	a := cmd.SysProcAttr
	if !a.Setsid || !a.UseCgroupFD || a.CgroupFD != 7 || a.Chroot != "/proc" {
		t.Errorf("attributes %+v", a)
	}
}

func TestReplaceFails(t *testing.T) {
	if err := Replace("/proc/no-such-program", []string{"x"}, nil); err == nil || err.Error() != "execve: no such file or directory" {
		t.Errorf("Replace: %v", err)
	}
}
