package cilium

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/link"
)

// TestSealed has a pipe between the nodes where WireGuard would be: what pods of different nodes send each other takes it,
// as IPv4 packets or within a tunnel's, and nothing of it is on the wire. What a node sends itself, and what a pod sends to
// a node, does not take it natively.
func TestSealed(t *testing.T) {
	for _, m := range modes {
		var o Options
		m.change(&o)
		if o.Legacy || o.PacketLB {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			w := newWorld(t, numberings[0], func(o *Options) { m.change(o); o.Encryption.WireGuard, o.NodePort = "cilium_wg0", NodePortSNAT })
			for _, p := range w.pods {
				bpftest.Serve(t, p.NS, w.wildcard(7000))
			}
			bpftest.Serve(t, w.nodes[1].NS, netip.AddrPortFrom(w.nodes[1].IP, 7000))
			defer w.explain(t)
			wire := open(t, w.nodes[0], "eth0")
			w.exchange(t, 0, 2)
			w.exchange(t, 2, 1)
			if frames := drain(t, wire); w.outgoing(frames) != 0 || len(frames) > 10 {
				t.Errorf("%d frames, %d of pods, on the wire, want none but ARP's", len(frames), w.outgoing(frames))
			}
			sealed := w.decrypted(t)
			if o.Overlay == "" && sealed < 8 {
				t.Errorf("%d packets were decrypted", sealed)
			}
			w.exchange(t, 0, 1)
			for _, network := range w.networks {
				for at, from := range map[netip.Addr]netip.Addr{w.pods[2].IP: w.nodes[0].IP, w.nodes[1].IP: w.pods[0].IP} {
					ns := w.nodes[0].NS
					if from == w.pods[0].IP {
						ns = w.pods[0].NS
					}
					if _, err := bpftest.Exchange(ns, network, netip.AddrPortFrom(at, 7000), 2000); err != nil {
						t.Errorf("%s to %s: %v", network, at, err)
					}
				}
			}
			if now := w.decrypted(t); now != sealed {
				t.Errorf("%d more packets were decrypted, of a node and of pods of one node", now-sealed)
			}
			w.noDrops(t)
		})
	}
}

// TestSealedInIPv4: what cannot be encrypted is refused.
func TestSealedInIPv4(t *testing.T) {
	err := (Options{NodeIP: netip.MustParseAddr("fd00::1"), Encryption: Encryption{WireGuard: "cilium_wg0"}}).check()
	if err == nil || !strings.Contains(err.Error(), "encrypted in IPv4") {
		t.Error(err)
	}
}

// TestIPsec: packets between pods of different nodes are led back into the stack, and nothing else is; what is encrypted
// goes up the stack if it is from a known node.
func TestIPsec(t *testing.T) {
	b := newBench(t, numberings[0], func(o *Options) { o.Legacy = false })
	b.opts.Encryption.IPsec = 3
	if err := errors.Join(b.loadEncryption(), b.SetNode(b.peer, 2), b.SetIPCache(b.fam.hostPrefix(b.remote), 1003, b.peer),
		b.SetIPCache(b.fam.hostPrefix(b.podA), identities[0], netip.Addr{})); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		program, from, to string
		protocol          uint8
		want              uint32
	}{
		"pod to pod":           {"to_netdev_ipsec", b.podA.String(), b.remote.String(), 6, redirect},
		"node to pod":          {"to_netdev_ipsec", b.own.String(), b.remote.String(), 6, pass},
		"pod to the world":     {"to_netdev_ipsec", b.podA.String(), b.client.String(), 6, pass},
		"ESP of a node":        {"from_netdev_ipsec", b.peer.String(), b.own.String(), 50, pass},
		"ESP of somebody else": {"from_netdev_ipsec", b.client.String(), b.own.String(), 50, shot},
		"a request to a node":  {"from_netdev_ipsec", b.client.String(), b.own.String(), 6, pass},
	} {
		p := bpftest.Packet{Src: c.from, Dst: c.to, Proto: c.protocol, SrcPort: 4000, DstPort: 80, Flags: bpftest.SYN, Payload: 20}
		if got, _ := bpftest.Run(t, b.host.Programs[c.program], p.Bytes()); got != c.want {
			t.Errorf("%s: verdict %d, want %d", name, got, c.want)
		}
	}
}

// decrypted is the number of packets that came out of the second node's device.
func (w *world) decrypted(t *testing.T) (n uint64) {
	t.Helper()
	list, err := w.planes[1].Counters()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Outcome == "decrypting" {
			n += c.Packets
		}
	}
	return n
}

// join makes a TUN device on each node, and carries the packets of one to the other.
func (w *world) join(t *testing.T, name string) {
	t.Helper()
	var ends [2]*os.File
	for i, n := range w.nodes {
		bpftest.In(t, n.NS, func() (err error) {
			ends[i], err = tun(name)
			if err == nil {
				err = bpftest.Sysctl("net/ipv4/conf/"+name+"/rp_filter", "0")
			}
			return err
		})
		h, err := link.Open(n.NS)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Up(name); err != nil {
			t.Fatal(err)
		}
		h.Close()
	}
	for i := range ends {
		go func() {
			packet := make([]byte, 65536)
			for {
				n, err := ends[i].Read(packet)
				if err != nil {
					return // it was closed
				}
				_, _ = ends[1-i].Write(packet[:n])
			}
		}()
		t.Cleanup(func() { _ = ends[i].Close() })
	}
}

func tun(name string) (*os.File, error) {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
