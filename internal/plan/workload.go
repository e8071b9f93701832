package plan

import (
	"fmt"
	"strings"
	"time"
)

// Kind is what is sent.
type Kind string

const (
	// Stream is bulk transfer, TCP or UDP.
	Stream Kind = "stream"
	// RR is request-response over standing flows.
	RR Kind = "rr"
	// CRR is connect, request, response, close.
	CRR Kind = "crr"
	// Ping is ICMP echo.
	Ping Kind = "ping"
	// HTTP is requests of HTTP/1.1, one under way on each connection.
	HTTP Kind = "http"
	// Throughput is the search for the highest rate of UDP datagrams that is lost no more of than is accepted.
	Throughput Kind = "throughput"
)

// Protocol is the transport under a workload.
type Protocol string

const (
	// TCP and UDP are the transports of stream and rr; crr is TCP, ping is ICMP.
	TCP  Protocol = "tcp"
	UDP  Protocol = "udp"
	ICMP Protocol = "icmp"
)

// Workload is what is sent over a path. Kind decides which fields count; Normalize clears and defaults the others, so
// that two workloads that do the same are equal values.
type Workload struct {
	Kind     Kind     `json:"kind"`
	Protocol Protocol `json:"protocol"`
	// Flows is the number of concurrent 5-tuples, each with a thread of its own; 1 to 1024, default 1.
	Flows int `json:"flows"`
	// MessageSize is the payload of one send call of a stream in bytes: TCP 1 to 16 MiB, default 131072 (iperf3's);
	// UDP 16 to 65507, default 1400. For ping the payload of the echo, default 56.
	MessageSize int `json:"message_size,omitempty"`
	// Rate is the intended load, all flows together: of a UDP stream in bit/s of payload, 0 is as fast as possible; of
	// rr, crr and http in requests per second, 0 is a closed loop unless Load says otherwise.
	Rate float64 `json:"rate,omitempty"`
	// Loss is the share of datagrams that throughput accepts to be lost, 0 (default, RFC 2544's) to MaxLoss. Its Rate is
	// where the search begins and the most that is tried; 0 finds that out by sending as fast as possible.
	Loss float64 `json:"loss,omitempty"`
	// Load is the intended load of rr, crr and http as a share of the capacity that is measured first (see Capacity).
	Load float64 `json:"load,omitempty"`
	// Arrival is how requests of rr, crr and http fall due: "" in a closed loop, when the response has come; "poisson"
	// (default with Rate or Load) and "constant" in an open loop, by a schedule that waits for no response; "saturate"
	// whenever fewer than SaturationDepth are under way on a flow, which measures the capacity of rr and crr.
	Arrival string `json:"arrival,omitempty"`
	// Burst is how many requests of rr fall due at once, 2 to 1024; 0 is one. A closed loop sends the next burst when
	// all responses of the one before have come.
	Burst int `json:"burst,omitempty"`
	// Wait is how the threads of rr and crr wait: "" sleeps in the kernel, as an application does; "spin" asks again and
	// again, so that no wake-up is part of the time.
	Wait string `json:"wait,omitempty"`
	// Under is what goes over the path beside rr over TCP: "" nothing, "stream" a TCP stream from the client.
	Under string `json:"under,omitempty"`
	// Reverse makes the server send (netperf's MAERTS).
	Reverse bool `json:"reverse,omitempty"`
	// Bidirectional makes both sides of a stream send and receive, over as many flows each way as Flows says; Rate is that
	// of each direction.
	Bidirectional bool `json:"bidirectional,omitempty"`
	// Mix is "" for datagrams of one size, MessageSize, or IMIX for the sizes of IMIX in turn; of a UDP stream and of
	// throughput. MessageSize is then their mean.
	Mix string `json:"mix,omitempty"`
	// Buffer is the size asked for both buffers of every socket of a stream in bytes, 0 for the engine's choice: the
	// kernel's own for TCP, and 4 MiB to receive for UDP.
	Buffer int `json:"buffer,omitempty"`
	// Mode is how a stream moves bytes. UDP: "" (default) a packet each, "gso" leaves cutting to the device or to where
	// a device cannot (UDP_SEGMENT, UDP_GRO). TCP: "copy" (default, comparable with iperf3), "sendfile" (from a memfd),
	// "trunc" (copy on send, MSG_TRUNC on receive).
	Mode string `json:"mode,omitempty"`
	// RequestSize and ResponseSize are the payloads of rr and crr in bytes; 1 to 1 MiB (UDP 16 to 65507), default 1
	// for TCP and 16 for UDP, which carries a sequence number. http has a ResponseSize alone, that of the body, default
	// DefaultBody.
	RequestSize  int `json:"request_size,omitempty"`
	ResponseSize int `json:"response_size,omitempty"`
	// Close is how the client of crr ends a connection: "rst" (default, leaves no TIME_WAIT) or "fin".
	Close string `json:"close,omitempty"`
	// Interval is the time between echoes of ping; 0 sends the next when the reply has come.
	Interval time.Duration `json:"interval,omitempty"`
	// Threads and Connections are those of the client of http, the connections spread evenly over the threads; 1 to 64
	// (default 2) and Threads to 4096 (default 10), which are the defaults of wrk.
	Threads     int `json:"threads,omitempty"`
	Connections int `json:"connections,omitempty"`
	// Connection is what an http client does after a response: "keep-alive" (default) or "close", a connection for each
	// request.
	Connection string `json:"connection,omitempty"`
	// Backends is the number of servers of http behind the Service that a path leads to; 1 to 250, default 1. They are
	// spread evenly over the nodes, and the path's locality says on which node the first stands.
	Backends int `json:"backends,omitempty"`
	// Roll takes each backend of http in turn out of the Service while it is measured, ends its server, and puts it back
	// with the server, as a rolling update does; see RollStep.
	Roll bool `json:"roll,omitempty"`
	// Drain is how long a backend that was taken out still serves before its server ends, 0 (default: an application
	// that ends when it is told to) to MaxDrain.
	Drain time.Duration `json:"drain,omitempty"`
	// Congestion is the TCP congestion control asked of every socket; default "cubic".
	Congestion string `json:"congestion,omitempty"`
	// Tool is the program that sends the workload, one of Tools; "" is our own engine.
	Tool string `json:"tool,omitempty"`
}

