package awspolicy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Protocols of Ports. Any is for all of them.
const (
	ICMP = 1
	TCP  = 6
	UDP  = 17
	SCTP = 132
	Any  = 254
)

// Ports are the ports of a protocol from Start to End. Start 0 means all of them; End 0 means only Start.
type Ports struct {
	Protocol   uint8
	Start, End uint16
}

// mostPorts is the number of port entries that a prefix has room for.
const mostPorts = 24

// The values and the keys of the tables of states.
const (
	policiesApplied, defaultAllow    uint8  = 0, 1
	networkPolicies, clusterPolicies uint32 = 0, 1
)

// directions are the two programs of a pod. The packets that a pod sends are received by the device.
var directions = []struct {
	name, program string
	at            attach.Hook
}{{"ingress", "handle_ingress", attach.Egress}, {"egress", "handle_egress", attach.Ingress}}

// Agent has the programs and tables of one node. Its methods can be called concurrently.
type Agent struct {
	ns   *netns.NS
	coll *ebpf.Collection
	mu   sync.Mutex
	pods map[netip.Addr]pod
}

// pod is the node's end of a pod's device, with the programs on it.
type pod struct {
	index int
	links []io.Closer
}

// Load loads the programs of a node, for pods that no policy selects: all is allowed. The devices of pods are in ns.
func Load(ns *netns.NS) (*Agent, error) {
	spec, err := loadPrograms()
	if err != nil {
		return nil, err
	}
	a := &Agent{ns: ns, pods: map[netip.Addr]pod{}}
	if a.coll, err = attach.Load("network policy agent's", spec, ebpf.CollectionOptions{}); err != nil {
		return nil, err
	}
	err = a.SetSelected(false)
	for _, d := range directions {
		err = errors.Join(err, a.table(d.name, "state").Put(clusterPolicies, defaultAllow))
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Agent) table(direction, name string) *ebpf.Map { return a.coll.Maps[direction+"_"+name] }

// Attach attaches the programs to the node's end of a pod's device. The pod has the IPv4 address addr.
func (a *Agent) Attach(device string, addr netip.Addr) error {
	index, err := attach.Index(a.ns, device)
	if err != nil {
		return err
	}
	p := pod{index: index}
	for _, d := range directions {
		c, err := attach.Filter(a.ns, device, d.at, a.coll.Programs[d.program])
		if err != nil {
			return errors.Join(err, attach.CloseAll(p.links))
		}
		p.links = append(p.links, c)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods[addr] = p
	return nil
}

// SetSelected says whether policies select the pods. Those that they do not select may send and receive everything, unless
// Allow has an entry for the peer. Established connections are then judged again.
func (a *Agent) SetSelected(selected bool) error {
	state := defaultAllow
	if selected {
		state = policiesApplied
	}
	var errs []error
	for _, d := range directions {
		errs = append(errs, a.table(d.name, "state").Put(networkPolicies, state))
	}
	return errors.Join(errs...)
}

// Allow replaces what peers with a prefix may do, in both directions: connections to the ports, at most 24 entries. Without
// ports, the entry is removed. Of several prefixes the longest counts alone.
func (a *Agent) Allow(peers netip.Prefix, ports ...Ports) error {
	if !peers.Addr().Is4() || len(ports) > mostPorts {
		return fmt.Errorf("network policy agent: %s with %d entries of ports: want IPv4 and at most %d", peers, len(ports), mostPorts)
	}
	key := programsPrefix{Bits: uint32(peers.Bits()), Addr: addressWord(peers.Masked().Addr())}
	var value programsPortEntries
	for i, p := range ports {
		e := &value.Entry[i]
		e.Protocol, e.Start, e.End = uint32(p.Protocol), uint32(p.Start), uint32(p.End)
	}
	for _, d := range directions {
		var err error
		if len(ports) == 0 {
			err = attach.Absent(a.table(d.name, "peers").Delete(key))
		} else {
			err = a.table(d.name, "peers").Put(key, value)
		}
		if err != nil {
			return fmt.Errorf("network policy agent: %s of %s: %w", peers, d.name, err)
		}
	}
	return nil
}

// Connect adds count TCP connections to the table of connections, as the program of the receiving pod does. ends returns the
// two addresses of connection i. The second must be that of a pod. If the table is full, it forgets the oldest.
func (a *Agent) Connect(count int, ends func(i int) (from, to netip.AddrPort)) error {
	state := programsFlowState{States: policiesApplied<<4 | defaultAllow}
	for i := range count {
		from, to := ends(i)
		if err := a.coll.Maps["flows"].Put(a.flowOf(from, to, to.Addr()), state); err != nil {
			return fmt.Errorf("network policy agent: add connection %d: %w", i, err)
		}
	}
	return nil
}

// flowOf returns the key of a TCP connection in the table of connections, for the pod with the address owner.
func (a *Agent) flowOf(from, to netip.AddrPort, owner netip.Addr) programsFlow {
	a.mu.Lock()
	defer a.mu.Unlock()
	return programsFlow{
		Saddr: addressWord(from.Addr()), Sport: from.Port(), Daddr: addressWord(to.Addr()), Dport: to.Port(),
		Protocol: TCP, Owner: addressWord(owner), Ifindex: uint32(a.pods[owner].index),
	}
}

// LastSeen returns when the programs of the pod with the address owner last saw a packet of a TCP connection, in ns of the
// monotonic clock, or 0 if they do not know it. from is the end that connected.
func (a *Agent) LastSeen(from, to netip.AddrPort, owner netip.Addr) (int64, error) {
	var state programsFlowState
	err := attach.Absent(a.coll.Maps["flows"].Lookup(a.flowOf(from, to, owner), &state))
	return int64(state.LastSeen), err
}

// Close detaches and unloads the programs. Afterwards only Close may be called.
func (a *Agent) Close() error {
	var errs []error
	for _, p := range a.pods {
		errs = append(errs, attach.CloseAll(p.links))
	}
	a.pods = nil
	a.coll.Close()
	return errors.Join(errs...)
}

func addressWord(a netip.Addr) uint32 {
	b := a.As4()
	return binary.NativeEndian.Uint32(b[:])
}
