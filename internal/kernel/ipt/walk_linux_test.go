package ipt_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/env/lab/policy"
	"github.com/cnibench/cnibench/internal/env/lab/service"
	"github.com/cnibench/cnibench/internal/kernel/ipt"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// world is one node with pods, and a client outside the cluster that is also the node's gateway:
//
//	client 198.18.0.2 ── 198.18.0.1 eth0 node ─┬─ calia ── a 10.42.0.11     no address on the node's side, as Calico
//	                                           ├─ calib ── b 10.42.0.12
//	                                           ├─ calic ── c 10.42.0.13
//	                                           └─ vethd ── d 10.42.3.2      10.42.3.1 on the node's side, as ptp
type world struct {
	node, client *netns.NS
	pods         map[string]*netns.NS
	tool         *ipt.Tool
}

const (
	nodeIP, clientIP = "198.18.0.1", "198.18.0.2"
	gatewayIP        = "10.42.3.1"
	port             = 8080
)

var (
	podIP   = map[string]string{"a": "10.42.0.11", "b": "10.42.0.12", "c": "10.42.0.13", "d": "10.42.3.2"}
	cluster = netip.MustParsePrefix("10.42.0.0/16")
)

// at returns the namespace of a pod, of the node or of the client.
func (w *world) at(name string) *netns.NS {
	switch name {
	case "node":
		return w.node
	case "client":
		return w.client
	}
	return w.pods[name]
}

// eachWorld builds a world for every flavour of iptables that the machine has.
func eachWorld(t *testing.T, test func(t *testing.T, w *world)) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes network namespaces")
	}
	for _, flavor := range []ipt.Flavor{ipt.NFT, ipt.Legacy} {
		t.Run(string(flavor), func(t *testing.T) {
			tool, err := ipt.Find(t.Context(), flavor)
			if errors.Is(err, ipt.ErrMissing) {
				t.Skipf("no iptables of this flavour: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			test(t, newWorld(t, tool))
		})
	}
}

func newWorld(t *testing.T, tool *ipt.Tool) *world {
	t.Helper()
	w := &world{node: newNS(t), client: newNS(t), pods: map[string]*netns.NS{}, tool: tool}
	pair(t, w.node, "eth0", w.client, "eth0")
	address(t, w.node, "eth0", nodeIP+"/24")
	address(t, w.client, "eth0", clientIP+"/24")
	route(t, w.node, "eth0", "0.0.0.0/0", clientIP)
	route(t, w.client, "eth0", cluster.String(), nodeIP)
	for name, ip := range podIP {
		ns := newNS(t)
		w.pods[name] = ns
		host := "cali" + name
		if name == "d" {
			host = "vethd"
		}
		pair(t, w.node, host, ns, "eth0")
		if name == "d" {
			address(t, w.node, host, gatewayIP+"/24")
			address(t, ns, "eth0", ip+"/24")
			route(t, ns, "eth0", "0.0.0.0/0", gatewayIP)
		} else {
			address(t, ns, "eth0", ip+"/32")
			route(t, ns, "eth0", "169.254.1.1/32", "")
			route(t, ns, "eth0", "0.0.0.0/0", "169.254.1.1")
			neighbour(t, ns, "eth0", "169.254.1.1", hardware(t, w.node, host))
			route(t, w.node, host, ip+"/32", "")
		}
		serve(t, ns, name)
	}
	serve(t, w.client, "client")
	serve(t, w.node, "node")
	must(t, w.node.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0)
	}))
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newNS(t *testing.T) *netns.NS {
	t.Helper()
	ns, err := netns.New()
	must(t, err)
	t.Cleanup(func() { _ = ns.Close() })
	must(t, ns.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	}))
	return ns
}

// pair joins two namespaces by a veth whose ends are up.
func pair(t *testing.T, a *netns.NS, aName string, b *netns.NS, bName string) {
	t.Helper()
	must(t, a.Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = aName
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: bName, PeerNamespace: netlink.NsFd(b.FD())})
	}))
	for _, end := range []struct {
		ns   *netns.NS
		name string
	}{{a, aName}, {b, bName}} {
		withLink(t, end.ns, end.name, netlink.LinkSetUp)
	}
}

func withLink(t *testing.T, ns *netns.NS, name string, fn func(netlink.Link) error) {
	t.Helper()
	must(t, ns.Do(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return fn(l)
	}))
}

