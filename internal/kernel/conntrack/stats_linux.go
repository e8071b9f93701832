package conntrack

import (
	"fmt"

	"github.com/mdlayher/netlink"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// messageStats asks for the counters of each CPU (IPCTNL_MSG_CT_GET_STATS_CPU).
const messageStats = subsystem | 4

// ReadStats returns what the connection tracking of ns has counted since ns was made.
func ReadStats(ns *netns.NS) (Stats, error) {
	messages, err := execute(ns, messageStats, netlink.Request|netlink.Dump)
	if err != nil {
		return Stats{}, fmt.Errorf("read connection tracking statistics: %w", err)
	}
	var sum Stats
	for _, m := range messages {
		if err := sum.add(m.Data); err != nil {
			return Stats{}, err
		}
	}
	return sum, nil
}
