package spin

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Name is the program's name in the kernel.
const Name = "spin"

// next is the verdict that passes a packet on to the following program.
const next = -1

// Attach attaches a program to the ingress of a device. For each packet, the program counts down from n. Closing the
// result detaches the program.
func Attach(ns *netns.NS, device string, n int32) (io.Closer, error) {
	return attachWork(ns, device, asm.Instructions{
		asm.Mov.Imm(asm.R1, n),
		asm.Sub.Imm(asm.R1, 1).WithSymbol("again"),
		asm.JNE.Imm(asm.R1, 0, "again"),
	})
}

// Burst attaches a program to the ingress of a device. For each packet in the first part of each period, the program
// counts down from n. period is at most 2 s. Closing the result detaches the program.
func Burst(ns *netns.NS, device string, n int32, part, period time.Duration) (io.Closer, error) {
	return attachWork(ns, device, asm.Instructions{
		asm.FnKtimeGetNs.Call(),
		asm.Mod.Imm(asm.R0, int32(period)),
		asm.JGT.Imm(asm.R0, int32(part), "rest"),
		asm.Mov.Imm(asm.R1, n),
		asm.Sub.Imm(asm.R1, 1).WithSymbol("again"),
		asm.JNE.Imm(asm.R1, 0, "again"),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("rest"),
	})
}

const (
	// Walked is the size of the memory that Walk reads, in bytes.
	Walked = 256 << 10
	line   = 64
)

// Walk attaches a program to the ingress of a device. For each packet, the program reads the next n cache lines of a
// map of Walked bytes. That evicts other data from the caches. Closing the result detaches the program.
func Walk(ns *netns.NS, device string, n int32) (io.Closer, error) {
	memory, err := ebpf.NewMap(&ebpf.MapSpec{Name: Name, Type: ebpf.Array, KeySize: 4, ValueSize: Walked, MaxEntries: 1})
	if err != nil {
		return nil, fmt.Errorf("make memory to walk: %w", err)
	}
	c, err := attachWork(ns, device, asm.Instructions{
		asm.LoadMapValue(asm.R6, memory.FD(), 0),
		asm.LoadMem(asm.R8, asm.R6, 0, asm.DWord), // the place is kept in the first bytes
		asm.Mov.Imm(asm.R7, n),
		asm.Add.Imm(asm.R8, line).WithSymbol("again"),
		asm.And.Imm(asm.R8, Walked-line),
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Add.Reg(asm.R1, asm.R8),
		asm.LoadMem(asm.R2, asm.R1, 8, asm.DWord),
		asm.Sub.Imm(asm.R7, 1),
		asm.JNE.Imm(asm.R7, 0, "again"),
		asm.StoreMem(asm.R6, 0, asm.R8, asm.DWord),
	})
	return c, errors.Join(err, memory.Close()) // the program holds the map
}

// Copied is the length in bytes of each copy that Copy's program makes. It does not exceed the shortest frame of TCP over
// IPv4 with time stamps.
const Copied = 64

// Copy attaches a program to the ingress of a device. The program copies the first Copied bytes of each packet n
// times. Closing the result detaches the program.
func Copy(ns *netns.NS, device string, n int32) (io.Closer, error) {
	return attachWork(ns, device, asm.Instructions{
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

// attachWork attaches a program to the ingress of a device. For each packet, the program executes work and passes the packet
// on.
func attachWork(ns *netns.NS, device string, work asm.Instructions) (io.Closer, error) {
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
