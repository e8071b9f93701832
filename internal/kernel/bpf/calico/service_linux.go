package calico

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

const (
	feAffinity  = 1 << 0
	feLocalOnly = 1 << 1
)

type frontend struct {
	addr  netip.AddrPort
	proto Proto
}

type service struct {
	id    uint32
	count int
}

// SetService creates or changes a frontend. New flows use the new backends; established flows keep theirs.
func (n *Node) SetService(s Service) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := s.check(n.family); err != nil {
		return fmt.Errorf("calico dataplane: service %s: %w", s.Frontend, err)
	}
	f := frontend{s.Frontend, s.Proto}
	cur := n.services[f]
	if cur == nil {
		n.nextID++
		cur = &service{id: n.nextID}
		n.services[f] = cur
	}
	if err := n.writeService(s, cur); err != nil {
		return fmt.Errorf("calico dataplane: service %s: %w", s.Frontend, err)
	}
	return nil
}

func (s Service) check(f *family) error {
	if s.Proto != TCP && s.Proto != UDP {
		return fmt.Errorf("protocol %d is neither TCP nor UDP", s.Proto)
	}
	for _, a := range slices.Concat([]netip.AddrPort{s.Frontend}, s.Local, s.Remote) {
		if !f.has(a.Addr()) || a.Port() == 0 {
			return fmt.Errorf("%s is not an %s address with a port", a, f.name)
		}
	}
	if s.Affinity < 0 || s.Affinity%time.Second != 0 {
		return fmt.Errorf("affinity of %v is not in whole seconds", s.Affinity)
	}
	return nil
}

// writeService writes the backends, and then the frontend with their number. Then it deletes surplus backends and the
// affinity of clients to them.
func (n *Node) writeService(s Service, cur *service) error {
	be := n.table("nat_be")
	all := slices.Concat(s.Local, s.Remote)
	for i, b := range all {
		if err := be.Put(backendKey(cur.id, i), backendValue(b)); err != nil {
			return err
		}
	}
	flags := uint32(0)
	if s.Affinity > 0 {
		flags |= feAffinity
	}
	if s.LocalOnly {
		flags |= feLocalOnly
	}
	// struct nat_fe_value
	v := new(encoder).u32(cur.id, uint32(len(all)), uint32(len(s.Local)), uint32(s.Affinity/time.Second), flags).bytes
	if err := n.table("nat_fe").Put(n.family.frontendKey(s.Frontend, s.Proto), v); err != nil {
		return err
	}
	for i := len(all); i < cur.count; i++ {
		if err := attach.Absent(be.Delete(backendKey(cur.id, i))); err != nil {
			return err
		}
	}
	fresh := cur.count == 0 // no client has used it
	cur.count = len(all)
	if fresh {
		return nil
	}
	return n.forgetAffinity(cur.id, all)
}

// DeleteService deletes a frontend. New flows are not translated any more.
func (n *Node) DeleteService(at netip.AddrPort, proto Proto) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := frontend{at, proto}
	cur := n.services[f]
	if cur == nil {
		return fmt.Errorf("calico dataplane: no service %s to delete", at)
	}
	delete(n.services, f)
	errs := []error{attach.Absent(n.table("nat_fe").Delete(n.family.frontendKey(at, proto)))}
	for i := range cur.count {
		errs = append(errs, attach.Absent(n.table("nat_be").Delete(backendKey(cur.id, i))))
	}
	if err := errors.Join(append(errs, n.forgetAffinity(cur.id, nil))...); err != nil {
		return fmt.Errorf("calico dataplane: delete service %s: %w", at, err)
	}
	return nil
}

// forgetAffinity ends the affinity of clients of a service to backends that are not in keep.
func (n *Node) forgetAffinity(id uint32, keep []netip.AddrPort) error {
	have := map[string]bool{}
	for _, b := range keep {
		have[string(backendValue(b))] = true
	}
	var stale [][]byte
	m := n.table("nat_aff")
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	it := m.Iterate()
	for it.Next(&key, &value) {
		if n.family.affinityID(key) == id && !have[n.family.affinityBackend(value)] {
			stale = append(stale, slices.Clone(key))
		}
	}
	errs := []error{it.Err()}
	for _, k := range stale {
		errs = append(errs, attach.Absent(m.Delete(k)))
	}
	return errors.Join(errs...)
}
