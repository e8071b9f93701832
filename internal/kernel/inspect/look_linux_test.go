package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/measure/netstate"
)

var mark = []byte("marked-for-test!")

// TestMain runs this binary as one of the places of a test: its arguments are those of role.
func TestMain(m *testing.M) {
	if verb, ok := os.LookupEnv("LOOK_ROLE"); ok {
		os.Exit(role(verb, os.Getenv("LOOK_ARG")))
	}
	os.Exit(m.Run())
}

// role does one thing in the namespace that the process was started in, until its input ends.
func role(verb, arg string) int {
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		stop()
	}()
	var seen any
	var err error
	switch verb {
	case "echo":
		seen, err = Echo(ctx, 7777, mark)
	case "watch":
		seen, err = Watch(ctx, arg, mark, 7777)
	case "mtu-briefly":
		limit, end := context.WithTimeout(ctx, time.Second)
		defer end()
		seen, err = PathMTU(limit, netip.MustParseAddrPort(arg), mark)
	case "mtu":
		seen, err = PathMTU(ctx, netip.MustParseAddrPort(arg), mark)
	case "content":
		seen, err = Content(ctx, netip.MustParseAddrPort(arg), mark, 1500)
	case "send":
		limit, end := context.WithTimeout(ctx, 400*time.Millisecond)
		defer end()
		seen, err = Send(limit, netip.MustParseAddrPort(arg), mark)
	case "gather":
		seen, err = Gather(ctx, Options{CNI: arg})
	}
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		return 1
	}
	_ = json.NewEncoder(os.Stdout).Encode(seen)
	return 0
}

// player is another process of this test that plays a part in a namespace.
type player struct {
	*exec.Cmd
	out, words bytes.Buffer
	// in is its standard input, whose end is its end.
	in io.Closer
}

func play(t *testing.T, ns *netns.NS, verb, arg string) *player {
	t.Helper()
	s := netns.NewStarter()
	t.Cleanup(s.Close)
	self, err := os.Executable()
	must(t, err)
	r := &player{Cmd: exec.Command(self)}
	r.Env = append(os.Environ(), "LOOK_ROLE="+verb, "LOOK_ARG="+arg)
	r.Stdout, r.Stderr = &r.out, &r.words
	r.in, err = r.StdinPipe()
	must(t, err)
	must(t, s.Start(ns, r.Cmd))
	return r
}

// start begins a role, which ends when the returned function is called.
func start(t *testing.T, ns *netns.NS, verb, arg string) (end func(into any)) {
	t.Helper()
	r := play(t, ns, verb, arg)
	return func(into any) {
		t.Helper()
		_ = r.in.Close()
		if err := r.Wait(); err != nil {
			t.Fatalf("%s: %v: %s", verb, err, r.words.String())
		}
		must(t, json.Unmarshal(r.out.Bytes(), into))
	}
}

// wait lets a role that ends by itself end: its input is kept open.
func wait(t *testing.T, ns *netns.NS, verb, arg string, into any) error {
	t.Helper()
	r := play(t, ns, verb, arg)
	defer r.in.Close()
	if err := r.Wait(); err != nil {
		return errors.New(r.words.String())
	}
	must(t, json.Unmarshal(r.out.Bytes(), into))
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func namespace(t *testing.T) *netns.NS {
	t.Helper()
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no right to make a network namespace: %v", err)
	}
	must(t, err)
	t.Cleanup(func() { ns.Close() })
	// Without ::1 there is no IPv6 for Go's listeners.
	must(t, ns.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	}))
	return ns
}

// wired are two namespaces on one wire, eth0 at both ends, 10.9.0.1 and 10.9.0.2, fd09::1 and fd09::2.
func wired(t *testing.T) (a, b *netns.NS) {
	t.Helper()
	a, b = namespace(t), namespace(t)
	must(t, a.Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0", MTU: 1500}, PeerName: "eth0", PeerMTU: 1500, PeerNamespace: netlink.NsFd(b.FD())})
	}))
	address(t, a, "eth0", "10.9.0.1/24", "fd09::1/64")
	address(t, b, "eth0", "10.9.0.2/24", "fd09::2/64")
	return a, b
}

func address(t *testing.T, ns *netns.NS, device string, list ...string) {
	t.Helper()
	must(t, ns.Do(func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		for _, text := range list {
			addr, err := netlink.ParseAddr(text)
			if err != nil {
				return err
			}
			addr.Flags = 2 // IFA_F_NODAD: usable at once
			if addr.IP.To4() != nil {
				addr.Flags = 0
			}
			if err := netlink.AddrAdd(l, addr); err != nil {
				return err
			}
		}
		return netlink.LinkSetUp(l)
	}))
}

