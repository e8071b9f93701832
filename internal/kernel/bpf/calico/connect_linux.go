package calico

import (
	"fmt"
	"net/netip"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// legOpen has the flags of one direction (leg) of an established flow: LEG_SYN, LEG_ACK, LEG_APPROVED.
const legOpen = 1<<0 | 1<<1 | 1<<4

// Connect adds count TCP flows to the flow table. Set Options.Connections to at least count. ends returns the two
// addresses of flow i. Connect returns the number of entries in the whole table.
func (n *Node) Connect(count int, ends func(i int) (from, to netip.AddrPort)) (int, error) {
	table := n.table("ct")
	leg := func(e *encoder) { e.u32(0, 0, 1, 0, legOpen, 0) } // bytes, packets, seqno, flags, ifindex
	value := new(encoder).u32(0, 0, 0, 0).u8(0, 0, 0, 0, 0, 0, 0, 0)
	leg(value)
	leg(value)
	rest := int(table.ValueSize()) - len(value.bytes)
	value.u8(make([]byte, rest)...)
	for i := range count {
		a, b := ends(i) // no packet looks these flows up, so the order of addresses does not matter
		if b.Compare(a) < 0 {
			a, b = b, a
		}
		key := new(encoder).u32(uint32(TCP)).address(a.Addr()).address(b.Addr()).port(a.Port()).port(b.Port())
		if err := table.Put(key.bytes, value.bytes); err != nil {
			return 0, fmt.Errorf("add flow %d: %w", i, err)
		}
	}
	return attach.Entries(table)
}
