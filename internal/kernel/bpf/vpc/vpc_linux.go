package vpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Name is the program's name in the kernel.
const Name = "vpc_router"

// Offsets in bytes. tagThere to dataEnd are in struct __sk_buff, the others in an Ethernet frame with IPv4. headers is
// the length of the Ethernet and the IPv4 header.
const (
	tagThere, tag       = 20, 24
	dataStart, dataEnd  = 76, 80
	etherType           = 12
	source, destination = 14 + 12, 14 + 16
	headers             = 14 + 20
)

// Verdicts: next passes a packet on to the following program, drop drops it.
const (
	next = -1
	drop = 2
)

// Station is a host, or an interface on a trunk, at the end of a port.
type Station struct {
	MAC net.HardwareAddr
	// VLAN is the number of the interface's VLAN on its trunk, 0 for frames without a tag.
	VLAN int
}

// Router sets the destination MAC address of an IPv4 frame to that of the station with the frame's destination address.
// It leaves frames for unknown addresses, and frames without IPv4, unchanged.
//
// The router of a trunk also removes the tag of what a port receives, and drops a frame whose tag is not that of its source
// address. It adds the tag of its destination to what the port sends.
type Router struct {
	stations *ebpf.Map
	// program is for received frames. tagger is for sent ones, and nil without a trunk.
	program, tagger *ebpf.Program
	at              []io.Closer
}

// Open loads a router, of a trunk or of a port whose frames have no tags. stations has the station of each IPv4 address.
// Attach puts the router on a port.
func Open(stations map[netip.Addr]Station, trunk bool) (*Router, error) {
	table, err := ebpf.NewMap(&ebpf.MapSpec{Name: Name, Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: uint32(len(stations) + 1)})
	if err != nil {
		return nil, fmt.Errorf("router of the VPC: %w", err)
	}
	r := &Router{stations: table}
	for a, s := range stations {
		if err = table.Put(a.As4(), binary.NativeEndian.AppendUint16(s.MAC[:6:6], uint16(s.VLAN))); err != nil {
			break
		}
	}
	if err == nil {
		r.program, err = loadProgram(routerInstructions(table, trunk))
	}
	if err == nil && trunk {
		r.tagger, err = loadProgram(taggerInstructions(table))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("router of the VPC: %w", err), r.Close())
	}
	return r, nil
}

func loadProgram(instructions asm.Instructions) (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{Name: Name, Type: ebpf.SchedCLS, License: "GPL", Instructions: instructions})
}

// pass is the label of the end at which the frame goes on.
const pass = "pass"

// routerInstructions returns the instructions of the program for received frames: R6 is the frame, R0 the entry of its
// destination. On a trunk, R7 is the context, and R8 the VLAN of the frame's tag, which must be that of its source.
func routerInstructions(table *ebpf.Map, trunk bool) asm.Instructions {
	const parse, compare, dropped = "parse", "compare", "dropped"
	var untag, check, refuse asm.Instructions
	if trunk {
		untag = asm.Instructions{
			asm.Mov.Reg(asm.R7, asm.R1),
			asm.Mov.Imm(asm.R8, 0),
			asm.LoadMem(asm.R2, asm.R1, tagThere, asm.Word),
			asm.JEq.Imm(asm.R2, 0, parse),
			asm.LoadMem(asm.R8, asm.R1, tag, asm.Word),
			asm.And.Imm(asm.R8, 0xfff),
			asm.FnSkbVlanPop.Call(),
			asm.Mov.Reg(asm.R1, asm.R7).WithSymbol(parse),
		}
		check = append(lookUp(table, source),
			asm.Mov.Imm(asm.R1, 0),
			asm.JEq.Imm(asm.R0, 0, compare),
			asm.LoadMem(asm.R1, asm.R0, 6, asm.Half),
			asm.JNE.Reg(asm.R1, asm.R8, dropped).WithSymbol(compare),
		)
		refuse = asm.Instructions{asm.Mov.Imm(asm.R0, drop).WithSymbol(dropped), asm.Return()}
	}
	return slices.Concat(untag, loadIPv4(), check, lookUp(table, destination),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, pass),
			asm.LoadMem(asm.R1, asm.R0, 0, asm.Word),
			asm.StoreMem(asm.R6, 0, asm.R1, asm.Word),
			asm.LoadMem(asm.R1, asm.R0, 4, asm.Half),
			asm.StoreMem(asm.R6, 4, asm.R1, asm.Half),
			asm.Mov.Imm(asm.R0, next).WithSymbol(pass),
			asm.Return(),
		}, refuse)
}

// taggerInstructions returns the instructions of the program for sent frames.
func taggerInstructions(table *ebpf.Map) asm.Instructions {
	return slices.Concat(
		asm.Instructions{asm.Mov.Reg(asm.R7, asm.R1)},
		loadIPv4(),
		lookUp(table, destination),
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, pass),
			asm.LoadMem(asm.R3, asm.R0, 6, asm.Half),
			asm.JEq.Imm(asm.R3, 0, pass),
			asm.Mov.Reg(asm.R1, asm.R7),
			asm.Mov.Imm(asm.R2, 0x0081), // 802.1Q, as a little-endian machine reads it
			asm.FnSkbVlanPush.Call(),
			asm.Mov.Imm(asm.R0, next).WithSymbol(pass),
			asm.Return(),
		})
}

// loadIPv4 sets R6 to the frame of the context in R1. It goes to pass unless the frame has IPv4.
func loadIPv4() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, dataStart, asm.Word),
		asm.LoadMem(asm.R2, asm.R1, dataEnd, asm.Word),
		asm.Mov.Reg(asm.R3, asm.R6),
		asm.Add.Imm(asm.R3, headers),
		asm.JGT.Reg(asm.R3, asm.R2, pass),
		asm.LoadMem(asm.R4, asm.R6, etherType, asm.Half),
		asm.JNE.Imm(asm.R4, 0x0008, pass), // IPv4, as a little-endian machine reads it
	}
}

// lookUp sets R0 to the entry of the address at an offset of the frame in R6.
func lookUp(table *ebpf.Map, offset int16) asm.Instructions {
	const key = -4
	return asm.Instructions{
		asm.LoadMem(asm.R4, asm.R6, offset, asm.Word),
		asm.StoreMem(asm.RFP, key, asm.R4, asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, key),
		asm.LoadMapPtr(asm.R1, table.FD()),
		asm.FnMapLookupElem.Call(),
	}
}

// Attach attaches the router to a port of the switch. It then handles the frames that the host at this port sends. On a
// trunk it also handles those that the port sends to the host.
func (r *Router) Attach(ns *netns.NS, port string) error {
	at, err := attach.Device(ns, port, attach.Ingress, r.program)
	if err == nil {
		r.at = append(r.at, at)
	}
	if err != nil || r.tagger == nil {
		return err
	}
	if at, err = attach.Device(ns, port, attach.Egress, r.tagger); err == nil {
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
	for _, p := range []*ebpf.Program{r.program, r.tagger} {
		_ = p.Close() // closes the descriptor despite an error
	}
	return r.stations.Close()
}
