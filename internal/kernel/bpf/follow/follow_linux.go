package follow

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/perf"
	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Errors for a kernel that lacks a feature that the probes need.
var (
	ErrNoBTF        = errors.New("this kernel has no BTF, which tells probes where its structures have their fields")
	ErrNoTracepoint = errors.New("this kernel lacks a tracepoint")
)

// Host is a namespace that transactions may pass.
type Host struct {
	Name string
	NS   *netns.NS
}

// Options define what is followed.
type Options struct {
	Hosts []Host
	// Client is the name of the host where transactions begin.
	Client string
	// Ports are the ports of the server and of Services, at most four; none for ICMP.
	Ports []int
	// Connects is true if each transaction opens a connection.
	Connects bool
	IPv6     bool
}

// buffer is the size of the buffer of records in bytes: a window of 50 ms has about 200,000 records. A transaction is
// followed only if there is room for mostRecords more records.
const buffer, mostRecords = 16 << 20, 2000

// recordHeader is the size of the header of each record in the buffer, in bytes.
const recordHeader = 8

// Follower is a set of probes, and the records that they write.
type Follower struct {
	o     Options
	names hosts
	coll  *ebpf.Collection
	links []io.Closer
	// begin is the point at which a transaction begins. before is the number of transactions that were followed
	// before Attach.
	begin  journey.Point
	before uint32
	// Missing lists what this kernel cannot record, each with the reason.
	Missing []string
}

// tracepoint is a tracepoint of the kernel, and the program for it.
type tracepoint struct {
	program, name string
	// without describes what a kernel without the tracepoint cannot record; "" means that it cannot record anything.
	without string
}

var tracepoints = []tracepoint{
	{"on_transmit", "net_dev_start_xmit", ""},
	{"on_receive", "netif_receive_skb", ""},
	{"on_arrive", "netif_rx", "the backlog of a CPU"},
	{"on_queue", "net_dev_queue", "queueing disciplines"},
	{"on_socket", "tcp_probe", "when TCP gets a packet"},
	{"on_wake", "sk_data_ready", "when a socket's owner is woken"},
	{"on_send", "tcp_sendmsg_locked", "when an application sends"},
	{"on_deliver", "sock_recv_length", "when an application receives"},
}

// Check fails if this process may not load the probes, or if the kernel lacks what they need.
func Check() error {
	err := features.HaveProgramType(ebpf.RawTracepoint)
	if errors.Is(err, os.ErrPermission) {
		return advice.With(fmt.Errorf("follow transactions: no right to load BPF programs: %w", err), "run as root, outside of any user namespace")
	}
	if err != nil {
		return fmt.Errorf("follow transactions: %w", err)
	}
	spec, err := loadPrograms()
	if err != nil {
		return err
	}
	_, err = fitToKernel(spec)
	return err
}

// fitToKernel removes from spec the programs that this kernel does not support, and returns what is then not
// recorded. It fails with ErrNoBTF or ErrNoTracepoint if nothing can be recorded.
func fitToKernel(spec *ebpf.CollectionSpec) (missing []string, err error) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, advice.With(fmt.Errorf("%w: %w", ErrNoBTF, err), "use a kernel with CONFIG_DEBUG_INFO_BTF=y")
	}
	if missing, err = fitToTracepoints(spec, kernel); err != nil {
		return nil, err
	}
	if err := features.HaveProgramType(ebpf.Netfilter); errors.Is(err, ebpf.ErrNotSupported) {
		delete(spec.Programs, "on_hook_begin")
		delete(spec.Programs, "on_hook_end")
		missing = append(missing, "netfilter hooks: the kernel has no BPF programs for them (Linux 6.4)")
	}
	return missing, nil
}

// Open loads the probes. It attaches only the probes that observe which netfilter hooks and queues carry traffic.
func Open(o Options) (*Follower, error) {
	f := &Follower{o: o, names: hosts{}}
	if err := f.loadProbes(); err != nil {
		return nil, errors.Join(fmt.Errorf("follow transactions: %w", err), f.Close())
	}
	return f, nil
}

func (f *Follower) loadProbes() error {
	spec, err := loadPrograms()
	if err != nil {
		return err
	}
	if f.Missing, err = fitToKernel(spec); err != nil {
		return err
	}
	settings, err := f.prepareSettings(spec)
	if err != nil {
		return err
	}
	if err := spec.Variables["settings"].Set(settings); err != nil {
		return err
	}
	spec.Maps["follow_records"].MaxEntries = buffer
	spec.Maps["follow_hosts"].MaxEntries = uint32(max(1, len(f.names)))
	if f.coll, err = attach.Load("journey", spec, ebpf.CollectionOptions{}); err != nil {
		return err
	}
	for inode := range f.names {
		if err := f.coll.Maps["follow_hosts"].Put(inode, programsHost{}); err != nil {
			return fmt.Errorf("note a namespace: %w", err)
		}
	}
	return errors.Join(f.attachToTracepoint("on_survey"), f.attachToTracepoint("on_survey_queue"))
}

