// Package sample holds the observations of one end of a trial as values: counters, a latency histogram, rows per
// interval, and the snapshots taken at the window's edges.
//
// The package neither measures nor judges. Read Observation first, then Histogram and Interval. Times are nanoseconds
// on the clock of the side that observed; the two sides' clocks are never compared.
package sample

// Observation is what one side of one trial measured between the edges of its own window.
type Observation struct {
	// Side is "client" or "server".
	Side string `json:"side"`
	// Machine is the id of the kernel's boot, which is the same for all agents of one machine; "" if it could not be
	// read.
	Machine string `json:"machine,omitempty"`
	Placed
	// ElapsedNs is the length of the window by this side's monotonic clock, in ns; always > 0.
	ElapsedNs int64 `json:"elapsed_ns"`
	// Operations counts completed units: transactions of rr and crr, echoes of ping, responses of http, names of dns, pods
	// of ttfr, steps of a job, datagrams of a UDP stream, send or receive calls of a TCP stream.
	Operations uint64 `json:"operations"`
	// BytesSent and BytesReceived count payload at the socket; for http, the bodies of responses.
	BytesSent     uint64 `json:"bytes_sent"`
	BytesReceived uint64 `json:"bytes_received"`
	// Errors counts failures by kind: "timeout", "connection refused", "reset", "no port", ... Absent means none.
	Errors map[string]uint64 `json:"errors,omitempty"`
	// RTT is a distribution of times. rr and ping: round trips. crr: from before the connect to the end of the response.
	// http: from before the request is sent to the end of the response, without the connect. dns: resolutions that found
	// an address.
	RTT *Histogram `json:"rtt,omitempty"`
	// Connect is the distribution of connect times (crr, and http with a connection for each request).
	Connect *Histogram `json:"connect,omitempty"`
	// Undisturbed has percentiles in ns by metric, of those times in RTT and Connect that began while the machine was
	// undisturbed. A fixed piece of work was then almost as fast as at its fastest (client of a closed loop with a
	// CPU of its own).
	Undisturbed map[string]float64 `json:"undisturbed,omitempty"`
	// Transit is the distribution of one-way transit times above their minimum (UDP stream, receiver): RFC 5481 PDV.
	Transit *Histogram `json:"transit,omitempty"`
	// Backends has the work of each backend, by the name in its responses (client of http).
	Backends map[string]Backend `json:"backends,omitempty"`
	// Rolls has one entry for each time that this server was taken out of its Service and put back (server of http).
	Rolls []Roll `json:"rolls,omitempty"`
	// Names counts the names that were resolved (client of dns).
	Names *Names `json:"names,omitempty"`
	// Pods has the pods that were created (client of ttfr).
	Pods *Pods `json:"pods,omitempty"`
	// Job is the account of the steps of a job (client).
	Job *Job `json:"job,omitempty"`
	// Rest is what the nodes used while nothing was sent (client of idle).
	Rest []NodeRest `json:"rest,omitempty"`
	// Schedule counts the due and the sent requests of an open loop (client of rr, crr, http and ttfr).
	Schedule *Schedule `json:"schedule,omitempty"`
	// Beside is the payload of the bulk flow during rr; absent without one.
	Beside *Beside `json:"beside,omitempty"`
	// Intervals are the slices of the warm-up and of the window, in order.
	Intervals []Interval `json:"intervals,omitempty"`
	// CPU is the CPU time of this side within the window.
	CPU CPUTime `json:"cpu"`
	// TCP sums TCP_INFO over this side's flows at the window's edges (absent for UDP, ICMP, crr and http).
	TCP *TCPInfo `json:"tcp,omitempty"`
	// Buffers are the buffer sizes of a stream's first socket, read back from it.
	Buffers *Buffers `json:"buffers,omitempty"`
	// Datagrams is the account of a UDP stream's datagrams (receiver).
	Datagrams *Datagrams `json:"datagrams,omitempty"`
	// Host is the change of the machine's own counters within the window, if this side can read them.
	Host *HostDelta `json:"host,omitempty"`
	// Tool is set if another program was this side. The program measures during a part of its life; CPU and Host
	// cover its whole life.
	Tool *Tool `json:"tool,omitempty"`
}

