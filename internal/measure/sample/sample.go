// Package sample holds what one end of a trial saw, as values: counters, a latency histogram, rows per interval, and
// the snapshots taken at the window's edges.
//
// Nothing here measures and nothing judges. Read Observation first, then Histogram and Interval. Times are nanoseconds
// on the clock of the side that observed; the two sides' clocks are never compared.
package sample

// Observation is what one side of one trial saw between the edges of its own window.
type Observation struct {
	// Side is "client" or "server".
	Side string `json:"side"`
	// Machine is the id of the kernel's boot, "" if it could not be read: the same on one machine.
	Machine string `json:"machine,omitempty"`
	Placed
	// ElapsedNs is the length of the window as this side's monotonic clock saw it, in ns; always > 0.
	ElapsedNs int64 `json:"elapsed_ns"`
	// Operations counts completed units: transactions of rr and crr, echoes of ping, send or receive calls of stream.
	Operations uint64 `json:"operations"`
	// BytesSent and BytesReceived count payload at the socket; of http, the bodies of responses.
	BytesSent     uint64 `json:"bytes_sent"`
	BytesReceived uint64 `json:"bytes_received"`
	// Errors counts failures by kind: "timeout", "connection refused", "reset", "no port", ... Absent means none.
	Errors map[string]uint64 `json:"errors,omitempty"`
	// RTT is the distribution of round-trip times (rr; crr: from before connect to after the response; ping), and of http
	// that of response times (from before the request is sent to after the response, the connect not included); of dns those of
	// resolutions that found an address.
	RTT *Histogram `json:"rtt,omitempty"`
	// Connect is the distribution of connect times (crr, and http with a connection for each request).
	Connect *Histogram `json:"connect,omitempty"`
	// Undisturbed are percentiles in ns, by metric: of the times of RTT and Connect before which the yardstick read close to its
	// fastest (client of a closed loop with a CPU of its own).
	Undisturbed map[string]float64 `json:"undisturbed,omitempty"`
	// Transit is the distribution of one-way transit times above their minimum (UDP stream, receiver): RFC 5481 PDV.
	Transit *Histogram `json:"transit,omitempty"`
	// Backends counts by the name that a backend gives itself in its responses (client of http).
	Backends map[string]Backend `json:"backends,omitempty"`
	// Rolls are the times that this server of http was taken out of its Service and put back, in order (server of http).
	Rolls []Roll `json:"rolls,omitempty"`
	// Names is the account of the names that were resolved (client of dns).
	Names *Names `json:"names,omitempty"`
	// Pods is the account of the pods that were made (client of ttfr).
	Pods *Pods `json:"pods,omitempty"`
	// Job is the account of the steps of a job (client).
	Job *Job `json:"job,omitempty"`
	// Rest is what the nodes used while nothing was sent (client of idle).
	Rest []NodeRest `json:"rest,omitempty"`
	// Schedule reports how an open loop kept to its schedule (client of rr, crr, http and ttfr).
	Schedule *Schedule `json:"schedule,omitempty"`
	// Beside is the payload of the bulk flow beside rr; absent without one.
	Beside *Beside `json:"beside,omitempty"`
	// Intervals are the slices of the warm-up and of the window, in order.
	Intervals []Interval `json:"intervals,omitempty"`
	// CPU is the CPU time of this side within the window.
	CPU CPUTime `json:"cpu"`
	// TCP sums TCP_INFO over this side's flows at the window's edges (absent for UDP, ICMP, crr and http).
	TCP *TCPInfo `json:"tcp,omitempty"`
	// Buffers are those of the first flow's socket of a stream, read back from it.
	Buffers *Buffers `json:"buffers,omitempty"`
	// Datagrams is the account of a UDP stream's datagrams (receiver).
	Datagrams *Datagrams `json:"datagrams,omitempty"`
	// Host is the change of the machine's own counters within the window, as far as this side can read them.
	Host *HostDelta `json:"host,omitempty"`
	// Tool is set if another program was this side. Its window lies within its life; CPU and Host cover its whole life.
	Tool *Tool `json:"tool,omitempty"`
}

