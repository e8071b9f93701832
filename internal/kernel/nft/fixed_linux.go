package nft

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// fixed is a term that is the same in every table. words is its text in the language of nft. exprs has its expressions
// for the kernel.
type fixed struct {
	words string
	exprs []expr.Any
}

func (f fixed) text(Family) string { return f.words }

// compareExpr returns the expression that compares the first register with data.
func compareExpr(op expr.CmpOp, data []byte) expr.Any {
	return &expr.Cmp{Op: op, Register: firstReg, Data: data}
}

// maskExpr returns the expression that sets the first register r to r & v ^ x.
func maskExpr(v, x uint32) expr.Any {
	return &expr.Bitwise{SourceRegister: firstReg, DestRegister: firstReg, Len: 4, Mask: nativeBytes(v), Xor: nativeBytes(x)}
}

var (
	loadMark  = &expr.Meta{Key: expr.MetaKeyMARK, Register: firstReg}
	storeMark = &expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: firstReg}
	notZero   = compareExpr(expr.CmpOpNeq, nativeBytes(0))
	isZero    = compareExpr(expr.CmpOpEq, nativeBytes(0))
)

// PortsFrom matches packets to a port from low to 65535.
func PortsFrom(low uint16) Term {
	return fixed{fmt.Sprintf("th dport %d-65535", low), []expr.Any{
		&expr.Payload{DestRegister: firstReg, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		compareExpr(expr.CmpOpGte, valueBytes(low)), compareExpr(expr.CmpOpLte, valueBytes(uint16(65535))),
	}}
}

// MarkSet matches packets whose mark has at least one of the bits.
func MarkSet(bits uint32) Term {
	return fixed{fmt.Sprintf("meta mark & 0x%08x != 0x00000000", bits), []expr.Any{loadMark, maskExpr(bits, 0), notZero}}
}

// MarkClear matches packets whose mark has none of the bits.
func MarkClear(bits uint32) Term {
	return fixed{fmt.Sprintf("meta mark & 0x%08x == 0x00000000", bits), []expr.Any{loadMark, maskExpr(bits, 0), isZero}}
}

// markTerm returns the term that sets the packet's mark m to m & mask ^ xor. operator and operand are the same change in
// the language of nft.
func markTerm(operator string, operand, mask, xor uint32) Term {
	return fixed{fmt.Sprintf("meta mark set meta mark %s 0x%08x", operator, operand), []expr.Any{loadMark, maskExpr(mask, xor), storeMark}}
}

// SetMark sets bits of the packet's mark.
func SetMark(bits uint32) Term { return markTerm("|", bits, ^bits, bits) }

// ClearMark clears bits of the packet's mark.
func ClearMark(bits uint32) Term { return markTerm("&", ^bits, ^bits, 0) }

// FlipMark inverts bits of the packet's mark.
func FlipMark(bits uint32) Term { return markTerm("^", bits, ^uint32(0), bits) }

// connMark loads the mark of the packet's connection into the first register.
var connMark = &expr.Ct{Key: expr.CtKeyMARK, Register: firstReg}

// SetConnMark sets bits of the mark of the packet's connection.
func SetConnMark(bits uint32) Term {
	return fixed{fmt.Sprintf("ct mark set ct mark | 0x%08x", bits), []expr.Any{
		connMark, maskExpr(^bits, bits), &expr.Ct{Key: expr.CtKeyMARK, SourceRegister: true, Register: firstReg},
	}}
}

// RestoreConnMark sets the packet's mark to these bits of the connection's mark; its other bits become 0.
func RestoreConnMark(bits uint32) Term {
	return fixed{fmt.Sprintf("meta mark set ct mark & 0x%08x", bits), []expr.Any{connMark, maskExpr(bits, 0), storeMark}}
}

// The states of a packet's connection, by the kernel's numbers.
const (
	Invalid     = 1
	Established = 2
	Related     = 4
	New         = 8
)

// State matches packets whose connection has one of the states, which are combined by |.
func State(states uint32) Term {
	var names []string
	for i, name := range []string{"invalid", "established", "related", "new"} {
		if states&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return fixed{"ct state " + strings.Join(names, ","), []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: firstReg}, maskExpr(states, 0), notZero,
	}}
}

// MorePackets matches packets of a connection that has had more than n packets; n is below 255. The kernel must count
// them (nf_conntrack_acct). Like kindnet, and unlike nft, it compares in the byte order of the machine. So it may not
// match connections with more than 255 packets.
func MorePackets(n uint8) Term {
	return fixed{fmt.Sprintf("ct packets > %d", n), []expr.Any{
		&expr.Ct{Key: expr.CtKeyPKTS, Register: firstReg}, compareExpr(expr.CmpOpGt, binary.NativeEndian.AppendUint64(nil, uint64(n))),
	}}
}

// versionExprs returns expressions that match one IP version. length is the length of its addresses in bytes: 16 for IPv6,
// 4 for IPv4.
func versionExprs(length int) []expr.Any {
	number := byte(unix.NFPROTO_IPV4)
	if length == 16 {
		number = unix.NFPROTO_IPV6
	}
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: firstReg}, compareExpr(expr.CmpOpEq, []byte{number})}
}

