package attach

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// Entries returns the number of entries of a hash table. It reads all keys, one system call each.
func Entries(m *ebpf.Map) (int, error) {
	key, next := make([]byte, m.KeySize()), make([]byte, m.KeySize())
	var from any // nil asks for the first key
	for n := 0; ; n++ {
		switch err := m.NextKey(from, next); {
		case errors.Is(err, ebpf.ErrKeyNotExist):
			return n, nil
		case err != nil:
			return n, fmt.Errorf("count entries: %w", err)
		}
		key, next = next, key
		from = key
	}
}