// tunnel lays VXLAN over the wire: vx with MTU 1450, 10.8.0.1 and 10.8.0.2.
func tunnel(t *testing.T, ns *netns.NS, own, other, inner string, mtu int) {
	t.Helper()
	must(t, ns.Do(func() error {
		under, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.LinkAdd(&netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: "vx", MTU: mtu}, VxlanId: 7, Port: 8472,
			SrcAddr: net.ParseIP(own), Group: net.ParseIP(other), VtepDevIndex: under.Attrs().Index})
	}))
	address(t, ns, "vx", inner)
}

func TestPathMTU(t *testing.T) {
	a, b := wired(t)
	end := start(t, b, "echo", "")
	for _, to := range []string{"[fd09::2]:7777", "10.9.0.2:7777"} {
		var got netstate.PathMTU
		must(t, wait(t, a, "mtu", to, &got))
		if got.There != 1500 || got.Back != 1500 || got.Own != 1500 || got.Silent {
			t.Errorf("%s over a wire of 1500: %+v", to, got)
		}
		if host, _ := netip.ParseAddrPort(got.SeenAs); !strings.HasSuffix(host.Addr().String(), ".1") && !strings.HasSuffix(host.Addr().String(), "::1") {
			t.Errorf("%s: seen as %s", to, got.SeenAs)
		}
	}
	var n int
	end(&n)
	if n < 6 {
		t.Errorf("%d questions answered: at least one contact, and one size each way that fits at once, for two families", n)
	}
}

// TestPathMTUFindsTheNarrowPlace: the device here promises more than the device there takes in, and nobody says a word.
func TestPathMTUFindsTheNarrowPlace(t *testing.T) {
	a, b := wired(t)
	must(t, b.Do(func() error {
		l, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.LinkSetMTU(l, 1400)
	}))
	end := start(t, b, "echo", "")
	var got netstate.PathMTU
	must(t, wait(t, a, "mtu", "10.9.0.2:7777", &got))
	var n int
	end(&n)
	// A veth drops what is more than the MTU of its other end and an Ethernet header with a VLAN tag.
	if got.There < 1400 || got.There > 1404 || got.Back != 1400 || !got.Silent {
		t.Errorf("1500 here and 1400 there: %+v", got)
	}
}

func TestPathMTUWithoutAnswer(t *testing.T) {
	a, _ := wired(t)
	var got netstate.PathMTU
	for to, want := range map[string]string{
		"10.9.0.2:7777":   "no answer from 10.9.0.2:7777 within 1s, but to a connection and an echo", // refused, by a host that is there
		"[fd09::2]:7777":  ", but to a connection and an echo",
		"10.9.0.200:7777": "no answer from 10.9.0.200:7777 within 1s",
	} {
		err := wait(t, a, "mtu-briefly", to, &got)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(want, "but") && strings.Contains(err.Error(), "but") {
			t.Errorf("%s without a listener: %v, want %s", to, err, want)
		}
	}
}

