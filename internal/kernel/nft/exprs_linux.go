package nft

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// firstReg is the first of the sixteen registers of four bytes; longer values take several.
const firstReg = unix.NFT_REG32_00

// exprs collects the kernel's expressions for a rule.
type exprs struct {
	family Family
	// declareMap declares the map for a random choice, and returns its name and number. See loader.declareChoice.
	declareMap func(choice) (name string, id uint32)
	list       []expr.Any
	// comment is the comment of the rule, "" for none.
	comment string
}

// choice is a map from numbers to the alternatives of a random choice: addresses with ports, or verdicts.
type choice struct {
	// data is the length of an alternative in bytes, magic nft's number of its type; both are 0 for verdicts.
	data     int
	magic    uint32
	values   [][]byte
	verdicts []Verdict
	// shared means that equal choices may share a map.
	shared bool
}

func (e *exprs) add(list ...expr.Any) { e.list = append(e.list, list...) }

// addRule adds the expressions of all terms of r.
func (e *exprs) addRule(r Rule) error {
	for _, t := range r {
		if err := e.addTerm(t); err != nil {
			return err
		}
	}
	return nil
}

func (e *exprs) addTerm(t Term) error {
	switch t := t.(type) {
	case compare:
		e.addCompare(t)
	case lookup:
		e.addLookup(t)
	case dnat:
		e.addDNAT(t)
	case gotoRandom:
		e.addGotoRandom(t)
	case update:
		e.loadField(t.of, firstReg)
		e.add(&expr.Dynset{SrcRegKey: firstReg, SetName: t.set, Operation: unix.NFT_DYNSET_OP_UPDATE})
	case offload:
		e.add(&expr.FlowOffload{Name: string(t)})
	case Verdict:
		e.add(t.expr())
	case fixed:
		e.add(t.exprs...)
	case reject:
		e.addReject()
	case comment:
		e.comment = string(t)
	default:
		return fmt.Errorf("no expression for %T", t)
	}
	return nil
}

// loadField adds expressions that read a field into the registers from reg on.
func (e *exprs) loadField(f Field, reg uint32) {
	offset, length := map[Field]uint32{SourceAddr: 12, DestAddr: 16}[f], uint32(4)
	if e.family == IPv6 {
		offset, length = map[Field]uint32{SourceAddr: 8, DestAddr: 24}[f], 16
	}
	switch f {
	case SourceAddr6, DestAddr6:
		offset, length = map[Field]uint32{SourceAddr6: 8, DestAddr6: 24}[f], 16
		fallthrough
	case SourceAddr, DestAddr:
		if e.family == Inet { // like nft, which compares the version first
			e.add(versionExprs(int(length))...)
		}
		e.add(&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length})
	case DestPort:
		e.add(&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2})
	case ICMPv6Type:
		e.add(&expr.Payload{DestRegister: reg, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1})
	case L4Proto:
		e.add(&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg})
	case InDevice:
		e.add(&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: reg})
	case OutDevice:
		e.add(&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: reg})
	}
}

func (e *exprs) addCompare(c compare) {
	op := expr.CmpOpEq
	if c.not {
		op = expr.CmpOpNeq
	}
	e.loadField(c.field, firstReg)
	data := valueBytes(c.value)
	switch v := c.value.(type) {
	case netip.Prefix:
		data = e.reduceToPrefix(v)
	case string:
		if n := len(v); n > 0 && v[n-1] == '*' {
			data = []byte(v[:n-1])
		}
	}
	e.add(&expr.Cmp{Op: op, Register: firstReg, Data: data})
}

// reduceToPrefix reduces the address that the last expression loads to the bits of p. It returns the value to compare
// the result with. Like nft, it adds a mask if p is /0 or ends inside a byte; otherwise it makes that expression load
// fewer bytes.
func (e *exprs) reduceToPrefix(p netip.Prefix) []byte {
	network := p.Masked().Addr().AsSlice()
	if n := p.Bits() / 8; n > 0 && p.Bits()%8 == 0 {
		e.list[len(e.list)-1].(*expr.Payload).Len = uint32(n)
		return network[:n]
	}
	m := networkMask(p)
	e.add(&expr.Bitwise{SourceRegister: firstReg, DestRegister: firstReg, Len: uint32(len(m)), Mask: m, Xor: make([]byte, len(m))})
	return network
}

func (e *exprs) addLookup(l lookup) {
	reg := uint32(firstReg)
	for _, f := range l.key {
		e.loadField(f, reg)
		reg += uint32(paddedLength(fields[f].typ.shape(e.family).size) / 4)
	}
	// A map's verdict goes into register 0, which the kernel executes.
	e.add(&expr.Lookup{SourceRegister: firstReg, SetName: l.set, IsDestRegSet: l.vmap, Invert: l.not})
}

func nativeBytes(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

func (e *exprs) addReject() {
	code := uint8(3) // ICMP: port unreachable
	if e.family == IPv6 {
		code = 4
	}
	e.add(&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: code})
}

func (e *exprs) addDNAT(d dnat) {
	family, words := uint32(unix.NFPROTO_IPV4), uint32(1)
	if e.family == IPv6 {
		family, words = unix.NFPROTO_IPV6, 4
	}
	if d.direct {
		words = 4
		e.add(&expr.Immediate{Register: firstReg, Data: d.to[0].Addr().AsSlice()},
			&expr.Immediate{Register: firstReg + words, Data: valueBytes(d.to[0].Port())})
	} else {
		length, magic := keyShape([]Type{Addr, Port}, e.family)
		c := choice{data: length, magic: magic, shared: d.shared}
		for _, to := range d.to {
			c.values = append(c.values, keyBytes([]Value{to.Addr(), to.Port()}))
		}
		e.addChoice(c, firstReg)
	}
	e.add(&expr.NAT{Type: expr.NATTypeDestNAT, Family: family, RegAddrMin: firstReg, RegProtoMin: firstReg + words})
}

func (e *exprs) addGotoRandom(chains gotoRandom) {
	var c choice
	c.verdicts = append(c.verdicts, each.Of(chains, Goto)...)
	e.addChoice(c, unix.NFT_REG_VERDICT)
}

// addChoice adds expressions that draw a random number, look it up in the map of c, and load the result into reg.
func (e *exprs) addChoice(c choice, reg uint32) {
	name, id := e.declareMap(c)
	e.add(&expr.Numgen{Register: firstReg, Modulus: uint32(len(c.values) + len(c.verdicts)), Type: unix.NFT_NG_RANDOM},
		&expr.Lookup{SourceRegister: firstReg, DestRegister: reg, IsDestRegSet: true, SetName: name, SetID: id})
}

// kinds has the kernel's numbers of the verdicts.
var kinds = map[string]expr.VerdictKind{
	"accept": expr.VerdictAccept, "drop": expr.VerdictDrop, "return": expr.VerdictReturn, "jump": expr.VerdictJump, "goto": expr.VerdictGoto,
}

func (v Verdict) expr() *expr.Verdict { return &expr.Verdict{Kind: kinds[v.kind], Chain: v.chain} }
