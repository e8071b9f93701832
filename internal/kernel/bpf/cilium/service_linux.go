package cilium

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// Flags of a frontend and the scopes, as in maps.h.
const (
	svcAffinity  = 1 << 0
	svcNodePort  = 1 << 1
	svcTwoScopes = 1 << 2
	svcDSR       = 1 << 3

	scopeExternal = 0
	scopeInternal = 1
)

// services remembers which frontends and backends the node's tables hold, and assigns their numbers.
type services struct {
	known  map[frontend]*service
	nextID uint16
	// free has the numbers of deleted frontends.
	free     []uint16
	backends map[backend]*backendRef
	nextBE   uint32
}

type frontend struct {
	addr  netip.AddrPort
	proto Proto
}

type backend = frontend

// backendRef is a backend in the kernel: its number, and how many slots of frontends use it.
type backendRef struct {
	id   uint32
	uses int
}

type service struct {
	id     uint16
	scopes [2][]netip.AddrPort // as programmed, by scope
}

// SetService creates or changes a frontend. New flows use the new backends at once. A flow whose backend is gone
// chooses another with its next packet.
func (n *Node) SetService(s Service) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := s.check(n.fam); err != nil {
		return fmt.Errorf("cilium dataplane: service %s: %w", s.Frontend, err)
	}
	if err := n.setService(s); err != nil {
		return fmt.Errorf("cilium dataplane: service %s: %w", s.Frontend, err)
	}
	return nil
}

func (s Service) check(fam *family) error {
	if s.Proto != TCP && s.Proto != UDP {
		return fmt.Errorf("protocol %d is neither TCP nor UDP", s.Proto)
	}
	for _, a := range slices.Concat([]netip.AddrPort{s.Frontend}, s.Backends, s.LocalBackends) {
		if !fam.has(a.Addr()) || a.Port() == 0 {
			return fmt.Errorf("%s is not an %s address with a port", a, fam)
		}
	}
	if s.Affinity < 0 || s.Affinity%time.Second != 0 {
		return fmt.Errorf("affinity of %v is not in whole seconds", s.Affinity)
	}
	return nil
}

func (n *Node) setService(s Service) error {
	f := frontend{s.Frontend, s.Proto}
	cur := n.services.known[f]
	if cur == nil {
		id, err := n.services.takeNumber()
		if err != nil {
			return err
		}
		cur = &service{id: id}
		n.services.known[f] = cur
		if err := n.table("cilium_lb%d_reverse_nat").Put(cur.id, lbFrontend(s.Frontend)); err != nil {
			return err
		}
	}
	old := cur.scopes
	next := [2][]netip.AddrPort{scopeExternal: s.Backends}
	if s.Local {
		next = [2][]netip.AddrPort{scopeExternal: s.LocalBackends, scopeInternal: s.Backends}
	}
	for _, list := range next {
		if err := n.holdBackends(list, s.Proto); err != nil {
			return err
		}
	}
	cur.scopes = next // it is released later, so it must be held
	if n.opts.Maglev && s.NodePort {
		if err := n.setMaglev(cur.id, next[scopeExternal], s.Proto); err != nil {
			return err
		}
	}
	for scope := range next {
		if scope == scopeInternal && !s.Local && old[scope] == nil {
			continue
		}
		if err := n.setScope(s, cur.id, scope, [2][]netip.AddrPort{old[scope], next[scope]}); err != nil {
			return err
		}
	}
	return n.releaseBackends(slices.Concat(old[0], old[1]), s.Proto)
}

// takeNumber returns an unused number for a frontend. It fails if all 65,535 are used.
func (s *services) takeNumber() (uint16, error) {
	if last := len(s.free) - 1; last >= 0 {
		id := s.free[last]
		s.free = s.free[:last]
		return id, nil
	}
	s.nextID++
	if s.nextID == 0 {
		s.nextID--
		return 0, errors.New("65,535 services are on this node, no number is left")
	}
	return s.nextID, nil
}

