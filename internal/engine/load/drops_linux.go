package load

import (
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/measure/sample"
)

// drops reads how many datagrams each receiving socket has dropped; nil if the workload does not count datagrams.
func (t *Trial) drops() map[*worker]uint32 {
	if !t.work.straggles {
		return nil
	}
	all := map[*worker]uint32{}
	for _, w := range t.workers() {
		// A kernel before 4.12 has no such counter; the sum is then absent.
		if m, err := sock.MemoryOf(w.fd); err == nil {
			all[w] = m.Drops
		}
	}
	return all
}

// buffersOf returns the buffers of the first flow of a stream; nil for others, and if the kernel does not report them.
func (t *Trial) buffersOf(workers []*worker) *sample.Buffers {
	if t.traits.Exchanges() || len(workers) == 0 {
		return nil
	}
	m, err := sock.MemoryOf(workers[0].fd)
	if err != nil {
		return nil
	}
	return &sample.Buffers{ReceiveBytes: uint64(m.ReceiveBuffer), SendBytes: uint64(m.SendBuffer)}
}

// sumDrops adds up the drops of the sockets that existed at both edges.
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
