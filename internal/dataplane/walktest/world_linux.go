package walktest

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

	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// World has the namespaces "node", "client", "a", "b", "c" and "d", by name. A server listens on Port in each.
type World map[string]*netns.NS

// Addresses of the world.
const (
	NodeIP, ClientIP = "198.18.0.1", "198.18.0.2"
	Port             = 8080

	GatewayIP = "10.42.3.1"
)

// PodIP has the addresses of the pods, all in Cluster.
var (
	PodIP   = map[string]string{"a": "10.42.0.11", "b": "10.42.0.12", "c": "10.42.0.13", "d": "10.42.3.2"}
	Cluster = netip.MustParsePrefix("10.42.0.0/16")

	any4      = netip.MustParsePrefix("0.0.0.0/0")
	linkLocal = netip.MustParseAddr("169.254.1.1")
)

// Patient is a timeout longer than any answer takes. Hasty is a timeout for connections that must not be answered.
const Patient, Hasty = 5 * time.Second, 250 * time.Millisecond

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func hostPrefix(a string) netip.Prefix { return netip.PrefixFrom(netip.MustParseAddr(a), 32) }

// New creates the namespaces with their devices, routes and servers, until the test ends. It skips the test without root.
func New(t *testing.T) World {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes network namespaces")
	}
	w, at := World{}, map[string]*link.Handle{}
	for _, name := range []string{"node", "client", "a", "b", "c", "d"} {
		ns, err := netns.New()
		must(t, err)
		h, err := link.Open(ns)
		must(t, err)
		t.Cleanup(func() { h.Close(); _ = ns.Close() })
		must(t, h.Up(link.Loopback))
		w[name], at[name] = ns, h
	}
	node := at["node"]
	must(t, node.Add(link.Veth{Name: "eth0", Peer: "eth0", PeerIn: at["client"], MTU: 1500}))
	must(t, node.Add(link.Address{Dev: "eth0", Addr: netip.MustParsePrefix(NodeIP + "/24")}))
	must(t, at["client"].Add(link.Address{Dev: "eth0", Addr: netip.MustParsePrefix(ClientIP + "/24")}))
	must(t, node.Add(link.Route{To: any4, Via: netip.MustParseAddr(ClientIP), Dev: "eth0"}))
	must(t, at["client"].Add(link.Route{To: Cluster, Via: netip.MustParseAddr(NodeIP), Dev: "eth0"}))
	for _, pod := range []string{"a", "b", "c"} {
		host := "cali" + pod
		must(t, node.Add(link.Veth{Name: host, Peer: "eth0", PeerIn: at[pod], MTU: 1500}))
		must(t, node.Add(link.Route{To: hostPrefix(PodIP[pod]), Dev: host, LinkScope: true}))
		must(t, netns.SetSysctls(w["node"], []netns.Setting{
			{Name: "net/ipv4/conf/" + host + "/proxy_arp", Value: "1"}, {Name: "net/ipv4/neigh/" + host + "/proxy_delay", Value: "0"},
		}))
		must(t, at[pod].Add(link.Address{Dev: "eth0", Addr: hostPrefix(PodIP[pod])}))
		must(t, at[pod].Add(link.Route{To: netip.PrefixFrom(linkLocal, 32), Dev: "eth0", LinkScope: true}))
		must(t, at[pod].Add(link.Route{To: any4, Via: linkLocal, Dev: "eth0"}))
	}
	must(t, node.Add(link.Veth{Name: "vethd", Peer: "eth0", PeerIn: at["d"], MTU: 1500}))
	must(t, node.Add(link.Address{Dev: "vethd", Addr: netip.MustParsePrefix(GatewayIP + "/24")}))
	must(t, at["d"].Add(link.Address{Dev: "eth0", Addr: netip.MustParsePrefix(PodIP["d"] + "/24")}))
	must(t, at["d"].Add(link.Route{To: any4, Via: netip.MustParseAddr(GatewayIP), Dev: "eth0"}))
	must(t, netns.SetSysctls(w["node"], []netns.Setting{{Name: "net/ipv4/ip_forward", Value: "1"}, {Name: "net/ipv4/conf/all/rp_filter", Value: "0"}}))
	for name, ns := range w {
		startServer(t, ns, name)
	}
	return w
}

