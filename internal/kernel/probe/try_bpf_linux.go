package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// loadProgram loads the shortest program that the verifier accepts.
func loadProgram() error {
	p, err := shortest(ebpf.ProgramSpec{Type: ebpf.SchedCLS})
	if err != nil {
		return err
	}
	return p.Close()
}

// shortest loads a program of the given kind that returns 1.
func shortest(spec ebpf.ProgramSpec) (*ebpf.Program, error) {
	spec.Name, spec.License = "probe", "GPL"
	spec.Instructions = asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()}
	p, err := ebpf.NewProgram(&spec)
	if errors.Is(err, os.ErrPermission) {
		// Not even root of a user namespace may.
		return nil, &rightError{what: "load BPF programs", err: os.ErrPermission}
	}
	return p, err
}

// rightError is a right that is not there and that nothing but being root brings.
type rightError struct {
	what string
	err  error
}

func (e *rightError) Error() string { return fmt.Sprintf("no right to %s: %v", e.what, e.err) }

// tryDevicePrograms puts a program on either side of a device, in the way of the dataplanes.
func tryDevicePrograms() error {
	p, err := shortest(ebpf.ProgramSpec{Type: ebpf.SchedCLS})
	if err != nil {
		return err
	}
	here, err := netns.Current()
	if err != nil {
		return errors.Join(err, p.Close())
	}
	var errs []error
	for _, side := range []attach.Hook{attach.Ingress, attach.Egress} {
		c, err := attach.Device(here, vethName, side, p)
		if err == nil {
			err = c.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, p.Close(), here.Close())...)
}

// tryTCX puts a program on a device by a link.
func tryTCX(index int) error {
	p, err := shortest(ebpf.ProgramSpec{Type: ebpf.SchedCLS})
	if err != nil {
		return err
	}
	l, err := link.AttachTCX(link.TCXOptions{Interface: index, Program: p, Attach: ebpf.AttachTCXIngress})
	if err == nil {
		err = l.Close()
	}
	return errors.Join(err, p.Close())
}

// tryCgroupProgram attaches a program to the connect() of an empty cgroup.
func tryCgroupProgram(context.Context) error {
	return inCgroup(func(dir string) error {
		p, err := shortest(ebpf.ProgramSpec{Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupInet4Connect})
		if err != nil {
			return err
		}
		c, err := attach.Cgroup(dir, ebpf.AttachCGroupInet4Connect, p)
		if err == nil {
			err = c.Close()
		}
		return errors.Join(err, p.Close())
	})
}

// tryCgroup makes a cgroup where this process may, and removes it.
func tryCgroup(context.Context) error { return inCgroup(func(string) error { return nil }) }

// inCgroup runs try with a cgroup of its own.
func inCgroup(try func(dir string) error) error {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	root := CgroupMount(b)
	if root == "" {
		return &absentError{what: "a mounted cgroup v2 hierarchy"}
	}
	dir, err := os.MkdirTemp(root, fmt.Sprintf("cnibench-probe-%d-", os.Getpid()))
	if err != nil {
		return err
	}
	return errors.Join(try(filepath.Clean(dir)), os.Remove(dir))
}

func addIPIP() error {
	return add(&netlink.Iptun{LinkAttrs: named("probe-ip"), Local: net.IPv4(192, 0, 2, 1), Remote: net.IPv4(192, 0, 2, 2)})
}

// tryIPIP accepts the kernel's device, or what its stand-in is made of.
func tryIPIP(context.Context) error {
	err := addIPIP()
	if err == nil {
		return nil
	}
	if standIn := errors.Join(addVeth(), tryDevicePrograms()); standIn != nil {
		return errors.Join(err, standIn)
	}
	return nil
}
