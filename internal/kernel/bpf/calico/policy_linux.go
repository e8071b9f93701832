package calico

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// Offsets of struct state's first fields, as state.h has them.
const (
	stateSrc      = 0
	stateDst      = 4
	stateDport    = 10
	stateProto    = 12
	stateAccepted = 16
)

// maxRules keeps every jump of a generated program within its 16 bits; the product splits longer ones.
const maxRules = 1500

// noProto is no protocol's number. A comparison with it never holds, but the verifier, which refuses code that nothing
// jumps to, does not know that.
const noProto = 256

// SetPolicy generates the workload's two policy programs anew and puts them in place. Open flows are not judged again.
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
		slot  uint32
		rules []Rule
		peer  int16
	}{{w.ingress, p.Ingress, stateSrc}, {w.egress, p.Egress, stateDst}} {
		rules := side.rules
		if rules == nil {
			rules = []Rule{{Allow: true}}
		}
		code, err := n.generate(rules, side.peer)
		if err != nil {
			return err
		}
		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Name: "policy", Type: ebpf.SchedCLS, Instructions: code, License: "Dual BSD/GPL",
		})
		if err != nil {
			return fmt.Errorf("%d rules: %w", len(rules), err)
		}
		err = n.mains.Maps["cali_jump"].Put(side.slot, prog)
		if err := errors.Join(err, prog.Close()); err != nil {
			return err
		}
	}
	return nil
}

// generate writes the rules as a chain of comparisons, one after the other, which is what makes policy linear here:
//
//	r9 = state
//	rule 0: proto, port, set: no match jumps to rule 1; a match jumps to allow or deny
//	...
//	deny:  tail call denied
//	allow: tail call state->accepted
func (n *Node) generate(rules []Rule, peer int16) (asm.Instructions, error) {
	if len(rules) > maxRules {
		return nil, fmt.Errorf("%d rules are more than one program holds (%d)", len(rules), maxRules)
	}
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, n.mains.Maps["cali_state"].FD()),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, "end"),
		asm.Mov.Reg(asm.R9, asm.R0),
		asm.LoadMem(asm.R1, asm.R9, stateProto, asm.Byte),
		asm.JEq.Imm(asm.R1, noProto, "allow"),
	}
	for i, r := range rules {
		if r.Port != 0 && r.Proto == AnyProto {
			return nil, fmt.Errorf("rule %d names a port but no protocol", i)
		}
		next := fmt.Sprintf("rule%d", i+1)
		one := n.match(r, peer, next)
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
	deny := asm.Mov.Imm(asm.R3, jumpDenied)
	if len(rules) > 0 {
		// What falls through the last rule.
		code = append(code, asm.Ja.Label("deny").WithSymbol(fmt.Sprintf("rule%d", len(rules))))
	}
	jump := n.mains.Maps["cali_jump"].FD()
	return append(code,
		deny.WithSymbol("deny"),
		asm.Ja.Label("jump"),
		asm.LoadMem(asm.R3, asm.R9, stateAccepted, asm.Word).WithSymbol("allow"),
		asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("jump"),
		asm.LoadMapPtr(asm.R2, jump),
		asm.FnTailCall.Call(),
		asm.Mov.Imm(asm.R0, 2).WithSymbol("end"), // TC_ACT_SHOT
		asm.Return(),
	), nil
}

// match is the comparisons of one rule; a mismatch jumps to next.
func (n *Node) match(r Rule, peer int16, next string) asm.Instructions {
	var code asm.Instructions
	if r.Proto != AnyProto {
		code = append(code, asm.LoadMem(asm.R1, asm.R9, stateProto, asm.Byte), asm.JNE.Imm(asm.R1, int32(r.Proto), next))
	}
	if r.Port != 0 {
		code = append(code, asm.LoadMem(asm.R1, asm.R9, stateDport, asm.Half), asm.JNE.Imm(asm.R1, int32(be16(r.Port)), next))
	}
	if r.Set != 0 {
		key := setKey(r.Set, netip.PrefixFrom(netip.IPv4Unspecified(), 32))
		// The key of set_key on the stack at -24, the address taken from the packet.
		for at := 0; at < setKeySize; at += 4 {
			word := int64(int32(binary.NativeEndian.Uint32(key[at:])))
			code = append(code, asm.StoreImm(asm.RFP, int16(at-24), word, asm.Word))
		}
		code = append(code,
			asm.LoadMem(asm.R1, asm.R9, peer, asm.Word),
			asm.StoreMem(asm.RFP, setKeyAddr-24, asm.R1, asm.Word),
			asm.LoadMapPtr(asm.R1, n.mains.Maps["cali_v4_ip_sets"].FD()),
			asm.Mov.Reg(asm.R2, asm.RFP),
			asm.Add.Imm(asm.R2, -24),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, next),
		)
	}
	if len(code) == 0 {
		code = append(code, asm.LoadMem(asm.R1, asm.R9, stateProto, asm.Byte), asm.JEq.Imm(asm.R1, noProto, next))
	}
	return code
}

// The layout of struct set_key, which is packed.
const (
	setKeySize = 20
	setKeyAddr = 12
	setStatic  = 64 // bits of the set's number
)

func setKey(set uint64, p netip.Prefix) []byte {
	b := make([]byte, setKeySize)
	binary.NativeEndian.PutUint32(b, setStatic+uint32(p.Bits()))
	binary.BigEndian.PutUint64(b[4:], set)
	a := p.Masked().Addr().As4()
	copy(b[setKeyAddr:], a[:])
	return b
}

// SetIPSet adds prefixes to a set of peers, and takes others away. Set 0 is none.
func (n *Node) SetIPSet(set uint64, add, remove []netip.Prefix) error {
	m := n.mains.Maps["cali_v4_ip_sets"]
	for _, p := range add {
		if err := m.Put(setKey(set, p), uint32(1)); err != nil {
			return fmt.Errorf("calico dataplane: set %d: add %s: %w", set, p, err)
		}
	}
	for _, p := range remove {
		if err := gone(m.Delete(setKey(set, p))); err != nil {
			return fmt.Errorf("calico dataplane: set %d: remove %s: %w", set, p, err)
		}
	}
	return nil
}
