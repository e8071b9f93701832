package nft

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// batch is a transaction under construction: a sequence of netlink messages.
type batch struct {
	buf []byte
	// sequence is the number of the last message; start is the number of the message that begins the batch.
	sequence, start uint32
	// about has one function for each message after the first. The function describes its message in an error.
	about []func() string
	// last is the offset of the last message in buf.
	last int
}

const (
	// limit is the size in bytes at which a transaction is sent; it is below the default buffer of a socket.
	limit = 160 << 10
	// part is the size in bytes at which a list of elements continues in another message. The length of a list has only
	// 16 bits.
	part = 48 << 10
)

func (b *batch) isEmpty() bool { return len(b.about) == 0 }

// beginMessage starts a message of the nftables subsystem. If the batch is empty, it starts the transaction first. about
// describes the message in an error.
func (b *batch) beginMessage(kind, flags uint16, family Family, about func() string) {
	if b.isEmpty() {
		b.buf = b.buf[:0]
		b.appendHeader(unix.NFNL_MSG_BATCH_BEGIN, 0, 0)
		binary.BigEndian.PutUint16(b.buf[len(b.buf)-2:], unix.NFNL_SUBSYS_NFTABLES)
		b.start = b.sequence
		b.endMessage()
	}
	b.about = append(b.about, about)
	b.appendHeader(unix.NFNL_SUBSYS_NFTABLES<<8|kind, flags, nfproto(family))
}

