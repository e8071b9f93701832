package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Loopback is the name of the device that every namespace is born with.
const Loopback = "lo"

// Handle is a netlink socket inside a namespace. It is not for concurrent use; Close it when the devices are made.
type Handle struct {
	ns *netns.NS
	nl *netlink.Handle
	// index remembers what was made here, so that building does not ask the kernel again and again.
	index map[string]int
}

// Open opens a handle inside ns, which must outlive it.
func Open(ns *netns.NS) (*Handle, error) {
	h := &Handle{ns: ns, index: map[string]int{}}
	err := ns.Do(func() (err error) {
		h.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open netlink in namespace: %w", err)
	}
	return h, nil
}

// NS is the namespace that the handle is in.
func (h *Handle) NS() *netns.NS { return h.ns }

// Close closes the socket; what was made stays. A nil handle is closed already.
func (h *Handle) Close() {
	if h != nil && h.nl != nil {
		h.nl.Close()
	}
}

// indexOf returns the index of the device called name.
func (h *Handle) indexOf(name string) (int, error) {
	if i, ok := h.index[name]; ok {
		return i, nil
	}
	l, err := h.nl.LinkByName(name)
	if err != nil {
		return 0, fmt.Errorf("find device %s: %w", name, err)
	}
	h.index[name] = l.Attrs().Index
	return l.Attrs().Index, nil
}

// stub names an existing device to the library, which wants a Link where an index would do.
func (h *Handle) stub(name string) (netlink.Link, error) {
	i, err := h.indexOf(name)
	if err != nil {
		return nil, err
	}
	a := netlink.NewLinkAttrs()
	a.Name, a.Index = name, i
	return &netlink.Device{LinkAttrs: a}, nil
}

// Up sets a device up.
func (h *Handle) Up(name string) error {
	l, err := h.stub(name)
	if err != nil {
		return err
	}
	if err := h.nl.LinkSetUp(l); err != nil {
		return fmt.Errorf("set device %s up: %w", name, err)
	}
	return nil
}

// explain adds to the refusal of a new device what the kernel lacks.
func explain(kind, name string, err error) error {
	wrapped := fmt.Errorf("make %s device %s: %w", kind, name, err)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV):
		return advice.With(fmt.Errorf("the kernel has no %s device (%s): %w", kind, option[kind], wrapped),
			"modprobe "+kind+", or run a kernel that has it, or leave out the profiles that need it")
	case errors.Is(err, unix.EPERM):
		return advice.With(wrapped, "run as root, or in a user namespace: unshare -Urnm")
	}
	return wrapped
}

// option is the kernel build option behind each kind of device.
var option = map[string]string{
	"veth": "CONFIG_VETH", "bridge": "CONFIG_BRIDGE", "vxlan": "CONFIG_VXLAN", "macvlan": "CONFIG_MACVLAN",
	"ipvlan": "CONFIG_IPVLAN", "ipip": "CONFIG_NET_IPIP", "wireguard": "CONFIG_WIREGUARD", "netkit": "CONFIG_NETKIT",
	"dummy": "CONFIG_DUMMY",
}

func ip(a netip.Addr) net.IP {
	if !a.IsValid() {
		return nil
	}
	return net.IP(a.AsSlice())
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: ip(p.Addr()), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
