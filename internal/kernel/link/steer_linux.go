package link

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Steer makes the packets that devices receive be processed on the given CPUs (receive packet steering), and reads the
// setting back. The devices are all of the namespace but lo.
func (h *Handle) Steer(cpus []int) error {
	links, err := h.nl.LinkList()
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	sys, err := h.sysfs()
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
		if err := steer(sys, path.Join("class/net", name, "queues"), mask); err != nil {
			return fmt.Errorf("steer receive work of %s to CPUs %v: %w", name, cpus, err)
		}
	}
	return nil
}

// sysfs returns a view of /sys that shows the handle's namespace. It is mounted nowhere: the descriptor is all there is.
func (h *Handle) sysfs() (*os.File, error) {
	var root *os.File
	err := h.ns.Do(func() error {
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
		root = os.NewFile(uintptr(fd), "sysfs")
		return nil
	})
	return root, err
}

func steer(sys *os.File, queues, mask string) error {
	dir, err := openAt(sys, queues, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(0)
	if err != nil {
		return err
	}
	for _, q := range names {
		if !strings.HasPrefix(q, "rx-") {
			continue
		}
		file := path.Join(queues, q, "rps_cpus")
		if err := writeAt(sys, file, mask); err != nil {
			return err
		}
		got, err := readAt(sys, file)
		if err != nil {
			return err
		}
		if trimMask(got) != trimMask(mask) {
			return fmt.Errorf("%s says %s after %s was written", file, got, mask)
		}
	}
	return nil
}

// Steering returns the CPU mask of the first receive queue of a device, in hexadecimal without leading zeros.
func (h *Handle) Steering(dev string) (string, error) {
	sys, err := h.sysfs()
	if err != nil {
		return "", err
	}
	defer sys.Close()
	got, err := readAt(sys, path.Join("class/net", dev, "queues/rx-0/rps_cpus"))
	return trimMask(got), err
}

func openAt(root *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(root.Fd()), name, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func writeAt(root *os.File, name, text string) error {
	f, err := openAt(root, name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func readAt(root *os.File, name string) (string, error) {
	f, err := openAt(root, name, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return strings.TrimSpace(string(b)), err
}

// cpuMask writes CPUs as the kernel reads them: hexadecimal, in groups of 32 bits, the highest first.
func cpuMask(cpus []int) string {
	words := []uint32{0}
	for _, c := range cpus {
		for len(words) <= c/32 {
			words = append(words, 0)
		}
		words[c/32] |= 1 << (c % 32)
	}
	var b strings.Builder
	for i := len(words) - 1; i >= 0; i-- {
		if b.Len() > 0 {
			b.WriteByte(',')
			fmt.Fprintf(&b, "%08x", words[i])
			continue
		}
		b.WriteString(strconv.FormatUint(uint64(words[i]), 16))
	}
	return b.String()
}

func trimMask(mask string) string {
	t := strings.TrimLeft(mask, "0,")
	if t == "" {
		return "0"
	}
	return t
}
