package conntrack

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// node returns a namespace with 10.0.0.1/24 on its loopback, which sends to 10.0.0.9:80 what reaches 10.0.0.1:81.
func node(t *testing.T, rules string) *netns.NS {
	t.Helper()
	iptables, err := exec.LookPath("iptables-restore")
	if err != nil {
		t.Skipf("no iptables-restore: %v", err)
	}
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no right to make a network namespace: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	err = ns.Do(func() error {
		link, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		addr, err := netlink.ParseAddr("10.0.0.1/24")
		if err != nil {
			return err
		}
		if err := errors.Join(netlink.AddrAdd(link, addr), netlink.LinkSetUp(link)); err != nil {
			return err
		}
		cmd := exec.Command(iptables)
		cmd.Stdin = strings.NewReader(rules)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("%s", out)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

const translate = `*nat
-A OUTPUT -p udp -d 10.0.0.9 --dport 80 -j DNAT --to-destination 10.0.0.1:81
COMMIT
`

// exchange sends a datagram to address and, if reply is true, answers it.
func exchange(t *testing.T, ns *netns.NS, address string, reply bool) (client netip.AddrPort) {
	t.Helper()
	var conn, server net.Conn
	err := ns.Do(func() error {
		s, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:81")))
		if err != nil {
			return err
		}
		server = s
		conn, err = net.Dial("udp4", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	defer conn.Close()
	deadline := time.Now().Add(10 * time.Second)
	if err := errors.Join(server.SetDeadline(deadline), conn.SetDeadline(deadline)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8)
	_, from, err := server.(*net.UDPConn).ReadFromUDPAddrPort(buf)
	if err != nil {
		t.Fatal(err)
	}
	if reply {
		if _, err := server.(*net.UDPConn).WriteToUDPAddrPort(buf[:1], from); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(buf); err != nil {
			t.Fatal(err)
		}
	}
	return from
}

func list(t *testing.T, ns *netns.NS) []Entry {
	t.Helper()
	entries, err := List(ns)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestListTellsTranslationAndReply(t *testing.T) {
	ns := node(t, translate)
	if entries := list(t, ns); len(entries) != 0 {
		t.Fatalf("a fresh namespace tracks %v", entries)
	}
	vip, server := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.1")
	for _, reply := range []bool{false, true} {
		client := exchange(t, ns, "10.0.0.9:80", reply)
		found := Select(list(t, ns), Tuple{Protocol: UDP, Destination: vip, DestinationPort: 80, SourcePort: client.Port()})
		if len(found) != 1 {
			t.Fatalf("want one entry from %s, got %v of %v", client, found, list(t, ns))
		}
		e := found[0]
		want := Tuple{Source: server, Destination: client.Addr(), SourcePort: 81, DestinationPort: client.Port(), Protocol: UDP}
		if e.Reply != want || e.Replied != reply {
			t.Errorf("replied to: %v, entry: %+v", reply, e)
		}
	}
}

func TestFlushEmptiesTheTable(t *testing.T) {
	ns, other := node(t, translate), node(t, translate)
	exchange(t, ns, "10.0.0.9:80", true)
	exchange(t, other, "10.0.0.9:80", true)
	if err := Flush(ns); err != nil {
		t.Fatal(err)
	}
	if entries := list(t, ns); len(entries) != 0 {
		t.Errorf("left after a flush: %v", entries)
	}
	if len(list(t, other)) == 0 {
		t.Error("a flush emptied the table of another namespace")
	}
}

func TestANodeWithoutRulesTracksNothing(t *testing.T) {
	ns := node(t, "*filter\nCOMMIT\n")
	exchange(t, ns, "10.0.0.1:81", true)
	if entries := list(t, ns); len(entries) != 0 {
		t.Errorf("tracked without a reason: %v", entries)
	}
}
