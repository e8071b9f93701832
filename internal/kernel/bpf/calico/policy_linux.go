package calico

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// maxRules is the largest number of rules in a generated program: it keeps every jump within 16 bits. More rules are
// put into further programs, reached by tail calls. The kernel allows 33 tail calls for a packet.
const maxRules = 1500

// noProto is above every protocol number, so a comparison with it is never true. It adds jumps to code that the
// verifier would otherwise refuse as unreachable.
const noProto = 256

// SetPolicy generates the workload's policy programs and replaces the old ones. It does not affect established flows.
func (n *Node) SetPolicy(device string, p Policy) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.workloads[device]
	if w == nil {
		return fmt.Errorf("calico dataplane: no workload on device %s to set a policy for", device)
	}
	if err := n.setPolicy(w, p); err != nil {
		return fmt.Errorf("calico dataplane: policy of %s: %w", device, err)
	}
	return nil
}

func (n *Node) setPolicy(w *workload, p Policy) error {
	for _, side := range []struct {
		slots *[]uint32
		rules []Rule
		peer  int16
	}{{&w.ingress, p.Ingress, stateSrc}, {&w.egress, p.Egress, n.family.stateDst()}} {
		rules := side.rules
		if rules == nil {
			rules = []Rule{{Allow: true}}
		}
		if err := n.replaceSidePrograms(side.slots, rules, side.peer); err != nil {
			return fmt.Errorf("%d rules: %w", len(rules), err)
		}
	}
	return nil
}

// replaceSidePrograms replaces the programs of one side. It replaces the first program last, so that a packet passes either
// all old rules or all new ones. The other old programs stay in their slots until the slots are reused, for packets that are
// being processed.
func (n *Node) replaceSidePrograms(slots *[]uint32, rules []Rule, peer int16) error {
	parts := slices.Collect(slices.Chunk(rules, maxRules))
	if len(parts) == 0 {
		parts = [][]Rule{nil}
	}
	taken := []uint32{(*slots)[0]}
	for range len(parts) - 1 {
		slot, err := n.takeSlot()
		if err != nil {
			n.free = append(n.free, taken[1:]...)
			return err
		}
		taken = append(taken, slot)
	}
	otherwise := uint32(jumpDenied)
	for i := len(parts) - 1; i >= 0; i-- {
		if err := n.loadRules(taken[i], parts[i], peer, otherwise); err != nil {
			n.free = append(n.free, taken[1:]...)
			return err
		}
		otherwise = taken[i]
	}
	n.free = append(n.free, (*slots)[1:]...)
	*slots = taken
	return nil
}

// loadRules generates the program of these rules, loads it and puts it into a slot. otherwise is the slot of the program
// that runs next if no rule matches.
func (n *Node) loadRules(slot uint32, rules []Rule, peer int16, otherwise uint32) error {
	code, err := n.policyInstructions(rules, peer, otherwise)
	if err != nil {
		return err
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "policy", Type: ebpf.SchedCLS, Instructions: code, License: "Dual BSD/GPL",
	})
	if err != nil {
		return err
	}
	err = n.mains.Maps["cali_jump"].Put(slot, prog)
	return errors.Join(err, prog.Close())
}

