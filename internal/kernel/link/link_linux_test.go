package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// fresh returns a handle in a new namespace.
func fresh(t *testing.T) *Handle {
	t.Helper()
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no right to make a network namespace: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	h, err := Open(ns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func device(t *testing.T, h *Handle, name string) Device {
	t.Helper()
	all, err := h.Devices()
	must(t, err)
	for _, d := range all {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("there is no %s among %+v", name, all)
	return Device{}
}

func TestVethReachesIntoAnotherNamespace(t *testing.T) {
	a, b := fresh(t), fresh(t)
	mac, peerMAC := net.HardwareAddr{2, 0, 0, 0, 0, 1}, net.HardwareAddr{2, 0, 0, 0, 0, 2}
	must(t,
		a.Add(Veth{Name: "near", MAC: mac, Peer: "eth0", PeerMAC: peerMAC, PeerIn: b, MTU: 1450}),
		a.Add(Address{Dev: "near", Addr: netip.MustParsePrefix("10.1.0.1/24")}),
		b.Add(Address{Dev: "eth0", Addr: netip.MustParsePrefix("10.1.0.2/24")}),
	)
	near, far := device(t, a, "near"), device(t, b, "eth0")
	if near.Kind != "veth" || !near.Up || near.MTU != 1450 || near.MAC.String() != mac.String() {
		t.Errorf("near end %+v", near)
	}
	if !far.Up || far.MTU != 1450 || far.MAC.String() != peerMAC.String() || !slices.Equal(far.Addresses, []netip.Prefix{netip.MustParsePrefix("10.1.0.2/24")}) {
		t.Errorf("far end %+v", far)
	}
	must(t, a.Add(Veth{Name: "x", Peer: "y", MTU: 1500}))
	if !device(t, a, "y").Up {
		t.Error("a peer in the same namespace is down")
	}
	if err := a.Add(Veth{Name: "near", Peer: "z", MTU: 1500}); !errors.Is(err, os.ErrExist) || !strings.Contains(err.Error(), "near") {
		t.Errorf("a second device of one name: %v", err)
	}
}

// TestVethDeliversAtOnce: what is sent right after AddVeth arrives, also on a loaded machine, where the kernel
// activates the queues of new devices late.
func TestVethDeliversAtOnce(t *testing.T) {
	to, from := netip.MustParsePrefix("10.1.0.1/24"), netip.MustParsePrefix("10.1.0.2/24")
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	for range 50 {
		a, b := fresh(t), fresh(t)
		must(t,
			a.Add(Veth{Name: "eth0", MAC: mac, Peer: "eth0", PeerIn: b, MTU: 1500}), a.Add(Address{Dev: "eth0", Addr: to}),
			b.Add(Address{Dev: "eth0", Addr: from}), b.Add(StaticNeighbour{Dev: "eth0", Addr: to.Addr(), MAC: mac}))
		var server, client net.Conn
		must(t, a.NS().Do(func() (err error) {
			server, err = net.ListenUDP("udp4", &net.UDPAddr{IP: netIP(to.Addr()), Port: 7000})
			return err
		}), b.NS().Do(func() (err error) {
			client, err = net.Dial("udp4", "10.1.0.1:7000")
			return err
		}))
		_, err := client.Write([]byte{1})
		must(t, err, server.SetReadDeadline(time.Now().Add(5*time.Second)))
		_, err = server.Read(make([]byte, 1))
		must(t, err, client.Close(), server.Close())
	}
}

func TestRoutesComeBackAsTheyWereGiven(t *testing.T) {
	a, b := fresh(t), fresh(t)
	must(t, a.Add(Veth{Name: "up0", Peer: "eth0", PeerIn: b, MTU: 1500}), a.Add(Address{Dev: "up0", Addr: netip.MustParsePrefix("10.1.0.1/24")}))
	want := []Route{
		{To: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.1.0.9"), Dev: "up0", Protocol: ProtocolBoot},
		{To: netip.MustParsePrefix("10.2.0.0/26"), Via: netip.MustParseAddr("10.9.9.9"), Dev: "up0", OnLink: true, Protocol: ProtocolCalico, MTU: 1450},
		{To: netip.MustParsePrefix("10.3.0.0/26"), Blackhole: true, Protocol: ProtocolBird},
		{To: netip.MustParsePrefix("10.4.0.7/32"), Dev: "up0", LinkScope: true, Protocol: ProtocolBoot, Source: netip.MustParseAddr("10.1.0.1")},
		{To: netip.MustParsePrefix("10.5.0.0/24"), Via: netip.MustParseAddr("10.1.0.9"), Dev: "up0", Protocol: unix.RTPROT_KERNEL},
	}
	for _, r := range want {
		must(t, a.Add(r))
	}
	got, err := a.Routes()
	must(t, err)
	slices.SortFunc(got, func(x, y Route) int { return x.To.Addr().Compare(y.To.Addr()) })
	if !slices.Equal(got, want) {
		t.Errorf("routes\n%+v, want\n%+v", got, want)
	}
	if err := a.Add(want[2]); !errors.Is(err, os.ErrExist) {
		t.Errorf("a route twice: %v", err)
	}
	if err := a.Add(Route{To: want[0].To, Dev: "nowhere"}); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a route by no device: %v", err)
	}
	must(t, b.Add(Address{Dev: "eth0", Addr: netip.MustParsePrefix("10.1.0.2/24"), NoRoute: true}))
	if err := b.Add(Route{To: netip.MustParsePrefix("10.7.0.0/24"), Via: netip.MustParseAddr("10.1.0.1"), Dev: "eth0"}); err == nil {
		t.Error("an address without its route makes neighbours all the same")
	}
}

// TestIPv6ComesBackAsItWasGiven: an address is in use at once, and what devices give themselves is left out.
func TestIPv6ComesBackAsItWasGiven(t *testing.T) {
	a, b := fresh(t), fresh(t)
	own, far := netip.MustParsePrefix("fd00:1::1/64"), netip.MustParseAddr("fd00:1::2")
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 2}
	must(t,
		a.Add(Veth{Name: "up0", Peer: "eth0", PeerMAC: mac, PeerIn: b, MTU: 1500}),
		a.Add(Address{Dev: "up0", Addr: own}), b.Add(Address{Dev: "eth0", Addr: netip.PrefixFrom(far, 64), NoRoute: true}),
		a.Add(VXLAN{Name: "vx", MTU: 1430, VNI: 1, Port: 8472, Parent: "up0", Local: own.Addr()}),
		a.Add(Address{Dev: "vx", Addr: netip.MustParsePrefix("fd00:2::/128")}),
		a.Add(StaticNeighbour{Dev: "up0", Addr: far, MAC: mac}), a.Add(ForwardingEntry{Dev: "vx", MAC: mac, Outer: far}),
	)
	if d := device(t, a, "up0"); !slices.Equal(d.Addresses, []netip.Prefix{own}) {
		t.Errorf("addresses %v", d.Addresses)
	}
	if err := a.NS().Do(func() error {
		c, err := net.ListenPacket("udp6", "[fd00:1::1]:0") // refused while somebody might object
		if err != nil {
			return err
		}
		return c.Close()
	}); err != nil {
		t.Errorf("the address is not in use: %v", err)
	}
	want := []Route{
		{To: netip.MustParsePrefix("::/0"), Via: far, Dev: "up0", Protocol: ProtocolBoot},
		{To: netip.MustParsePrefix("fd00:3::/122"), Via: netip.MustParseAddr("fd00:3::"), Dev: "vx", OnLink: true, Protocol: ProtocolCalico, MTU: 1430},
		{To: netip.MustParsePrefix("fd00:4::/122"), Blackhole: true, Protocol: ProtocolBird},
		{To: netip.MustParsePrefix("fd00:5::7/128"), Dev: "up0", Protocol: ProtocolBoot, Source: own.Addr()},
	}
	for _, r := range want {
		must(t, a.Add(r))
	}
	got, err := a.Routes()
	must(t, err)
	slices.SortFunc(got, func(x, y Route) int { return x.To.Addr().Compare(y.To.Addr()) })
	if !slices.Equal(got, want) {
		t.Errorf("routes\n%+v, want\n%+v", got, want)
	}
	neighbours, err := a.Neighbours("up0")
	must(t, err)
	if !slices.ContainsFunc(neighbours, func(n Neighbour) bool { return n.Addr == far && n.Permanent && n.MAC.String() == mac.String() }) {
		t.Errorf("neighbours %v", neighbours)
	}
	entries, err := a.Forwarding("vx")
	must(t, err)
	if len(entries) != 1 || entries[0].Addr != far {
		t.Errorf("forwarding entries %v", entries)
	}
	if err := b.Add(Route{To: netip.MustParsePrefix("fd00:7::/64"), Via: own.Addr(), Dev: "eth0"}); err == nil {
		t.Error("an address without its route makes neighbours all the same")
	}
}

func TestTunnelKnowsOnlyWhatItWasTold(t *testing.T) {
	a, b := fresh(t), fresh(t)
	mac, remote := net.HardwareAddr{0x66, 0, 0, 0, 0, 1}, net.HardwareAddr{0x66, 0, 0, 0, 0, 2}
	inner, outer := netip.MustParseAddr("10.5.0.0"), netip.MustParseAddr("10.1.0.2")
	must(t,
		a.Add(Veth{Name: "eth0", Peer: "eth0", PeerIn: b, MTU: 1500}),
		a.Add(VXLAN{Name: "vx", MAC: mac, MTU: 1450, VNI: 4096, Port: 4789, Parent: "eth0", Local: netip.MustParseAddr("10.1.0.1")}),
		a.Add(StaticNeighbour{Dev: "vx", Addr: inner, MAC: remote}),
		a.Add(ForwardingEntry{Dev: "vx", MAC: remote, Outer: outer}),
	)
	d := device(t, a, "vx")
	if d.Kind != "vxlan" || d.VNI != 4096 || d.Port != 4789 || d.Learning || d.MTU != 1450 || d.MAC.String() != mac.String() {
		t.Errorf("tunnel %+v", d)
	}
	neighbours, err := a.Neighbours("vx")
	must(t, err)
	// Where IPv6 is on, the device speaks to groups of its own accord.
	neighbours = slices.DeleteFunc(neighbours, func(n Neighbour) bool { return n.Addr.IsMulticast() })
	forwarding, err := a.Forwarding("vx")
	must(t, err)
	for what, list := range map[string][]Neighbour{"neighbours": neighbours, "forwarding": forwarding} {
		addr := map[string]netip.Addr{"neighbours": inner, "forwarding": outer}[what]
		if len(list) != 1 || list[0].Addr != addr || list[0].MAC.String() != remote.String() || !list[0].Permanent {
			t.Errorf("%s %+v, want %v at %v for ever", what, list, remote, addr)
		}
	}
}

func TestBridgeHasItsPorts(t *testing.T) {
	h := fresh(t)
	must(t,
		h.Add(Bridge{Name: "br", MTU: 1450, Ageing: 1000}),
		h.Add(Veth{Name: "p", Peer: "q", MTU: 1450}),
		h.Add(Port{Bridge: "br", Dev: "p", Hairpin: true}),
	)
	if d := device(t, h, "p"); d.Master != "br" {
		t.Errorf("port %+v", d)
	}
	port, err := h.nl.LinkByName("p")
	must(t, err)
	if info, err := h.nl.LinkGetProtinfo(port); err != nil || !info.Hairpin {
		t.Errorf("hairpin of the port: %+v, %v", info, err)
	}
	if err := h.Add(Port{Bridge: "br", Dev: "missing"}); err == nil {
		t.Error("a port that is no device")
	}
}

func TestMacvlanIsInThePodFromTheStart(t *testing.T) {
	node, far, pod := fresh(t), fresh(t), fresh(t)
	must(t,
		node.Add(Veth{Name: "eth0", Peer: "port", PeerIn: far, MTU: 1500}),
		node.Add(Child{Name: "eth0", MAC: net.HardwareAddr{2, 0, 0, 0, 0, 9}, MTU: 1400, Parent: "eth0", In: pod}),
	)
	if d := device(t, pod, "eth0"); d.Kind != "macvlan" || !d.Up || d.MTU != 1400 {
		t.Errorf("pod device %+v", d)
	}
	all, err := node.Devices()
	must(t, err)
	if slices.ContainsFunc(all, func(d Device) bool { return d.Kind == "macvlan" }) {
		t.Errorf("the node has %+v, of which one is the pod's", all)
	}
}

func TestIPvlanSharesTheMACAddressOfItsParent(t *testing.T) {
	node, pod := fresh(t), fresh(t)
	must(t, node.Add(Veth{Name: "eth0", Peer: "port", MTU: 1500}))
	err := node.Add(Child{Name: "eth0", IPvlan: true, MTU: 1500, Parent: "eth0", In: pod})
	if errors.Is(err, unix.EOPNOTSUPP) && strings.Contains(err.Error(), "CONFIG_IPVLAN") {
		t.Skipf("%v", err)
	}
	must(t, err)
	d, parent := device(t, pod, "eth0"), device(t, node, "eth0")
	if d.Kind != "ipvlan" || d.MTU != 1500 || !d.Up || d.MAC.String() != parent.MAC.String() {
		t.Errorf("%+v on %+v", d, parent)
	}
}

func TestSegmentationGoesOffAndStaysOff(t *testing.T) {
	h, far, pod := fresh(t), fresh(t), fresh(t)
	must(t,
		h.Add(Veth{Name: "eth0", Peer: "x", PeerIn: far, MTU: 1500}),
		h.Add(Bridge{Name: "br", MTU: 1500}),
		h.Add(VXLAN{Name: "vx", MTU: 1450, VNI: 1, Port: 8472, Parent: "eth0", Local: netip.MustParseAddr("10.1.0.1")}),
		h.Add(Child{Name: "mv", MTU: 1500, Parent: "eth0", In: pod}),
	)
	before, err := h.Segmentation("eth0")
	must(t, err)
	if !slices.Contains(before, "tx-tcp-segmentation") {
		t.Fatalf("a fresh veth has %v on: nothing to switch off", before)
	}
	for _, at := range []*Handle{h, pod} {
		for range 2 { // twice is as good as once
			cut, err := at.SegmentationOff(nil)
			must(t, err)
			if want := map[*Handle][]string{pod: {"mv"}}[at]; !slices.Equal(cut.Kept, want) {
				t.Errorf("devices %v keep features, want %v", cut.Kept, want)
			}
		}
		all, err := at.Devices()
		must(t, err)
		for _, d := range all {
			on, err := at.Segmentation(d.Name)
			must(t, err)
			if d.Name == Loopback {
				if !slices.Contains(on, "tx-tcp-segmentation") {
					t.Errorf("lo was touched: %v", on)
				}
			} else if len(on) > 0 && d.GSOMaxSegs != 1 {
				t.Errorf("%s still has %v on, with up to %d segments", d.Name, on, d.GSOMaxSegs)
			}
		}
	}
	if on, err := h.Segmentation("eth0"); err != nil || len(on) > 0 {
		t.Errorf("eth0 still has %v on (%v)", on, err)
	}
	if _, err := h.Segmentation("missing"); err == nil {
		t.Error("a missing device has features")
	}
	must(t, pod.LimitSegments("mv", AnySegments))
	if err := pod.LimitSegments("missing", 1); err == nil {
		t.Error("a missing device was limited")
	}
}

func TestFeaturesThatCount(t *testing.T) {
	for name, want := range map[string]bool{
		"tx-tcp-segmentation": true, "tx-udp_tnl-csum-segmentation": true, "tx-generic-segmentation": true,
		"rx-gro": true, "tx-gso-robust": false, "tx-checksum-ip-generic": false, "rx-checksum": false, "tx-scatter-gather": false,
	} {
		if isSegmentation(name) != want {
			t.Errorf("segments(%s) = %t", name, !want)
		}
	}
}

func TestShapers(t *testing.T) {
	h := fresh(t)
	must(t, h.Add(Veth{Name: "a", Peer: "b", MTU: 1500}))
	for _, c := range []struct {
		dev  string
		rate float64
		want string
	}{{"a", 1e9, "tbf"}, {"b", htbFrom, "htb"}} {
		must(t, h.Shape(c.dev, c.rate))
		drops, err := h.Drops()
		if !slices.ContainsFunc(drops, func(d sample.Drop) bool { return d.Device == c.dev && d.What == c.want }) {
			t.Errorf("%.0f bit/s: counters %v (%v), want those of %s", c.rate, drops, err, c.want)
		}
	}
	if err := h.Shape("missing", 1e9); err == nil {
		t.Error("a missing device was shaped")
	}
}

func TestSteer(t *testing.T) {
	h := fresh(t)
	must(t, h.Add(Veth{Name: "a", Peer: "b", MTU: 1500}))
	if err := h.Steer([]int{0}); err != nil {
		if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EIO) {
			t.Skipf("receive work cannot be steered here: %v", err)
		}
		t.Fatal(err)
	}
	// Kernels with tunnel modules put a device of their own, such as tunl0, into each new namespace.
	if got, err := h.Steering(); err != nil || got["a"] != "1" || got["b"] != CPUMask([]int{0}) {
		t.Errorf("devices are steered to CPUs %q (%v), want 1", got, err)
	}
}

func TestCPUMask(t *testing.T) {
	for _, c := range []struct {
		cpus []int
		want string
	}{
		{nil, "0"}, {[]int{0}, "1"}, {[]int{0, 1, 5}, "23"}, {[]int{31}, "80000000"}, {[]int{32}, "1,00000000"},
		{[]int{0, 64}, "1,00000000,00000001"},
	} {
		if got := cpuMask(c.cpus); got != c.want {
			t.Errorf("cpuMask(%v) = %s, want %s", c.cpus, got, c.want)
		}
	}
	for mask, want := range map[string]string{"00000000,00000003": "3", "0": "0", "00": "0", "1,00000000": "1,00000000"} {
		if got := trimMask(mask); got != want {
			t.Errorf("trimMask(%s) = %s, want %s", mask, got, want)
		}
	}
}

func TestMissingKernelFeatureIsExplained(t *testing.T) {
	err := creationError("vxlan", "flannel.1", unix.EOPNOTSUPP)
	if !errors.Is(err, unix.EOPNOTSUPP) || !strings.Contains(err.Error(), "CONFIG_VXLAN") || !strings.Contains(advice.Of(err), "modprobe vxlan") {
		t.Errorf("%v (%s)", err, advice.Of(err))
	}
	if err := stateError(fmt.Errorf("add: %w", unix.ENOSYS)); !strings.Contains(err.Error(), "CONFIG_INET_ESP") || !strings.Contains(advice.Of(err), "esp4") {
		t.Errorf("no ESP: %v (%s)", err, advice.Of(err))
	}
	if err := creationError("vlan", "eth0.7", unix.EOPNOTSUPP); !strings.Contains(err.Error(), "CONFIG_VLAN_8021Q") || !strings.Contains(advice.Of(err), "modprobe 8021q") {
		t.Errorf("%v (%s)", err, advice.Of(err))
	}
	if err := creationError("veth", "eth0", unix.EPERM); !strings.Contains(advice.Of(err), "root") {
		t.Errorf("%v (%s)", err, advice.Of(err))
	}
	if err := creationError("veth", "eth0", unix.EEXIST); advice.Of(err) != "" || strings.Contains(err.Error(), "CONFIG") {
		t.Errorf("%v has a hint that does not fit", err)
	}
}

// TestBuried: what was in a namespace is gone when it returns.
func TestBuried(t *testing.T) {
	near := fresh(t)
	for range 3 {
		ns, err := netns.New()
		must(t, err)
		far, err := Open(ns)
		must(t, err)
		must(t, near.Add(Veth{Name: "near", Peer: "far", PeerIn: far}))
		far.Close()
		must(t, ns.Close(), Buried(t.Context()))
		all, err := near.Devices()
		must(t, err)
		for _, d := range all {
			if d.Name == "near" {
				t.Error("the other end of a device of a closed namespace is still there")
			}
		}
		near.index = map[string]int{}
	}
}

func TestRulesAreAListByPriority(t *testing.T) {
	h := fresh(t)
	pod := netip.MustParsePrefix("10.0.0.2/32")
	must(t, h.Add(Rule{Priority: 1024, Mark: 0x80}, Rule{Priority: 512, To: pod}, Rule{Priority: 10, In: "lo", Table: 300}))
	got, err := h.Policy()
	must(t, err)
	want := []PolicyEntry{{Priority: 10, Words: "iif lo lookup 300"}, {Priority: 512, Words: "to 10.0.0.2/32 lookup main"}, {Priority: 1024, Words: "fwmark 0x80/0x80 lookup main"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err := h.Add(Rule{Priority: 512, To: pod}); !errors.Is(err, unix.EEXIST) {
		t.Errorf("the same rule again: %v", err)
	}
	// The kernel's own first rule can be moved, and then exists once.
	local := Rule{Priority: 20, Table: unix.RT_TABLE_LOCAL}
	must(t, h.Add(local), Rule{Table: unix.RT_TABLE_LOCAL}.Remove(h))
	got, err = h.Policy()
	must(t, err)
	if want := (PolicyEntry{Priority: 20, Words: "lookup local"}); !slices.Contains(got, want) {
		t.Errorf("got %+v, want %+v among them", got, want)
	}
	if err := (Rule{Table: unix.RT_TABLE_LOCAL}).Remove(h); !errors.Is(err, unix.ENOENT) {
		t.Errorf("the same rule removed again: %v", err)
	}
}

// TestPolicy: the routing policy of both families is there in the words of ip rule, without the kernel's own entries.
func TestPolicy(t *testing.T) {
	h := fresh(t)
	mask := uint32(0xf00)
	proxy, moved := netlink.NewRule(), netlink.NewRule()
	proxy.Priority, proxy.Table, proxy.Family, proxy.Mark, proxy.Mask = 9, 2004, unix.AF_INET, 0x200, &mask
	moved.Priority, moved.Table, moved.Family = 100, unix.RT_TABLE_LOCAL, unix.AF_INET6
	must(t, h.nl.RuleAdd(proxy), h.nl.RuleAdd(moved))
	got, err := h.Policy()
	must(t, err)
	want := []PolicyEntry{{Priority: 9, Words: "fwmark 0x200/0xf00 lookup 2004"}, {IPv6: true, Priority: 100, Words: "lookup local"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
