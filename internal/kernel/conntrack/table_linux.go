package conntrack

import (
	"errors"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Message types of ctnetlink; the upper byte is the subsystem of nfnetlink.
const (
	subsystem     = unix.NFNL_SUBSYS_CTNETLINK << 8
	messageGet    = subsystem | 1
	messageDelete = subsystem | 2
)

// maxDumps bounds how often a dump that the kernel reports as inconsistent is repeated.
const maxDumps = 5

// List returns the IPv4 and IPv6 entries of ns, in no particular order. It needs CAP_NET_ADMIN there.
func List(ns *netns.NS) ([]Entry, error) {
	var messages []netlink.Message
	var err error
	for range maxDumps {
		// EINTR means that the table changed during the dump and entries may be missing.
		if messages, err = executeRequest(ns, messageGet, netlink.Request|netlink.Dump); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list connection tracking entries: %w", err)
	}
	entries := make([]Entry, 0, len(messages))
	for _, m := range messages {
		e, err := decodeEntry(m.Data)
		if err != nil {
			return nil, fmt.Errorf("list connection tracking entries: %w", err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Flush removes every entry of ns. It needs CAP_NET_ADMIN there.
func Flush(ns *netns.NS) error {
	if _, err := executeRequest(ns, messageDelete, netlink.Request|netlink.Acknowledge); err != nil {
		return fmt.Errorf("flush connection tracking entries: %w", err)
	}
	return nil
}

// dial opens a socket to the table of ns.
func dial(ns *netns.NS) (*netlink.Conn, error) {
	c, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{NetNS: ns.FD()})
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		err = advice.With(err, "load the kernel module nf_conntrack_netlink, or use a kernel with CONFIG_NF_CT_NETLINK")
	}
	if err != nil {
		return nil, fmt.Errorf("reach the connection tracking table: %w", err)
	}
	return c, nil
}

// executeRequest sends a message without attributes, and returns the answers. Such a message applies to every entry of
// every address family.
func executeRequest(ns *netns.NS, kind netlink.HeaderType, flags netlink.HeaderFlags) ([]netlink.Message, error) {
	c, err := dial(ns)
	if err != nil {
		return nil, err
	}
	answers, err := c.Execute(netlink.Message{
		Header: netlink.Header{Type: kind, Flags: flags},
		Data:   []byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, 0},
	})
	return answers, errors.Join(err, c.Close())
}

// messageStats asks for the counters of each CPU (IPCTNL_MSG_CT_GET_STATS_CPU).
const messageStats = subsystem | 4

// ReadStats returns what the connection tracking of ns has counted since ns was made.
func ReadStats(ns *netns.NS) (Stats, error) {
	messages, err := executeRequest(ns, messageStats, netlink.Request|netlink.Dump)
	if err != nil {
		return Stats{}, fmt.Errorf("read connection tracking statistics: %w", err)
	}
	var sum Stats
	for _, m := range messages {
		if err := sum.addCounters(m.Data); err != nil {
			return Stats{}, err
		}
	}
	return sum, nil
}
