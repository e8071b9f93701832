package bpftest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Cgroup makes a cgroup (v2), which is removed after the test, and returns its path. It skips the test if no cgroup v2
// is mounted, or if this process may not make a cgroup.
func Cgroup(t *testing.T) string {
	t.Helper()
	root, err := cgroup.Root()
	if errors.Is(err, cgroup.ErrNoMount) {
		t.Skip("no cgroup v2 is mounted, socket load balancing has nothing to attach to")
	}
	must(t, err)
	dir, err := os.MkdirTemp(root, "bpftest-")
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) {
		t.Skipf("no right to make a cgroup: %v", err)
	}
	must(t, err)
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Errorf("cgroup stays behind: %v", err)
		}
	})
	return filepath.Clean(dir)
}

// Call is a request to a child process, sent as one line to its standard input.
type Call struct {
	Network   string
	Addr      netip.AddrPort
	Connected bool // false: UDP by sendto and recvfrom
}

// RunCall is the main function of a child process that Place started. It reads a Call from standard input, executes it,
// and prints one line. The line has the client's address as the server saw it, the socket's peer address, and the
// error.
func RunCall() {
	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	var c Call
	var addr string
	if err == nil {
		_, err = fmt.Sscan(line, &c.Network, &addr, &c.Connected)
	}
	if err == nil {
		c.Addr, err = netip.ParseAddrPort(addr)
	}
	var saw netip.AddrPort
	var peer string
	if err == nil {
		saw, peer, err = c.run()
	}
	fmt.Printf("result %v %v %v\n", strings.ReplaceAll(saw.String(), " ", "-"), peer, strings.ReplaceAll(fmt.Sprint(err), "\n", " "))
}

func (c Call) run() (netip.AddrPort, string, error) {
	if strings.HasPrefix(c.Network, "udp") && !c.Connected {
		return c.exchangeDatagrams()
	}
	conn, err := net.DialTimeout(c.Network, c.Addr.String(), Patience)
	if err != nil {
		return netip.AddrPort{}, "-", err
	}
	defer conn.Close()
	saw, err := Converse(conn, 3000)
	// RemoteAddr is the address that Go dialled; getpeername returns the kernel's.
	peer := "-"
	raw, rerr := conn.(syscall.Conn).SyscallConn()
	if rerr == nil {
		raw.Control(func(fd uintptr) {
			if sa, e := syscall.Getpeername(int(fd)); e == nil {
				switch sa := sa.(type) {
				case *syscall.SockaddrInet4:
					peer = netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)).String()
				case *syscall.SockaddrInet6:
					peer = netip.AddrPortFrom(netip.AddrFrom16(sa.Addr), uint16(sa.Port)).String()
				}
			}
		})
	}
	return saw, peer, err
}

func (c Call) exchangeDatagrams() (netip.AddrPort, string, error) {
	conn, err := net.ListenUDP(c.Network, nil)
	if err != nil {
		return netip.AddrPort{}, "-", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(Patience))
	var saw netip.AddrPort
	peer := "-"
	for range 3 {
		if _, err := conn.WriteToUDPAddrPort([]byte("x"), c.Addr); err != nil {
			return saw, peer, err
		}
		b := make([]byte, 100)
		n, from, err := conn.ReadFromUDPAddrPort(b)
		if err != nil {
			return saw, peer, err
		}
		peer = from.String()
		first, _, _ := strings.Cut(string(b[:n]), "\n")
		if saw, err = netip.ParseAddrPort(first); err != nil {
			return saw, peer, err
		}
	}
	return saw, peer, nil
}

// Place executes c in a child process, in the cgroup group and inside ns. It returns the client's address as the server
// saw it, the socket's peer address, and the text of the error. Without an error, the text is "<nil>".
func Place(t *testing.T, s *netns.Starter, ns *netns.NS, group string, c Call) (server, peer, failure string) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	dir, err := os.Open(group)
	must(t, err)
	defer dir.Close()
	var out strings.Builder
	cmd := exec.Command(exe, "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), ChildVariable+"=1")
	cmd.Stdin = strings.NewReader(fmt.Sprintf("%s %s %t\n", c.Network, c.Addr, c.Connected))
	cmd.Stdout = &out
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	must(t, s.Start(ns, cmd))
	if err := cmd.Wait(); err != nil {
		t.Fatalf("child: %v\n%s", err, out.String())
	}
	_, rest, ok := strings.Cut(out.String(), "result ")
	fields := strings.SplitN(strings.SplitN(rest, "\n", 2)[0], " ", 3)
	if rest == "" || !ok || len(fields) != 3 {
		t.Fatalf("child said:\n%s", out.String())
	}
	return fields[0], fields[1], fields[2]
}

// ChildVariable is the environment variable that marks a process started by Place.
const ChildVariable = "BPFTEST_CHILD"