// Placed is where load threads ran.
type Placed struct {
	// LoadCPUs are the CPUs that load threads were pinned to; absent if they were not.
	LoadCPUs []int `json:"load_cpus,omitempty"`
	// Nice is the priority of load threads, negative if they have priority over others on their CPU.
	Nice int `json:"nice,omitempty"`
	// Threads are the load threads, and BeganNs is the machine's monotonic clock at the window's start; only set for a
	// sampled trial.
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
	// Name and Version are the tool's; Version is "" if unknown.
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Command is the command line.
	Command []string `json:"command"`
	// Metrics are its measurements, in base units by name of package metric (client).
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Work is the number of units of work in its life, warm-up included; 0 if unknown (client).
	Work float64 `json:"work,omitempty"`
	// Notes are remarks for readers of its numbers, by the id of a warning.
	Notes []Warning `json:"notes,omitempty"`
}

// Warning is a doubt about one trial, or a remark on it.
type Warning struct {
	ID      string `json:"id"`
	Message string `json:"message"`
}

// Backend counts what one of several servers behind an address did for the client within the window.
type Backend struct {
	// Requests is the number of requests that it answered, Connections the number of connections on which it answered
	// any.
	Requests    uint64 `json:"requests"`
	Connections uint64 `json:"connections"`
}

// Names counts the resolutions of a window: those that began in it, or were pending when it opened.
type Names struct {
	// Queries is the number of queries sent for them.
	Queries uint64 `json:"queries"`
	// Waited counts the resolutions that waited for one timeout or more, including those without an answer.
	Waited uint64 `json:"waited,omitempty"`
	// Cut counts the resolutions that continued over TCP, because an answer did not fit in a datagram.
	Cut uint64 `json:"cut,omitempty"`
}

// Pods has the new pods whose intended time was within the window. Operations counts those with an answer.
type Pods struct {
	// First is the distribution of the times from the intended time of a pod to its first response, Start of the times
	// from the start of its program. A pod without an answer is in both with TimeoutNs.
	First *Histogram `json:"first,omitempty"`
	Start *Histogram `json:"start,omitempty"`
	// TimeoutNs is the timeout of an answer. 0 means that an earlier version wrote the record: then each pod dialled
	// once, and First only has pods with an answer.
	TimeoutNs int64 `json:"timeout_ns,omitempty"`
	// Unanswered counts the pods without an answer, whatever the reason.
	Unanswered uint64 `json:"unanswered,omitempty"`
	// Attached is what attached the pods: AttachedInProcess or AttachedByPlugins; "" is unknown.
	Attached string `json:"attached,omitempty"`
	// Dials is the number of attempts of the pods, DialNs the CPU time of the threads that made them.
	Dials  uint64 `json:"dials,omitempty"`
	DialNs int64  `json:"dial_ns,omitempty"`
	// Waits are the parts of the times of First in ns, summed over all pods, by name: members of the family ttfr_wait.
	// They add up to the sum of the times.
	Waits map[string]int64 `json:"waits,omitempty"`
	// Slowest are the parts in ns of the longest time in First.
	Slowest map[string]int64 `json:"slowest,omitempty"`
	// Failure describes the first failure, "" for none.
	Failure string `json:"failure,omitempty"`
	// ClockNs is the uncertainty of the pods' node's clock relative to the controller's in ns; 0 if one clock measured
	// all times.
	ClockNs int64 `json:"clock_ns,omitempty"`
}

