package link

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Rule is a routing rule that sends packets to a table. The kernel keeps the rules in a list, by priority, and walks
// it for every route lookup.
type Rule struct {
	// Priority is the place in the list; smaller ones come first.
	Priority int
	// To matches packets to a destination, From packets from a source; invalid ones match any.
	To, From netip.Prefix
	// In matches packets that a device receives; "" matches any.
	In string
	// Table is the number of the table, 0 for the main one.
	Table int
	// Mark matches packets whose mark is equal in the bits of Mask; 0 matches any. Mask 0 means the value of Mark.
	Mark, Mask uint32
	// Not inverts the match.
	Not bool
}

func (r Rule) addTo(h *Handle) error {
	if err := h.nl.RuleAdd(r.entry()); err != nil {
		return fmt.Errorf("add routing rule %d (from %v, to %v, in %s, mark %#x): %w", r.Priority, r.From, r.To, r.In, r.Mark, err)
	}
	return nil
}

// Remove removes the rule, as a Step; a missing rule is an error.
func (r Rule) Remove(h *Handle) error {
	if err := h.nl.RuleDel(r.entry()); err != nil {
		return fmt.Errorf("remove routing rule %d: %w", r.Priority, err)
	}
	return nil
}

func (r Rule) entry() *netlink.Rule {
	entry := netlink.NewRule()
	entry.Priority, entry.Table, entry.Family, entry.Invert = r.Priority, cmp.Or(r.Table, unix.RT_TABLE_MAIN), unix.AF_INET, r.Not
	entry.IifName = r.In
	if r.To.Addr().Is6() || r.From.Addr().Is6() {
		entry.Family = unix.AF_INET6
	}
	if r.To.IsValid() {
		entry.Dst = ipNet(r.To)
	}
	if r.From.IsValid() {
		entry.Src = ipNet(r.From)
	}
	if r.Mark != 0 {
		mask := cmp.Or(r.Mask, r.Mark)
		entry.Mark, entry.Mask = r.Mark, &mask
	}
	return entry
}

// PolicyEntry is a routing rule as the kernel lists it, whatever its table.
type PolicyEntry struct {
	IPv6     bool
	Priority int
	// Words is the rule in the format of `ip rule`, without its priority: "fwmark 0x200/0xf00 lookup 2004".
	Words string
}

// tables maps the priority of each of the kernel's own three rules to the number of its table.
var tables = map[int]int{0: unix.RT_TABLE_LOCAL, 32766: unix.RT_TABLE_MAIN, 32767: unix.RT_TABLE_DEFAULT}

// Policy returns the routing rules of IPv4 and then of IPv6, without the kernel's own.
func (h *Handle) Policy() ([]PolicyEntry, error) {
	var all []PolicyEntry
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := h.nl.RuleList(family)
		if err != nil {
			return nil, fmt.Errorf("list routing rules: %w", err)
		}
		for _, e := range list {
			if own, ok := tables[e.Priority]; ok && own == e.Table {
				continue
			}
			all = append(all, PolicyEntry{IPv6: family == unix.AF_INET6, Priority: e.Priority, Words: ruleWords(e)})
		}
	}
	return all, nil
}

func ruleWords(e netlink.Rule) string {
	var w []string
	if e.Invert {
		w = append(w, "not")
	}
	if e.Src != nil {
		w = append(w, "from "+e.Src.String())
	}
	if e.Dst != nil {
		w = append(w, "to "+e.Dst.String())
	}
	if e.IifName != "" {
		w = append(w, "iif "+e.IifName)
	}
	if e.Mask != nil {
		w = append(w, fmt.Sprintf("fwmark %#x/%#x", e.Mark, *e.Mask))
	}
	name, ok := map[int]string{unix.RT_TABLE_LOCAL: "local", unix.RT_TABLE_MAIN: "main", unix.RT_TABLE_DEFAULT: "default"}[e.Table]
	if !ok {
		name = strconv.Itoa(e.Table)
	}
	return strings.Join(append(w, "lookup "+name), " ")
}