// TestContent: what is flipped, lost or held back on the wire is counted in the direction in which it was.
func TestContent(t *testing.T) {
	for name, plant := range map[string]struct {
		program asm.Instructions
		right   func(netstate.Content) bool
	}{
		"nothing": {nil, func(c netstate.Content) bool {
			clean := netstate.Exchange{There: netstate.Traffic{Sent: messages}, Back: netstate.Traffic{Sent: messages}}
			return c.Small == clean && c.Large == clean && c.Words.There.Sent == words && c.Words.Back.Sent == words && c.Words.There.Wrong+c.Words.Back.Wrong == 0 && c.Blocks.There.Sent > 0 && c.Blocks.There.Wrong+c.Blocks.Back.Wrong == 0 && len(c.Dials.Times) == dials
		}},
		// As a device does behind which no checksum is looked at again.
		"a bit of every packet there": {asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), // the frame's length
			asm.JLT.Imm(asm.R2, 100, "passes"),
			asm.Sub.Imm(asm.R2, 1),
			asm.Mov.Reg(asm.R7, asm.R2),
			asm.Mov.Reg(asm.R3, asm.RFP),
			asm.Add.Imm(asm.R3, -8),
			asm.Mov.Imm(asm.R4, 1),
			asm.FnSkbLoadBytes.Call(),
			asm.LoadMem(asm.R1, asm.RFP, -8, asm.Byte),
			asm.Xor.Imm(asm.R1, 1),
			asm.StoreMem(asm.RFP, -8, asm.R1, asm.Byte),
			asm.Mov.Reg(asm.R1, asm.R6),
			asm.Mov.Reg(asm.R2, asm.R7),
			asm.Mov.Reg(asm.R3, asm.RFP),
			asm.Add.Imm(asm.R3, -8),
			asm.Mov.Imm(asm.R4, 1),
			asm.Mov.Imm(asm.R5, 0),
			asm.FnSkbStoreBytes.Call(),
			asm.Mov.Imm(asm.R0, -1).WithSymbol("passes"),
			asm.Return(),
		}, func(c netstate.Content) bool {
			return c.Small.There.Wrong == messages && c.Large.There.Wrong == messages && c.Words.There.Wrong == words && c.Blocks.There.Wrong > 0 &&
				c.Small.Back.Wrong+c.Large.Back.Wrong+c.Blocks.Back.Wrong == 0
		}},
		"a tenth of the small packets of TCP there": {asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, 0, asm.Word),
			asm.JNE.Imm(asm.R2, 14+20+32+smallMessage, "passes"),
			asm.FnGetPrandomU32.Call(),
			asm.Mod.Imm(asm.R0, 10),
			asm.JNE.Imm(asm.R0, 0, "passes"),
			asm.Mov.Imm(asm.R0, 2), // TC_ACT_SHOT
			asm.Return(),
			asm.Mov.Imm(asm.R0, -1).WithSymbol("passes"),
			asm.Return(),
		}, func(c netstate.Content) bool {
			return c.Words.There.Sent == words && c.Words.There.Resent > words/100 && c.Words.Back.Resent < words/100 && c.Words.There.Wrong == 0
		}},
		"large packets there": {asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, 0, asm.Word),
			asm.JLT.Imm(asm.R2, 1000, "passes"),
			asm.Mov.Imm(asm.R0, 2), // TC_ACT_SHOT
			asm.Return(),
			asm.Mov.Imm(asm.R0, -1).WithSymbol("passes"),
			asm.Return(),
		}, func(c netstate.Content) bool {
			return c.Small.There.Lost+c.Small.Back.Lost+c.Large.Back.Lost == 0 && c.Large.There.Lost == messages && len(c.Dials.Times) == dials
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := wired(t)
			if plant.program != nil {
				program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: plant.program})
				must(t, err)
				defer program.Close()
				at, err := attach.Device(b, "eth0", attach.Ingress, program)
				must(t, err)
				defer at.Close()
			}
			end := start(t, b, "echo", "")
			var got netstate.Content
			must(t, wait(t, a, "content", "10.9.0.2:7777", &got))
			var n int
			end(&n)
			if !plant.right(got) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestContentOfAStoppedEcho: an end that has no CPU for three seconds answers late, and loses nothing.
func TestContentOfAStoppedEcho(t *testing.T) {
	a, b := wired(t)
	echo := play(t, b, "echo", "")
	defer func() { _ = echo.in.Close(); _ = echo.Wait() }()
	asker := play(t, a, "content", "10.9.0.2:7777")
	defer asker.in.Close()
	for _, step := range []struct {
		after  time.Duration
		signal syscall.Signal
	}{{500 * time.Millisecond, syscall.SIGSTOP}, {3 * time.Second, syscall.SIGCONT}} {
		<-time.After(step.after)
		must(t, echo.Process.Signal(step.signal))
	}
	if err := asker.Wait(); err != nil {
		t.Fatalf("%v: %s", err, asker.words.String())
	}
	var got netstate.Content
	must(t, json.Unmarshal(asker.out.Bytes(), &got))
	clean := netstate.Exchange{There: netstate.Traffic{Sent: messages}, Back: netstate.Traffic{Sent: messages}}
	if got.Small != clean || got.Large != clean {
		t.Errorf("%+v", got)
	}
}

func TestWatch(t *testing.T) {
	a, b := wired(t)
	tunnel(t, a, "10.9.0.1", "10.9.0.2", "10.8.0.1/24", 1450)
	tunnel(t, b, "10.9.0.2", "10.9.0.1", "10.8.0.2/24", 1450)
	for _, c := range []struct {
		to   string
		want netstate.Wrapping
	}{
		{"10.9.0.2:7777", netstate.Wrapping{Kind: netstate.Bare, Source: "10.9.0.1", Destination: "10.9.0.2"}},
		{"10.8.0.2:7777", netstate.Wrapping{Kind: netstate.VXLAN, Port: 8472, VNI: 7, Source: "10.9.0.1", Destination: "10.9.0.2"}},
	} {
		endEcho, endWatch := start(t, b, "echo", ""), start(t, b, "watch", "eth0")
		var sent netstate.Sending
		for sent.Answered < 3 { // until both are there
			must(t, wait(t, a, "send", c.to, &sent))
		}
		var n int
		endEcho(&n)
		var wire netstate.Wire
		endWatch(&wire)
		if !slices.ContainsFunc(wire.Marked, func(w netstate.Wrapping) bool { w.Frames = 0; return w == c.want }) {
			t.Errorf("%s: %+v, want %+v among them", c.to, wire, c.want)
		}
		for _, w := range wire.Marked {
			if w.Kind != c.want.Kind {
				t.Errorf("%s: %+v is seen", c.to, w)
			}
		}
		if len(wire.Sealed) > 0 {
			t.Errorf("%s: encrypted frames %+v", c.to, wire.Sealed)
		}
	}
}

