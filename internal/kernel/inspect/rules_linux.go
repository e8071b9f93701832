package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	ebpflink "github.com/cilium/ebpf/link"
	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// families has the names that nft uses for the families of nftables.
var families = map[nftables.TableFamily]string{
	nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6", nftables.TableFamilyINet: "inet", nftables.TableFamilyARP: "arp",
	nftables.TableFamilyNetdev: "netdev", nftables.TableFamilyBridge: "bridge",
}

// countChains counts netfilter's chains, including those of iptables-nft. It needs CAP_NET_ADMIN. It cannot read the
// chains of iptables-legacy, and records in Unproven that there are some.
func (g *gathering) countChains() {
	names, tables, err := nftChains()
	if err != nil {
		g.addUnproven(netstate.WhatChains, err)
	} else {
		g.Chains = netstate.Count(names)
		g.Chains.Tables = tables
	}
	for _, file := range []string{"ip_tables_names", "ip6_tables_names"} {
		b, err := os.ReadFile("/proc/thread-self/net/" + file)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(b) == 0 {
			continue
		}
		if err == nil {
			err = fmt.Errorf("%s has the tables %s, whose chains only iptables-legacy reads", file, strings.Join(strings.Fields(string(b)), ", "))
		}
		g.addUnproven(netstate.WhatLegacy, err)
		return
	}
}

// nftChains returns the names of all nftables chains, and of all tables with their family, for example "ip filter".
func nftChains() (names, tables []string, err error) {
	c, err := nftables.New(nftables.AsLasting())
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = c.CloseLasting() }() // no request is pending on it
	all, err := c.ListTables()
	if err != nil {
		return nil, nil, err
	}
	for _, t := range all {
		tables = append(tables, families[t.Family]+" "+t.Name)
	}
	slices.Sort(tables)
	chains, err := c.ListChains()
	if err != nil {
		return nil, nil, err
	}
	for _, chain := range chains {
		names = append(names, chain.Name)
	}
	return names, tables, nil
}

// hooks are the hooks whose programs are listed by bpf(2), which needs CAP_NET_ADMIN and CAP_BPF. If kind is not "", only
// devices of that kind have the hook.
var hooks = []struct {
	at   ebpf.AttachType
	name string
	kind string
}{
	{ebpf.AttachTCXIngress, "tcx ingress", ""}, {ebpf.AttachTCXEgress, "tcx egress", ""},
	{ebpf.AttachNetkitPrimary, "netkit primary", "netkit"}, {ebpf.AttachNetkitPeer, "netkit peer", "netkit"},
}

// listPrograms lists the BPF programs on devices. Without the right to query every hook, it lists none.
func (g *gathering) listPrograms() {
	found, err := devicePrograms()
	if err != nil {
		g.addUnproven(netstate.WhatPrograms, err)
		return
	}
	g.Programs = &found
}

// Programs returns the BPF programs on the devices of ns. Those of one hook are in the order in which they run. It
// fails without the right to query every hook.
func Programs(ns *netns.NS) (found []netstate.Program, err error) {
	err = ns.Do(func() error {
		found, err = devicePrograms()
		return err
	})
	return found, err
}

// devicePrograms returns the BPF programs on the devices of the current namespace. It lists classic filters and XDP by
// netlink, which needs no right, and the others by bpf(2).
func devicePrograms() ([]netstate.Program, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	found := []netstate.Program{}
	for _, l := range links {
		a := l.Attrs()
		found = append(found, clsactPrograms(l)...)
		if a.Xdp != nil && a.Xdp.Attached {
			found = append(found, netstate.Program{Device: a.Name, Hook: "xdp", Name: programName(ebpf.ProgramID(a.Xdp.ProgId))})
		}
		for _, h := range hooks {
			if h.kind != "" && l.Type() != h.kind {
				continue
			}
			r, err := ebpflink.QueryPrograms(ebpflink.QueryOptions{Target: a.Index, Attach: h.at})
			switch {
			case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENODEV): // this kernel has no such hook, or the device is gone
				continue
			case err != nil: // the library treats a refusal as a kernel without the query
				return nil, fmt.Errorf("%w, or no right (CAP_NET_ADMIN and CAP_BPF)", err)
			}
			for _, p := range r.Programs {
				found = append(found, netstate.Program{Device: a.Name, Hook: h.name, Name: programName(p.ID)})
			}
		}
	}
	return found, nil
}

// clsactPrograms returns the BPF programs among the filters of a device's clsact qdisc.
func clsactPrograms(l netlink.Link) []netstate.Program {
	var found []netstate.Program
	for _, side := range []struct {
		parent uint32
		name   string
	}{{netlink.HANDLE_MIN_INGRESS, "tc ingress"}, {netlink.HANDLE_MIN_EGRESS, "tc egress"}} {
		filters, err := netlink.FilterList(l, side.parent)
		if err != nil { // a device without such a qdisc has no filters
			continue
		}
		for _, f := range filters {
			if b, ok := f.(*netlink.BpfFilter); ok {
				found = append(found, netstate.Program{Device: l.Attrs().Name, Hook: side.name, Name: b.Name})
			}
		}
	}
	return found
}

// programName returns a program's name, or "#" and its ID if the kernel does not report a name.
func programName(id ebpf.ProgramID) string {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return fmt.Sprintf("#%d", id)
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil || info.Name == "" {
		return fmt.Sprintf("#%d", id)
	}
	return info.Name
}
