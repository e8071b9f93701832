package vpc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Name is the program's name in the kernel.
const Name = "vpc_router"

// Offsets in bytes. dataStart and dataEnd are in struct __sk_buff, the others in an Ethernet frame with IPv4. headers
// is the length of the Ethernet and the IPv4 header.
const (
	dataStart, dataEnd = 76, 80
	etherType          = 12
	destination        = 14 + 16
	headers            = 14 + 20
)

// next is the verdict that passes a packet on to the following program.
const next = -1

// Router sets the destination MAC address of an IPv4 frame to that of the host with the frame's destination address. It
// leaves frames for unknown addresses, and frames without IPv4, unchanged.
type Router struct {
	stations *ebpf.Map
	program  *ebpf.Program
	at       []io.Closer
}

// Open loads a router. stations has the MAC address of the host for each IPv4 destination. Attach puts the router on a
// port.
func Open(stations map[netip.Addr]net.HardwareAddr) (*Router, error) {
	table, err := ebpf.NewMap(&ebpf.MapSpec{Name: Name, Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: uint32(len(stations) + 1)})
	if err != nil {
		return nil, fmt.Errorf("router of the VPC: %w", err)
	}
	r := &Router{stations: table}
	for a, mac := range stations {
		if err = table.Put(a.As4(), append(mac[:6:6], 0, 0)); err != nil {
			break
		}
	}
	if err == nil {
		r.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: Name, Type: ebpf.SchedCLS, License: "GPL", Instructions: routerInstructions(table)})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("router of the VPC: %w", err), r.Close())
	}
	return r, nil
}

// routerInstructions returns the instructions of the program: R6 is the frame, R0 the entry of its destination.
func routerInstructions(table *ebpf.Map) asm.Instructions {
	const key, pass = -4, "pass"
	return asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, dataStart, asm.Word),
		asm.LoadMem(asm.R2, asm.R1, dataEnd, asm.Word),
		asm.Mov.Reg(asm.R3, asm.R6),
		asm.Add.Imm(asm.R3, headers),
		asm.JGT.Reg(asm.R3, asm.R2, pass),
		asm.LoadMem(asm.R4, asm.R6, etherType, asm.Half),
		asm.JNE.Imm(asm.R4, 0x0008, pass), // IPv4, as a little-endian machine reads it
		asm.LoadMem(asm.R4, asm.R6, destination, asm.Word),
		asm.StoreMem(asm.RFP, key, asm.R4, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, key),
		asm.LoadMapPtr(asm.R1, table.FD()),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, pass),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
		asm.StoreMem(asm.R6, 0, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.R0, 4, asm.Half),
		asm.StoreMem(asm.R6, 4, asm.R1, asm.Half),
		asm.Mov.Imm(asm.R0, next).WithSymbol(pass),
		asm.Return(),
	}
}

// Attach attaches the router to a port of the switch. It then handles the frames that the host at this port sends.
func (r *Router) Attach(ns *netns.NS, port string) error {
	at, err := attach.Device(ns, port, attach.Ingress, r.program)
	if err == nil {
		r.at = append(r.at, at)
	}
	return err
}

// Close detaches the router from its ports and unloads it. It ignores errors of the ports, which may no longer exist.
func (r *Router) Close() error {
	for _, at := range r.at {
		_ = at.Close() // fails if the device is gone, and the program with it
	}
	r.at = nil
	if r.program != nil {
		_ = r.program.Close() // closes the descriptor despite an error
	}
	return r.stations.Close()
}
