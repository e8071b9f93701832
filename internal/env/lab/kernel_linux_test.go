package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/ipt"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// TestKernelGolden reads back from the kernel what every profile has put into the switch, the first node and its first
// pod, and compares it with files that were checked against the dataplanes' descriptions.
func TestKernelGolden(t *testing.T) {
	for _, family := range []int{4, IPv6} {
		suffix, names := "", profile.Names()
		if family == IPv6 {
			suffix, names = "-v6", in6(t)
		}
		for _, i := range standing(t, up(t, plan.Lab{Family: family}, names...)) {
			t.Run(i.Name.String()+suffix, func(t *testing.T) { checkKernel(t, i, suffix) })
		}
	}
}

func checkKernel(t *testing.T, i *Instance, suffix string) {
	if i.Name == plan.VariantOf("calico-ipip") && len(i.StandIn) == 0 {
		t.Skip("the file has the stand-in for tunl0, and this kernel has tunl0")
	}
	if i.Name == plan.VariantOf("flannel-wireguard") && len(i.StandIn) == 0 {
		t.Skip("the file has WireGuard in user space, and this kernel has its module")
	}
	var b bytes.Buffer
	hosts := []*Host{i.Switch, i.External, &i.Nodes[0].Host}
	if len(i.Nodes[0].Pods) > 0 && !i.Nodes[0].Pods[0].HostNetwork {
		hosts = append(hosts, &i.Nodes[0].Pods[0].Host)
	}
	for _, h := range hosts {
		if err := dump(&b, h); err != nil {
			t.Fatal(err)
		}
	}
	golden.Check(t, "kernel/"+i.Name.String()+suffix+".golden", b.Bytes())
}

// dump writes the devices, addresses, routes, permanent neighbours and forwarding entries of a host, and its settings.
func dump(b *bytes.Buffer, h *Host) error {
	at, err := link.Open(h.NS)
	if err != nil {
		return err
	}
	defer at.Close()
	fmt.Fprintf(b, "%s\n", h.Name)
	devices, err := at.Devices()
	if err != nil {
		return err
	}
	slices.SortFunc(devices, func(x, y link.Device) int { return strings.Compare(x.Name, y.Name) })
	for _, d := range devices {
		if err := dumpDevice(b, at, d); err != nil {
			return err
		}
	}
	routes, err := at.Routes()
	if err != nil {
		return err
	}
	lines := make([]string, len(routes))
	for k, r := range routes {
		lines[k] = fmt.Sprintf("\troute %v via %v dev %q protocol %d mtu %d source %v onlink %t link %t blackhole %t\n",
			r.To, r.Via, r.Dev, r.Protocol, r.MTU, r.Source, r.OnLink, r.LinkScope, r.Blackhole)
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, ""))
	return dumpSettings(b, h, devices)
}

func dumpDevice(b *bytes.Buffer, at *link.Handle, d link.Device) error {
	fmt.Fprintf(b, "\t%s %s MTU %d up %t", d.Name, d.Kind, d.MTU, d.Up)
	if given(d) {
		fmt.Fprintf(b, " %v", d.MAC)
	}
	if d.Master != "" {
		fmt.Fprintf(b, " port of %s", d.Master)
	}
	switch {
	case d.External:
		fmt.Fprintf(b, " external UDP %d", d.Port)
	case d.Kind == "vxlan":
		fmt.Fprintf(b, " VNI %d UDP %d learning %t", d.VNI, d.Port, d.Learning)
	}
	fmt.Fprintf(b, " %v\n", d.Addresses)
	neighbours, err := at.Neighbours(d.Name)
	if err != nil {
		return err
	}
	var lines []string
	for _, n := range neighbours {
		if n.Permanent && !n.Addr.IsMulticast() && !(n.Addr.Is6() && n.Addr.IsLinkLocalUnicast()) {
			lines = append(lines, fmt.Sprintf("\t\tneighbour %v %v\n", n.Addr, n.MAC))
		}
	}
	if d.Kind == "vxlan" {
		entries, err := at.Forwarding(d.Name)
		if err != nil {
			return err
		}
		for _, n := range entries {
			lines = append(lines, fmt.Sprintf("\t\tforwarding %v behind %v permanent %t\n", n.MAC, n.Addr, n.Permanent))
		}
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, ""))
	return nil
}