// Placed is where load threads ran.
type Placed struct {
	// LoadCPUs are the CPUs that load threads were pinned to; absent if they were not.
	LoadCPUs []int `json:"load_cpus,omitempty"`
	// Nice is the priority of load threads, negative if they go before others on their CPU.
	Nice int `json:"nice,omitempty"`
	// Threads are the load threads, and BeganNs is the reading of the machine's monotonic clock at the window's start; of a
	// sampled trial only.
	Threads []Thread `json:"threads,omitempty"`
	BeganNs int64    `json:"began_ns,omitempty"`
}

// Thread is a load thread: its id in its own PID namespace, and the inode of that namespace, 0 if unknown.
type Thread struct {
	ID    int    `json:"id"`
	Space uint64 `json:"space,omitempty"`
}

// Tool is the output of another program.
type Tool struct {
	// Name and Version are those of the tool; Version is "" if unknown.
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Command is the command line.
	Command []string `json:"command"`
	// Metrics are what it measured, in base units by name of package metric (client).
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Work is how many units of the workload's work it did in its life, warm-up included; 0 if unknown (client).
	Work float64 `json:"work,omitempty"`
	// Notes are remarks for readers of its numbers, by the id of a warning.
	Notes []Warning `json:"notes,omitempty"`
}

// Warning is a doubt about one trial, or a remark on it.
type Warning struct {
	ID      string `json:"id"`
	Message string `json:"message"`
}

// Backend is what one of several servers behind an address did for the client within the window.
type Backend struct {
	// Requests it answered, and Connections on which it answered at least one.
	Requests    uint64 `json:"requests"`
	Connections uint64 `json:"connections"`
}

// Names is the account of the resolutions of a window: those that began in it, or that were under way when it opened.
type Names struct {
	// Queries is how often a query was sent for them.
	Queries uint64 `json:"queries"`
	// Waited counts the resolutions that waited for one timeout or more, those without an answer among them.
	Waited uint64 `json:"waited,omitempty"`
	// Cut counts the resolutions that went on over TCP, because an answer did not fit in a datagram.
	Cut uint64 `json:"cut,omitempty"`
}

// Pods is the account of the new pods whose intended time was within the window. Operations counts those with an answer.
type Pods struct {
	// First is the distribution of the times from the intended time of a pod to its first response, Start of those from the
	// start of its program. A pod without an answer is in both with TimeoutNs.
	First *Histogram `json:"first,omitempty"`
	Start *Histogram `json:"start,omitempty"`
	// TimeoutNs is how long an answer may take. 0 means that an earlier version wrote the record: each pod dialled once, and First
	// has pods with an answer alone.
	TimeoutNs int64 `json:"timeout_ns,omitempty"`
	// Unanswered counts the pods without an answer, whatever the reason.
	Unanswered uint64 `json:"unanswered,omitempty"`
	// Attached says what attached the pods: AttachedInProcess or AttachedByPlugins; "" is unknown.
	Attached string `json:"attached,omitempty"`
	// Dials is how often the pods dialled, DialNs the CPU time of the threads that did.
	Dials  uint64 `json:"dials,omitempty"`
	DialNs int64  `json:"dial_ns,omitempty"`
	// Waits are the parts of the times of First in ns, summed over all pods, by name: a member of the family ttfr_wait. They
	// add up to the sum of the times.
	Waits map[string]int64 `json:"waits,omitempty"`
	// Slowest are the parts of the longest of the times in ns.
	Slowest map[string]int64 `json:"slowest,omitempty"`
	// Failure describes the first failure, "" for none.
	Failure string `json:"failure,omitempty"`
	// ClockNs is how far the clock of the pods' node, beside that of the controller, may be wrong in ns; 0 where one clock
	// timed all.
	ClockNs int64 `json:"clock_ns,omitempty"`
}

// Roll is one time that a server left and came back, by its own clock.
type Roll struct {
	// DrainNs is how long it still took connections after the request to leave, 0 for not at all.
	DrainNs int64 `json:"drain_ns"`
	// LastNs is the time from that request to the last connection within the drain; 0 means that none came.
	LastNs int64 `json:"last_ns,omitempty"`
	// Returned means that it listened again; FirstNs is the time from then to the first connection, 0 if none came.
	Returned bool  `json:"returned,omitempty"`
	FirstNs  int64 `json:"first_ns,omitempty"`
}