// appendHeader appends a netlink header and netfilter's header.
func (b *batch) appendHeader(kind, flags uint16, family byte) {
	b.sequence++
	b.last = len(b.buf)
	b.buf = append(b.buf, make([]byte, unix.NLMSG_HDRLEN+4)...)
	h := b.buf[b.last:]
	binary.NativeEndian.PutUint16(h[4:], kind)
	binary.NativeEndian.PutUint16(h[6:], flags|unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(h[8:], b.sequence)
	h[unix.NLMSG_HDRLEN] = family
	h[unix.NLMSG_HDRLEN+1] = unix.NFNETLINK_V0
}

// endMessage writes the length of the message that beginMessage began.
func (b *batch) endMessage() {
	binary.NativeEndian.PutUint32(b.buf[b.last:], uint32(len(b.buf)-b.last))
}

// finish completes the transaction, requests an answer to its last message, and returns the bytes to send.
func (b *batch) finish() []byte {
	flags := b.buf[b.last+6:]
	binary.NativeEndian.PutUint16(flags, binary.NativeEndian.Uint16(flags)|unix.NLM_F_ACK)
	b.appendHeader(unix.NFNL_MSG_BATCH_END, 0, 0)
	binary.BigEndian.PutUint16(b.buf[len(b.buf)-2:], unix.NFNL_SUBSYS_NFTABLES)
	b.endMessage()
	return b.buf
}

// describeMessage describes the message with this number, or returns "the transaction" for another number.
func (b *batch) describeMessage(sequence uint32) string {
	i := int(sequence) - int(b.start) - 1
	if i < 0 || i >= len(b.about) {
		return "the transaction"
	}
	return b.about[i]()
}

func nfproto(f Family) byte {
	switch f {
	case IPv6:
		return unix.NFPROTO_IPV6
	case Inet:
		return unix.NFPROTO_INET
	}
	return unix.NFPROTO_IPV4
}

// putBytes appends an attribute to the message under construction. It pads the attribute with zeros to a multiple of
// four bytes.

func (b *batch) putBytes(kind uint16, data []byte) {
	at := b.beginAttribute(kind)
	b.buf = append(b.buf, data...)
	b.endAttribute(at)
}

func (b *batch) putText(kind uint16, s string) {
	at := b.beginAttribute(kind)
	b.buf = append(b.buf, s...)
	b.buf = append(b.buf, 0)
	b.endAttribute(at)
}

func (b *batch) putNumber(kind uint16, v uint32) {
	b.putBytes(kind, binary.BigEndian.AppendUint32(nil, v))
}

// beginAttribute begins an attribute and returns its offset. Pass the offset to endAttribute.
func (b *batch) beginAttribute(kind uint16) (at int) {
	at = len(b.buf)
	b.buf = append(b.buf, 0, 0, 0, 0)
	binary.NativeEndian.PutUint16(b.buf[at+2:], kind)
	return at
}

func (b *batch) endAttribute(at int) {
	binary.NativeEndian.PutUint16(b.buf[at:], uint16(len(b.buf)-at))
	b.buf = append(b.buf, make([]byte, paddedLength(len(b.buf))-len(b.buf))...)
}

const nested = unix.NLA_F_NESTED

// hooks has the kernel's numbers of the hooks.
var hooks = map[string]uint32{
	"prerouting": unix.NF_INET_PRE_ROUTING, "input": unix.NF_INET_LOCAL_IN, "forward": unix.NF_INET_FORWARD,
	"output": unix.NF_INET_LOCAL_OUT, "postrouting": unix.NF_INET_POST_ROUTING,
}

// Kinds of user data: the comment of a table or rule, the comment of a set, and the byte order of a set.
const (
	udataComment    = 0
	udataSetComment = 7
	udataByteOrder  = 0
)

// userData returns one piece of user data: kind, length, value.
func userData(kind byte, value []byte) []byte {
	return append([]byte{kind, byte(len(value))}, value...)
}

func (b *batch) declareTable(t *Table) {
	b.beginMessage(unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, t.Family, func() string { return "table " + t.Name })
	b.putText(unix.NFTA_TABLE_NAME, t.Name)
	if t.Comment != "" {
		b.putBytes(tableUserData, userData(udataComment, append([]byte(t.Comment), 0)))
	}
	b.endMessage()
}

// policyAccept is NF_ACCEPT.
const policyAccept = 1

// tableUserData is NFTA_TABLE_USERDATA.
const tableUserData = 6

func (b *batch) declareChain(t *Table, c *Chain) {
	b.beginMessage(unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, t.Family, func() string { return "chain " + c.Name })
	b.putText(unix.NFTA_CHAIN_TABLE, t.Name)
	b.putText(unix.NFTA_CHAIN_NAME, c.Name)
	if h := c.Hook; h != nil {
		at := b.beginAttribute(unix.NFTA_CHAIN_HOOK | nested)
		b.putNumber(unix.NFTA_HOOK_HOOKNUM, hooks[h.Hook])
		b.putNumber(unix.NFTA_HOOK_PRIORITY, uint32(int32(h.Priority)))
		b.endAttribute(at)
		b.putNumber(unix.NFTA_CHAIN_POLICY, policyAccept)
		b.putText(unix.NFTA_CHAIN_TYPE, h.Type)
	}
	b.endMessage()
}

// declareFlowtable declares a flowtable with its devices.
func (b *batch) declareFlowtable(t *Table, f *Flowtable) {
	b.beginMessage(unix.NFT_MSG_NEWFLOWTABLE, unix.NLM_F_CREATE, t.Family, func() string { return "flowtable " + f.Name })
	b.putText(nftables.NFTA_FLOWTABLE_TABLE, t.Name)
	b.putText(nftables.NFTA_FLOWTABLE_NAME, f.Name)
	hook := b.beginAttribute(nftables.NFTA_FLOWTABLE_HOOK | nested)
	b.putNumber(nftables.NFTA_FLOWTABLE_HOOK_NUM, unix.NF_NETDEV_INGRESS)
	b.putNumber(nftables.NFTA_FLOWTABLE_PRIORITY, uint32(int32(f.Priority)))
	devices := b.beginAttribute(nftables.NFTA_FLOWTABLE_DEVS | nested)
	for _, d := range f.Devices {
		b.putText(nftables.NFTA_DEVICE_NAME, d)
	}
	b.endAttribute(devices)
	b.endAttribute(hook)
	b.endMessage()
}

// declareSet declares a set without its elements.
func (b *batch) declareSet(t *Table, s *Set, id uint32) {
	length, magic := keyShape(s.Key, t.Family)
	var flags uint32
	if s.Map {
		flags |= unix.NFT_SET_MAP
	}
	if s.Interval {
		flags |= unix.NFT_SET_INTERVAL
	}
	if s.Timeout > 0 {
		flags |= unix.NFT_SET_TIMEOUT | unix.NFT_SET_EVAL
	}
	b.beginMessage(unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE, t.Family, func() string { return "set " + s.Name })
	b.putText(unix.NFTA_SET_TABLE, t.Name)
	b.putText(unix.NFTA_SET_NAME, s.Name)
	b.putNumber(unix.NFTA_SET_FLAGS, flags)
	b.putNumber(unix.NFTA_SET_KEY_TYPE, magic)
	b.putNumber(unix.NFTA_SET_KEY_LEN, uint32(length))
	if s.Map {
		b.putNumber(unix.NFTA_SET_DATA_TYPE, unix.NFT_DATA_VERDICT)
	}
	if s.Timeout > 0 {
		b.putBytes(unix.NFTA_SET_TIMEOUT, binary.BigEndian.AppendUint64(nil, uint64(s.Timeout.Milliseconds())))
	}
	if s.Collect > 0 {
		b.putNumber(unix.NFTA_SET_GC_INTERVAL, uint32(s.Collect.Milliseconds()))
	}
	b.putNumber(unix.NFTA_SET_ID, id)
	b.putSetUserData(s)
	b.endMessage()
}

// putSetUserData adds the user data of a set: the byte order in which nft prints keys, and the comment.
func (b *batch) putSetUserData(s *Set) {
	order := uint32(2) // that of the network
	if s.Key[0] == Device {
		order = 1 // that of the machine
	}
	data := userData(udataByteOrder, nativeBytes(order))
	if s.Comment != "" {
		data = append(data, userData(udataSetComment, append([]byte(s.Comment), 0))...)
	}
	b.putBytes(unix.NFTA_SET_USERDATA, data)
}

// integerMagic is nft's number for the keys of an anonymous map.
const integerMagic = 4

// declareChoiceMap declares the map of a choice with its elements. Unless the map is shared, it is anonymous and is removed
// with its rule.
func (b *batch) declareChoiceMap(t *Table, c choice, name string, id uint32) {
	flags := uint32(unix.NFT_SET_CONSTANT | unix.NFT_SET_MAP)
	if !c.shared {
		flags |= unix.NFT_SET_ANONYMOUS
	}
	about := func() string { return "a choice by chance" }
	size := len(c.values) + len(c.verdicts)
	b.beginMessage(unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE, t.Family, about)
	b.putText(unix.NFTA_SET_TABLE, t.Name)
	b.putText(unix.NFTA_SET_NAME, name)
	b.putNumber(unix.NFTA_SET_FLAGS, flags)
	b.putNumber(unix.NFTA_SET_KEY_TYPE, integerMagic)
	b.putNumber(unix.NFTA_SET_KEY_LEN, 4)
	if c.data > 0 {
		b.putNumber(unix.NFTA_SET_DATA_TYPE, c.magic)
		b.putNumber(unix.NFTA_SET_DATA_LEN, uint32(c.data))
	} else {
		b.putNumber(unix.NFTA_SET_DATA_TYPE, unix.NFT_DATA_VERDICT)
	}
	b.putNumber(unix.NFTA_SET_ID, id)
	at := b.beginAttribute(unix.NFTA_SET_DESC | nested)
	b.putNumber(unix.NFTA_SET_DESC_SIZE, uint32(size))
	b.endAttribute(at)
	b.putBytes(unix.NFTA_SET_USERDATA, userData(udataByteOrder, nativeBytes(1)))
	b.endMessage()
	for i := 0; i < size; {
		i += b.addElements(t, name, id, size-i, func(k int) {
			b.putKey(nativeBytes(uint32(i + k)))
			if c.data > 0 {
				at := b.beginAttribute(unix.NFTA_SET_ELEM_DATA | nested)
				b.putBytes(unix.NFTA_DATA_VALUE, c.values[i+k])
				b.endAttribute(at)
			} else {
				b.putVerdict(c.verdicts[i+k])
			}
		})
	}
}

// addElements adds up to n elements to a set in one message, and returns how many it added. element(i) appends element i.
// id is the number of the set if this transaction declares it, else 0.
func (b *batch) addElements(t *Table, set string, id uint32, n int, element func(int)) int {
	b.beginMessage(unix.NFT_MSG_NEWSETELEM, unix.NLM_F_CREATE, t.Family, func() string { return "elements of set " + set })
	b.putText(unix.NFTA_SET_ELEM_LIST_TABLE, t.Name)
	// By its number the kernel finds a set of this transaction directly; by name it searches all sets of the table.
	if id != 0 {
		b.putNumber(unix.NFTA_SET_ELEM_LIST_SET_ID, id)
	} else {
		b.putText(unix.NFTA_SET_ELEM_LIST_SET, set)
	}
	list := b.beginAttribute(unix.NFTA_SET_ELEM_LIST_ELEMENTS | nested)
	done := 0
	for ; done < n && len(b.buf)-list < part; done++ {
		at := b.beginAttribute(unix.NFTA_LIST_ELEM | nested)
		element(done)
		b.endAttribute(at)
	}
	b.endAttribute(list)
	b.endMessage()
	return done
}

func (b *batch) putKey(key []byte) {
	at := b.beginAttribute(unix.NFTA_SET_ELEM_KEY | nested)
	b.putBytes(unix.NFTA_DATA_VALUE, key)
	b.endAttribute(at)
}

func (b *batch) putVerdict(v Verdict) {
	data := b.beginAttribute(unix.NFTA_SET_ELEM_DATA | nested)
	at := b.beginAttribute(unix.NFTA_DATA_VERDICT | nested)
	b.putNumber(unix.NFTA_VERDICT_CODE, uint32(int32(kinds[v.kind])))
	if v.chain != "" {
		b.putText(unix.NFTA_VERDICT_CHAIN, v.chain)
	}
	b.endAttribute(at)
	b.endAttribute(data)
}

func (b *batch) addRule(t *Table, c *Chain, i int, marshalled [][]byte, comment string) {
	b.beginMessage(unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, t.Family, func() string {
		return fmt.Sprintf("chain %s, rule %d, %q", c.Name, i+1, c.Rules[i].text(t.Family))
	})
	b.putText(unix.NFTA_RULE_TABLE, t.Name)
	b.putText(unix.NFTA_RULE_CHAIN, c.Name)
	list := b.beginAttribute(unix.NFTA_RULE_EXPRESSIONS | nested)
	for _, m := range marshalled {
		at := b.beginAttribute(unix.NFTA_LIST_ELEM | nested)
		b.buf = append(b.buf, m...)
		b.endAttribute(at)
	}
	b.endAttribute(list)
	if comment != "" {
		b.putBytes(unix.NFTA_RULE_USERDATA, userData(udataComment, append([]byte(comment), 0)))
	}
	b.endMessage()
}