// given says whether the lab chose a device's MAC address; the others are random.
func given(d link.Device) bool {
	return d.Kind != "veth" && d.Name != link.Loopback || d.Name == dataplane.NIC || strings.HasPrefix(d.Name, "cali")
}

// dumpSettings writes the settings that the lab made; a setting of a module that is not there is no fact about it.
func dumpSettings(b *bytes.Buffer, h *Host, devices []link.Device) error {
	if h.Addr.Is6() {
		return dumpNames(b, h, settings6(h, devices))
	}
	names := []string{"net/ipv4/ip_forward", "net/ipv4/conf/all/rp_filter", "net/ipv4/conf/all/route_localnet"}
	if h.Name != "switch" {
		names = append(names, "net/ipv4/conf/"+dataplane.NIC+"/arp_notify")
	}
	for _, d := range devices {
		if strings.HasPrefix(d.Name, "cali") {
			conf := "net/ipv4/conf/" + d.Name
			names = append(names, conf+"/proxy_arp", conf+"/route_localnet", conf+"/forwarding", conf+"/rp_filter",
				"net/ipv4/neigh/"+d.Name+"/proxy_delay")
			break
		}
	}
	return dumpNames(b, h, append(names, programmedSettings(devices)...))
}

// settings6 are those of IPv6.
func settings6(h *Host, devices []link.Device) []string {
	conf := "net/ipv6/conf/"
	names := []string{conf + "all/forwarding", conf + "all/accept_dad", conf + "default/accept_ra", conf + "default/router_solicitations"}
	if h.Name != "switch" {
		names = append(names, conf+dataplane.NIC+"/ndisc_notify")
	}
	for _, d := range devices {
		if strings.HasPrefix(d.Name, "cali") {
			names = append(names, conf+d.Name+"/proxy_ndp", conf+d.Name+"/forwarding", conf+d.Name+"/accept_ra")
			break
		}
	}
	return names
}

func dumpNames(b *bytes.Buffer, h *Host, names []string) error {
	for _, n := range names {
		v, err := netns.GetSysctl(h.NS, n)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "\t%s = %s\n", n, v)
	}
	return nil
}

// programmedSettings are those of a node whose packets are moved by programs.
func programmedSettings(devices []link.Device) (names []string) {
	for _, d := range devices {
		conf := "net/ipv4/conf/" + d.Name
		switch {
		case strings.HasPrefix(d.Name, "cilium_"), strings.HasPrefix(d.Name, "bpf"):
			names = append(names, conf+"/forwarding", conf+"/rp_filter", conf+"/accept_local", conf+"/send_redirects")
		case strings.HasPrefix(d.Name, "lxc"):
			names = append(names, conf+"/rp_filter")
		}
	}
	if len(names) > 0 {
		names = append(names, "net/ipv4/conf/"+dataplane.NIC+"/rp_filter", "net/ipv4/conf/"+dataplane.NIC+"/accept_local")
	}
	return names
}

// TestSettings checks what a node owes to kubelet, kube-proxy and the CNI's daemon, and the switch to nobody.
func TestSettings(t *testing.T) {
	l := up(t, plan.Lab{}, "raw", "host", "flannel-vxlan", "calico-underlay", "kindnet")
	for _, i := range standing(t, l) {
		kube, acct := "1", "0"
		if i.Name == plan.VariantOf("raw") {
			kube = "0"
		}
		if i.Name == plan.VariantOf("calico-underlay") || i.Name == plan.VariantOf("kindnet") {
			acct = "1"
		}
		want := map[string]string{"net/ipv4/ip_forward": kube, "net/ipv4/conf/all/route_localnet": kube}
		if kube == "1" {
			want["net/bridge/bridge-nf-call-iptables"] = "1"
			want["net/netfilter/nf_conntrack_tcp_timeout_established"] = "86400"
			want["net/netfilter/nf_conntrack_tcp_timeout_close_wait"] = "3600"
			want["net/netfilter/nf_conntrack_acct"] = acct
		}
		for _, n := range i.Nodes {
			checkSettings(t, i, &n.Host, want)
		}
		checkSettings(t, i, i.Switch, map[string]string{
			"net/bridge/bridge-nf-call-iptables": "0", "net/bridge/bridge-nf-call-ip6tables": "0",
			"net/bridge/bridge-nf-call-arptables": "0", "net/ipv4/ip_forward": "0",
		})
		for _, h := range i.Hosts() {
			checkSettings(t, i, h, map[string]string{"net/ipv6/conf/all/disable_ipv6": "1"})
		}
	}
}