// policyInstructions returns a program that compares a packet with one rule after the other. So its cost grows linearly
// with the number of rules. peer is the offset of the peer's address in struct state. It fails for a rule with a port
// but no protocol. The program:
//
//	r9 = state
//	rule 0: proto, port, set: no match jumps to rule 1; a match jumps to allow or deny
//	...
//	deny:  tail call denied
//	none:  tail call otherwise
//	allow: tail call state->accepted
func (n *Node) policyInstructions(rules []Rule, peer int16, otherwise uint32) (asm.Instructions, error) {
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, n.mains.Maps["cali_state"].FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "end"),
		asm.Mov.Reg(asm.R9, asm.R0),
		asm.LoadMem(asm.R1, asm.R9, n.family.stateProto(), asm.Byte),
		asm.JEq.Imm(asm.R1, noProto, "allow"),
		asm.JEq.Imm(asm.R1, noProto, "deny"),
	}
	for i, r := range rules {
		if r.Port != 0 && r.Proto == AnyProto {
			return nil, fmt.Errorf("rule %d names a port but no protocol", i)
		}
		next := fmt.Sprintf("rule%d", i+1)
		one := n.matchInstructions(r, peer, next)
		verdict := "deny"
		if r.Allow {
			verdict = "allow"
		}
		one = append(one, asm.Ja.Label(verdict))
		if i > 0 {
			one[0] = one[0].WithSymbol(fmt.Sprintf("rule%d", i))
		}
		code = append(code, one...)
	}
	jump := n.mains.Maps["cali_jump"].FD()
	return append(code,
		asm.Mov.Imm(asm.R3, int32(otherwise)).WithSymbol(fmt.Sprintf("rule%d", len(rules))),
		asm.Ja.Label("jump"),
		asm.Mov.Imm(asm.R3, jumpDenied).WithSymbol("deny"),
		asm.Ja.Label("jump"),
		asm.LoadMem(asm.R3, asm.R9, n.family.stateAccepted(), asm.Word).WithSymbol("allow"),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("jump"),
		asm.LoadMapPtr(asm.R2, jump),
		asm.FnTailCall.Call(),
		asm.Mov.Imm(asm.R0, 2).WithSymbol("end"), // TC_ACT_SHOT
		asm.Return(),
	), nil
}

// matchInstructions returns the instructions that compare a packet with one rule. A mismatch jumps to the label next.
func (n *Node) matchInstructions(r Rule, peer int16, next string) asm.Instructions {
	var code asm.Instructions
	if r.Proto != AnyProto {
		code = append(code, asm.LoadMem(asm.R1, asm.R9, n.family.stateProto(), asm.Byte), asm.JNE.Imm(asm.R1, int32(r.Proto), next))
	}
	if r.Port != 0 {
		code = append(code, asm.LoadMem(asm.R1, asm.R9, n.family.stateDport(), asm.Half), asm.JNE.Imm(asm.R1, int32(bigEndianPort(r.Port)), next))
	}
	if r.Set != 0 {
		code = append(code, n.setKeyInstructions(r.Set, peer)...)
		code = append(code,
			asm.LoadMapPtr(asm.R1, n.table("ip_sets").FD()),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, setKeyStack),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, next),
		)
	}
	if len(code) == 0 {
		code = append(code, asm.LoadMem(asm.R1, asm.R9, n.family.stateProto(), asm.Byte), asm.JEq.Imm(asm.R1, noProto, next))
	}
	return code
}

// setKeyStack is the offset of a rule's struct set_key on the stack. It aligns the address in the struct to eight
// bytes.
const setKeyStack = -32 - setKeyAddr

// setKeyInstructions returns the instructions that write a struct set_key to the stack. They copy the address from offset peer
// of the packet's state.
func (n *Node) setKeyInstructions(set uint64, peer int16) asm.Instructions {
	var code asm.Instructions
	size, step := asm.Word, 4
	if n.family.address%8 == 0 {
		size, step = asm.DWord, 8
	}
	for at := 0; at < n.family.address; at += step {
		code = append(code, asm.LoadMem(asm.R1, asm.R9, peer+int16(at), size),
			asm.StoreMem(asm.RFP, int16(setKeyStack+setKeyAddr+at), asm.R1, size))
	}
	none, _ := netip.AddrFromSlice(n.family.zeroAddress())
	key := setKey(set, hostPrefix(none))
	for at := 0; at < len(key); at += 4 {
		if at >= setKeyAddr && at < setKeyAddr+n.family.address {
			continue
		}
		word := int64(int32(binary.NativeEndian.Uint32(key[at:])))
		code = append(code, asm.StoreImm(asm.RFP, int16(setKeyStack+at), word, asm.Word))
	}
	return code
}

// SetIPSet adds prefixes to a set of peers. set is its number, not 0.
func (n *Node) SetIPSet(set uint64, add []netip.Prefix) error {
	for _, p := range add {
		if !n.family.has(p.Addr()) {
			return fmt.Errorf("calico dataplane: set %d: %s is not %s, as the node is", set, p, n.family.name)
		}
	}
	for _, p := range add {
		if err := n.table("ip_sets").Put(setKey(set, p), uint32(1)); err != nil {
			return fmt.Errorf("calico dataplane: set %d: add %s: %w", set, p, err)
		}
	}
	return nil
}