// Limits and defaults of a workload's fields.
const (
	DefaultStreamMessage = 128 << 10
	DefaultDatagram      = 1400
	DefaultPingPayload   = 56
	MinDatagram          = 16
	MaxDatagram          = 65507
	MaxMessage           = 16 << 20
	MaxRequest           = 1 << 20
	MaxFlows             = 1024
	MaxThreads           = 64
	MaxConnections       = 4096
	MaxBackends          = 250
	DefaultThreads       = 2
	DefaultConnections   = 10
	DefaultBody          = 1024
	DefaultCongestion    = "cubic"
	MaxBurst             = 1024
	// MaxRequestRate bounds a rate of requests per second.
	MaxRequestRate = 1e8
	// SaturationDepth is how many requests are under way on each flow under Arrival "saturate".
	SaturationDepth = 32
)

// Words of Arrival, Wait and Under.
const (
	Constant = "constant"
	Poisson  = "poisson"
	Saturate = "saturate"
	Spin     = "spin"
)

// Normalize fills in defaults and clears fields that the kind does not use.
func (w Workload) Normalize() Workload {
	n := Workload{Kind: w.Kind, Protocol: w.Protocol, Flows: max(w.Flows, 1), Tool: w.Tool}
	n.arrive(w)
	if n.Protocol == "" {
		n.Protocol = TCP
	}
	switch w.Kind {
	case Stream:
		n.MessageSize, n.Reverse, n.Bidirectional = w.MessageSize, w.Reverse, w.Bidirectional
		if n.Protocol == UDP {
			n.Rate = w.Rate
			n.datagram(w)
			return n
		}
		n.MessageSize = orInt(n.MessageSize, DefaultStreamMessage)
		n.Mode, n.Buffer = orString(w.Mode, "copy"), w.Buffer
		n.Congestion = orString(w.Congestion, DefaultCongestion)
	case RR:
		size := 1
		if n.Protocol == UDP {
			size = MinDatagram
		} else {
			n.Congestion = orString(w.Congestion, DefaultCongestion)
			n.Under = w.Under
		}
		n.RequestSize, n.ResponseSize = orInt(w.RequestSize, size), orInt(w.ResponseSize, size)
		n.Wait = w.Wait
		if w.Burst != 1 {
			n.Burst = w.Burst
		}
	case CRR:
		n.Protocol = TCP
		n.RequestSize, n.ResponseSize = orInt(w.RequestSize, 1), orInt(w.ResponseSize, 1)
		n.Close = orString(w.Close, "rst")
		n.Wait = w.Wait
		n.Congestion = orString(w.Congestion, DefaultCongestion)
	case Throughput:
		n.search(w)
	case Ping:
		n.Protocol = ICMP
		n.MessageSize = orInt(w.MessageSize, DefaultPingPayload)
		n.Interval = w.Interval
	case HTTP:
		n.Protocol, n.Flows = TCP, 1
		n.Threads = orInt(w.Threads, DefaultThreads)
		n.Connections = orInt(w.Connections, max(DefaultConnections, n.Threads))
		n.Connection = orString(w.Connection, "keep-alive")
		n.Backends = orInt(w.Backends, 1)
		n.roll(w)
		n.ResponseSize = orInt(w.ResponseSize, DefaultBody)
		n.Congestion = orString(w.Congestion, DefaultCongestion)
	}
	return n
}

