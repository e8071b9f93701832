package sock

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Addr is a socket address in the kernel's format, so that using it needs no conversion. The zero value is not an
// address.
type Addr struct {
	raw  [unix.SizeofSockaddrInet6]byte
	size uint32
}

// NewAddr returns an address for a socket of the given family. It maps an IPv4 address for an IPv6 socket. A zone must
// be an interface index in decimal.
func NewAddr(a netip.AddrPort, family int) Addr {
	var r Addr
	binary.NativeEndian.PutUint16(r.raw[0:], uint16(family))
	binary.BigEndian.PutUint16(r.raw[2:], a.Port())
	if family == unix.AF_INET {
		ip := a.Addr().Unmap().As4()
		copy(r.raw[4:], ip[:])
		r.size = unix.SizeofSockaddrInet4
		return r
	}
	ip := a.Addr().As16()
	copy(r.raw[8:], ip[:])
	if zone, err := strconv.ParseUint(a.Addr().Zone(), 10, 32); err == nil {
		binary.NativeEndian.PutUint32(r.raw[24:], uint32(zone))
	}
	r.size = unix.SizeofSockaddrInet6
	return r
}

// Family returns the socket family for an address: AF_INET for IPv4, else AF_INET6.
func Family(a netip.Addr) int {
	if a.Is4() || a.Is4In6() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// Family returns the family of the address.
func (a *Addr) Family() int { return int(binary.NativeEndian.Uint16(a.raw[0:])) }

// AddrPort returns the address as a netip.AddrPort. It returns a mapped address as IPv4.
func (a *Addr) AddrPort() netip.AddrPort {
	port := binary.BigEndian.Uint16(a.raw[2:])
	if a.Family() == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a.raw[4:8])), port)
	}
	ip := netip.AddrFrom16([16]byte(a.raw[8:24])).Unmap()
	if scope := binary.NativeEndian.Uint32(a.raw[24:]); scope != 0 && ip.Is6() {
		ip = ip.WithZone(strconv.FormatUint(uint64(scope), 10))
	}
	return netip.AddrPortFrom(ip, port)
}

// OpenPacket opens a socket that receives every frame of the device with this index, or of all devices for index 0.
// Frames that are written to the socket leave by that device. flags may have NonBlocking. prepare sets options before
// the first frame arrives.
func OpenPacket(index, flags int, prepare func(fd int) error) (int, error) {
	// Protocol 0 receives nothing until bind sets one, so no frame of another device is received before.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|flags, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err = prepare(fd); err == nil {
		// The kernel wants the number in network order.
		all := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
		err = os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index}))
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
