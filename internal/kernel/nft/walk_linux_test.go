package nft_test

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

	"github.com/cnibench/cnibench/internal/env/lab/policy"
	"github.com/cnibench/cnibench/internal/env/lab/service"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/kernel/sysctl"
)

// world is one node with pods, and a client outside the cluster that is also the node's gateway:
//
//	client 198.18.0.2 ── 198.18.0.1 eth0 node ─┬─ calia ── a 10.42.0.11     no address on the node's side, as Calico
//	                                           ├─ calib ── b 10.42.0.12
//	                                           ├─ calic ── c 10.42.0.13
//	                                           └─ vethd ── d 10.42.3.2      10.42.3.1 on the node's side, as ptp
type world map[string]*netns.NS

const (
	nodeIP, clientIP = "198.18.0.1", "198.18.0.2"
	gatewayIP        = "10.42.3.1"
	port             = 8080
)

var (
	podIP     = map[string]string{"a": "10.42.0.11", "b": "10.42.0.12", "c": "10.42.0.13", "d": "10.42.3.2"}
	cluster   = netip.MustParsePrefix("10.42.0.0/16")
	any4      = netip.MustParsePrefix("0.0.0.0/0")
	linkLocal = netip.MustParseAddr("169.254.1.1")
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func single(a string) netip.Prefix { return netip.PrefixFrom(netip.MustParseAddr(a), 32) }

// newWorld builds the world and loads the nftables tables of n into the node.
func newWorld(t *testing.T, n policy.Node) world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes network namespaces")
	}
	w, at := world{}, map[string]*link.Handle{}
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
	must(t, node.AddVeth(link.Veth{Name: "eth0", Peer: "eth0", PeerIn: at["client"], MTU: 1500}))
	must(t, node.AddAddress("eth0", netip.MustParsePrefix(nodeIP+"/24")))
	must(t, at["client"].AddAddress("eth0", netip.MustParsePrefix(clientIP+"/24")))
	must(t, node.AddRoute(link.Route{To: any4, Via: netip.MustParseAddr(clientIP), Dev: "eth0"}))
	must(t, at["client"].AddRoute(link.Route{To: cluster, Via: netip.MustParseAddr(nodeIP), Dev: "eth0"}))
	for _, pod := range []string{"a", "b", "c"} {
		host := "cali" + pod
		must(t, node.AddVeth(link.Veth{Name: host, Peer: "eth0", PeerIn: at[pod], MTU: 1500}))
		must(t, node.AddRoute(link.Route{To: single(podIP[pod]), Dev: host, LinkScope: true}))
		must(t, sysctl.Set(w["node"], []sysctl.Setting{
			{Name: "net/ipv4/conf/" + host + "/proxy_arp", Value: "1"}, {Name: "net/ipv4/neigh/" + host + "/proxy_delay", Value: "0"},
		}))
		must(t, at[pod].AddAddress("eth0", single(podIP[pod])))
		must(t, at[pod].AddRoute(link.Route{To: netip.PrefixFrom(linkLocal, 32), Dev: "eth0", LinkScope: true}))
		must(t, at[pod].AddRoute(link.Route{To: any4, Via: linkLocal, Dev: "eth0"}))
	}
	must(t, node.AddVeth(link.Veth{Name: "vethd", Peer: "eth0", PeerIn: at["d"], MTU: 1500}))
	must(t, node.AddAddress("vethd", netip.MustParsePrefix(gatewayIP+"/24")))
	must(t, at["d"].AddAddress("eth0", netip.MustParsePrefix(podIP["d"]+"/24")))
	must(t, at["d"].AddRoute(link.Route{To: any4, Via: netip.MustParseAddr(gatewayIP), Dev: "eth0"}))
	must(t, sysctl.Set(w["node"], []sysctl.Setting{{Name: "net/ipv4/ip_forward", Value: "1"}, {Name: "net/ipv4/conf/all/rp_filter", Value: "0"}}))
	for name, ns := range w {
		serve(t, ns, name)
	}
	must(t, nft.Load(t.Context(), w["node"], n.Tables()...))
	return w
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
func connect(ns *netns.NS, d net.Dialer, to string) (c net.Conn, sees, who string, err error) {
	err = ns.Do(func() (err error) {
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

// ask is connect and hang up.
func (w world) ask(from, to string, patience time.Duration) (sees, who string, err error) {
	c, sees, who, err := connect(w[from], net.Dialer{Timeout: patience}, to)
	if err == nil {
		err = c.Close()
	}
	return sees, who, err
}

// patient is longer than any answer takes; hasty is for what must not be answered.
const patient, hasty = 5 * time.Second, 250 * time.Millisecond

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

// services are one of each kind.
func services() policy.Node {
	local, far, sticky := svc("local", 15, "a"), svc("far", 16, ""), svc("sticky", 17, "abc")
	local.ExternalTrafficPolicyLocal, far.ExternalTrafficPolicyLocal, sticky.SessionAffinity = true, true, true
	far.Endpoints = []service.Endpoint{{Addr: netip.MustParseAddrPort("10.42.9.9:8080")}}
	guarded, open := svc("guarded", 18, "a"), svc("open", 19, "a")
	guarded.LoadBalancerIPs, guarded.SourceRanges = []netip.Addr{netip.MustParseAddr("203.0.113.1")}, []netip.Prefix{cluster}
	open.LoadBalancerIPs = []netip.Addr{netip.MustParseAddr("203.0.113.2")}
	return policy.Node{ProxyNFT: true, Services: &service.Config{
		ClusterCIDR: cluster, ServiceCIDR: netip.MustParsePrefix("10.43.0.0/16"), NodePortAddrs: []netip.Addr{netip.MustParseAddr(nodeIP)},
		Services: []service.Service{
			svc("one", 10, "a"), svc("self", 11, "b"), svc("closed", 12, ""), svc("three", 13, "abc"), svc("routed", 14, "d"), local, far, sticky, guarded, open,
		},
	}}
}

// underlay is a whole node of Calico without encapsulation, with the pods named.
func underlay(pods string) policy.Node {
	n := services()
	n.Calico = &policy.CalicoConfig{
		NFTables: true, NodeAddrs: []netip.Addr{netip.MustParseAddr(nodeIP)}, Peers: []netip.Addr{netip.MustParseAddr(clientIP)},
		Pools: []netip.Prefix{cluster}, NATOutgoing: true,
	}
	for _, p := range pods {
		n.Calico.Endpoints = append(n.Calico.Endpoints, policy.Endpoint{Device: "cali" + string(p), Addr: netip.MustParseAddr(podIP[string(p)])})
	}
	return n
}

func addAddress(t *testing.T, ns *netns.NS, a string) {
	t.Helper()
	h, err := link.Open(ns)
	must(t, err)
	defer h.Close()
	must(t, h.AddAddress("eth0", single(a)))
}