// Roll is one removal and return of a server, by its own clock.
type Roll struct {
	// DrainNs is how long it still accepted connections after the request to leave; almost 0 without a drain.
	DrainNs int64 `json:"drain_ns"`
	// LastNs is the time from that request to the last connection within the drain; 0 means that there was none.
	LastNs int64 `json:"last_ns,omitempty"`
	// Returned means that it listened again; FirstNs is the time from then to the first connection, 0 if there was
	// none.
	Returned bool  `json:"returned,omitempty"`
	FirstNs  int64 `json:"first_ns,omitempty"`
}

// Beside is the payload of a stream that ran during the workload, within the window.
type Beside struct {
	BytesSent     uint64 `json:"bytes_sent"`
	BytesReceived uint64 `json:"bytes_received"`
}

// Schedule has the requests of an open loop within the window.
type Schedule struct {
	// Due is the number of scheduled requests, Sent the number sent, including late ones that were due earlier.
	Due  uint64 `json:"due"`
	Sent uint64 `json:"sent"`
	// Lag is the distribution of how late the sender sent requests, without requests that waited for room on the
	// path.
	Lag *Histogram `json:"lag,omitempty"`
}

// Interval is a slice: the shortest part of a window with its own counts. Time is relative to the start of the window,
// negative in the warm-up.
type Interval struct {
	StartNs    int64  `json:"start_ns"`
	EndNs      int64  `json:"end_ns"`
	Operations uint64 `json:"operations"`
	Bytes      uint64 `json:"bytes"`
	// CPUNs is the CPU time of the load threads; 0 if unknown.
	CPUNs int64 `json:"cpu_ns,omitempty"`
	// YardNs is the CPU time of a fixed piece of work on the CPU of the load, after an untimed run of it; the mean of
	// running medians. The higher it is, the slower the machine was. 0 if there was no reading.
	YardNs int64 `json:"calibration_ns,omitempty"`
	// ColdNs is the same reading in older results, without the untimed run, so it depends on what the caches held. It
	// is not used.
	ColdNs int64 `json:"yard_ns,omitempty"`
	Warmup bool  `json:"warmup,omitempty"`
}

// CPUTime is CPU time within the window in ns.
type CPUTime struct {
	// ThreadsNs is the CPU clock of the load threads: the workload's own use, and softirq work that the kernel ran in
	// their context (see docs/reference/numbers.md for kernels that account interrupts separately).
	ThreadsNs int64 `json:"threads_ns"`
	// ProcessNs is the CPU clock of the whole agent process; the difference to ThreadsNs is the cost of measuring.
	ProcessNs int64 `json:"process_ns"`
	// WaitedNs is how long the load threads were ready to run without a CPU, summed over them; 0 if the kernel does not
	// report it.
	WaitedNs int64 `json:"waited_ns,omitempty"`
}

// TCPInfo is the change of TCP_INFO over the window, summed over flows, and the state at its end.
type TCPInfo struct {
	Retransmits uint64 `json:"retransmits"`
	SegmentsOut uint64 `json:"segments_out"`
	SegmentsIn  uint64 `json:"segments_in"`
	// CwndSegments, RTTNs and RTTVarNs are means over flows at the window's end; MSSBytes is the first flow's.
	CwndSegments uint64 `json:"cwnd_segments"`
	RTTNs        int64  `json:"rtt_ns"`
	RTTVarNs     int64  `json:"rttvar_ns"`
	MSSBytes     uint32 `json:"mss_bytes"`
	// Congestion is the algorithm in force on the first flow, read back from the socket.
	Congestion string `json:"congestion"`
}

// Buffers are the limits of a socket's buffers in bytes, including the kernel's overhead, so twice the requested size.
type Buffers struct {
	ReceiveBytes uint64 `json:"receive_bytes"`
	SendBytes    uint64 `json:"send_bytes"`
}

