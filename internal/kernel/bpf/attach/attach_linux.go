package attach

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Hook is the place on a device where a program runs.
type Hook int

// The hooks. Primary and Peer belong to a netkit pair; for both, the device is the primary one of the pair.
const (
	// Ingress is for the packets that a device receives.
	Ingress Hook = iota
	// Egress is for the packets that a device sends.
	Egress
	// Primary is for the packets from the node to the pod.
	Primary
	// Peer is for the packets that the pod sends.
	Peer
)

// hooks has the name of each hook, as the kernel and tc use it, and its attach type.
var hooks = [...]struct {
	name string
	at   ebpf.AttachType
}{
	Ingress: {"ingress", ebpf.AttachTCXIngress}, Egress: {"egress", ebpf.AttachTCXEgress},
	Primary: {"netkit primary", ebpf.AttachNetkitPrimary}, Peer: {"netkit peer", ebpf.AttachNetkitPeer},
}

func (h Hook) String() string { return hooks[h].name }

// Device attaches prog to a hook of the named device of ns, after existing programs. On kernels older than 6.6, it
// replaces the program of an earlier call for the same hook. Closing c detaches prog.
func Device(ns *netns.NS, device string, hook Hook, prog *ebpf.Program) (c io.Closer, err error) {
	return attachTo(ns, device, hook, prog, func(at int) (io.Closer, error) {
		if hook >= Primary {
			return link.AttachNetkit(link.NetkitOptions{Interface: at, Program: prog, Attach: hooks[hook].at})
		}
		c, err := link.AttachTCX(link.TCXOptions{Interface: at, Program: prog, Attach: hooks[hook].at})
		if errors.Is(err, ebpf.ErrNotSupported) {
			return addClassicFilter(ns, at, hook, prog)
		}
		return c, err
	})
}

// Filter attaches prog to a hook of the named device of ns as a filter of the device's clsact qdisc, in place of the program
// of an earlier call for the same hook. It is for agents that do not use tcx. Closing c detaches prog.
func Filter(ns *netns.NS, device string, hook Hook, prog *ebpf.Program) (c io.Closer, err error) {
	return attachTo(ns, device, hook, prog, func(at int) (io.Closer, error) { return addClassicFilter(ns, at, hook, prog) })
}

// attachTo calls attach in ns with the index of the device, and says in its error what was to be attached where.
func attachTo(ns *netns.NS, device string, hook Hook, prog *ebpf.Program, attach func(at int) (io.Closer, error)) (c io.Closer, err error) {
	err = ns.Do(func() error {
		at, err := deviceIndex(device)
		if err == nil {
			c, err = attach(at)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("attach %s to %s of %s: %w", programName(prog), hook, device, err)
	}
	return c, nil
}

// Place names a device, a hook of the device, and the program to attach there.
type Place struct {
	Device  string
	Hook    Hook
	Program string
}

// Devices attaches programs of a collection to devices of ns. If one fails, it returns the links made so far with the
// error.
func Devices(ns *netns.NS, coll *ebpf.Collection, places ...Place) ([]io.Closer, error) {
	var links []io.Closer
	for _, p := range places {
		c, err := Device(ns, p.Device, p.Hook, coll.Programs[p.Program])
		if err != nil {
			return links, err
		}
		links = append(links, c)
	}
	return links, nil
}

// Index returns the index of the named device of ns.
func Index(ns *netns.NS, device string) (at int, err error) {
	err = ns.Do(func() (err error) {
		at, err = deviceIndex(device)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("device %s: %w", device, err)
	}
	return at, nil
}

// Interface returns the named device of ns. Index is faster while other programs are being attached to devices.
func Interface(ns *netns.NS, device string) (found *net.Interface, err error) {
	err = ns.Do(func() (err error) {
		found, err = net.InterfaceByName(device)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", device, err)
	}
	return found, nil
}

// deviceIndex returns the index of a device by an ioctl. Netlink, and so net.InterfaceByName, would wait for the kernel's
// lock over all devices. Attaching a program holds that lock for an RCU grace period.
func deviceIndex(device string) (int, error) {
	req, err := unix.NewIfreq(device)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, req); err != nil {
		return 0, os.NewSyscallError("ioctl SIOCGIFINDEX", err)
	}
	return int(req.Uint32()), nil
}

// classicFilter is a filter on a clsact qdisc, for kernels without tcx.
type classicFilter struct {
	ns     *netns.NS
	filter *netlink.BpfFilter
}

// addClassicFilter attaches prog as a filter on the device's clsact qdisc, which it creates if necessary.
func addClassicFilter(ns *netns.NS, index int, hook Hook, prog *ebpf.Program) (io.Closer, error) {
	parent := uint32(netlink.HANDLE_MIN_INGRESS)
	if hook == Egress {
		parent = netlink.HANDLE_MIN_EGRESS
	}
	qdisc := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}}
	// Replace, because the other side may have created it already.
	if err := netlink.QdiscReplace(qdisc); err != nil {
		return nil, fmt.Errorf("clsact qdisc: %w", err)
	}
	f := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: index, Parent: parent, Handle: 1, Priority: 1, Protocol: 3, // ETH_P_ALL
		},
		Fd: prog.FD(), Name: programName(prog), DirectAction: true,
	}
	if err := netlink.FilterReplace(f); err != nil {
		return nil, fmt.Errorf("bpf filter: %w", err)
	}
	return &classicFilter{ns: ns, filter: f}, nil
}

