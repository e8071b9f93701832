package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// htbFrom is the rate in bit/s from which htb is more exact than tbf.
const htbFrom = 5e9

// What the shapers may hold back and let through at once.
const (
	tbfBurst   = 128 << 10
	htbBurst   = 1 << 20
	tbfLatency = 0.010 // seconds of queue before a packet is dropped
)

// Shape limits what a device sends to rate in bit/s of frames, without preamble and gap.
func (h *Handle) Shape(dev string, rate float64) error {
	limit := h.tbf
	if rate >= htbFrom {
		limit = h.htb
	}
	return h.change(dev, fmt.Sprintf("limit %s to %.0f bit/s", dev, rate), func(l netlink.Link) error {
		return limit(l.Attrs().Index, rate)
	})
}

func (h *Handle) tbf(index int, rate float64) error {
	bytes := rate / 8
	// The kernel wants the burst as the time that it takes to send, in its own ticks.
	return h.nl.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       uint64(bytes),
		Limit:      uint32(bytes*tbfLatency) + tbfBurst,
		Buffer:     netlink.Xmittime(uint64(bytes), tbfBurst),
	})
}

func (h *Handle) htb(index int, rate float64) error {
	root := netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT})
	root.Defcls = 1
	if err := h.nl.QdiscAdd(root); err != nil {
		return err
	}
	return h.nl.ClassAdd(netlink.NewHtbClass(
		netlink.ClassAttrs{LinkIndex: index, Parent: netlink.MakeHandle(1, 0), Handle: netlink.MakeHandle(1, 1)},
		netlink.HtbClassAttrs{Rate: uint64(rate), Ceil: uint64(rate), Buffer: htbBurst, Cbuffer: htbBurst},
	))
}
