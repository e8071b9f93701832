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

// maxRulesRead bounds the chains whose rules are read: a node with thousands of Services has tens of thousands.
const maxRulesRead = 2000

// accounting is one Count.
type accounting struct{ netstate.Account }

func (a *accounting) missing(what string, err error) {
	a.Unproven = append(a.Unproven, unproven(what, err))
}

// Count reads the kernel's counters here, and what limits, delays or drops packets.
func Count() (netstate.Account, error) {
	a := &accounting{}
	a.Counters = map[string]int64{}
	for _, file := range []struct {
		name  string
		parse func([]byte) (map[string]int64, error)
	}{{"snmp", proc.ParseSNMP}, {"netstat", proc.ParseSNMP}, {"snmp6", parseSNMP6}, {"dev", proc.ParseDev}, {"stat/nf_conntrack", parseConntrack}, {"softnet_stat", parseSoftnet}} {
		b, err := os.ReadFile("/proc/thread-self/net/" + file.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // without IPv6, or without connection tracking
		}
		var counters map[string]int64
		if err == nil {
			counters, err = file.parse(b)
		}
		if err != nil {
			a.missing("counters of "+file.name, err)
			continue
		}
		maps.Copy(a.Counters, counters)
	}
	a.Tracked, _ = strconv.ParseInt(proc.Text("/proc/sys/net/netfilter/nf_conntrack_count"), 10, 64)
	a.TrackedMax, _ = strconv.ParseInt(proc.Text("/proc/sys/net/netfilter/nf_conntrack_max"), 10, 64)
	if err := a.devices(); err != nil {
		return a.Account, err
	}
	if err := a.filters(); err != nil {
		a.missing("netfilter rules that drop", err)
	}
	if names, tables, err := nftChains(); err == nil { // an error was already recorded for the rules before
		chains := netstate.Count(names)
		chains.Tables = tables
		_, none := netlink.LinkByName("kube-ipvs0")
		a.Proxies = chains.ProxyModes(none == nil)
	}
	return a.Account, nil
}

// devices reads speeds and queueing disciplines.
func (a *accounting) devices() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	a.SpeedMbit = map[string]int{}
	for _, l := range links {
		name := l.Attrs().Name
		if _, err := os.Stat("/sys/class/net/" + name + "/device"); err == nil {
			a.SpeedMbit[name] = speed(name)
		}
		qdiscs, err := netlink.QdiscList(l)
		if err != nil {
			a.missing("queueing disciplines of "+name, err)
			continue
		}
		for _, q := range qdiscs {
			if s, ok := shaper(l, q); ok {
				s.Device = name
				a.Shapers = append(a.Shapers, s)
			}
		}
	}
	return nil
}

// shaper describes a queueing discipline that limits, delays or loses packets; others only order them.
func shaper(l netlink.Link, q netlink.Qdisc) (s netstate.Shaper, ok bool) {
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
		s.Says = fmt.Sprintf("delay %d us, loss %s, corrupt %s, duplicate %s", int(float64(q.Latency)/netlink.TickInUsec()), chance(q.Loss), chance(q.CorruptProb), chance(q.Duplicate))
		return s, true
	}
	return s, s.Kind == "netem" || s.Kind == "cake"
}

func chance(of uint32) string { return fmt.Sprintf("%.2g %%", 100*float64(of)/float64(1<<32-1)) }

// filters reads the rules that drop or reject, of nftables and of iptables in that flavour.
func (a *accounting) filters() error {
	c, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return err
	}
	defer func() { _ = c.CloseLasting() }() // no request is pending on it
	chains, err := c.ListChains()
	if err != nil {
		return err
	}
	if len(chains) > maxRulesRead {
		return fmt.Errorf("%d chains are too many to read", len(chains))
	}
	for _, chain := range chains {
		rules, err := c.GetRules(chain.Table, chain)
		if err != nil {
			return fmt.Errorf("chain %s: %w", chain.Name, err)
		}
		for i, r := range rules {
			if f, ok := filter(r); ok {
				f.Chain, f.Place = families[chain.Table.Family]+" "+chain.Table.Name+" "+chain.Name, i+1
				a.Filters = append(a.Filters, f)
			}
		}
	}
	return nil
}

// filter describes a rule that drops or refuses and counts.
func filter(r *nftables.Rule) (f netstate.Filter, ok bool) {
	counts, state := false, false
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Ct:
			state = e.Key == expr.CtKeySTATE
		case *expr.Bitwise:
			f.Invalid = f.Invalid || state && len(e.Mask) == 4 && binary.NativeEndian.Uint32(e.Mask) == expr.CtStateBitINVALID
		case *expr.Match:
			f.Invalid = f.Invalid || invalidOnly(e.Info)
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

// invalidOnly reports whether an iptables match selects the packets that connection tracking calls invalid.
func invalidOnly(info xt.InfoAny) bool {
	switch m := info.(type) {
	case *xt.ConntrackMtinfo2:
		return uint32(m.StateMask) == expr.CtStateBitINVALID
	case *xt.ConntrackMtinfo3:
		return uint32(m.StateMask) == expr.CtStateBitINVALID
	}
	return false
}

// parseSNMP6 returns the counters of /proc/net/snmp6: a name and a number a line.
func parseSNMP6(b []byte) (map[string]int64, error) {
	counters := map[string]int64{}
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) != 2 {
			return nil, fmt.Errorf("%q has %d columns, want 2", line, len(f))
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return nil, err
		}
		counters[f[0]] = n
	}
	return counters, nil
}

// parseConntrack sums the lines of /proc/net/stat/nf_conntrack, one a CPU in hexadecimal below a line of names.
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

// parseSoftnet sums the lines of all CPUs.
func parseSoftnet(b []byte) (map[string]int64, error) {
	lines, err := proc.ParseSoftnet(b)
	counters := map[string]int64{}
	for _, l := range lines {
		counters["softnet.dropped"] += int64(l.Dropped)
	}
	return counters, err
}
