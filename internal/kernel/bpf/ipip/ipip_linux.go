package ipip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Options describe one node's end of the tunnels. The devices must exist in NS before Load.
type Options struct {
	NS *netns.NS
	// NodeIP is the outer source address, and the only outer destination that is accepted.
	NodeIP netip.Addr
	// Wire is the node's network device, Tunnel the device that represents tunl0.
	Wire, Tunnel string
}

// Tunnel is a node's end of the tunnels, loaded and attached.
type Tunnel struct {
	coll  *ebpf.Collection
	links []io.Closer
}

// outcomes has the names of the programs' counters, in their order. Those from the third on count dropped packets.
var outcomes = []string{"encapsulated", "decapsulated", "malformed", "behind no node", "could not be rewritten"}

// Load loads the programs and attaches them: at the egress of Tunnel and at the ingress of Wire. It fails without NS,
// and if NodeIP is not IPv4.
func Load(o Options) (*Tunnel, error) {
	if o.NS == nil || !o.NodeIP.Is4() {
		return nil, fmt.Errorf("ipip stand-in: node address %q is not IPv4, or the namespace is missing", o.NodeIP)
	}
	t := &Tunnel{}
	if err := t.loadAndAttach(o); err != nil {
		return nil, errors.Join(fmt.Errorf("ipip stand-in: %w", err), t.Close())
	}
	return t, nil
}

func (t *Tunnel) loadAndAttach(o Options) error {
	wire, err := attach.Interface(o.NS, o.Wire)
	if err != nil {
		return err
	}
	tunnel, err := attach.Interface(o.NS, o.Tunnel)
	if err != nil {
		return err
	}
	c := programsTunnelConfig{NodeIp: addressWord(o.NodeIP), Wire: uint32(wire.Index), Tunnel: uint32(tunnel.Index)}
	copy(c.TunnelMac.Addr[:], tunnel.HardwareAddr)
	spec, err := loadPrograms()
	if err != nil {
		return err
	}
	if err := spec.Variables["config"].Set(c); err != nil {
		return err
	}
	if t.coll, err = attach.Load("ipip", spec, ebpf.CollectionOptions{}); err != nil {
		return err
	}
	t.links, err = attach.Devices(o.NS, t.coll,
		attach.Place{Device: o.Tunnel, Hook: attach.Egress, Program: "encap"},
		attach.Place{Device: o.Wire, Hook: attach.Ingress, Program: "decap"})
	return err
}

// SetPeer sends the packets for a prefix through the tunnel to a node. The longest prefix wins.
func (t *Tunnel) SetPeer(prefix netip.Prefix, node netip.Addr) error {
	if !prefix.Addr().Is4() || !node.Is4() {
		return fmt.Errorf("ipip stand-in: peer %s behind %s: not IPv4", prefix, node)
	}
	key := programsPeerKey{Prefixlen: uint32(prefix.Bits()), Addr: addressWord(prefix.Masked().Addr())}
	if err := t.coll.Maps["ipip_peers"].Put(key, addressWord(node)); err != nil {
		return fmt.Errorf("ipip stand-in: peer %s behind %s: %w", prefix, node, err)
	}
	return nil
}

// Counters returns what the programs counted since Load, summed over CPUs.
func (t *Tunnel) Counters() ([]attach.Counter, error) {
	list := make([]attach.Counter, len(outcomes))
	for i, name := range outcomes {
		var perCPU []uint64
		if err := t.coll.Maps["ipip_counters"].Lookup(uint32(i), &perCPU); err != nil {
			return nil, fmt.Errorf("ipip stand-in: counters: %w", err)
		}
		list[i] = attach.Counter{Outcome: name, Drop: i > 1}
		for _, n := range perCPU {
			list[i].Packets += n
		}
	}
	return list, nil
}

// Close detaches and unloads the programs.
func (t *Tunnel) Close() error {
	err := attach.CloseAll(t.links)
	t.links = nil
	if t.coll != nil {
		t.coll.Close()
	}
	return err
}

func addressWord(a netip.Addr) uint32 {
	b := a.As4()
	return binary.NativeEndian.Uint32(b[:])
}