// fitToTracepoints removes from spec the programs whose tracepoints the kernel lacks, and returns what is then not recorded.
// It fails with ErrNoTracepoint if nothing can be recorded.
func fitToTracepoints(spec *ebpf.CollectionSpec, kernel *btf.Spec) (missing []string, err error) {
	for _, t := range tracepoints {
		_, err := kernel.AnyTypesByName("btf_trace_" + t.name)
		switch {
		case err == nil:
			continue
		case t.without == "":
			return nil, advice.With(fmt.Errorf("%w, %s", ErrNoTracepoint, t.name), "use a kernel with CONFIG_TRACEPOINTS=y and CONFIG_NET=y")
		}
		delete(spec.Programs, t.program)
		if t.program == "on_queue" {
			delete(spec.Programs, "on_survey_queue")
		}
		missing = append(missing, fmt.Sprintf("%s: the kernel has no tracepoint %s", t.without, t.name))
	}
	return missing, nil
}

// prepareSettings returns the settings of the programs. It also sets f.names and f.begin.
func (f *Follower) prepareSettings(spec *ebpf.CollectionSpec) (s programsSettings, err error) {
	s = programsSettings{Room: buffer - mostRecords*(recordSize+recordHeader), Family: 4, Protocol: 6, Begin: uint8(journey.Send)}
	for _, h := range f.o.Hosts {
		inode, err := h.NS.Inode()
		if err != nil {
			return s, fmt.Errorf("%s: %w", h.Name, err)
		}
		if inode > math.MaxUint32 {
			return s, fmt.Errorf("%s: inode %d of its namespace is too large", h.Name, inode)
		}
		f.names[uint32(inode)] = h.Name
		if h.Name == f.o.Client {
			s.Client = uint32(inode)
		}
	}
	if len(f.o.Ports) > len(s.Ports) {
		return s, fmt.Errorf("%d ports, which is more than %d", len(f.o.Ports), len(s.Ports))
	}
	for i, p := range f.o.Ports {
		s.Ports[i] = uint16(p)
	}
	if f.o.IPv6 {
		s.Family = 6
	}
	if f.o.Connects {
		s.Connects = 1
	}
	if len(f.o.Ports) == 0 {
		s.Protocol = 1
	}
	if len(f.o.Ports) == 0 || f.o.Connects || spec.Programs["on_send"] == nil {
		s.Begin = uint8(journey.Transmit)
	}
	f.begin = journey.Point(s.Begin)
	return s, nil
}

// attachToTracepoint attaches a program to its tracepoint. It does nothing if fitToKernel removed the program.
func (f *Follower) attachToTracepoint(program string) error {
	p := f.coll.Programs[program]
	if p == nil {
		return nil
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: p, AttachType: ebpf.AttachTraceRawTp})
	if err != nil {
		return fmt.Errorf("attach %s: %w", program, err)
	}
	f.links = append(f.links, l)
	return nil
}

// Hooks returns the functions at the netfilter hooks that have had traffic since Open. The keys are the names of hosts.
// If the names of kernel functions cannot be read, the functions have no names, and Missing gets an entry.
func (f *Follower) Hooks() (map[string][]journey.HookList, error) {
	functions, err := perf.ReadKernel()
	if err != nil {
		f.Missing = append(f.Missing, "the names of functions at netfilter hooks: "+err.Error())
	}
	lists := map[string][]journey.HookList{}
	for inode, name := range f.names {
		var h programsHost
		if err := f.coll.Maps["follow_hosts"].Lookup(inode, &h); err != nil {
			return nil, fmt.Errorf("read the netfilter hooks of %s: %w", name, err)
		}
		for hook, count := range h.Counts {
			l := journey.HookList{Hook: journey.Hook(hook) + 1}
			for _, e := range h.Entries[hook][:min(int(count), len(h.Entries[hook]))] {
				fn := journey.Function{Priority: e.Priority}
				if name := functions.Name(e.Function); name != perf.Unknown {
					fn.Name = name
				}
				// Other functions have other private data.
				if strings.HasPrefix(fn.Name, "nft_do_chain") || fn.Name == "ipt_do_table" || fn.Name == "ip6t_do_table" {
					fn.Table, fn.Chain = cString(e.Table[:]), cString(e.Chain[:])
				}
				l.Functions = append(l.Functions, fn)
			}
			if len(l.Functions) > 0 {
				lists[name] = append(lists[name], l)
			}
		}
	}
	return lists, nil
}

// Which selects the probes to attach.
type Which int

// Ends selects the probes at which a transaction begins and ends. All selects these and the probes at every point
// between.
const (
	Ends Which = iota
	All
)

