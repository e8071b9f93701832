package space

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/thread"
)

// TestFollow sends datagrams over the loopback of a namespace and finds its inode at the CPU that received them; no longer
// after Rest.
func TestFollow(t *testing.T) {
	tracker, err := Load()
	if err != nil {
		t.Skipf("without BTF or the right to load BPF programs: %v", err)
	}
	defer tracker.Close()
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	err = ns.Do(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
	if err != nil {
		t.Fatal(err)
	}
	inode, err := ns.Inode()
	if err != nil {
		t.Fatal(err)
	}
	cpus, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	cpu := cpus[len(cpus)-1]
	// seen says whether the CPU's word has the namespace after one of some datagrams. Packets of others overwrite the word.
	seen := func() (found bool) {
		err := ns.Do(func() error {
			if err := thread.SetCPUs([]int{cpu}); err != nil {
				return err
			}
			c, err := net.Dial("udp", "127.0.0.1:9")
			if err != nil {
				return err
			}
			defer c.Close()
			for range 200 {
				_, _ = c.Write([]byte("x")) // the answer to the one before may be an error
				all := make([]byte, tracker.objects.Last.Size())
				if err := tracker.objects.Last.Get(all); err != nil {
					return err
				}
				found = found || uint64(binary.NativeEndian.Uint32(all[64*cpu:])) == inode
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if seen() {
		t.Error("a namespace is stored before anything is followed")
	}
	if err := tracker.Follow(); err != nil {
		t.Fatal(err)
	}
	if !seen() {
		t.Errorf("namespace %d was not stored by CPU %d", inode, cpu)
	}
	if err := tracker.Rest(); err != nil {
		t.Fatal(err)
	}
	if err := tracker.objects.Last.Set(make([]byte, tracker.objects.Last.Size())); err != nil {
		t.Fatal(err)
	}
	if seen() {
		t.Error("a namespace is stored after Rest")
	}
}
