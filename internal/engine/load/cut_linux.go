package load

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/plan"
)

const (
	// superPacket and mostSegments bound one send with segmentation offload, in bytes and in packets.
	superPacket  = plan.MaxDatagram
	mostSegments = 64
	// superPackets is how many coalesced receives one call takes.
	superPackets = 8
)

// cut is the layout of a sequence of datagrams: their sizes, and how many form one buffer.
type cut struct {
	// sizes are the payload sizes in bytes. They repeat in this order: datagram i has the size sizes[i % len(sizes)].
	sizes []int
	// segments is the number of datagrams in one buffer. It is above 1 only if all datagrams have one size.
	segments int
}

func cutOf(s plan.Stream) cut {
	switch {
	case s.Mix == plan.IMIX:
		return cut{plan.Payloads, 1}
	case s.Mode == plan.GSO:
		return cut{[]int{s.MessageSize}, max(1, min(mostSegments, datagramsPerCall, superPacket/s.MessageSize))}
	}
	return cut{[]int{s.MessageSize}, 1}
}

func (c cut) datagramSize(sequence uint64) int { return c.sizes[sequence%uint64(len(c.sizes))] }

func (c cut) largestSize() int { return slices.Max(c.sizes) }

func (c cut) meanSize() float64 {
	sum := 0
	for _, n := range c.sizes {
		sum += n
	}
	return float64(sum) / float64(len(c.sizes))
}

// newBatchFor returns a batch whose buffers hold datagramsPerCall datagrams of c.
func newBatchFor(c cut) *sock.Batch {
	return sock.NewBatch(max(1, datagramsPerCall/c.segments), c.segments*c.largestSize())
}

// fillBatch writes n datagrams from sequence on into the batch's buffers, and returns how many buffers and bytes that takes.
func (c cut) fillBatch(b *sock.Batch, sequence uint64, n int, now int64) (buffers, bytes int) {
	for done := 0; done < n; buffers++ {
		room, used := b.Buffer(buffers), 0
		for range min(c.segments, n-done) {
			binary.BigEndian.PutUint64(room[used:], sequence+uint64(done))
			binary.BigEndian.PutUint64(room[used+8:], uint64(now))
			used += c.datagramSize(sequence + uint64(done))
			done++
		}
		b.Resize(buffers, used)
		bytes += used
	}
	return buffers, bytes
}

// sumSent returns how many datagrams and bytes the first buffers of a batch hold, after fillBatch wrote n datagrams from
// sequence on.
func (c cut) sumSent(sequence uint64, n, buffers int) (sent, bytes uint64) {
	sent = uint64(min(n, buffers*c.segments))
	if len(c.sizes) == 1 {
		return sent, sent * uint64(c.sizes[0])
	}
	for i := range sent {
		bytes += uint64(c.datagramSize(sequence + i))
	}
	return sent, bytes
}

// setBuffers sets both buffers of a socket to the size that the workload asks for. Without a size, it only sets the
// receive buffer of a UDP socket, to receiveBuffer.
func (t *Trial) setBuffers(fd int) error {
	size := t.work.buffer
	if size == 0 {
		if t.traits.Protocol != plan.UDP {
			return nil
		}
		return sock.SetReceiveBuffer(fd, receiveBuffer)
	}
	if err := sock.SetReceiveBuffer(fd, size); err != nil {
		return err
	}
	return sock.SetSendBuffer(fd, size)
}

// offloadError returns the error of a trial that needs an offload, what, which the kernel has refused with err.
func offloadError(what string, err error) error {
	return &Error{Kind: unsupported.String(), Op: what, Err: fmt.Errorf("this kernel refuses it: %w", err)}
}