// Datagrams is the receiver's count of a UDP stream, by sequence numbers, for the window.
type Datagrams struct {
	// Expected is how many sequence numbers belong to the window, Received how many of them arrived, each counted once.
	// Lost is Expected - Received.
	Expected   uint64 `json:"expected"`
	Received   uint64 `json:"received"`
	Lost       uint64 `json:"lost"`
	Reordered  uint64 `json:"reordered"`
	Duplicates uint64 `json:"duplicates"`
	// SocketDrops counts the packets that the flows' sockets dropped because their receive buffer was full; absent if
	// the kernel does not report them.
	SocketDrops *uint64 `json:"socket_drops,omitempty"`
	// JitterNs is the mean difference of the transit times of neighbours (D of RFC 3550 6.4.1), mean over flows; 0 if
	// unknown because datagrams were sent or received in batches.
	JitterNs float64 `json:"jitter_ns"`
	// SilentNs is the time from the last datagram of a flow to the end of the window, the longest of all flows.
	SilentNs int64 `json:"silent_ns,omitempty"`
}

// HostDelta is the change of the kernel's counters over the window.
type HostDelta struct {
	// CPUs maps a CPU number to the change of its line in /proc/stat, in ns by mode ("user", "system", "softirq"...).
	CPUs map[int]map[string]int64 `json:"cpus,omitempty"`
	// SpanNs is the time between the two readings of the counters in ns.
	SpanNs int64 `json:"span_ns,omitempty"`
	// IdleNs is how long each CPU was idle in this time; absent if the kernel only counts idle ticks ("idle" in CPUs).
	IdleNs map[int]int64 `json:"idle_ns,omitempty"`
	// Tasks are the tasks that ran on these CPUs, and those that worked for a path on any CPU: without the agents of
	// the run, without ksoftirqd of these CPUs, and without tasks that used less than a thousandth of the time. Absent
	// if tasks are not visible.
	Tasks []Task `json:"tasks,omitempty"`
	// KsoftirqdNs is the CPU time of ksoftirqd on the CPUs listed in CPUs; absent if it is not visible (in a
	// container).
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
	// ThrottledNs is how long a CPU limit stopped the threads of the agent's control group, summed over CPUs.
	ThrottledNs int64 `json:"throttled_ns,omitempty"`
	// HotStops is how often the processor slowed down the CPUs listed in CPUs because of heat; also 0 if the
	// processor does not count it.
	HotStops int64 `json:"hot_stops,omitempty"`
}

// Kinds of Drop: what dropped the packets.
const (
	DropQdisc = "qdisc" // a queueing discipline was full, or a filter in its place dropped them
	DropTX    = "tx"    // a device that sends: interface statistics tx_dropped
	DropRX    = "rx"    // a device that receives: interface statistics rx_dropped
	// DropInsert is for packets of new connections that the connection table did not accept, because another had the
	// same addresses and ports: insert_failed.
	DropInsert = "insert_failed"
	// Clash is not a drop: another CPU had inserted the connection of the packet at the same moment, and the kernel let
	// it pass: clash_resolve.
	Clash = "clash_resolve"
)

// Drop is a counter of the packets that a host dropped at one of its devices, or of connections (DropInsert, Clash).
type Drop struct {
	// Host is the name of the network namespace or machine, Device the name of the device.
	Host   string `json:"host"`
	Device string `json:"device"`
	// Kind is one of the kinds above. What names the queueing discipline ("tbf") if the kind is DropQdisc.
	Kind    string `json:"kind"`
	What    string `json:"what,omitempty"`
	Packets uint64 `json:"packets"`
}

// counterKey returns d without its number of packets. The result identifies the counter.
func (d Drop) counterKey() Drop {
	d.Packets = 0
	return d
}

// DropsBetween returns the drops between two readings of the same counters, without zeros. It leaves out a counter that
// is new or has decreased.
func DropsBetween(before, after []Drop) []Drop {
	earlier := map[Drop]uint64{}
	for _, d := range before {
		earlier[d.counterKey()] += d.Packets
	}
	var grown []Drop
	for _, d := range after {
		if was, known := earlier[d.counterKey()]; known && d.Packets > was {
			d.Packets -= was
			grown = append(grown, d)
		}
	}
	return grown
}