func address(t *testing.T, ns *netns.NS, device, cidr string) {
	t.Helper()
	withLink(t, ns, device, func(l netlink.Link) error {
		a, err := netlink.ParseAddr(cidr)
		if err != nil {
			return err
		}
		return netlink.AddrAdd(l, a)
	})
}

func route(t *testing.T, ns *netns.NS, device, to, via string) {
	t.Helper()
	withLink(t, ns, device, func(l netlink.Link) error {
		_, dst, err := net.ParseCIDR(to)
		if err != nil {
			return err
		}
		r := &netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst, Gw: net.ParseIP(via)}
		if via == "" {
			r.Scope = netlink.SCOPE_LINK
		}
		return netlink.RouteAdd(r)
	})
}

func neighbour(t *testing.T, ns *netns.NS, device, ip string, mac net.HardwareAddr) {
	t.Helper()
	withLink(t, ns, device, func(l netlink.Link) error {
		return netlink.NeighAdd(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: unix.NUD_PERMANENT, IP: net.ParseIP(ip), HardwareAddr: mac})
	})
}

func hardware(t *testing.T, ns *netns.NS, device string) (mac net.HardwareAddr) {
	t.Helper()
	withLink(t, ns, device, func(l netlink.Link) error {
		mac = l.Attrs().HardwareAddr
		return nil
	})
	return mac
}

// serve answers in ns on port: it says whom it sees and who it is, then sends everything back.
func serve(t *testing.T, ns *netns.NS, name string) {
	t.Helper()
	var l net.Listener
	must(t, ns.Do(func() (err error) {
		var c net.ListenConfig
		c.SetMultipathTCP(false)
		l, err = c.Listen(context.Background(), "tcp4", fmt.Sprintf(":%d", port))
		return err
	}))
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				if _, err := fmt.Fprintf(c, "%s %s\n", c.RemoteAddr().(*net.TCPAddr).IP, name); err == nil {
					_, _ = io.Copy(c, c)
				}
			}()
		}
	}()
}

// connect dials from inside ns and returns the connection with what the server said: whom it sees, and who it is.
func connect(ns *netns.NS, to string, patience time.Duration) (c net.Conn, sees, who string, err error) {
	err = ns.Do(func() (err error) {
		d := net.Dialer{Timeout: patience}
		d.SetMultipathTCP(false)
		c, err = d.Dial("tcp4", to)
		return err
	})
	if err != nil {
		return nil, "", "", err
	}
	line, err := bufio.NewReaderSize(c, 16).ReadString('\n')
	if err != nil {
		return nil, "", "", err
	}
	sees, who, _ = strings.Cut(strings.TrimSpace(line), " ")
	return c, sees, who, nil
}

// ask is connect and hang up.
func ask(ns *netns.NS, to string, patience time.Duration) (sees, who string, err error) {
	c, sees, who, err := connect(ns, to, patience)
	if err == nil {
		err = c.Close()
	}
	return sees, who, err
}

// patient is longer than any answer takes; hasty is for what must not be answered.
const patient, hasty = 5 * time.Second, 250 * time.Millisecond

func (w *world) load(t *testing.T, n policy.Node) {
	t.Helper()
	rules, sets := n.Render()
	if sets != "" {
		program, err := ipt.FindIPSet(t.Context())
		if errors.Is(err, ipt.ErrMissing) {
			t.Skipf("no ipset: %v", err)
		}
		must(t, err)
		must(t, program.Restore(t.Context(), w.node, sets))
	}
	must(t, w.tool.Restore(t.Context(), w.node, rules))
}

// save reads all tables of the node with their counters.
func (w *world) save(t *testing.T) []ipt.SavedTable {
	t.Helper()
	text, err := w.tool.Save(t.Context(), w.node, "")
	must(t, err)
	tables, err := ipt.ParseSave(text)
	must(t, err)
	return tables
}

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// svc is a service at 10.43.0.n with the pods named.
func svc(name string, n byte, pods string) service.Service {
	s := service.Service{Namespace: "bench", Name: name, Protocol: "tcp", VIP: netip.AddrFrom4([4]byte{10, 43, 0, n}), Port: 80, NodePort: 30000 + uint16(n)}
	for _, p := range pods {
		s.Endpoints = append(s.Endpoints, service.Endpoint{Addr: netip.AddrPortFrom(netip.MustParseAddr(podIP[string(p)]), port), Local: true})
	}
	return s
}