func checkSettings(t *testing.T, i *Instance, h *Host, want map[string]string) {
	t.Helper()
	for name, value := range want {
		got, err := netns.GetSysctl(h.NS, name)
		if errors.Is(err, os.ErrNotExist) {
			t.Logf("%s %s: this kernel has no %s", i.Name, h.Name, name)
			continue
		}
		if err != nil || got != value {
			t.Errorf("%s %s: %s is %q (%v), want %s", i.Name, h.Name, name, got, err, value)
		}
	}
}

// TestNotServedIsTrue tries the paths that profiles are said not to serve, with real packets.
func TestNotServedIsTrue(t *testing.T) {
	l := up(t, plan.Lab{}, "macvlan", "bridge", "ptp", "ipvlan", "sriov")
	for _, i := range standing(t, l) {
		t.Run(i.Name.String(), func(t *testing.T) {
			t.Parallel()
			for _, p := range plan.Paths {
				reason := i.Spec.dataplane.NotServed(p)
				if reason == "" {
					continue
				}
				if err := refuses(i, i.Spec.Way(p)); err != nil {
					t.Errorf("%s is said not to be served (%s): %v", p, reason, err)
				}
			}
		})
	}
}

// refuses returns an error when a connection comes about.
func refuses(i *Instance, e Ends) error {
	var l net.Listener
	err := i.Host(e.Server).NS.Do(func() (err error) {
		l, err = net.Listen("tcp4", fmt.Sprintf(":%d", e.ListenPort))
		return err
	})
	if err != nil {
		return err
	}
	defer l.Close()
	return i.Host(e.Client).NS.Do(func() error {
		c, err := net.DialTimeout("tcp4", netip.AddrPortFrom(e.Address, uint16(e.Port)).String(), 500*time.Millisecond)
		if err != nil {
			return nil
		}
		c.Close()
		return errors.New("but a connection came about")
	})
}

func TestNICModelsAndLineRate(t *testing.T) {
	profiles := []string{"flannel-vxlan", "macvlan", "calico-vxlan", "sriov"}
	for _, c := range []struct {
		nic     plan.NIC
		rate    float64
		shaper  string
		cutting bool
	}{{"wire", 0, "noqueue", true}, {"ideal", 1e9, "tbf", false}, {"ideal", 10e9, "htb", false}} {
		t.Run(fmt.Sprintf("%s, %.0f bit/s", c.nic, c.rate), func(t *testing.T) {
			l := up(t, plan.Lab{NIC: c.nic, LineRate: c.rate}, profiles...)
			for _, i := range standing(t, l) {
				for _, h := range i.Hosts() {
					checkCutting(t, i, h, c.cutting)
				}
				for _, n := range i.Nodes {
					if got := shaper(t, &n.Host); got != c.shaper {
						t.Errorf("%s %s: eth0 is shaped by %q, want %s", i.Name, n.Name, got, c.shaper)
					}
					pod, want := n.Pods[0], "noqueue"
					if i.Name == plan.VariantOf("sriov") {
						want = c.shaper // its wire does not begin at the node
					}
					if got := shaper(t, &pod.Host); got != want {
						t.Errorf("%s %s: eth0 is shaped by %q, want %s", i.Name, pod.Name, got, want)
					}
				}
			}
		})
	}
}

// checkCutting asserts that no device of h can carry a super-packet, or that all can.
func checkCutting(t *testing.T, i *Instance, h *Host, want bool) {
	t.Helper()
	at := handle(t, h)
	devices, err := at.Devices()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		on, err := at.Segmentation(d.Name)
		if err != nil {
			t.Fatal(err)
		}
		cuts := len(on) == 0 || d.GSOMaxSegs == 1
		if cuts != want && d.Name != link.Loopback {
			t.Errorf("%s %s %s: segmentation on %v, up to %d segments", i.Name, h.Name, d.Name, on, d.GSOMaxSegs)
		}
	}
}

