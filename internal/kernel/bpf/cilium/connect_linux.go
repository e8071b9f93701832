package cilium

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// Of maps.h: the direction of a flow that came to a pod, and where struct ct_entry has its lifetime.
const (
	ctIn       = 1
	ctLifetime = 24
)

// Connect adds TCP flows to the table of flows, each as the programs of the pod at its end note it, and returns how many
// entries the table has then. The table has room for Sizes.FlowsTCP.
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
