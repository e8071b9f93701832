package link

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Steer lets the given CPUs process the packets that devices receive (receive packet steering), and reads the setting
// back. It applies to all devices of the namespace but lo, and fails if one has no receive queue.
func (h *Handle) Steer(cpus []int) error {
	links, _, err := h.links()
	if err != nil {
		return err
	}
	sys, err := h.openSysfs()
	if err != nil {
		return err
	}
	defer sys.Close()
	mask := cpuMask(cpus)
	for _, l := range links {
		name := l.Attrs().Name
		if name == Loopback {
			continue
		}
		if err := steerDevice(sys, name, mask); err != nil {
			return fmt.Errorf("steer receive work of %s to CPUs %v: %w", name, cpus, err)
		}
	}
	return nil
}

// openSysfs returns a new sysfs that shows the handle's namespace. It has no mount point; close the returned root.
func (h *Handle) openSysfs() (root *os.Root, err error) {
	err = h.ns.Do(func() error {
		fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
		if err != nil {
			return os.NewSyscallError("fsopen sysfs", err)
		}
		defer unix.Close(fs)
		if err := unix.FsconfigCreate(fs); err != nil {
			return os.NewSyscallError("fsconfig sysfs", err)
		}
		fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("fsmount sysfs", err)
		}
		defer unix.Close(fd)
		root, err = os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", fd))
		return err
	})
	return root, err
}

// steerDevice writes the CPU mask of each receive queue of a device, and reads it back.
func steerDevice(sys *os.Root, device, mask string) error {
	files, err := fs.Glob(sys.FS(), path.Join("class/net", device, "queues/rx-*/rps_cpus"))
	if err == nil && len(files) == 0 {
		err = errors.New("it has no receive queue")
	}
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := sys.WriteFile(file, []byte(mask), 0); err != nil {
			return err
		}
		got, err := sys.ReadFile(file)
		if err != nil {
			return err
		}
		if trimMask(string(got)) != trimMask(mask) {
			return fmt.Errorf("%s says %s after %s was written", file, got, mask)
		}
	}
	return nil
}

// Steering returns the CPU mask of the first receive queue of each device but lo. The keys are the names of the
// devices, and the masks have the format of CPUMask.
func (h *Handle) Steering() (map[string]string, error) {
	links, _, err := h.links()
	if err != nil {
		return nil, err
	}
	sys, err := h.openSysfs()
	if err != nil {
		return nil, err
	}
	defer sys.Close()
	masks := map[string]string{}
	for _, l := range links {
		if name := l.Attrs().Name; name != Loopback {
			got, err := sys.ReadFile(path.Join("class/net", name, "queues/rx-0/rps_cpus"))
			if err != nil {
				return nil, err
			}
			masks[name] = trimMask(string(got))
		}
	}
	return masks, nil
}

// CPUMask returns the mask of CPUs in hexadecimal, without leading zeros, in groups of 32 bits.
func CPUMask(cpus []int) string { return trimMask(cpuMask(cpus)) }

// cpuMask formats CPUs as the kernel does: hexadecimal, in groups of 32 bits, the highest first.
func cpuMask(cpus []int) string {
	words := make([]uint32, slices.Max(append([]int{0}, cpus...))/32+1)
	for _, c := range cpus {
		words[len(words)-1-c/32] |= 1 << (c % 32)
	}
	mask := fmt.Sprintf("%x", words[0])
	for _, w := range words[1:] {
		mask += fmt.Sprintf(",%08x", w)
	}
	return mask
}

// trimMask removes leading zeros and separators. It returns "0" for a mask without CPUs.
func trimMask(mask string) string {
	return cmp.Or(strings.TrimLeft(strings.TrimSpace(mask), "0,"), "0")
}

// htbFrom is the rate in bit/s from which Shape uses htb: above it, htb is more accurate than tbf.
const htbFrom = 5e9

// Bounds of the shapers: bursts in bytes, and the time that packets may wait.
const (
	tbfBurst   = 128 << 10
	htbBurst   = 1 << 20
	tbfLatency = 0.010 // seconds of queue before a packet is dropped
)

// Shape limits the sending rate of a device. rate is in bit/s, and counts frames without preamble and gap.
func (h *Handle) Shape(dev string, rate float64) error {
	limit := h.addTBF
	if rate >= htbFrom {
		limit = h.addHTB
	}
	return h.changeDevice(dev, fmt.Sprintf("limit %s to %.0f bit/s", dev, rate), func(l netlink.Link) error {
		return limit(l.Attrs().Index, rate)
	})
}

func (h *Handle) addTBF(index int, rate float64) error {
	bytes := rate / 8
	// The kernel requires the burst as its sending time, in its own ticks.
	return h.nl.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       uint64(bytes),
		Limit:      uint32(bytes*tbfLatency) + tbfBurst,
		Buffer:     netlink.Xmittime(uint64(bytes), tbfBurst),
	})
}

func (h *Handle) addHTB(index int, rate float64) error {
	root := netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT})
	root.Defcls = 1
	if err := h.nl.QdiscAdd(root); err != nil {
		return err
	}
	return h.nl.ClassAdd(netlink.NewHtbClass(
		netlink.ClassAttrs{LinkIndex: index, Parent: netlink.MakeHandle(1, 0), Handle: netlink.MakeHandle(1, 1)},
		netlink.HtbClassAttrs{Rate: uint64(rate), Ceil: uint64(rate), Buffer: htbBurst, Cbuffer: htbBurst},
	))
}
