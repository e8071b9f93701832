package cilium

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// ctIn is the direction of a flow that arrived at a pod. ctLifetime is the offset in bytes of the lifetime in struct
// ct_entry. Both are from maps.h.
const (
	ctIn       = 1
	ctLifetime = 24
)

// Connect adds count TCP flows to the flow table, as the programs of the receiving pod do. ends returns the two
// addresses of flow i. The table has room for Sizes.FlowsTCP flows. Connect returns the number of entries in the whole
// table.
func (n *Node) Connect(count int, ends func(i int) (from, to netip.AddrPort)) (int, error) {
	table := n.table("cilium_ct%d")
	value := make([]byte, table.ValueSize())
	binary.NativeEndian.PutUint32(value[ctLifetime:], math.MaxUint32) // it does not end
	for i := range count {
		from, to := ends(i)
		key := append(from.Addr().AsSlice(), to.Addr().AsSlice()...)
		key = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(key, from.Port()), to.Port())
		if err := table.Put(append(key, byte(TCP), ctIn), value); err != nil {
			return 0, fmt.Errorf("add flow %d: %w", i, err)
		}
	}
	return attach.Entries(table)
}
