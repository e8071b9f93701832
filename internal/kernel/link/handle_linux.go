package link

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Loopback is the name of the device that every new namespace has.
const Loopback = "lo"

// Handle is a netlink socket inside a namespace. It is not for concurrent use. Close it after use; the devices stay.
type Handle struct {
	ns *netns.NS
	nl *netlink.Handle
	// index caches the index of the devices that were created or used here.
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

// At calls do with a new handle inside ns, closes the handle, and returns the result of do.
func At[T any](ns *netns.NS, do func(*Handle) (T, error)) (T, error) {
	h, err := Open(ns)
	if err != nil {
		var none T
		return none, err
	}
	defer h.Close()
	return do(h)
}

// In calls do with a new handle inside ns, closes the handle, and returns the error of do.
func In(ns *netns.NS, do func(*Handle) error) error {
	_, err := At(ns, func(h *Handle) (none struct{}, err error) { return none, do(h) })
	return err
}

// NS returns the namespace that the handle is in.
func (h *Handle) NS() *netns.NS { return h.ns }

// Close closes the socket; created devices stay. Closing a nil handle does nothing.
func (h *Handle) Close() {
	if h != nil && h.nl != nil {
		h.nl.Close()
	}
}

// Thing is something that Add can add, for example a device, an address or a route.
type Thing interface {
	addTo(*Handle) error
}

// Add adds things in order until one fails. Added devices are up when it returns, except a Dummy.
func (h *Handle) Add(things ...Thing) error {
	for _, t := range things {
		if err := t.addTo(h); err != nil {
			return err
		}
	}
	return nil
}

// Each calls do for each thing in the order of Add, with the handle that Add would use, until do fails. For an Inside,
// it calls do for the things inside.
func (h *Handle) Each(things []Thing, do func(at *Handle, t Thing) error) error {
	for _, t := range things {
		var err error
		if in, ok := t.(Inside); ok {
			err = in.At.Each(in.Things, do)
		} else {
			err = do(h, t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a device, and the other end of a pair. The device is gone when Remove returns.
func (h *Handle) Remove(dev string) error {
	if err := h.changeDevice(dev, "remove device "+dev, h.nl.LinkDel); err != nil {
		return err
	}
	delete(h.index, dev)
	return nil
}

// Settings are kernel parameters of the handle's namespace.
type Settings []netns.Setting

func (s Settings) addTo(h *Handle) error { return netns.SetSysctls(h.ns, s) }

// Inside is a Thing that adds other things with the handle of another namespace.
type Inside struct {
	At     *Handle
	Things []Thing
}

func (i Inside) addTo(*Handle) error { return i.At.Add(i.Things...) }

// Step is a function as a Thing: Add calls it with the handle.
type Step func(at *Handle) error

func (s Step) addTo(h *Handle) error { return s(h) }

// indexOf returns the index of the device called name, from the cache if possible.
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

// changeDevice calls do with an existing device. The Link passed to do has only the device's name and index. what
// describes the change in an error.
func (h *Handle) changeDevice(dev, what string, do func(netlink.Link) error) error {
	i, err := h.indexOf(dev)
	if err != nil {
		return err
	}
	a := netlink.NewLinkAttrs()
	a.Name, a.Index = dev, i
	if err := do(&netlink.Device{LinkAttrs: a}); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Up sets a device up. It fails if there is no such device.
func (h *Handle) Up(name string) error {
	return h.changeDevice(name, "set device "+name+" up", h.nl.LinkSetUp)
}

// links returns all devices of the namespace in the order of the kernel's list, and their names by index.
func (h *Handle) links() ([]netlink.Link, map[int]string, error) {
	list, err := h.nl.LinkList()
	if err != nil {
		return nil, nil, fmt.Errorf("list devices: %w", err)
	}
	names := map[int]string{}
	for _, l := range list {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	return list, names, nil
}

// creationError wraps err, the failure to create a device, with the device's name. It adds advice if a kernel feature
// or a right is missing.
func creationError(kind, name string, err error) error {
	wrapped := fmt.Errorf("make %s device %s: %w", kind, name, err)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENODEV):
		return missingError(kind+" device", option[kind], cmp.Or(module[kind], kind), wrapped)
	case errors.Is(err, unix.EPERM):
		return advice.With(wrapped, "run as root, or in a user namespace: unshare -Urnm")
	}
	return wrapped
}

// missingError says that the kernel lacks a feature, with its build options and its modules.
func missingError(what, options, modules string, err error) error {
	return advice.With(fmt.Errorf("the kernel has no %s (%s): %w", what, options, err),
		"modprobe "+modules+", or run a kernel that has it, or leave out the profiles that need it")
}

// option has the kernel build option of each kind of device.
var option = map[string]string{
	"veth": "CONFIG_VETH", "bridge": "CONFIG_BRIDGE", "vxlan": "CONFIG_VXLAN", "macvlan": "CONFIG_MACVLAN",
	"ipvlan": "CONFIG_IPVLAN", "ipip": "CONFIG_NET_IPIP", "wireguard": "CONFIG_WIREGUARD", "netkit": "CONFIG_NETKIT",
	"dummy": "CONFIG_DUMMY", "vlan": "CONFIG_VLAN_8021Q",
}

// module has the module of each kind of device that has another name.
var module = map[string]string{"vlan": "8021q"}

func netIP(a netip.Addr) net.IP {
	if !a.IsValid() {
		return nil
	}
	return net.IP(a.AsSlice())
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: netIP(p.Addr()), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
