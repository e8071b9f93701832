package spin

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Name is what the kernel calls the program.
const Name = "spin"

// next passes a packet on to the following program.
const next = -1

// Attach puts a program on the ingress of a device that counts down from n for each packet. Close takes it off.
func Attach(ns *netns.NS, device string, n int32) (io.Closer, error) {
	return put(ns, device, asm.Instructions{
		asm.Mov.Imm(asm.R1, n),
		asm.Sub.Imm(asm.R1, 1).WithSymbol("again"),
		asm.JNE.Imm(asm.R1, 0, "again"),
	})
}

// Copied is how many bytes a copy has: a packet of TCP over IPv4 is at least as long.
const Copied = 64

// Copy puts a program on the ingress of a device that copies the first bytes of each packet n times. Close takes it off.
func Copy(ns *netns.NS, device string, n int32) (io.Closer, error) {
	return put(ns, device, asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.Mov.Imm(asm.R7, n),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("again"),
		asm.Mov.Imm(asm.R2, 0),
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, -Copied),
		asm.Mov.Imm(asm.R4, Copied),
		asm.FnSkbLoadBytes.Call(),
		asm.Sub.Imm(asm.R7, 1),
		asm.JNE.Imm(asm.R7, 0, "again"),
	})
}

func put(ns *netns.NS, device string, work asm.Instructions) (io.Closer, error) {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: Name, Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: append(work, asm.Mov.Imm(asm.R0, next), asm.Return()),
	})
	if err != nil {
		return nil, fmt.Errorf("load a program that spins: %w", err)
	}
	c, err := attach.Device(ns, device, attach.Ingress, prog)
	return c, errors.Join(err, prog.Close()) // the link holds the program
}
