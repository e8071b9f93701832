package cilium

import (
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/cilium/ebpf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// pod is the kernel state of one endpoint. calls must stay open: the kernel empties a table of tail calls when its
// last descriptor is closed.
type pod struct {
	Endpoint
	link   io.Closer
	policy *ebpf.Map
	calls  *ebpf.Map
}

func (p *pod) close() error {
	var err error
	if p.link != nil {
		err = p.link.Close()
	}
	return errors.Join(err, p.policy.Close(), p.calls.Close())
}

// AddEndpoint loads the programs of a pod, attaches them to the host's end of its pair of devices, and adds its
// address to the tables. The policy is AllowAll until SetPolicy. Different pods may be added concurrently; call no
// other method for a pod before its AddEndpoint has returned.
func (n *Node) AddEndpoint(e Endpoint) error {
	if err := e.check(n.fam, n.opts.Legacy); err != nil {
		return fmt.Errorf("cilium dataplane: endpoint %d: %w", e.ID, err)
	}
	p := &pod{Endpoint: e}
	n.mu.Lock()
	taken := n.endpoints[e.ID] != nil
	if !taken {
		n.endpoints[e.ID] = p
	}
	n.mu.Unlock()
	if taken {
		return fmt.Errorf("cilium dataplane: endpoint %d is there already", e.ID)
	}
	// Not under the lock, so that pods of a node can be added concurrently.
	if err := n.addEndpoint(p); err != nil {
		n.mu.Lock()
		delete(n.endpoints, e.ID)
		n.mu.Unlock()
		return errors.Join(fmt.Errorf("cilium dataplane: endpoint %d (%s): %w", e.ID, e.IP, err), p.close())
	}
	return nil
}

func (e Endpoint) check(fam *family, legacy bool) error {
	switch {
	case e.ID == 0 || e.ID == 65535:
		return errors.New("ID is out of 1 to 65534")
	case !fam.has(e.IP):
		return fmt.Errorf("address %s is not %s, as the node's is", e.IP, fam)
	case len(e.MAC) != 6:
		return fmt.Errorf("MAC %q is not six bytes", e.MAC)
	case e.Netkit && legacy:
		return errors.New("a netkit device needs eBPF host routing, and the node has Legacy")
	case e.Identity == Any || e.Identity >= 1<<24:
		return fmt.Errorf("identity %d is out of 1 to 16777215", e.Identity)
	}
	return nil
}

func (n *Node) addEndpoint(p *pod) error {
	e := p.Endpoint
	dev, err := attach.Interface(n.opts.NS, e.Device)
	if err != nil {
		return err
	}
	spec := n.lxc.Copy()
	table := spec.Maps["cilium_policy"]
	table.MaxEntries = max(table.MaxEntries, uint32(n.opts.Sizes.Policy))
	self := lxcEndpointConfig{Ip: addressWords(e.IP), Identity: uint32(e.Identity), Ifindex: uint32(dev.Index), Id: e.ID}
	self.Netkit = flagByte(e.Netkit)
	copy(self.HostMac.Addr[:], dev.HardwareAddr)
	if err := errors.Join(spec.Variables["self"].Set(self), spec.Variables["node"].Set(n.config)); err != nil {
		return err
	}
	n.removeUnusedEncryption(spec)
	coll, err := attach.Load("cilium endpoint", spec, n.loadOptions(spec))
	if err != nil {
		return err
	}
	defer coll.Close()
	if err := fillCallTable(coll, lxcCalls); err != nil {
		return err
	}
	p.policy, p.calls = coll.DetachMap("cilium_policy"), coll.DetachMap("cilium_calls")
	if err := p.setPolicy(AllowAll()); err != nil {
		return err
	}
	if err := n.host.Maps["cilium_call_policy"].Put(uint32(e.ID), coll.Programs["policy"]); err != nil {
		return err
	}
	info := hostEndpointInfo{Ifindex: uint32(dev.Index), Id: e.ID, Identity: uint32(e.Identity)}
	copy(info.Mac.Addr[:], e.MAC)
	copy(info.NodeMac.Addr[:], dev.HardwareAddr)
	if err := n.host.Maps["cilium_lxc"].Put(n.fam.endpointKey(e.IP), info); err != nil {
		return err
	}
	if err := n.SetIPCache(n.fam.hostPrefix(e.IP), e.Identity, netip.Addr{}); err != nil {
		return err
	}
	hook := attach.Ingress
	if e.Netkit {
		hook = attach.Peer
	}
	p.link, err = attach.Device(n.opts.NS, e.Device, hook, coll.Programs[n.programVariant("from_container")])
	return err
}

// RemoveEndpoint detaches the programs of a pod from its device, and removes its address from the tables.
func (n *Node) RemoveEndpoint(id uint16) error {
	n.mu.Lock()
	p := n.endpoints[id]
	delete(n.endpoints, id)
	n.mu.Unlock()
	if p == nil {
		return fmt.Errorf("cilium dataplane: no endpoint %d to remove", id)
	}
	err := errors.Join(
		p.close(),
		attach.Absent(n.host.Maps["cilium_call_policy"].Delete(uint32(id))),
		attach.Absent(n.host.Maps["cilium_lxc"].Delete(n.fam.endpointKey(p.IP))),
		n.DeleteIPCache(n.fam.hostPrefix(p.IP)),
	)
	if err != nil {
		return fmt.Errorf("cilium dataplane: remove endpoint %d: %w", id, err)
	}
	return nil
}

// SetPolicy replaces the policy of an endpoint. The new policy applies to packets of established flows too, except
// replies. It fails for more rules than the policy table holds (Sizes.Policy).
func (n *Node) SetPolicy(id uint16, rules []Rule) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.endpoints[id]
	if p == nil {
		return fmt.Errorf("cilium dataplane: no endpoint %d to set a policy for", id)
	}
	if err := p.setPolicy(rules); err != nil {
		return fmt.Errorf("cilium dataplane: policy of endpoint %d: %w", id, err)
	}
	return nil
}