// Beside is the payload that a stream moved beside the workload within the window.
type Beside struct {
	BytesSent     uint64 `json:"bytes_sent"`
	BytesReceived uint64 `json:"bytes_received"`
}

// Schedule is the account of an open loop within the window.
type Schedule struct {
	// Due is how many requests were scheduled, Sent how many went out, earlier late ones included.
	Due  uint64 `json:"due"`
	Sent uint64 `json:"sent"`
	// Lag is how late the sender sent requests, without those that waited for room in a socket.
	Lag *Histogram `json:"lag,omitempty"`
}

// Interval is a slice: the shortest piece of a window with counts of its own. Time is relative to the start of the window,
// negative in the warm-up.
type Interval struct {
	StartNs    int64  `json:"start_ns"`
	EndNs      int64  `json:"end_ns"`
	Operations uint64 `json:"operations"`
	Bytes      uint64 `json:"bytes"`
	// CPUNs is the CPU time of the load threads; 0 if unknown.
	CPUNs int64 `json:"cpu_ns,omitempty"`
	// YardNs is the CPU time of a fixed piece of work on the CPU of the load, whose first use is not timed; the mean of running
	// medians. The higher it is, the slower was the machine. 0 if there was no reading.
	YardNs int64 `json:"calibration_ns,omitempty"`
	// ColdNs is the reading of results before it was so: with the caches as the path had left them. Nothing is judged by it.
	ColdNs int64 `json:"yard_ns,omitempty"`
	Warmup bool  `json:"warmup,omitempty"`
}

// CPUTime is CPU time within the window in ns.
type CPUTime struct {
	// ThreadsNs is the CPU clock of the load threads: what the workload itself used, with the softirq work that the
	// kernel ran on its back (see docs/reference/numbers.md for kernels that account interrupts apart).
	ThreadsNs int64 `json:"threads_ns"`
	// ProcessNs is the CPU clock of the whole agent process; the difference to ThreadsNs is the meter's own cost.
	ProcessNs int64 `json:"process_ns"`
	// WaitedNs is how long the load threads were ready to run and had no CPU, summed over them; 0 where the kernel does not say it.
	WaitedNs int64 `json:"waited_ns,omitempty"`
}

// TCPInfo is the change of TCP_INFO over the window, summed over flows, and the state at its end.
type TCPInfo struct {
	Retransmits uint64 `json:"retransmits"`
	SegmentsOut uint64 `json:"segments_out"`
	SegmentsIn  uint64 `json:"segments_in"`
	// CwndSegments, RTTNs and RTTVarNs are means over flows at the window's end; MSSBytes is of the first flow.
	CwndSegments uint64 `json:"cwnd_segments"`
	RTTNs        int64  `json:"rtt_ns"`
	RTTVarNs     int64  `json:"rttvar_ns"`
	MSSBytes     uint32 `json:"mss_bytes"`
	// Congestion is the algorithm in force on the first flow, read back from the socket.
	Congestion string `json:"congestion"`
}

// Buffers are the limits of a socket's buffers in bytes, as the kernel counts them: with its own overhead, so twice the
// requested size.
type Buffers struct {
	ReceiveBytes uint64 `json:"receive_bytes"`
	SendBytes    uint64 `json:"send_bytes"`
}

// Datagrams is the receiver's account of a UDP stream, by sequence numbers, for the window.
type Datagrams struct {
	// Expected is the span of sequence numbers that belong to the window; Lost = Expected - distinct Received.
	Expected   uint64 `json:"expected"`
	Received   uint64 `json:"received"`
	Lost       uint64 `json:"lost"`
	Reordered  uint64 `json:"reordered"`
	Duplicates uint64 `json:"duplicates"`
	// SocketDrops counts the packets that found the receive buffer of the flows' sockets full; absent if the
	// kernel does not report them.
	SocketDrops *uint64 `json:"socket_drops,omitempty"`
	// JitterNs is the mean distance of the transit times of neighbours (D of RFC 3550 6.4.1), mean over flows; 0 if it is
	// not known because datagrams went or came in batches.
	JitterNs float64 `json:"jitter_ns"`
	// SilentNs is the time from the last datagram of a flow to the end of the window, the longest of all flows.
	SilentNs int64 `json:"silent_ns,omitempty"`
}

