package calico

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// natAnySource is the prefix of a frontend for clients anywhere, in bits of nat_fe_key.
const natAnySource = 64

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

// SetService makes a frontend, or changes it. New flows see the change; open ones stay with their backend.
func (n *Node) SetService(s Service) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := s.check(); err != nil {
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

func (s Service) check() error {
	if s.Proto != TCP && s.Proto != UDP {
		return fmt.Errorf("protocol %d is neither TCP nor UDP", s.Proto)
	}
	for _, a := range slices.Concat([]netip.AddrPort{s.Frontend}, s.Local, s.Remote) {
		if !a.Addr().Is4() || a.Port() == 0 {
			return fmt.Errorf("%s is not an IPv4 address with a port", a)
		}
	}
	if s.Affinity < 0 || s.Affinity%time.Second != 0 {
		return fmt.Errorf("affinity of %v is not in whole seconds", s.Affinity)
	}
	return nil
}

// writeService writes backends before the frontend that counts them, and deletes those that it no longer counts last.
func (n *Node) writeService(s Service, cur *service) error {
	be := n.mains.Maps["cali_v4_nat_be"]
	all := slices.Concat(s.Local, s.Remote)
	for i, b := range all {
		v := mainsNatBeValue{Addr: be32(b.Addr()), Port: be16(b.Port())}
		if err := be.Put(mainsNatBeKey{Id: cur.id, Ordinal: uint32(i)}, v); err != nil {
			return err
		}
	}
	v := mainsNatFeValue{
		Id: cur.id, Count: uint32(len(all)), Local: uint32(len(s.Local)), Affinity: uint32(s.Affinity / time.Second),
	}
	if s.Affinity > 0 {
		v.Flags |= feAffinity
	}
	if s.LocalOnly {
		v.Flags |= feLocalOnly
	}
	if err := n.mains.Maps["cali_v4_nat_fe"].Put(natKey(s.Frontend, s.Proto), v); err != nil {
		return err
	}
	for i := len(all); i < cur.count; i++ {
		if err := gone(be.Delete(mainsNatBeKey{Id: cur.id, Ordinal: uint32(i)})); err != nil {
			return err
		}
	}
	cur.count = len(all)
	return n.forget(cur.id, all)
}

// forget ends the affinity of clients to backends that a service has no more.
func (n *Node) forget(id uint32, keep []netip.AddrPort) error {
	have := map[mainsNatBeValue]bool{}
	for _, b := range keep {
		have[mainsNatBeValue{Addr: be32(b.Addr()), Port: be16(b.Port())}] = true
	}
	var stale []mainsNatAffKey
	var k mainsNatAffKey
	var v mainsNatAffValue
	m := n.mains.Maps["cali_v4_nat_aff"]
	it := m.Iterate()
	for it.Next(&k, &v) {
		if k.Id == id && !have[mainsNatBeValue{Addr: v.Addr, Port: v.Port}] {
			stale = append(stale, k)
		}
	}
	errs := []error{it.Err()}
	for _, k := range stale {
		errs = append(errs, gone(m.Delete(k)))
	}
	return errors.Join(errs...)
}

// DeleteService takes a frontend away. One that is not there is no error.
func (n *Node) DeleteService(front netip.AddrPort, proto Proto) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	cur := n.services[frontend{front, proto}]
	if cur == nil {
		return nil
	}
	delete(n.services, frontend{front, proto})
	errs := []error{gone(n.mains.Maps["cali_v4_nat_fe"].Delete(natKey(front, proto))), n.forget(cur.id, nil)}
	for i := range cur.count {
		errs = append(errs, gone(n.mains.Maps["cali_v4_nat_be"].Delete(mainsNatBeKey{Id: cur.id, Ordinal: uint32(i)})))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("calico dataplane: delete service %s: %w", front, err)
	}
	return nil
}

func natKey(a netip.AddrPort, proto Proto) mainsNatFeKey {
	return mainsNatFeKey{Prefixlen: natAnySource, Addr: be32(a.Addr()), Port: be16(a.Port()), Proto: uint8(proto)}
}
