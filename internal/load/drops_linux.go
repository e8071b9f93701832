package load

import (
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/sample"
)

// drops reads how many datagrams each receiving socket has turned away; nil for whoever does not count datagrams.
func (t *Trial) drops() map[*worker]uint32 {
	if !t.straggles() {
		return nil
	}
	all := map[*worker]uint32{}
	for _, w := range t.crew() {
		// A kernel before 4.12 does not say; the sum is then absent.
		if m, err := sock.MemoryOf(w.fd); err == nil {
			all[w] = m.Drops
		}
	}
	return all
}

// sumDrops adds up what the sockets that were there at both edges turned away.
func sumDrops(d *sample.Datagrams, begin, end map[*worker]uint32) {
	if d == nil {
		return
	}
	for w, after := range end {
		before, ok := begin[w]
		if !ok {
			continue
		}
		if d.SocketDrops == nil {
			d.SocketDrops = new(uint64)
		}
		*d.SocketDrops += uint64(after - before) // wraps as the counter does
	}
}
