package attach

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cnibench/cnibench/internal/kernel/bpf/bpftest"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// dropAll is a program that drops every packet.
func dropAll(t *testing.T) *ebpf.Program {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "drop_all", Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()},
	})
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("eBPF programs cannot be loaded here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// answers says whether a datagram to itself comes back over lo.
func answers(t *testing.T, ns *netns.NS) bool {
	t.Helper()
	came := false
	bpftest.In(t, ns, func() error {
		c, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.WriteTo([]byte("x"), c.LocalAddr()); err != nil {
			// A drop at egress is told to the sender.
			return nil
		}
		raw, err := c.(*net.UDPConn).SyscallConn()
		if err != nil {
			return err
		}
		// lo delivers before the send returns: what is not there now will not come.
		return raw.Control(func(fd uintptr) { came = readable(int(fd)) })
	})
	return came
}

func TestDevice(t *testing.T) {
	prog := dropAll(t)
	for name, put := range map[string]func(*netns.NS, Hook) (io.Closer, error){
		"best":    func(ns *netns.NS, side Hook) (io.Closer, error) { return Device(ns, "lo", side, prog) },
		"classic": func(ns *netns.NS, side Hook) (io.Closer, error) { return Filter(ns, "lo", side, prog) },
	} {
		for _, side := range []Hook{Ingress, Egress} {
			t.Run(name+" "+side.String(), func(t *testing.T) {
				ns := bpftest.NewNS(t)
				if !answers(t, ns) {
					t.Fatal("lo does not work before")
				}
				c, err := put(ns, side)
				if err != nil {
					t.Fatal(err)
				}
				if answers(t, ns) {
					t.Error("the program is not there")
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				if !answers(t, ns) {
					t.Error("the program is still there")
				}
			})
		}
	}
	if _, err := Device(bpftest.NewNS(t), "nosuch", Ingress, prog); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("a device that is not there: %v", err)
	}
	if _, err := Cgroup("/nosuch", ebpf.AttachCGroupInet4Connect, prog); err == nil || !strings.Contains(err.Error(), "/nosuch") {
		t.Errorf("a cgroup that is not there: %v", err)
	}
}

// TestRefused loads a program that reads beyond its stack, with enough before it to fill a screen of log.
func TestRefused(t *testing.T) {
	dropAll(t)
	code := asm.Instructions{}
	for range 200 {
		code = append(code, asm.Mov.Imm(asm.R0, 1))
	}
	code = append(code, asm.LoadMem(asm.R0, asm.RFP, 8, asm.DWord), asm.Return())
	spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{
		"bad": {Name: "bad", Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: code},
	}}
	_, err := Load("broken", spec, ebpf.CollectionOptions{})
	if err == nil {
		t.Fatal("it was loaded")
	}
	if n := strings.Count(VerifierLog(err), "\n"); n < 150 || !strings.Contains(err.Error(), "broken") || strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("error %q, log of %d lines", err, n)
	}
}

// TestMapMemory: a map has at least the bytes of its values.
func TestMapMemory(t *testing.T) {
	const entries, size = 1000, 4096
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: size, MaxEntries: entries})
	if err != nil {
		t.Skipf("BPF maps cannot be made here: %v", err)
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil {
		t.Fatal(err)
	}
	all, err := MapMemory()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no right to list BPF maps: %v", err)
	}
	if id, _ := info.ID(); err != nil || all[id] < entries*size {
		t.Errorf("map %d has %d bytes, %v", id, all[id], err)
	}
}