func TestGather(t *testing.T) {
	a, _ := wired(t)
	tunnel(t, a, "10.9.0.1", "10.9.0.2", "10.8.0.1/24", 1450)
	must(t, a.Do(func() error {
		_, all, err := net.ParseCIDR("0.0.0.0/0")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{Dst: all, Gw: net.ParseIP("10.9.0.2")})
	}))
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "10-x.conflist"), []byte(`{"name":"x","plugins":[{"type":"bridge"}]}`), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "readme.txt"), nil, 0o600))
	var s netstate.State
	must(t, wait(t, a, "gather", dir, &s))
	if vx, ok := s.Device("vx"); !ok || vx.Kind != "vxlan" || vx.VNI != 7 || vx.Port != 8472 || vx.MTU != 1450 {
		t.Errorf("vx: %+v", vx)
	}
	if d, mtu, ok := s.Way(); !ok || d.Name != "eth0" || mtu != 1500 || d.Kind != "veth" || d.SpeedMbit != 0 {
		t.Errorf("the way out: %+v %d %v", d, mtu, ok)
	}
	if len(s.Conflists) != 1 || s.Conflists[0].File != "10-x.conflist" {
		t.Errorf("conflists: %+v", s.Conflists)
	}
	if s.BootID != proc.Text("/proc/sys/kernel/random/boot_id") || s.Machine["kernel"] == "" {
		t.Errorf("machine: %s %v", s.BootID, s.Machine)
	}
	if inode, err := a.Inode(); err != nil || s.Namespace != inode {
		t.Errorf("namespace %d, want %d (%v)", s.Namespace, inode, err)
	}
	if s.ProxyMode != "" || s.Missing(netstate.WhatProxyMode) == "" {
		t.Errorf("kube-proxy in an empty namespace: %q, %q", s.ProxyMode, s.Missing(netstate.WhatProxyMode))
	}
	if s.Chains == nil && s.Missing(netstate.WhatChains) == "" || s.Programs == nil && s.Missing(netstate.WhatPrograms) == "" {
		t.Errorf("neither seen nor said to be missing: %+v", s.Unproven)
	}
}

// TestGatherWithoutRights: what a pod without capabilities may not see is said, and all else is there.
func TestGatherWithoutRights(t *testing.T) {
	a, _ := wired(t)
	self, err := os.Executable()
	must(t, err)
	copied := filepath.Join("/tmp", filepath.Base(t.TempDir())+"-look")
	b, err := os.ReadFile(self)
	must(t, err)
	must(t, os.WriteFile(copied, b, 0o755))
	t.Cleanup(func() { _ = os.Remove(copied) })
	s := netns.NewStarter()
	t.Cleanup(s.Close)
	cmd := exec.Command(copied)
	cmd.Dir = "/"
	cmd.Env = []string{"LOOK_ROLE=gather", "LOOK_ARG=/nowhere"}
	cmd.SysProcAttr = nobody()
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	in, err := cmd.StdinPipe()
	must(t, err)
	defer in.Close()
	must(t, s.Start(a, cmd))
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, words.String())
	}
	var seen netstate.State
	must(t, json.Unmarshal(out.Bytes(), &seen))
	if d, ok := seen.Device("eth0"); !ok || len(d.Addresses) != 2 {
		t.Errorf("eth0: %+v", d)
	}
	for _, what := range []string{netstate.WhatChains, netstate.WhatPrograms, netstate.WhatConflists} {
		if seen.Missing(what) == "" {
			t.Errorf("%s is not said to be missing: %v", what, seen.Unproven)
		}
	}
	if seen.Chains != nil || seen.Programs != nil {
		t.Errorf("chains %+v, programs %+v are claimed", seen.Chains, seen.Programs)
	}
}

// nobody is a user without rights.
func nobody() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532, NoSetGroups: true}}
}

func TestProxyMode(t *testing.T) {
	for body, want := range map[string]string{"nftables": "nftables", "iptables\n": "iptables", "<html>": ""} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		got, err := fetchProxyMode(t.Context(), server.URL+"/proxyMode")
		server.Close()
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", body, got, err)
		}
	}
}
