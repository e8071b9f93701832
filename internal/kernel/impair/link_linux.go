package impair

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Lossy drops a random share of the frames that arrive at a device for one MAC address. It leaves other frames
// unchanged.
type Lossy struct {
	ns     *netns.NS
	device string
	prog   *ebpf.Program
	at     io.Closer
}

// NewLossy loads a program that drops a share of the frames for the MAC address to. share is 0 to 1. The program drops
// no frame until Impair.
func NewLossy(ns *netns.NS, device string, to net.HardwareAddr, share float64) (*Lossy, error) {
	const address, passes, lost = -8, "passes", 2 // TC_ACT_SHOT
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "lossy_link", Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R2, 0), // the frame begins with the address of the station
		asm.Mov.Reg(asm.R3, asm.RFP),
		asm.Add.Imm(asm.R3, address),
		asm.Mov.Imm(asm.R4, int32(len(to))),
		asm.FnSkbLoadBytes.Call(),
		asm.JNE.Imm(asm.R0, 0, passes),
		asm.LoadMem(asm.R1, asm.RFP, address, asm.Word),
		asm.JNE.Imm32(asm.R1, int32(binary.NativeEndian.Uint32(to)), passes),
		asm.LoadMem(asm.R1, asm.RFP, address+4, asm.Half),
		asm.JNE.Imm(asm.R1, int32(binary.NativeEndian.Uint16(to[4:])), passes),
		asm.FnGetPrandomU32.Call(),
		asm.RSh.Imm32(asm.R0, 1),
		asm.JGE.Imm32(asm.R0, int32(share*math.MaxInt32), passes),
		asm.Mov.Imm(asm.R0, lost),
		asm.Return(),
		asm.Mov.Imm(asm.R0, -1).WithSymbol(passes), // TC_ACT_UNSPEC
		asm.Return(),
	}})
	if err != nil {
		return nil, fmt.Errorf("lose frames at %s: %w", device, err)
	}
	return &Lossy{ns: ns, device: device, prog: prog}, nil
}

// Impair attaches the program: frames are dropped from now on.
func (l *Lossy) Impair() (err error) {
	if l.at, err = attach.Device(l.ns, l.device, attach.Ingress, l.prog); err != nil {
		return fmt.Errorf("lose frames at %s: %w", l.device, err)
	}
	return nil
}

// Close detaches and unloads the program.
func (l *Lossy) Close() error {
	if l.at != nil {
		_ = l.at.Close() // fails if the device is gone, and the program with it
	}
	return l.prog.Close()
}
