package inspect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// maxChainsRead is the largest number of chains whose rules are read. With more, no rules are read: a node with
// thousands of Services has tens of thousands of chains.
const maxChainsRead = 2000

// accounting collects the result of one Count.
type accounting struct{ netstate.Account }

// addUnproven adds an entry to Unproven: what was not read, and err as the reason.
func (a *accounting) addUnproven(what string, err error) {
	a.Unproven = append(a.Unproven, unprovenEntry(what, err))
}

// Count reads the kernel's counters in the namespace of this process. It also reads the queueing disciplines that
// limit, delay or lose packets, the netfilter rules that drop packets, and the modes of kube-proxy. What it cannot read
// is listed in Unproven. It fails if the devices cannot be listed.
func Count() (netstate.Account, error) {
	a := &accounting{}
	a.Counters = map[string]int64{}
	for _, file := range []struct {
		name  string
		parse func([]byte) (map[string]int64, error)
	}{{"snmp", proc.ParseSNMP}, {"netstat", proc.ParseSNMP}, {"snmp6", proc.ParseSNMP6}, {"dev", proc.ParseDev}, {"stat/nf_conntrack", parseConntrack}, {"softnet_stat", parseSoftnet}} {
		b, err := os.ReadFile("/proc/thread-self/net/" + file.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // without IPv6, or without connection tracking
		}
		var counters map[string]int64
		if err == nil {
			counters, err = file.parse(b)
		}
		if err != nil {
			a.addUnproven("counters of "+file.name, err)
			continue
		}
		maps.Copy(a.Counters, counters)
	}
	a.Tracked, _ = strconv.ParseInt(proc.Text("/proc/sys/net/netfilter/nf_conntrack_count"), 10, 64)
	a.TrackedMax, _ = strconv.ParseInt(proc.Text("/proc/sys/net/netfilter/nf_conntrack_max"), 10, 64)
	if err := a.readDevices(); err != nil {
		return a.Account, err
	}
	if err := a.readFilters(); err != nil {
		a.addUnproven("netfilter rules that drop", err)
	}
	if names, tables, err := nftChains(); err == nil { // an error was already recorded for the rules before
		chains := netstate.Count(names)
		chains.Tables = tables
		_, none := netlink.LinkByName("kube-ipvs0")
		a.Proxies = chains.ProxyModes(none == nil)
	}
	return a.Account, nil
}

// readDevices reads the speed of each hardware device, and the queueing disciplines of all devices that limit, delay or
// lose packets. It fails if the devices cannot be listed.
func (a *accounting) readDevices() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	a.SpeedMbit = map[string]int{}
	for _, l := range links {
		name := l.Attrs().Name
		if _, err := os.Stat("/sys/class/net/" + name + "/device"); err == nil {
			a.SpeedMbit[name] = deviceSpeed(name)
		}
		qdiscs, err := netlink.QdiscList(l)
		if err != nil {
			a.addUnproven("queueing disciplines of "+name, err)
			continue
		}
		for _, q := range qdiscs {
			if s, ok := shaperOf(l, q); ok {
				s.Device = name
				a.Shapers = append(a.Shapers, s)
			}
		}
	}
	return nil
}

// shaperOf describes q, a queueing discipline of the device l. ok is false if q does not limit, delay or lose packets.
func shaperOf(l netlink.Link, q netlink.Qdisc) (s netstate.Shaper, ok bool) {
	s.Kind = q.Type()
	switch q := q.(type) {
	case *netlink.Tbf:
		s.Rate = 8 * float64(q.Rate)
		return s, true
	case *netlink.Htb:
		classes, _ := netlink.ClassList(l, 0) // without classes it limits nothing
		for _, c := range classes {
			if h, is := c.(*netlink.HtbClass); is && h.Parent == netlink.HANDLE_ROOT {
				s.Rate = 8 * float64(h.Ceil)
			}
		}
		return s, s.Rate > 0
	case *netlink.Netem:
		s.Says = fmt.Sprintf("delay %d us, loss %s, corrupt %s, duplicate %s", int(float64(q.Latency)/netlink.TickInUsec()), netemPercent(q.Loss), netemPercent(q.CorruptProb), netemPercent(q.Duplicate))
		return s, true
	}
	return s, s.Kind == "netem" || s.Kind == "cake"
}

