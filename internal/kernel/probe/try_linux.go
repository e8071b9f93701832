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

	"github.com/google/nftables"

	"github.com/cnibench/cnibench/internal/kernel/conntrack"
	"github.com/cnibench/cnibench/internal/kernel/ipvs"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

// probe tries one feature. It runs on a thread inside a throwaway namespace (h is a handle of it). It need not remove
// what it creates.
type probe func(ctx context.Context, h *link.Handle) error

// name is the name of the device that a probe creates.
const name = "probe"

// veth is a pair of devices for probes that need a device; ipip is a tunnel.
var (
	veth = link.Veth{Name: "probe-ve", Peer: "probe-pe"}
	ipip = link.IPIP{Name: name, Local: netip.AddrFrom4([4]byte{192, 0, 2, 1})}
)

// tries has the probe of each feature that requires more than an installed program. Devices are created as in the lab.
var tries = map[string]probe{
	"netns":   func(context.Context, *link.Handle) error { return nil },
	"cgroup2": func(context.Context, *link.Handle) error { return runInCgroup(func(string) error { return nil }) },
	"veth":    newProbe(veth),
	"bridge":  newProbe(link.Bridge{Name: name}),
	"br_netfilter": func(context.Context, *link.Handle) error {
		_, err := os.Stat("/proc/sys/net/bridge/bridge-nf-call-iptables") // the setting that it adds to every namespace
		return err
	},
	"vxlan":     newProbe(link.VXLAN{Name: name, Port: 8472}),
	"ipip":      newProbe(ipip),
	"wireguard": func(_ context.Context, h *link.Handle) error { return tryWireGuard(h) },
	"ipsec": newProbe(link.XFRMState{
		From: netip.AddrFrom4([4]byte{192, 0, 2, 1}), To: netip.AddrFrom4([4]byte{192, 0, 2, 2}), SPI: 1,
	}),
	"macvlan": newProbe(veth, link.Child{Name: name, Parent: veth.Name}),
	"ipvlan":  newProbe(veth, link.Child{Name: name, IPvlan: true, Parent: veth.Name}),
	"vlan":    newProbe(veth, link.VLAN{Name: name, Parent: veth.Name, ID: 1}),
	"netkit":  newProbe(link.Netkit{Name: name, Peer: "probe-np"}),
	"iptables": func(ctx context.Context, _ *link.Handle) error {
		return restoreRules(ctx, "*filter\n:PROBE - [0:0]\n-A PROBE -j RETURN\nCOMMIT\n")
	},
	"nat": func(ctx context.Context, _ *link.Handle) error {
		return restoreRules(ctx, "*nat\n-A POSTROUTING -j MASQUERADE --random-fully\nCOMMIT\n")
	},
	"conntrack": func(_ context.Context, h *link.Handle) error {
		_, err := conntrack.List(h.NS())
		return err
	},
	"nftables": func(_ context.Context, h *link.Handle) error { return tryNftables(h) },
	"flowtable": func(ctx context.Context, h *link.Handle) error {
		t := nft.NewTable(nft.Inet, "cnibench-probe")
		t.Flowtable(nft.Flowtable{Name: name})
		t.Base(name, nft.Hook{Type: "filter", Hook: "forward"}).Add(nft.Offload(name))
		return nft.Load(ctx, h.NS(), t)
	},
	"ipset": func(ctx context.Context, _ *link.Handle) error {
		return runProgram(ctx, "", "ipset", "create", "cnibench-probe", "hash:net")
	},
	"ipvs":        newProbe(link.Dummy{Name: name}, link.Step(tryIPVS)),
	"bpf":         func(context.Context, *link.Handle) error { return tryProgram() },
	"bpf-tc":      newProbe(veth, link.Step(tryDevicePrograms)),
	"bpf-cgroup":  func(context.Context, *link.Handle) error { return tryCgroupProgram() },
	"ipip-tunnel": func(_ context.Context, h *link.Handle) error { return tryIPIP(h) },
	"htb":         newProbe(veth, link.Step(func(h *link.Handle) error { return h.Shape(veth.Name, 10e9) })),
	"tbf":         newProbe(veth, link.Step(func(h *link.Handle) error { return h.Shape(veth.Name, 1e9) })),
}

// newProbe returns a probe that adds things to its namespace.
func newProbe(things ...link.Thing) probe {
	return func(_ context.Context, h *link.Handle) error { return h.Add(things...) }
}

// tryWireGuard creates a kernel device, or checks whether WireGuard in user space could create one.
func tryWireGuard(h *link.Handle) error {
	err := h.Add(link.WireGuard{Name: name})
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	f, failed := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if failed != nil {
		return err
	}
	return f.Close()
}

// tryIPVS creates a virtual server of IPVS.
func tryIPVS(h *link.Handle) error {
	server := ipvs.Server{Protocol: ipvs.TCP, Addr: netip.MustParseAddrPort("192.0.2.1:80")}
	return ipvs.Apply(h.NS(), []ipvs.Server{server})
}

func tryNftables(h *link.Handle) error {
	c, err := nftables.New(nftables.WithNetNSFd(h.NS().FD()))
	if err != nil {
		return fmt.Errorf("speak to nftables: %w", err)
	}
	c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "cnibench-probe"})
	if err := c.Flush(); err != nil {
		return fmt.Errorf("add an nftables table: %w", err)
	}
	return nil
}

// restoreRules loads rules into the thread's namespace.
func restoreRules(ctx context.Context, rules string) error {
	return runProgram(ctx, rules, "iptables-restore")
}

// runProgram starts a program in the thread's namespace and waits for it.
func runProgram(ctx context.Context, input, program string, args ...string) error {
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
