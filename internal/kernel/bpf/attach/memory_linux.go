package attach

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
)

// MapMemory returns the size in bytes of every BPF map of the kernel, by ID, including those of other programs. It
// needs CAP_SYS_ADMIN.
func MapMemory() (map[ebpf.MapID]uint64, error) {
	all := map[ebpf.MapID]uint64{}
	for id := ebpf.MapID(0); ; {
		next, err := ebpf.MapGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list BPF maps: %w", err)
		}
		if all[next], err = mapMemory(next); err != nil {
			return nil, fmt.Errorf("BPF map %d: %w", next, err)
		}
		id = next
	}
}

// mapMemory returns the size of a map in bytes, 0 if it was removed meanwhile.
func mapMemory(id ebpf.MapID) (uint64, error) {
	m, err := ebpf.NewMapFromID(id)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil {
		return 0, err
	}
	n, _ := info.Memlock() // 0 if the kernel does not report it
	return n, nil
}
