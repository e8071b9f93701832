package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sampleType are the fields of a sample, in the order in which decodeRecords reads them. outputType are the fields of a
// namespace.
const (
	sampleType = unix.PERF_SAMPLE_IDENTIFIER | unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME | unix.PERF_SAMPLE_CPU |
		unix.PERF_SAMPLE_PERIOD | unix.PERF_SAMPLE_CALLCHAIN
	outputType = unix.PERF_SAMPLE_IDENTIFIER | unix.PERF_SAMPLE_RAW
)

// Kinds of records in a ring.
const (
	recordLost     = 2
	recordThrottle = 5
	recordSample   = 9
)

// Markers in a callchain: the following frames are the kernel's, the program's, or neither.
const (
	contextKernel = ^uint64(128 - 1)
	contextUser   = ^uint64(512 - 1)
	contextMax    = ^uint64(4095 - 1)
)

// ring is the buffer of a CPU, with the events that write to it.
type ring struct {
	// events are the descriptors of the events that sample time, counters the counters that take samples.
	events   []int
	counters []*counter
	// output is the descriptor of the event for namespaces, -1 for none.
	output int
	memory []byte
	// names maps the id of an event in the buffer to the name of its counter, or to packetSpace. Events that sample time
	// have no name.
	names map[uint64]string
}

// packetSpace is the name of the event for namespaces.
const packetSpace = "\x00space"

