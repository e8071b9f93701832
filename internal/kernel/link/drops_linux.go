package link

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

// Drops returns the drop counters of all devices of the namespace: of the devices themselves and of their queueing
// disciplines, zeros too. Host is left to the caller. A class or child discipline counts in its root again, so roots
// and the filters' places (clsact, ingress) alone are read.
func (h *Handle) Drops() ([]sample.Drop, error) {
	links, names, err := h.links()
	if err != nil {
		return nil, err
	}
	var drops []sample.Drop
	for _, l := range links {
		a := l.Attrs()
		if s := a.Statistics; s != nil {
			drops = append(drops,
				sample.Drop{Device: a.Name, Kind: sample.DropTX, Packets: s.TxDropped},
				sample.Drop{Device: a.Name, Kind: sample.DropRX, Packets: s.RxDropped})
		}
	}
	// All devices' in one call.
	qdiscs, err := h.nl.QdiscList(nil)
	if err != nil {
		return nil, fmt.Errorf("list queueing disciplines: %w", err)
	}
	for _, q := range qdiscs {
		a := q.Attrs()
		top := a.Parent == netlink.HANDLE_ROOT || a.Parent == netlink.HANDLE_INGRESS
		if a.Statistics == nil || a.Statistics.Queue == nil || !top || names[a.LinkIndex] == "" {
			continue
		}
		drops = append(drops, sample.Drop{
			Device: names[a.LinkIndex], Kind: sample.DropQdisc, What: q.Type(), Packets: uint64(a.Statistics.Queue.Drops),
		})
	}
	return drops, nil
}