// labels is the number of labels that a connection can have.
const labels = 128

// labelBits returns a bit field of labels in which only label n is set. The kernel's format is words in the byte order
// of the machine.
func labelBits(n int) []byte {
	b := make([]byte, labels/8)
	binary.NativeEndian.PutUint64(b[n/64*8:], 1<<(n%64))
	return b
}

// Labelled matches packets whose connection has a label, a number below 128.
func Labelled(n int) Term {
	none := make([]byte, labels/8)
	return fixed{fmt.Sprintf("ct label %d", n), []expr.Any{
		&expr.Ct{Key: expr.CtKeyLABELS, Register: firstReg},
		&expr.Bitwise{SourceRegister: firstReg, DestRegister: firstReg, Len: uint32(len(none)), Mask: labelBits(n), Xor: none},
		compareExpr(expr.CmpOpNeq, none),
	}}
}

// SetLabel gives the packet's connection a label, a number below 128.
func SetLabel(n int) Term {
	return fixed{fmt.Sprintf("ct label set %d", n), []expr.Any{
		&expr.Immediate{Register: firstReg, Data: labelBits(n)}, &expr.Ct{Key: expr.CtKeyLABELS, SourceRegister: true, Register: firstReg},
	}}
}

// translated is the bit of a connection's status for a translated destination.
const translated = 1 << 5

// Terms without a parameter that match packets.
var (
	// Translated matches packets of connections whose destination was translated.
	Translated Term = fixed{"ct status dnat", []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATUS, Register: firstReg}, maskExpr(translated, 0), notZero,
	}}
	// NotJustTranslated is nft's "ct status != dnat", as Felix writes it. It compares the whole status word, which
	// has other bits too, so it almost always matches.
	NotJustTranslated Term = fixed{"ct status != dnat", []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATUS, Register: firstReg}, compareExpr(expr.CmpOpNeq, nativeBytes(translated)),
	}}
	// VersionIPv6 matches packets of IPv6 in a table of family Inet.
	VersionIPv6 Term = fixed{"meta nfproto ipv6", versionExprs(16)}
	// OfRoot matches packets from sockets of the user root on this machine.
	OfRoot Term = fixed{"meta skuid 0", []expr.Any{&expr.Meta{Key: expr.MetaKeySKUID, Register: firstReg}, isZero}}
	// SourceLocal matches packets from an address of this machine.
	SourceLocal Term = fixed{"fib saddr type local", []expr.Any{
		&expr.Fib{Register: firstReg, ResultADDRTYPE: true, FlagSADDR: true}, compareExpr(expr.CmpOpEq, nativeBytes(unix.RTN_LOCAL)),
	}}
	// DestLocal matches packets to an address of this machine.
	DestLocal Term = fixed{"fib daddr type local", []expr.Any{
		&expr.Fib{Register: firstReg, ResultADDRTYPE: true, FlagDADDR: true}, compareExpr(expr.CmpOpEq, nativeBytes(unix.RTN_LOCAL)),
	}}
	// SourceNotLocalTo matches packets whose source is not an address of their outgoing device.
	SourceNotLocalTo Term = fixed{"fib saddr . oif type != local", []expr.Any{
		&expr.Fib{Register: firstReg, ResultADDRTYPE: true, FlagSADDR: true, FlagOIF: true},
		compareExpr(expr.CmpOpNeq, nativeBytes(unix.RTN_LOCAL)),
	}}
	// NoReversePath matches packets that arrived on a device through which no route leads back to their source.
	NoReversePath Term = fixed{"fib saddr . mark . iif oif 0", []expr.Any{
		&expr.Fib{Register: firstReg, ResultOIF: true, FlagSADDR: true, FlagMARK: true, FlagIIF: true}, isZero,
	}}
)

// Terms without a parameter that act on packets.
var (
	// Count counts packets and bytes.
	Count Term = fixed{"counter", []expr.Any{&expr.Counter{}}}
	// Untrack keeps the packet out of conntrack.
	Untrack Term = fixed{"notrack", []expr.Any{&expr.Notrack{}}}
	// Masquerade changes the connection's source to the address of its outgoing device and a random port.
	Masquerade Term = fixed{"masquerade fully-random", []expr.Any{&expr.Masq{FullyRandom: true}}}
	// MasqueradeAny changes the connection's source to the address of its outgoing device. It keeps the port if it is free.
	MasqueradeAny Term = fixed{"masquerade", []expr.Any{&expr.Masq{}}}
	// Reject drops the packet and sends the ICMP message that the port is unreachable.
	Reject Term = reject{}
)

type reject struct{}

func (reject) text(Family) string { return "reject" }

type comment string

// Comment returns a comment for people, at most MaxComment bytes. It must be last in a rule.
func Comment(text string) Term { return comment(text) }

func (c comment) text(Family) string { return `comment "` + string(c) + `"` }