// startServer listens in ns on Port: it sends the client's address and name on a line, and then everything that it receives.
func startServer(t *testing.T, ns *netns.NS, name string) {
	t.Helper()
	var l net.Listener
	must(t, ns.Do(func() (err error) {
		var c net.ListenConfig
		c.SetMultipathTCP(false)
		l, err = c.Listen(context.Background(), "tcp4", fmt.Sprintf(":%d", Port))
		return err
	}))
	serveConns(t, l, func(c net.Conn) {
		if _, err := fmt.Fprintf(c, "%s %s\n", c.RemoteAddr().(*net.TCPAddr).IP, name); err == nil {
			_, _ = io.Copy(c, c)
		}
	})
}

// Connect connects from a namespace to an address. It returns the connection and what the server sent: the client
// address that the server sees, and the server's name. It fails if nothing accepts the connection or no line arrives.
func (w World) Connect(from string, d net.Dialer, to string) (c net.Conn, sees, who string, err error) {
	err = w[from].Do(func() (err error) {
		d.SetMultipathTCP(false)
		c, err = d.Dial("tcp4", to)
		return err
	})
	if err != nil {
		return nil, "", "", err
	}
	line, err := bufio.NewReaderSize(c, 16).ReadString('\n')
	if err != nil {
		return nil, "", "", errors.Join(err, c.Close())
	}
	sees, who, _ = strings.Cut(strings.TrimSpace(line), " ")
	return c, sees, who, nil
}

// Ask connects as Connect does, with patience as the timeout, and closes the connection.
func (w World) Ask(from, to string, patience time.Duration) (sees, who string, err error) {
	c, sees, who, err := w.Connect(from, net.Dialer{Timeout: patience}, to)
	if err == nil {
		err = c.Close()
	}
	return sees, who, err
}

// IsRefused reports whether a connection was refused.
func IsRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// IsTimeout reports whether err is a timeout.
func IsTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// Service returns a Service at 10.43.0.n, with node port 30000+n. Its endpoints are the pods whose letters are in pods.
func Service(name string, n byte, pods string) service.Service {
	s := service.Service{Namespace: "bench", Name: name, Protocol: "tcp", VIP: netip.AddrFrom4([4]byte{10, 43, 0, n}), Port: 80, NodePort: 30000 + uint16(n)}
	for _, p := range pods {
		s.Endpoints = append(s.Endpoints, service.Endpoint{Addr: netip.AddrPortFrom(netip.MustParseAddr(PodIP[string(p)]), Port), Local: true})
	}
	return s
}

// Services returns a configuration with one Service of each kind, at 10.43.0.10 and the following addresses.
func Services() *service.Config {
	local, far, sticky := Service("local", 15, "a"), Service("far", 16, ""), Service("sticky", 17, "abc")
	local.ExternalTrafficPolicyLocal, far.ExternalTrafficPolicyLocal, sticky.SessionAffinity = true, true, true
	far.Endpoints = []service.Endpoint{{Addr: netip.MustParseAddrPort("10.42.9.9:8080")}}
	return &service.Config{ClusterCIDR: Cluster, Services: []service.Service{
		Service("one", 10, "a"), Service("self", 11, "b"), Service("closed", 12, ""), Service("three", 13, "abc"), Service("routed", 14, "d"), local, far, sticky,
	}}
}

// AddAddress adds an address to eth0 of a namespace.
func (w World) AddAddress(t *testing.T, name, a string) {
	t.Helper()
	h, err := link.Open(w[name])
	must(t, err)
	defer h.Close()
	must(t, h.Add(link.Address{Dev: "eth0", Addr: hostPrefix(a)}))
}
