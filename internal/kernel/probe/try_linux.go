package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/ipvs"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// tries has the probe of each feature of requirements that is more than an installed program. A probe runs on a thread
// inside a throwaway namespace and leaves what it makes there.
var tries = map[string]func(context.Context) error{
	"netns":        func(context.Context) error { return nil },
	"userns":       tryUserNamespace,
	"cgroup2":      tryCgroup,
	"veth":         func(context.Context) error { return addVeth() },
	"bridge":       func(context.Context) error { return add(&netlink.Bridge{LinkAttrs: named("probe-br")}) },
	"br_netfilter": tryBridgeNetfilter,
	"vxlan": func(context.Context) error {
		return add(&netlink.Vxlan{LinkAttrs: named("probe-vx"), VxlanId: 1, Port: 8472})
	},
	"ipip":      func(context.Context) error { return addIPIP() },
	"wireguard": func(context.Context) error { return add(&netlink.Wireguard{LinkAttrs: named("probe-wg")}) },
	"macvlan": onVeth(func(parent int) error {
		return add(&netlink.Macvlan{LinkAttrs: child("probe-mv", parent), Mode: netlink.MACVLAN_MODE_BRIDGE})
	}),
	"ipvlan": onVeth(func(parent int) error {
		return add(&netlink.IPVlan{LinkAttrs: child("probe-iv", parent), Mode: netlink.IPVLAN_MODE_L2})
	}),
	"netkit": tryNetkit,
	"iptables": func(ctx context.Context) error {
		return restore(ctx, "*filter\n:PROBE - [0:0]\n-A PROBE -j RETURN\nCOMMIT\n")
	},
	"nat": func(ctx context.Context) error {
		return restore(ctx, "*nat\n-A POSTROUTING -j MASQUERADE --random-fully\nCOMMIT\n")
	},
	"conntrack": func(context.Context) error {
		_, err := netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
		return err
	},
	"nftables": func(context.Context) error { return tryNftables() },
	"ipset": func(ctx context.Context) error {
		return run(ctx, "", "ipset", "create", "cnibench-probe", "hash:net")
	},
	"ipvs":        tryIPVS,
	"bpf":         func(context.Context) error { return loadProgram() },
	"bpf-tc":      onVeth(func(int) error { return tryDevicePrograms() }),
	"bpf-cgroup":  tryCgroupProgram,
	"ipip-tunnel": tryIPIP,
	"tcx":         onVeth(tryTCX),
	"clsact":      onVeth(func(index int) error { return addQdisc(clsact(index)) }),
	"htb": onVeth(func(index int) error {
		return addQdisc(netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}))
	}),
	"tbf": onVeth(func(index int) error {
		return addQdisc(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       1e9 / 8, Limit: 1 << 20, Buffer: 1 << 17,
		})
	}),
}

func named(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

func child(name string, parent int) netlink.LinkAttrs {
	a := named(name)
	a.ParentIndex = parent
	return a
}

// add makes a device in the thread's namespace.
func add(l netlink.Link) error {
	if err := netlink.LinkAdd(l); err != nil {
		return fmt.Errorf("add a device of type %s: %w", l.Type(), err)
	}
	return nil
}

func addQdisc(q netlink.Qdisc) error {
	if err := netlink.QdiscAdd(q); err != nil {
		return fmt.Errorf("add qdisc %s: %w", q.Type(), err)
	}
	return nil
}

func clsact(index int) netlink.Qdisc {
	return &netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT},
		QdiscType:  "clsact",
	}
}

const vethName = "probe-ve"

func addVeth() error {
	v := netlink.NewVeth(named(vethName))
	v.PeerName = "probe-pe"
	return add(v)
}

// onVeth is a probe that needs a device to stand on.
func onVeth(try func(index int) error) func(context.Context) error {
	return func(context.Context) error {
		if err := addVeth(); err != nil {
			return err
		}
		l, err := netlink.LinkByName(vethName)
		if err != nil {
			return err
		}
		return try(l.Attrs().Index)
	}
}

// tryNetkit names both ends: the kernel's own name for the other end would collide with a first end called nk0.
func tryNetkit(context.Context) error {
	n := &netlink.Netkit{LinkAttrs: named("probe-nk"), Mode: netlink.NETKIT_MODE_L3}
	peer := named("probe-np")
	n.SetPeerAttrs(&peer)
	return add(n)
}

// tryIPVS makes what holds the addresses of Services, and a virtual server.
func tryIPVS(context.Context) error {
	device := add(&netlink.Dummy{LinkAttrs: named("probe-du")})
	here, err := netns.Current()
	if err != nil {
		return err
	}
	server := ipvs.Server{Protocol: ipvs.TCP, Addr: netip.MustParseAddrPort("192.0.2.1:80")}
	return errors.Join(device, ipvs.Apply(here, []ipvs.Server{server}), here.Close())
}

// tryBridgeNetfilter looks for the switch that the feature gives to every namespace.
func tryBridgeNetfilter(context.Context) error {
	const name = "/proc/sys/net/bridge/bridge-nf-call-iptables"
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		return &absentError{what: name}
	} else if err != nil {
		return err
	}
	return nil
}

func tryNftables() error {
	here, err := netns.Current()
	if err != nil {
		return err
	}
	defer func() { _ = here.Close() }()
	c, err := nftables.New(nftables.WithNetNSFd(here.FD()))
	if err != nil {
		return fmt.Errorf("speak to nftables: %w", err)
	}
	c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "cnibench-probe"})
	if err := c.Flush(); err != nil {
		return fmt.Errorf("add an nftables table: %w", err)
	}
	return nil
}

// tryUserNamespace starts a program in a user namespace of its own, as an unprivileged user would.
func tryUserNamespace(ctx context.Context) error {
	program, err := exec.LookPath("true")
	if err != nil {
		return fmt.Errorf("look for a program to start: %w", errors.ErrUnsupported)
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.SysProcAttr = &unix.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
		UidMappings: idMap(os.Getuid()),
		GidMappings: idMap(os.Getgid()),
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start a program in a user namespace: %w", err)
	}
	return nil
}

// idMap maps root inside to id outside.
func idMap(id int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
}

// restore loads rules into the thread's namespace.
func restore(ctx context.Context, rules string) error {
	return run(ctx, rules, "iptables-restore")
}

// run starts a program in the thread's namespace and waits for it.
func run(ctx context.Context, input, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &out
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &programError{args: cmd.Args, output: strings.Join(strings.Fields(out.String()), " "), err: err}
}