// HostDelta is the change of the kernel's counters over the window.
type HostDelta struct {
	// CPUs maps a CPU number to the change of its line in /proc/stat, in ns by mode ("user", "system", "softirq"...).
	CPUs map[int]map[string]int64 `json:"cpus,omitempty"`
	// SpanNs is the time between the readings of the counters in ns, IdleNs for how much of it each CPU was idle; absent where the
	// kernel says so in ticks only, as in CPUs.
	SpanNs int64         `json:"span_ns,omitempty"`
	IdleNs map[int]int64 `json:"idle_ns,omitempty"`
	// Tasks are the tasks that ran on these CPUs, and those that did a path's work on any CPU: without the agents of the run, without
	// ksoftirqd of these CPUs, and without those that used less than a thousandth of the time. Absent where tasks cannot be seen.
	Tasks []Task `json:"tasks,omitempty"`
	// KsoftirqdNs is the CPU time of ksoftirqd on the CPUs of CPUs; absent where it cannot be seen (in a container).
	KsoftirqdNs *int64 `json:"ksoftirqd_ns,omitempty"`
	// SoftnetDropped and SoftnetSqueezed are the changes of /proc/net/softnet_stat, all CPUs (machine-wide).
	SoftnetDropped  uint64 `json:"softnet_dropped"`
	SoftnetSqueezed uint64 `json:"softnet_squeezed"`
	// SNMP has the changes of /proc/net/snmp and netstat that are not zero, "Tcp.RetransSegs" (this namespace).
	SNMP map[string]int64 `json:"snmp,omitempty"`
	// Devices has the changes of device counters that are not zero, "eth0.tx_dropped" (this namespace).
	Devices map[string]int64 `json:"devices,omitempty"`
	// MemoryBytes is the resident memory of the agent at the end of the window.
	MemoryBytes uint64 `json:"memory_bytes"`
	// NodeMemoryUsedBytes is MemTotal - MemAvailable at the end of the window.
	NodeMemoryUsedBytes uint64 `json:"node_memory_used_bytes"`
	// ThrottledNs is for how long a limit of CPU time stopped the threads of the agent's control group, summed over CPUs.
	ThrottledNs int64 `json:"throttled_ns,omitempty"`
	// HotStops is how often the processor slowed the CPUs of CPUs down because they were hot; 0 also where it does not count.
	HotStops int64 `json:"hot_stops,omitempty"`
}

// Kinds of Drop: what dropped the packets.
const (
	DropQdisc = "qdisc" // a queueing discipline was full, or a filter in its place dropped them
	DropTX    = "tx"    // a device that sends: interface statistics tx_dropped
	DropRX    = "rx"    // a device that receives: interface statistics rx_dropped
	// DropInsert is for packets of new connections that the table of connections did not take, because another had the same
	// addresses and ports: insert_failed.
	DropInsert = "insert_failed"
	// Clash is not a drop: another CPU had entered the connection of the packet at the same moment, and the kernel let it pass:
	// clash_resolve.
	Clash = "clash_resolve"
)

// Drop is a counter of the packets that a host dropped at one of its devices.
type Drop struct {
	// Host is the name of the network namespace or machine, Device that of the device.
	Host   string `json:"host"`
	Device string `json:"device"`
	// Kind is DropQdisc, DropTX or DropRX; What names the queueing discipline ("tbf").
	Kind    string `json:"kind"`
	What    string `json:"what,omitempty"`
	Packets uint64 `json:"packets"`
}

// at is the place of a counter.
func (d Drop) at() Drop {
	d.Packets = 0
	return d
}

// DropsBetween returns the drops between two readings of the same counters, without zeros. It leaves out a counter that is
// new or has decreased.
func DropsBetween(before, after []Drop) []Drop {
	earlier := map[Drop]uint64{}
	for _, d := range before {
		earlier[d.at()] += d.Packets
	}
	var grown []Drop
	for _, d := range after {
		if was, known := earlier[d.at()]; known && d.Packets > was {
			d.Packets -= was
			grown = append(grown, d)
		}
	}
	return grown
}