// DeleteService deletes a frontend, which must not have a Maglev table. New flows to it are not translated any more.
func (n *Node) DeleteService(at netip.AddrPort, proto Proto) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := frontend{at, proto}
	cur := n.services.known[f]
	if cur == nil {
		return fmt.Errorf("cilium dataplane: no service %s to delete", at)
	}
	delete(n.services.known, f)
	n.services.free = append(n.services.free, cur.id)
	m := n.table("cilium_lb%d_services")
	var errs []error
	for scope, list := range cur.scopes {
		for i := range len(list) + 1 { // the frontend before its slots
			errs = append(errs, attach.Absent(m.Delete(lbKey(at, proto, i, scope))))
		}
	}
	errs = append(errs, attach.Absent(n.table("cilium_lb%d_reverse_nat").Delete(cur.id)), n.releaseBackends(slices.Concat(cur.scopes[0], cur.scopes[1]), proto))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cilium dataplane: delete service %s: %w", at, err)
	}
	return nil
}

// setScope writes one scope of a frontend: first its slots, then the frontend with their number. Finally it deletes
// surplus slots. change has the old and the new backends.
func (n *Node) setScope(s Service, id uint16, scope int, change [2][]netip.AddrPort) error {
	m := n.table("cilium_lb%d_services")
	was, is := change[0], change[1]
	for i, b := range is {
		slot := hostLbService{BackendId: n.services.backends[backend{b, s.Proto}].id, RevNat: id}
		if err := m.Put(lbKey(s.Frontend, s.Proto, i+1, scope), slot); err != nil {
			return err
		}
	}
	front := hostLbService{Count: uint16(len(is)), RevNat: id, BackendId: uint32(s.Affinity / time.Second)}
	for bit, on := range map[uint8]bool{
		svcAffinity: s.Affinity > 0, svcNodePort: s.NodePort, svcTwoScopes: s.Local,
		svcDSR: n.opts.NodePort == NodePortDSR,
	} {
		if on {
			front.Flags |= bit
		}
	}
	if err := m.Put(lbKey(s.Frontend, s.Proto, 0, scope), front); err != nil {
		return err
	}
	for i := len(is); i < len(was); i++ {
		if err := m.Delete(lbKey(s.Frontend, s.Proto, i+1, scope)); err != nil {
			return err
		}
	}
	return nil
}

// holdBackends adds one reference to each backend of list. It writes a backend that had no reference to the kernel's
// map. It stops at the first error.
func (n *Node) holdBackends(list []netip.AddrPort, proto Proto) error {
	for _, b := range list {
		ref := n.services.backends[backend{b, proto}]
		if ref == nil {
			n.services.nextBE++
			ref = &backendRef{id: n.services.nextBE}
			if err := n.table("cilium_lb%d_backends").Put(ref.id, lbBackend(b, proto)); err != nil {
				return err
			}
			n.services.backends[backend{b, proto}] = ref
		}
		ref.uses++
	}
	return nil
}

// releaseBackends drops one reference to each backend of list. It deletes the backends that no service uses any more.
func (n *Node) releaseBackends(list []netip.AddrPort, proto Proto) error {
	for _, b := range list {
		ref := n.services.backends[backend{b, proto}]
		if ref.uses--; ref.uses > 0 {
			continue
		}
		delete(n.services.backends, backend{b, proto})
		if err := n.table("cilium_lb%d_backends").Delete(ref.id); err != nil {
			return err
		}
	}
	return nil
}

// setMaglev replaces the Maglev table of service id, or deletes it if list is empty.
func (n *Node) setMaglev(id uint16, list []netip.AddrPort, proto Proto) error {
	outer := n.table("cilium_lb%d_maglev")
	table := maglevTable(list)
	if table == nil {
		return attach.Absent(outer.Delete(id))
	}
	ids := make([]uint32, maglevSize)
	for slot, i := range table {
		ids[slot] = n.services.backends[backend{list[i], proto}].id
	}
	inner, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: maglevSize * 4, MaxEntries: 1})
	if err != nil {
		return fmt.Errorf("maglev table: %w", err)
	}
	defer inner.Close()
	if err := inner.Put(uint32(0), ids); err != nil {
		return fmt.Errorf("maglev table: %w", err)
	}
	return outer.Put(id, inner)
}

// table returns the node's table of this name, in which %d becomes 4 or 6.
func (n *Node) table(name string) *ebpf.Map { return n.host.Maps[n.fam.tableName(name)] }