// netemPercent formats a probability of netem, a share of the largest uint32, in percent.
func netemPercent(of uint32) string { return fmt.Sprintf("%.2g %%", 100*float64(of)/float64(1<<32-1)) }

// readFilters reads the netfilter rules with a counter that drop or reject packets, including those of iptables-nft. It
// fails if there are more than maxChainsRead chains.
func (a *accounting) readFilters() error {
	c, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return err
	}
	defer func() { _ = c.CloseLasting() }() // no request is pending on it
	chains, err := c.ListChains()
	if err != nil {
		return err
	}
	if len(chains) > maxChainsRead {
		return fmt.Errorf("%d chains are too many to read", len(chains))
	}
	for _, chain := range chains {
		rules, err := c.GetRules(chain.Table, chain)
		if err != nil {
			return fmt.Errorf("chain %s: %w", chain.Name, err)
		}
		for i, r := range rules {
			if f, ok := filterOf(r); ok {
				f.Chain, f.Place = families[chain.Table.Family]+" "+chain.Table.Name+" "+chain.Name, i+1
				a.Filters = append(a.Filters, f)
			}
		}
	}
	return nil
}

// filterOf describes r, without its chain and place. ok is false unless r drops or rejects packets and has a counter.
func filterOf(r *nftables.Rule) (f netstate.Filter, ok bool) {
	counts, state, masked := false, false, false
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Ct:
			state = e.Key == expr.CtKeySTATE
		case *expr.Bitwise:
			masked = state && len(e.Mask) == 4 && binary.NativeEndian.Uint32(e.Mask) == expr.CtStateBitINVALID
		case *expr.Cmp:
			f.Invalid = f.Invalid || masked && e.Op == expr.CmpOpNeq // from 0; equal to 0 selects all others
			masked = false
		case *expr.Match:
			f.Invalid = f.Invalid || selectsInvalid(e.Info)
		case *expr.Counter:
			f.Packets, counts = int64(e.Packets), true
		case *expr.Verdict:
			if e.Kind == expr.VerdictDrop {
				f.Verdict = "drop"
			}
		case *expr.Reject:
			f.Verdict = "reject"
		case *expr.Target:
			if e.Name == "REJECT" || e.Name == "DROP" {
				f.Verdict = strings.ToLower(e.Name)
			}
		}
	}
	return f, counts && f.Verdict != ""
}

// selectsInvalid reports whether an iptables match selects the packets that connection tracking calls invalid.
func selectsInvalid(info xt.InfoAny) bool {
	switch m := info.(type) {
	case *xt.ConntrackMtinfo2:
		return uint32(m.StateMask) == expr.CtStateBitINVALID && m.InvertFlags == 0
	case *xt.ConntrackMtinfo3:
		return uint32(m.StateMask) == expr.CtStateBitINVALID && m.InvertFlags == 0
	}
	return false
}

// parseConntrack returns the counters of /proc/net/stat/nf_conntrack, summed over all CPUs. The file has a line of
// names, then a line of hexadecimal numbers for each CPU.
func parseConntrack(b []byte) (map[string]int64, error) {
	counters := map[string]int64{}
	var names []string
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if names == nil {
			names = f
			continue
		}
		for i, text := range f[:min(len(f), len(names))] {
			n, err := strconv.ParseUint(text, 16, 32)
			if err != nil {
				return nil, err
			}
			if names[i] != "entries" { // a state, the same in each line
				counters["conntrack."+names[i]] += int64(n)
			}
		}
	}
	return counters, nil
}

// parseSoftnet returns the counter softnet.dropped: the packets that all CPUs dropped according to
// /proc/net/softnet_stat.
func parseSoftnet(b []byte) (map[string]int64, error) {
	lines, err := proc.ParseSoftnet(b)
	counters := map[string]int64{}
	for _, l := range lines {
		counters["softnet.dropped"] += int64(l.Dropped)
	}
	return counters, err
}
