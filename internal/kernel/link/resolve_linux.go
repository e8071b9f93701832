package link

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Resolver makes the kernel resolve the link-layer addresses of next hops in a namespace, as a first packet would do. It
// is not for concurrent use.
type Resolver struct {
	handle *Handle
	events *nl.NetlinkSocket
}

// NewResolver opens a resolver inside ns. Close it after use.
func NewResolver(ns *netns.NS) (*Resolver, error) {
	h, err := Open(ns)
	if err != nil {
		return nil, err
	}
	r := &Resolver{handle: h}
	err = ns.Do(func() (err error) {
		r.events, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_NEIGH)
		return err
	})
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("listen for neighbours: %w", err)
	}
	return r, nil
}

// Close closes the sockets. Closing a nil resolver does nothing.
func (r *Resolver) Close() {
	if r != nil {
		r.events.Close()
		r.handle.Close()
	}
}

// ErrUnresolved is the error of a next hop that does not answer. It wraps EHOSTUNREACH.
var ErrUnresolved = fmt.Errorf("next hop does not answer: %w", unix.EHOSTUNREACH)

// usable are the states of a neighbour to which the kernel sends packets without waiting for address resolution.
const usable = netlink.NUD_REACHABLE | netlink.NUD_PERMANENT | netlink.NUD_NOARP | netlink.NUD_STALE | netlink.NUD_DELAY | netlink.NUD_PROBE

// Resolve waits until the link-layer address of the next hop to an address is known. It fails if there is no route,
// with ErrUnresolved if the next hop does not answer, and with ETIMEDOUT after limit.
func (r *Resolver) Resolve(to netip.Addr, limit time.Duration) error {
	routes, err := r.handle.nl.RouteGet(netIP(to))
	if err != nil || len(routes) == 0 {
		return fmt.Errorf("find the route to %s: %w", to, errors.Join(err, routeError(routes)))
	}
	hop := routes[0].Gw
	if hop == nil {
		hop = netIP(to)
	}
	next, _ := netip.AddrFromSlice(hop)
	n := neighbour{device: routes[0].LinkIndex, addr: next.Unmap()}
	end := time.Now().Add(limit)
	// The kernel may resolve it before the request ends. Otherwise the state is requested once, and events follow.
	for _, request := range []*nl.NetlinkRequest{n.newResolveRequest(), n.newStateRequest()} {
		done, err := r.sendAndAwaitAnswer(n, request, end)
		if done || err != nil {
			return err
		}
	}
	for {
		done, _, err := r.receiveMessages(n, end)
		if done || err != nil {
			return err
		}
	}
}

// routeError returns ENETUNREACH if routes is empty, else nil.
func routeError(routes []netlink.Route) error {
	if len(routes) == 0 {
		return unix.ENETUNREACH
	}
	return nil
}

// sendAndAwaitAnswer sends a request, and reads messages until the answer arrives. It returns early with done true if a
// message says that n has a usable state.
func (r *Resolver) sendAndAwaitAnswer(n neighbour, request *nl.NetlinkRequest, end time.Time) (done bool, err error) {
	if err := r.events.Send(request); err != nil {
		return false, os.NewSyscallError("send", err)
	}
	for {
		done, answered, err := r.receiveMessages(n, end)
		if done || answered || err != nil {
			return done, err
		}
	}
}

// receiveMessages reads one batch of messages, if one arrives before end. done means that n has a usable state.
// answered means that the request was answered. It fails after end, or if the request or the resolution of n failed.
func (r *Resolver) receiveMessages(n neighbour, end time.Time) (done, answered bool, err error) {
	left := time.Until(end)
	if left <= 0 {
		return false, false, fmt.Errorf("resolve %s: %w", n.addr, unix.ETIMEDOUT)
	}
	wait := unix.NsecToTimeval(int64(left))
	if err := r.events.SetReceiveTimeout(&wait); err != nil {
		return false, false, err
	}
	messages, _, err := r.events.Receive()
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return false, false, nil
	}
	if err != nil {
		return false, false, fmt.Errorf("listen for neighbours: %w", err)
	}
	for _, m := range messages {
		switch m.Header.Type {
		case unix.NLMSG_ERROR:
			answered = true
			if code := int32(nl.NativeEndian().Uint32(m.Data)); code != 0 {
				return false, true, fmt.Errorf("resolve %s: %w", n.addr, unix.Errno(-code))
			}
		case unix.RTM_NEWNEIGH:
			state := n.reportedState(m.Data)
			if state == netlink.NUD_FAILED {
				return false, true, fmt.Errorf("%s: %w", n.addr, ErrUnresolved)
			}
			done = done || state&usable != 0
		}
	}
	return done, answered, nil
}

// neighbour is a next hop on a device, given by its index.
type neighbour struct {
	device int
	addr   netip.Addr
}

// newResolveRequest returns a request that makes the kernel resolve the neighbour as if a packet were sent to it.
func (n neighbour) newResolveRequest() *nl.NetlinkRequest {
	request := nl.NewNetlinkRequest(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE|unix.NLM_F_ACK)
	return n.addTo(request, netlink.NTF_USE)
}

// newStateRequest returns a request for the state of the neighbour.
func (n neighbour) newStateRequest() *nl.NetlinkRequest {
	return n.addTo(nl.NewNetlinkRequest(unix.RTM_GETNEIGH, unix.NLM_F_ACK), 0)
}

// addTo adds the neighbour to a request, and returns the request.
func (n neighbour) addTo(request *nl.NetlinkRequest, flags uint8) *nl.NetlinkRequest {
	request.AddData(&netlink.Ndmsg{Family: uint8(familyOf(n.addr)), Index: uint32(n.device), Flags: flags})
	request.AddData(nl.NewRtAttr(netlink.NDA_DST, n.addr.AsSlice()))
	return request
}

// reportedState returns the state of n that a message reports, 0 if it is about another neighbour.
func (n neighbour) reportedState(data []byte) int {
	m, err := netlink.NeighDeserialize(data)
	if err != nil || m.LinkIndex != n.device {
		return 0
	}
	if a, _ := netip.AddrFromSlice(m.IP); a.Unmap() != n.addr {
		return 0
	}
	return m.State
}

func familyOf(a netip.Addr) int {
	if a.Is6() {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// ForgetNeighbour removes the learned entries of a neighbour on all devices of the namespace. Permanent entries stay.
func (h *Handle) ForgetNeighbour(a netip.Addr) error {
	list, err := h.nl.NeighList(0, familyOf(a))
	if err != nil {
		return fmt.Errorf("list neighbours: %w", err)
	}
	for _, n := range list {
		if have, _ := netip.AddrFromSlice(n.IP); have.Unmap() != a || n.State == netlink.NUD_PERMANENT {
			continue
		}
		if err := h.nl.NeighDel(&n); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("forget neighbour %s: %w", a, err)
		}
	}
	return nil
}