func orInt(v, d int) int {
	if v == 0 {
		return d
	}
	return v
}

func orString(v, d string) string {
	if v == "" {
		return d
	}
	return v
}

// Work is the unit of work of the workload, the denominator of its service demand: "transaction", "request", "KB" or
// "packet".
func (w Workload) Work() string {
	switch {
	case w.Kind == Throughput, w.Kind == Stream && w.Protocol == UDP:
		return "packet"
	case w.Kind == Stream:
		return "KB"
	}
	if w.Kind == HTTP {
		return "request"
	}
	return "transaction"
}

// Barred returns why the workload cannot go over a path whatever the profile, or "".
func (w Workload) Barred(p Path) string {
	if w.Kind == Ping && p.ByService() {
		return "a Service translates TCP and UDP ports; its address answers no ICMP echo"
	}
	if w.Backends > 1 && !p.Shared() {
		return "several backends stand behind a Service alone"
	}
	return w.barredTool(p)
}

// Servers is how many servers the workload has on a path: its Backends behind a Service, and one elsewhere. So raw,
// which has no Services, shows the same load on one server.
func (w Workload) Servers(p Path) int {
	if p.Shared() {
		return max(w.Backends, 1)
	}
	return 1
}

// Concurrency is how many exchanges of a closed loop are under way at the same time: one on each flow or connection, or
// what Arrival and Burst make of it.
func (w Workload) Concurrency() int {
	n := max(w.Flows, w.Connections) * max(w.Burst, 1)
	if w.Arrival == Saturate {
		n *= SaturationDepth
	}
	return n
}

// String is the workload's name in files, tables and on the command line: the kind, and in parentheses whatever
// differs from the default, for example "stream", "stream(udp,rate=1G)", "rr(request=1024,response=1024)".
// ParseWorkload reads it back.
func (w Workload) String() string {
	n := w.Normalize()
	d := Workload{Kind: n.Kind, Protocol: n.Protocol}.Normalize()
	var opt []string
	add := func(differs bool, format string, v any) {
		if differs {
			opt = append(opt, fmt.Sprintf(format, v))
		}
	}
	add(n.Protocol == UDP && n.Kind != Throughput, "%s", n.Protocol)
	add(n.Flows != d.Flows, "flows=%d", n.Flows)
	add(n.Mix != "", "message=%s", n.Mix)
	add(n.Mix == "" && n.MessageSize != d.MessageSize, "message=%d", n.MessageSize)
	add(n.Arrival != "" && n.Arrival != Poisson, "arrival=%s", n.Arrival)
	add(n.Rate != 0, "rate=%s", formatRate(n.Rate))
	add(n.Load != 0, "load=%s", FormatLoad(n.Load))
	add(n.Loss != 0, "loss=%s", FormatLoss(n.Loss))
	add(n.RequestSize != d.RequestSize, "request=%d", n.RequestSize)
	add(n.ResponseSize != d.ResponseSize, "response=%d", n.ResponseSize)
	add(n.Mode != d.Mode, "mode=%s", n.Mode)
	add(n.Buffer != 0, "buffer=%d", n.Buffer)
	add(n.Close != d.Close, "close=%s", n.Close)
	add(n.Threads != d.Threads, "threads=%d", n.Threads)
	add(n.Connections != d.Connections, "connections=%d", n.Connections)
	add(n.Connection != d.Connection, "connection=%s", n.Connection)
	add(n.Backends != d.Backends, "backends=%d", n.Backends)
	add(n.Drain != 0, "drain=%s", n.Drain)
	add(n.Interval != d.Interval, "interval=%s", n.Interval)
	add(n.Congestion != d.Congestion, "congestion=%s", n.Congestion)
	add(n.Burst != 0, "burst=%d", n.Burst)
	add(n.Wait != "", "wait=%s", n.Wait)
	add(n.Under != "", "under=%s", n.Under)
	add(n.Tool != "", "tool=%s", n.Tool)
	if n.Roll {
		opt = append(opt, "roll")
	}
	if n.Reverse {
		opt = append(opt, "reverse")
	}
	if n.Bidirectional {
		opt = append(opt, "bidirectional")
	}
	if len(opt) == 0 {
		return string(n.Kind)
	}
	return string(n.Kind) + "(" + strings.Join(opt, ",") + ")"
}