func handle(t *testing.T, h *Host) *link.Handle {
	t.Helper()
	at, err := link.Open(h.NS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(at.Close)
	return at
}

// shaper is the queueing discipline of a host's NIC.
func shaper(t *testing.T, h *Host) string {
	t.Helper()
	drops, err := h.readDrops()
	i := slices.IndexFunc(drops, func(d sample.Drop) bool { return d.Device == dataplane.NIC && d.Kind == sample.DropQdisc })
	if i < 0 {
		t.Fatalf("%s has no queueing discipline: %v", h.Name, err)
	}
	return drops[i].What
}

func TestSplitSteersEachNodeToItsCPUs(t *testing.T) {
	l := up(t, plan.Lab{CPU: "split"}, "ptp")
	i := standing(t, l)[0]
	if reason, ok := strings.CutPrefix(l.Facts()[factSteering], "off: "); ok {
		t.Skipf("receive work cannot be steered here: %s", reason)
	}
	for _, n := range i.Nodes {
		var mask uint64
		for _, c := range n.CPUs {
			mask |= 1 << c
		}
		for _, h := range []*Host{&n.Host, &n.Pods[0].Host} {
			masks, err := handle(t, h).Steering()
			if got, want := masks[dataplane.NIC], fmt.Sprintf("%x", mask); err != nil || got != want {
				t.Errorf("%s: receive work of eth0 goes to CPUs %s (%v), want %s", h.Name, got, err, want)
			}
		}
	}
}

func TestOneFailureDoesNotDisturbTheOthers(t *testing.T) {
	l := up(t, plan.Lab{ServiceProxy: "ipvs"}, "raw", "no-such", "canal", "cilium-vxlan")
	for name, says := range map[string]string{"no-such": "unknown profile", "canal": "Felix has more chains"} {
		i := l.Instance(plan.VariantOf(name))
		if i == nil || i.Err == nil || !strings.Contains(i.Err.Error(), says) {
			t.Errorf("%s: %+v, want an error that says %q", name, i, says)
		}
		if _, _, err := endsOf(l, plan.VariantOf(name), plan.NinePaths[0]); err == nil {
			t.Errorf("%s has endpoints", name)
		}
	}
	for _, name := range []string{"raw", "cilium-vxlan"} {
		if i := l.Instance(plan.VariantOf(name)); i.Err != nil && lacking(t, i.Profile) == "" {
			t.Errorf("%s does not stand: %v", name, i.Err)
		}
	}
	if l.Instance(plan.VariantOf("host")) != nil {
		t.Error("host stands without having been asked for")
	}
}

// TestWhatTheKernelLacksIsNamed: a profile that needs a missing device says which build option would bring it.
func TestWhatTheKernelLacksIsNamed(t *testing.T) {
	l := up(t, plan.Lab{}, "raw", "ipvlan")
	i := l.Instance(plan.VariantOf("ipvlan"))
	if lacking(t, i.Profile) == "" {
		t.Skip("this machine lacks nothing that ipvlan needs, so there is nothing to name")
	}
	if i.Err == nil {
		t.Fatal("ipvlan stands without what it needs")
	}
	for _, says := range []string{`profile "ipvlan": dataplane: node-1/pod-1: `, "CONFIG_IPVLAN"} {
		if !strings.Contains(i.Err.Error(), says) {
			t.Errorf("ipvlan does not stand because of %q, which does not say %q", i.Err, says)
		}
	}
	if !errors.Is(i.Err, errors.ErrUnsupported) || !strings.Contains(advice.Of(i.Err), "modprobe ipvlan") {
		t.Errorf("%v, hint %q", i.Err, advice.Of(i.Err))
	}
	if i := l.Instance(plan.VariantOf("raw")); i.Err != nil {
		t.Errorf("raw does not stand either: %v", i.Err)
	}
}

// TestModelsAreLabelled: what the catalogue calls a model says so where the lab is reported on, and nothing else does.
func TestModelsAreLabelled(t *testing.T) {
	l := up(t, plan.Lab{}, "sriov", "ptp")
	for _, i := range standing(t, l) {
		var want []string
		if i.Name == plan.VariantOf("sriov") {
			want = []string{i.Profile.Model}
		}
		if !slices.Equal(i.StandIn, want) {
			t.Errorf("%s: stand-in %q, want %q", i.Name, i.StandIn, want)
		}
	}
}

// TestAPodReachesItself: both ends of a path are the same host, each with an agent of its own.
func TestAPodReachesItself(t *testing.T) {
	l := up(t, plan.Lab{}, "flannel-host-gw")
	standing(t, l)
	c, s, err := endsOf(l, plan.VariantOf("flannel-host-gw"), plan.Path{From: plan.Pod, To: plan.Self})
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != s.Name || c.Name != "flannel-host-gw/node-1/pod-1" || s.Address != addressing4.itself.String() || s.ListenAddress != c.Address {
		t.Errorf("endpoints %+v, %+v", c, s)
	}
	var pids []int
	for _, e := range []control.Endpoint{c, s} {
		stream, err := e.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		if got, err := say(stream, "hello"); err != nil || got != "hello\n" {
			t.Errorf("the agent answers %q, %v", got, err)
		}
		pids = append(pids, stream.(*agent).cmd.Process.Pid)
	}
	if pids[0] == pids[1] {
		t.Error("one agent serves both ends")
	}
}

func TestEndpointsOfATwinAreItsOwn(t *testing.T) {
	l := up(t, plan.Lab{}, "raw", "raw~twin")
	standing(t, l)
	p := plan.NinePaths[0]
	c1, s1, err := endsOf(l, plan.VariantOf("raw"), p)
	if err != nil {
		t.Fatal(err)
	}
	c2, s2, err := endsOf(l, plan.VariantOf("raw~twin"), p)
	if err != nil {
		t.Fatal(err)
	}
	if c1.Name != "raw/node-1" || s1.Name != "raw/node-2" || c2.Name != "raw~twin/node-1" || s2.Name != "raw~twin/node-2" {
		t.Errorf("names %s %s %s %s", c1.Name, s1.Name, c2.Name, s2.Name)
	}
	if s1.Address != "172.18.0.12" || s1.Port != agentPort || s1.ListenPort != agentPort || s2.Address != s1.Address {
		t.Errorf("addresses %+v %+v", s1, s2)
	}
	a, err1 := l.Instance(plan.VariantOf("raw")).Nodes[0].NS.Inode()
	b, err2 := l.Instance(plan.VariantOf("raw~twin")).Nodes[0].NS.Inode()
	if err1 != nil || err2 != nil || a == b {
		t.Errorf("namespaces %d and %d (%v, %v)", a, b, err1, err2)
	}
	_, _, err = endsOf(l, plan.VariantOf("raw"), plan.NinePaths[3])
	if not := (*control.NotServedError)(nil); !errors.As(err, &not) {
		t.Errorf("a pod path of raw: %v", err)
	}
}

func TestMissingProgramIsToldByProfile(t *testing.T) {
	l := up(t, plan.Lab{})
	missing := errors.New("iptables-restore: not installed")
	l.tools.iptables = func() (*ipt.Tool, error) { return nil, missing }
	i := l.raiseVariant(t.Context(), plan.VariantOf("host"))
	if !errors.Is(i.Err, missing) || !strings.HasPrefix(i.Err.Error(), `profile "host": rules: node-1: `) {
		t.Errorf("host without iptables: %v", i.Err)
	}
	if i.Nodes != nil || i.Hosts() != nil {
		t.Errorf("half an instance was left: %+v", i)
	}
	l.tools.ipset = func() (*ipt.IPSet, error) { return nil, missing }
	if i := l.raiseVariant(t.Context(), plan.VariantOf("canal")); !errors.Is(i.Err, missing) {
		t.Errorf("canal without ipset: %v", i.Err)
	}
	raw := l.raiseVariant(t.Context(), plan.VariantOf("raw"))
	if raw.Err != nil {
		t.Errorf("raw needs no iptables: %v", raw.Err)
	}
	raw.close()
}

func TestUpGivesUpWithItsContext(t *testing.T) {
	needRights(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := trees(t)
	if _, err := Up(ctx, plan.Variants("raw", "ptp"), Options{Program: program}); !errors.Is(err, context.Canceled) {
		t.Errorf("Up with a dead context: %v", err)
	}
	// Other programs' labs come and go meanwhile.
	own := fmt.Sprintf("%s-%d-", treePrefix, os.Getpid())
	for _, tree := range trees(t) {
		if strings.HasPrefix(filepath.Base(tree), own) && !slices.Contains(before, tree) {
			t.Errorf("left %s", tree)
		}
	}
}

// trees returns the labs' cgroups on this machine.
func trees(t *testing.T) []string {
	t.Helper()
	root, err := cgroup.Root()
	if err != nil {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(root, treePrefix+"-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