// openRing opens one event for each attribute. The first has the buffer, and the others write to it.
func openRing(events []unix.PerfEventAttr, cpu int, o Options, pages int) (*ring, error) {
	r := &ring{output: -1, names: map[uint64]string{}}
	for _, a := range events {
		if err := r.openEvent(a, cpu, pages); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	if o.Space != nil {
		if err := r.addSpaceEvent(cpu, o); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	if o.Counters != nil {
		for _, c := range o.Counters.list {
			if c.cpu != cpu || !c.sampled {
				continue
			}
			if err := r.redirectOutput(c.fd, c.event); err != nil {
				return nil, errors.Join(err, r.close())
			}
			r.counters = append(r.counters, c)
		}
	}
	return r, nil
}

// redirectOutput makes another event write to the ring. It stores the event's name under the event's id.
func (r *ring) redirectOutput(event int, name string) error {
	if err := unix.IoctlSetInt(event, unix.PERF_EVENT_IOC_SET_OUTPUT, r.events[0]); err != nil {
		return os.NewSyscallError("ioctl PERF_EVENT_IOC_SET_OUTPUT", err)
	}
	var id uint64
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(event), unix.PERF_EVENT_IOC_ID, uintptr(unsafe.Pointer(&id))); e != 0 {
		return os.NewSyscallError("ioctl PERF_EVENT_IOC_ID", e)
	}
	r.names[id] = name
	return nil
}

func (r *ring) openEvent(a unix.PerfEventAttr, cpu, pages int) error {
	fd, err := unix.PerfEventOpen(&a, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.0
		a.Read_format = 0
		fd, err = unix.PerfEventOpen(&a, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	}
	if err != nil {
		return os.NewSyscallError("perf_event_open", err)
	}
	r.events = append(r.events, fd)
	if len(r.events) > 1 {
		return os.NewSyscallError("ioctl PERF_EVENT_IOC_SET_OUTPUT", unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_OUTPUT, r.events[0]))
	}
	r.memory, err = unix.Mmap(fd, 0, (1+pages)*unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return os.NewSyscallError("mmap of a perf event", err)
}

// addSpaceEvent adds the event for namespaces to the ring. It attaches the BPF program that writes the namespaces to
// the sampling events.
func (r *ring) addSpaceEvent(cpu int, o Options) error {
	a := sampling
	a.Type, a.Config, a.Sample, a.Sample_type = unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_BPF_OUTPUT, 1, outputType
	a.Bits &^= unix.PerfBitDisabled
	var err error
	if r.output, err = unix.PerfEventOpen(&a, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC); err != nil {
		r.output = -1
		return os.NewSyscallError("perf_event_open", err)
	}
	if err := r.redirectOutput(r.output, packetSpace); err != nil {
		return err
	}
	if err := o.Space.Output(cpu, r.output); err != nil {
		return err
	}
	for _, event := range r.events {
		if err := unix.IoctlSetInt(event, unix.PERF_EVENT_IOC_SET_BPF, o.Space.Sampled()); err != nil {
			return os.NewSyscallError("ioctl PERF_EVENT_IOC_SET_BPF", err)
		}
	}
	return nil
}

// readSamples adds the samples of the ring to all, and the number of samples that had no room.
func (r *ring) readSamples(all *Samples) error {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(&r.memory[0]))
	data := r.memory[unix.Getpagesize():]
	begin, end := page.Data_tail, atomic.LoadUint64(&page.Data_head)
	if end-begin > uint64(len(data)) {
		return fmt.Errorf("ring of a perf event: %d bytes in a buffer of %d", end-begin, len(data))
	}
	whole := make([]byte, 0, end-begin)
	for at := begin; at < end; {
		i := at % uint64(len(data))
		n := min(end-at, uint64(len(data))-i)
		whole = append(whole, data[i:i+n]...)
		at += n
	}
	atomic.StoreUint64(&page.Data_tail, end)
	before := all.Lost
	if err := decodeRecords(whole, r.names, all); err != nil {
		return err
	}
	// The kernel writes a record about lost samples only when there is room again. Its counters include all of them.
	var lost uint64
	for _, event := range r.events {
		var b [16]byte
		if n, err := unix.Read(event, b[:]); err != nil || n != len(b) {
			return nil // before Linux 6.0
		}
		lost += binary.NativeEndian.Uint64(b[8:])
	}
	for _, c := range r.counters {
		if n := len(c.readings); n > 0 {
			lost += c.readings[n-1].lost
		}
	}
	all.Lost = before + lost
	return nil
}

var errRecord = errors.New("ring of a perf event: a record is cut short")

// decodeRecords adds the records in b to all. names has the names of events by their ids. The record of a namespace precedes
// its sample.
func decodeRecords(b []byte, names map[uint64]string, all *Samples) error {
	var space uint32
	for len(b) > 0 {
		if len(b) < 8 {
			return errRecord
		}
		kind, size := binary.NativeEndian.Uint32(b), int(binary.NativeEndian.Uint16(b[6:]))
		if size < 8 || size > len(b) {
			return errRecord
		}
		body := fields(b[8:size])
		b = b[size:]
		switch kind {
		case recordLost:
			body.nextWord() // the id of the event
			all.Lost += body.nextWord()
		case recordThrottle:
			all.Throttled++
		case recordSample:
			name := names[body.nextWord()]
			if name == packetSpace {
				space = body.readRawWord()
				continue
			}
			s, ok := body.readSample()
			if !ok {
				return errRecord
			}
			s.Event, s.Space, space = name, space, 0
			all.List = append(all.List, s)
		}
	}
	return nil
}

// fields is the part of a record that is not read yet. A missing field is read as 0.
type fields []byte

func (f *fields) nextWord() uint64 {
	if len(*f) < 8 {
		*f = nil
		return 0
	}
	v := binary.NativeEndian.Uint64(*f)
	*f = (*f)[8:]
	return v
}

// readRawWord reads the first word of raw data, which follows its size.
func (f *fields) readRawWord() uint32 {
	return uint32(f.nextWord() >> 32)
}

// readSample reads the fields of sampleType after the identifier.
func (f *fields) readSample() (s Sample, ok bool) {
	ids := f.nextWord()
	s.PID, s.Task = int(uint32(ids)), int(uint32(ids>>32))
	s.Time, s.CPU, s.Period = int64(f.nextWord()), int(uint32(f.nextWord())), f.nextWord()
	n := f.nextWord()
	if n > uint64(len(*f)/8) {
		return s, false
	}
	into := &s.Kernel
	for range n {
		switch address := f.nextWord(); {
		case address == contextKernel:
			into = &s.Kernel
		case address == contextUser:
			into = &s.User
		case address >= contextMax:
			var rest []uint64
			into = &rest
		default:
			*into = append(*into, address)
		}
	}
	return s, true
}

func (r *ring) close() error {
	var errs []error
	if r.memory != nil {
		errs = append(errs, unix.Munmap(r.memory))
	}
	if r.output >= 0 {
		errs = append(errs, unix.Close(r.output))
	}
	for _, event := range r.events {
		errs = append(errs, unix.Close(event))
	}
	return errors.Join(errs...)
}