// Close removes the filter. It leaves the qdisc, which the other side may use. A missing device is not an error.
func (c *classicFilter) Close() error {
	return c.ns.Do(func() error {
		err := netlink.FilterDel(c.filter)
		if errors.As(err, &netlink.LinkNotFoundError{}) {
			return nil // the filter went with the device
		}
		return err
	})
}

// Cgroup attaches prog to a socket hook of the cgroup (v2) at path, for the processes in it and below it.
func Cgroup(path string, at ebpf.AttachType, prog *ebpf.Program) (io.Closer, error) {
	l, err := link.AttachCgroup(link.CgroupOptions{Path: path, Attach: at, Program: prog})
	if err != nil {
		return nil, fmt.Errorf("attach %s to cgroup %s: %w", programName(prog), path, err)
	}
	return l, nil
}

// Load loads a collection into the kernel. what names the collection in an error. If the verifier refuses a program, the error
// has one line of its log; VerifierLog returns the whole log.
func Load(what string, spec *ebpf.CollectionSpec, opts ebpf.CollectionOptions) (*ebpf.Collection, error) {
	coll, err := ebpf.NewCollectionWithOptions(spec, opts)
	if errors.Is(err, os.ErrPermission) && VerifierLog(err) == "" {
		err = advice.With(err, "BPF programs need root outside of any user namespace: run as root, or leave out the eBPF profiles")
	}
	if err != nil {
		return nil, fmt.Errorf("load %s programs: %w", what, err)
	}
	return coll, nil
}

// Shared returns load options for spec. With them, its collection uses the given tables instead of its own tables of
// the same names. It keeps its own tables for the names in except, and those that the compiler creates (.rodata).
func Shared(tables map[string]*ebpf.Map, spec *ebpf.CollectionSpec, cache *btf.Cache, except ...string) ebpf.CollectionOptions {
	common := map[string]*ebpf.Map{}
	for name, m := range tables {
		if spec.Maps[name] != nil && name[0] != '.' && !slices.Contains(except, name) {
			common[name] = m
		}
	}
	return ebpf.CollectionOptions{MapReplacements: common, Cache: cache}
}

// VerifierLog returns the verifier's whole log from err. It returns "" if err does not come from the verifier.
func VerifierLog(err error) string {
	var refused *ebpf.VerifierError
	if errors.As(err, &refused) {
		return fmt.Sprintf("%+v", refused)
	}
	return ""
}

// Counter is the number of packets that a node's programs counted for one outcome.
type Counter struct {
	// Direction is "ingress", "egress" or "service", "" if the programs do not count it.
	Direction string
	// Outcome is, for example, "forwarded", or why packets were dropped.
	Outcome string
	Drop    bool
	// Full means that a table had no room for the packet's flow, or that no port was free for source translation.
	Full    bool
	Packets uint64
}

// Reason returns the direction and the outcome, for example "ingress: forwarded". Without a direction it returns only
// the outcome.
func (c Counter) Reason() string {
	if c.Direction == "" {
		return c.Outcome
	}
	return c.Direction + ": " + c.Outcome
}

// Absent returns nil if err says that a table does not have a key. It returns any other err unchanged.
func Absent(err error) error {
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil
	}
	return err
}

// CloseAll closes all closers in reverse order, and returns their errors joined.
func CloseAll(list []io.Closer) error {
	var errs []error
	for _, c := range slices.Backward(list) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// programName returns a program's name in the kernel, "program" if unknown.
func programName(prog *ebpf.Program) string {
	if i, err := prog.Info(); err == nil && i.Name != "" {
		return i.Name
	}
	return "program"
}

// File loads the programs of places from an object file, and attaches them to devices of ns. If one fails to
// attach, it returns the links made so far with the error. The links keep the programs and their maps loaded.
func File(ns *netns.NS, file string, places ...Place) ([]io.Closer, error) {
	spec, err := ebpf.LoadCollectionSpec(file)
	if err != nil {
		return nil, fmt.Errorf("read BPF object %s: %w", file, err)
	}
	for _, p := range places {
		if spec.Programs[p.Program] == nil {
			return nil, fmt.Errorf("BPF object %s has no program %s: it has %s", file, p.Program, strings.Join(slices.Sorted(maps.Keys(spec.Programs)), ", "))
		}
	}
	for _, program := range spec.Programs {
		if !slices.ContainsFunc(places, func(p Place) bool { return p.Program == program.Name }) {
			delete(spec.Programs, program.Name)
		}
	}
	coll, err := Load(file, spec, ebpf.CollectionOptions{})
	if err != nil {
		return nil, err
	}
	defer coll.Close() // the links keep the programs, and these their maps
	return Devices(ns, coll, places...)
}
