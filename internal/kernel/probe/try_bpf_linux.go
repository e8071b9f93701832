package probe

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/link"
)

// tryProgram loads the shortest program that the verifier accepts.
func tryProgram() error {
	p, err := loadShortestProgram(ebpf.ProgramSpec{Type: ebpf.SchedCLS})
	if err != nil {
		return err
	}
	return p.Close()
}

// loadShortestProgram loads a program of the given kind that returns 1.
func loadShortestProgram(spec ebpf.ProgramSpec) (*ebpf.Program, error) {
	spec.Name, spec.License = "probe", "GPL"
	spec.Instructions = asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()}
	p, err := ebpf.NewProgram(&spec)
	if errors.Is(err, os.ErrPermission) {
		// Even root of a user namespace may not.
		return nil, fmt.Errorf("%w to load BPF programs: %w", errNoRight, os.ErrPermission)
	}
	return p, err
}

// tryDevicePrograms attaches a program to each side of a device, as the dataplanes do.
func tryDevicePrograms(h *link.Handle) error {
	p, err := loadShortestProgram(ebpf.ProgramSpec{Type: ebpf.SchedCLS})
	if err != nil {
		return err
	}
	var errs []error
	for _, side := range []attach.Hook{attach.Ingress, attach.Egress} {
		c, err := attach.Device(h.NS(), veth.Name, side, p)
		if err == nil {
			err = c.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, p.Close())...)
}

// tryCgroupProgram attaches a program to the connect() of an empty cgroup.
func tryCgroupProgram() error {
	return runInCgroup(func(dir string) error {
		p, err := loadShortestProgram(ebpf.ProgramSpec{Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupInet4Connect})
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

// runInCgroup runs try with the directory of a new cgroup, and then removes the cgroup.
func runInCgroup(try func(dir string) error) error {
	root, err := cgroup.Root()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(root, fmt.Sprintf("cnibench-probe-%d-", os.Getpid()))
	if err != nil {
		return err
	}
	return errors.Join(try(dir), os.Remove(dir))
}

// tryIPIP creates the kernel's device, or tries the BPF programs that replace it.
func tryIPIP(h *link.Handle) error {
	err := h.Add(ipip)
	if err == nil {
		return nil
	}
	if standIn := errors.Join(h.Add(veth), tryDevicePrograms(h)); standIn != nil {
		return errors.Join(err, standIn)
	}
	return nil
}
