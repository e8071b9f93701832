package wireguardgo

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"

	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// Ready is what Serve writes when the device exists.
const Ready = "ready\n"

// Serve creates a TUN device in the network namespace of this process, and runs WireGuard on it until stdin ends. The
// device is configured through link.WireGuardSocket, from the same namespace. It fails if the kernel has no TUN
// devices.
func Serve(name string, mtu int, stdin io.Reader, stdout io.Writer) error {
	if err := renameThreads(sample.WireGuardThread); err != nil {
		return err
	}
	listener, err := net.Listen("unix", link.WireGuardSocket(name))
	if err != nil {
		return err
	}
	defer listener.Close()
	t, err := openTUN(name, mtu)
	if err != nil {
		return fmt.Errorf("make TUN device %s: %w", name, err)
	}
	d := device.NewDevice(t, conn.NewDefaultBind(), device.NewLogger(device.LogLevelError, name+": "))
	defer d.Close()
	if err := d.Up(); err != nil {
		return fmt.Errorf("set WireGuard of %s up: %w", name, err)
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return // it was closed
			}
			go d.IpcHandle(c)
		}
	}()
	if _, err := io.WriteString(stdout, Ready); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, stdin)
	return err
}

// openTUN creates a TUN device that carries single packets. The kernel's WireGuard accepts super-packets and may merge
// packets that it received; this device does neither.
func openTUN(name string, mtu int) (tun.Device, error) {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/net/tun", Err: err}
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, errors.Join(os.NewSyscallError("TUNSETIFF", err), unix.Close(fd))
	}
	file := os.NewFile(uintptr(fd), "/dev/net/tun")
	device, err := tun.CreateTUNFromFile(file, mtu)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return device, nil
}

// renameThreads renames the threads of this process; threads that they start inherit the name.
func renameThreads(name string) error {
	threads, err := filepath.Glob("/proc/self/task/*/comm")
	if err != nil {
		return err
	}
	for _, file := range threads {
		if err := os.WriteFile(file, []byte(name), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("name the threads: %w", err)
		}
	}
	return nil
}
