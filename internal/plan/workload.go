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
	// Rate is the intended load of a UDP stream in bit/s of payload, all flows together; 0 is as fast as possible.
	Rate float64 `json:"rate,omitempty"`
	// Reverse makes the server send (netperf's MAERTS).
	Reverse bool `json:"reverse,omitempty"`
	// Mode is how a TCP stream moves bytes: "copy" (default, comparable with iperf3), "sendfile" (from a memfd),
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
	// Congestion is the TCP congestion control asked of every socket; default "cubic".
	Congestion string `json:"congestion,omitempty"`
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
	DefaultThreads       = 2
	DefaultConnections   = 10
	DefaultBody          = 1024
	DefaultCongestion    = "cubic"
)

// Normalize fills in defaults and clears fields that the kind does not use.
func (w Workload) Normalize() Workload {
	n := Workload{Kind: w.Kind, Protocol: w.Protocol, Flows: max(w.Flows, 1)}
	if n.Protocol == "" {
		n.Protocol = TCP
	}
	switch w.Kind {
	case Stream:
		n.MessageSize, n.Reverse = w.MessageSize, w.Reverse
		if n.Protocol == UDP {
			n.Rate = w.Rate
			n.MessageSize = orInt(n.MessageSize, DefaultDatagram)
			return n
		}
		n.MessageSize = orInt(n.MessageSize, DefaultStreamMessage)
		n.Mode = orString(w.Mode, "copy")
		n.Congestion = orString(w.Congestion, DefaultCongestion)
	case RR:
		size := 1
		if n.Protocol == UDP {
			size = MinDatagram
		} else {
			n.Congestion = orString(w.Congestion, DefaultCongestion)
		}
		n.RequestSize, n.ResponseSize = orInt(w.RequestSize, size), orInt(w.ResponseSize, size)
	case CRR:
		n.Protocol = TCP
		n.RequestSize, n.ResponseSize = orInt(w.RequestSize, 1), orInt(w.ResponseSize, 1)
		n.Close = orString(w.Close, "rst")
		n.Congestion = orString(w.Congestion, DefaultCongestion)
	case Ping:
		n.Protocol = ICMP
		n.MessageSize = orInt(w.MessageSize, DefaultPingPayload)
		n.Interval = w.Interval
	case HTTP:
		n.Protocol, n.Flows = TCP, 1
		n.Threads = orInt(w.Threads, DefaultThreads)
		n.Connections = orInt(w.Connections, max(DefaultConnections, n.Threads))
		n.Connection = orString(w.Connection, "keep-alive")
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
	case w.Kind == Stream && w.Protocol == UDP:
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
	if w.Kind == Ping && (p.To == Service || p.To == NodePort || p.To == Self) {
		return "a Service translates TCP and UDP ports; its address answers no ICMP echo"
	}
	return ""
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
	add(n.Protocol == UDP, "%s", n.Protocol)
	add(n.Flows != d.Flows, "flows=%d", n.Flows)
	add(n.MessageSize != d.MessageSize, "message=%d", n.MessageSize)
	add(n.Rate != 0, "rate=%s", formatRate(n.Rate))
	add(n.RequestSize != d.RequestSize, "request=%d", n.RequestSize)
	add(n.ResponseSize != d.ResponseSize, "response=%d", n.ResponseSize)
	add(n.Mode != d.Mode, "mode=%s", n.Mode)
	add(n.Close != d.Close, "close=%s", n.Close)
	add(n.Threads != d.Threads, "threads=%d", n.Threads)
	add(n.Connections != d.Connections, "connections=%d", n.Connections)
	add(n.Connection != d.Connection, "connection=%s", n.Connection)
	add(n.Interval != d.Interval, "interval=%s", n.Interval)
	add(n.Congestion != d.Congestion, "congestion=%s", n.Congestion)
	if n.Reverse {
		opt = append(opt, "reverse")
	}
	if len(opt) == 0 {
		return string(n.Kind)
	}
	return string(n.Kind) + "(" + strings.Join(opt, ",") + ")"
}