// SetRule adds a rule to the policy of an endpoint if in is true, else removes it. The change applies to packets of
// established flows too.
func (n *Node) SetRule(id uint16, r Rule, in bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.endpoints[id]
	if p == nil {
		return fmt.Errorf("cilium dataplane: no endpoint %d to set a rule for", id)
	}
	k, e, err := r.policyEntry()
	if err == nil && in {
		err = p.policy.Put(k, e)
	} else if err == nil {
		err = attach.Absent(p.policy.Delete(k))
	}
	if err != nil {
		return fmt.Errorf("cilium dataplane: rule of endpoint %d: %w", id, err)
	}
	return nil
}

func (p *pod) setPolicy(rules []Rule) error {
	want := map[lxcPolicyKey]lxcPolicyEntry{}
	for _, r := range rules {
		k, e, err := r.policyEntry()
		if err != nil {
			return err
		}
		want[k] = e
	}
	var stale []lxcPolicyKey
	var k lxcPolicyKey
	var e lxcPolicyEntry
	for it := p.policy.Iterate(); it.Next(&k, &e); {
		if _, ok := want[k]; !ok {
			stale = append(stale, k)
		}
	}
	// New before old, so that traffic that both allow is never denied in between.
	for k, e := range want {
		if err := p.policy.Put(k, e); err != nil {
			return fmt.Errorf("%d rules: %w", len(want), err)
		}
	}
	for _, k := range stale {
		if err := attach.Absent(p.policy.Delete(k)); err != nil {
			return err
		}
	}
	return nil
}

// policyEntry returns the key and value of the rule in the policy table; policy.h describes the key. It fails for a port
// without a protocol.
func (r Rule) policyEntry() (lxcPolicyKey, lxcPolicyEntry, error) {
	const static = 40
	if r.Port != 0 && r.Proto == AnyProto {
		return lxcPolicyKey{}, lxcPolicyEntry{}, fmt.Errorf("rule for port %d names no protocol", r.Port)
	}
	bits := 0
	switch {
	case r.Port != 0:
		bits = 24
	case r.Proto != AnyProto:
		bits = 8
	}
	k := lxcPolicyKey{
		Prefixlen: static + uint32(bits), Identity: uint32(r.Identity), Egress: flagByte(r.Egress), Proto: uint8(r.Proto),
		Dport: bigEndianPort(r.Port),
	}
	return k, lxcPolicyEntry{Deny: flagByte(r.Deny), Prefixlen: uint8(bits), Precedence: r.Precedence}, nil
}