// SeesEnds reports whether this kernel has the probe at which a transaction ends.
func (f *Follower) SeesEnds() bool { return f.coll.Programs["on_deliver"] != nil }

// Attach attaches the selected probes, and follows transactions until Read. lists is the result of Hooks; only the
// hooks in it get probes. Queues get probes only if a packet has passed a queueing discipline since Open.
func (f *Follower) Attach(which Which, lists map[string][]journey.HookList) error {
	if err := f.detach(); err != nil { // those that surveyed
		return err
	}
	var queues uint8
	if err := f.coll.Variables["queues"].Get(&queues); err != nil {
		return err
	}
	for _, t := range tracepoints {
		if which == Ends && !f.recordsBeginOrEnd(t.program) || t.program == "on_queue" && queues == 0 {
			continue
		}
		if err := f.attachToTracepoint(t.program); err != nil {
			return err
		}
	}
	if which == All {
		for _, h := range f.o.Hosts {
			for _, l := range lists[h.Name] {
				if err := f.attachToHook(h, l.Hook); err != nil {
					return err
				}
			}
		}
	}
	if err := f.coll.Variables["sampled"].Get(&f.before); err != nil {
		return err
	}
	return errors.Join(f.coll.Variables["passed"].Set(uint32(0)), f.setVariable("armed", 1))
}

// recordsBeginOrEnd reports whether a program records the beginning or the end of a transaction.
func (f *Follower) recordsBeginOrEnd(program string) bool {
	begin := "on_send"
	if f.begin == journey.Transmit {
		begin = "on_transmit"
	}
	return program == begin || program == "on_deliver"
}

// attachToHook attaches probes before the first and after the last function of a netfilter hook of h. Only conntrack's
// confirmation of a new connection runs after the last probe.
func (f *Follower) attachToHook(h Host, hook journey.Hook) error {
	family := link.NetfilterProtocolFamily(link.NetfilterProtoIPv4)
	if f.o.IPv6 {
		family = link.NetfilterProtoIPv6
	}
	for _, p := range []struct {
		program  string
		priority int32
	}{{"on_hook_begin", math.MinInt32 + 1}, {"on_hook_end", math.MaxInt32 - 2}} { // conntrack of IPv6 confirms at MaxInt32-1
		program := f.coll.Programs[p.program]
		if program == nil {
			continue
		}
		err := h.NS.Do(func() error {
			l, err := link.AttachNetfilter(link.NetfilterOptions{Program: program, ProtocolFamily: family, Hook: link.NetfilterInetHook(hook - 1), Priority: p.priority})
			if err == nil {
				f.links = append(f.links, l)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: attach to netfilter %s: %w", h.Name, hook, err)
		}
	}
	return nil
}

// setVariable sets a variable of the loaded programs to value.
func (f *Follower) setVariable(variable string, value uint8) error {
	return f.coll.Variables[variable].Set(value)
}

// Seen is the result of Read: recorded events, and counts of transactions.
type Seen struct {
	// Events has the events of every n-th transaction followed since Attach; Read chooses n.
	Events []journey.Event
	// Followed is the number of transactions followed since Attach. Passed is the number of transactions since Attach
	// that were not followed because the buffer was full.
	Followed, Passed int
	// Lost is the number of events since Open for which the buffer had no room.
	Lost uint64
}

// Read detaches the probes, and returns the events of evenly chosen transactions. If enough were followed, it returns
// at least the given number of them and less than twice that number.
func (f *Follower) Read(transactions int) (s Seen, err error) {
	if err := errors.Join(f.setVariable("armed", 0), f.setVariable("active", 0), f.detach()); err != nil {
		return s, err
	}
	var sampled, passed uint32
	err = errors.Join(f.coll.Variables["sampled"].Get(&sampled), f.coll.Variables["passed"].Get(&passed), f.coll.Variables["lost"].Get(&s.Lost))
	if err != nil {
		return s, err
	}
	s.Followed, s.Passed = int(sampled-f.before), int(passed)
	every := uint32(max(1, s.Followed/max(1, transactions)))
	r, err := ringbuf.NewReader(f.coll.Maps["follow_records"])
	if err != nil {
		return s, err
	}
	defer r.Close()
	r.SetDeadline(time.Unix(1, 0)) // only what is there
	var rec ringbuf.Record
	for {
		err := r.ReadInto(&rec)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return s, nil
		}
		if err != nil {
			return s, fmt.Errorf("read events: %w", err)
		}
		e, err := f.names.decodeRecord(rec.RawSample)
		if err != nil {
			return s, err
		}
		if (e.Transaction-f.before)%every == 0 {
			s.Events = append(s.Events, e)
		}
	}
}

func (f *Follower) detach() error {
	err := attach.CloseAll(f.links)
	f.links = nil
	return err
}

// Close detaches and unloads the probes.
func (f *Follower) Close() error {
	err := f.detach()
	if f.coll != nil {
		f.coll.Close()
	}
	return err
}
