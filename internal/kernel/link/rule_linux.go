package link

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Rule is an entry of the routing policy that sends packets to the main table. The kernel keeps the entries in a list, by
// priority, and walks it for every route lookup.
type Rule struct {
	// Priority is the place in the list, the smaller first.
	Priority int
	// To matches packets to a destination, any when invalid.
	To netip.Prefix
	// Mark matches packets with these bits of the mark set, any when 0.
	Mark uint32
}

func (r Rule) add(h *Handle) error {
	entry := netlink.NewRule()
	entry.Priority, entry.Table, entry.Family = r.Priority, unix.RT_TABLE_MAIN, unix.AF_INET
	if r.To.IsValid() {
		entry.Dst = ipNet(r.To)
		if r.To.Addr().Is6() {
			entry.Family = unix.AF_INET6
		}
	}
	if r.Mark != 0 {
		entry.Mark, entry.Mask = r.Mark, &r.Mark
	}
	if err := h.nl.RuleAdd(entry); err != nil {
		return fmt.Errorf("add routing rule %d (to %v, mark %#x): %w", r.Priority, r.To, r.Mark, err)
	}
	return nil
}

// Rules returns the IPv4 entries that send packets to the main table, without the kernel's own, in the order of the list.
func (h *Handle) Rules() ([]Rule, error) {
	list, err := h.nl.RuleList(unix.AF_INET)
	if err != nil {
		return nil, fmt.Errorf("list routing rules: %w", err)
	}
	var rules []Rule
	for _, e := range list {
		if e.Table != unix.RT_TABLE_MAIN || e.Priority == kernelRule {
			continue
		}
		r := Rule{Priority: e.Priority, Mark: e.Mark}
		if e.Dst != nil {
			r.To = prefix(e.Dst)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// kernelRule is the priority of the kernel's own entry for the main table.
const kernelRule = 32766
