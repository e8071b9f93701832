// Package journey holds the records of transactions: which points of which hosts they passed, and when.
//
// Package follow records the events, package tracing collects them into a Trace, and package itinerary turns that into
// steps with times.
package journey

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Point is a place in the kernel that a transaction passes, at a socket, a device or a netfilter hook.
type Point uint8

// The points, in the order in which a request passes them.
const (
	// Send: the application gave bytes to TCP.
	Send Point = iota + 1
	// Queue: the packet reached the queueing discipline of a device.
	Queue
	// Transmit: the driver of a device got the packet.
	Transmit
	// Arrive: the packet was put into a CPU's backlog, before a device receives it.
	Arrive
	// Receive: the stack began to process a packet that a device received.
	Receive
	// HookBegin and HookEnd: the packet is before the first and after the last function of a netfilter hook.
	HookBegin
	HookEnd
	// Socket: TCP processes the packet for its socket.
	Socket
	// Wake: TCP notified the socket's owner that there is data.
	Wake
	// Deliver: the application got bytes.
	Deliver
)

var points = []string{"", "send", "queue", "transmit", "arrive", "receive", "hook-begin", "hook-end", "socket", "wake", "deliver"}

// String returns the name of a point.
func (p Point) String() string { return name(points, p) }

// MarshalText writes the name.
func (p Point) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a name.
func (p *Point) UnmarshalText(b []byte) error { return parseName(points, b, p) }

// Hook is a hook of netfilter: the kernel's number plus 1, so that 0 means no hook.
type Hook uint8

var hooks = []string{"", "PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// Hooks is the number of hooks.
const Hooks = 5

// String returns the name that iptables has for a hook.
func (h Hook) String() string { return name(hooks, h) }

// MarshalText writes the name.
func (h Hook) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads a name.
func (h *Hook) UnmarshalText(b []byte) error { return parseName(hooks, b, h) }

// Direction is the direction of a packet.
type Direction uint8

// The directions.
const (
	Request Direction = iota + 1
	Response
)

var directions = []string{"", "request", "response"}

// String returns the name of a direction.
func (d Direction) String() string { return name(directions, d) }

// MarshalText writes the name.
func (d Direction) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a name.
func (d *Direction) UnmarshalText(b []byte) error { return parseName(directions, b, d) }

func name[T ~uint8](names []string, n T) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("#%d", n)
}

func parseName[T ~uint8](names []string, b []byte, to *T) error {
	i := slices.Index(names, string(b))
	if i < 0 || len(b) == 0 {
		return fmt.Errorf("%q is unknown: want one of %s", b, strings.TrimPrefix(strings.Join(names, ", "), ", "))
	}
	*to = T(i)
	return nil
}

// Event is a transaction at one point.
type Event struct {
	// Time is in ns of the machine's monotonic clock.
	Time uint64 `json:"t"`
	// Transaction numbers the sampled transactions from 1.
	Transaction uint32 `json:"n"`
	Host        string `json:"host"`
	// Device and Index identify the network device, absent for sockets and hooks.
	Device string `json:"dev,omitempty"`
	Index  uint32 `json:"index,omitempty"`
	Point  Point  `json:"point"`
	// Hook is the hook of HookBegin and HookEnd.
	Hook      Hook      `json:"hook,omitempty"`
	Direction Direction `json:"way"`
	// Sequence is the sequence number of TCP or ICMP, Flags are the flags of TCP, Length is the payload in bytes. Events
	// of sockets have none of them.
	Sequence uint32 `json:"seq,omitempty"`
	Flags    uint8  `json:"flags,omitempty"`
	Length   uint16 `json:"len,omitempty"`
	// Depth is how many headers of tunnels are around the packet.
	Depth uint8 `json:"depth,omitempty"`
	// Took is how long the probe ran after Time in ns, without its call and its return.
	Took uint16 `json:"took,omitempty"`
	// Vain is how many probes ran since the previous event without recording an event.
	Vain uint8 `json:"vain,omitempty"`
}

// Kind is the kind of a host.
type Kind string

// The kinds of hosts.
const (
	Pod      Kind = "pod"
	Node     Kind = "node"
	Switch   Kind = "switch"
	External Kind = "external"
)

// Host is a network namespace.
type Host struct {
	Name    string     `json:"name"`
	Kind    Kind       `json:"kind"`
	Devices []Device   `json:"devices,omitempty"`
	Hooks   []HookList `json:"hooks,omitempty"`
}

// Device returns the device with an index, or the zero Device.
func (h Host) Device(index uint32) Device {
	found, _ := each.First(h.Devices, func(d Device) bool { return d.Index == index })
	return found
}

// Device is a network device.
type Device struct {
	Name  string `json:"name"`
	Index uint32 `json:"index"`
	// Kind is the kernel's: veth, bridge, vxlan and so on. Master is the bridge of which it is a port.
	Kind   string `json:"kind"`
	Master string `json:"master,omitempty"`
	// Ingress and Egress are the names of its BPF programs, in order.
	Ingress []string `json:"ingress,omitempty"`
	Egress  []string `json:"egress,omitempty"`
}

// HookList is the functions at a hook of netfilter, in order.
type HookList struct {
	Hook      Hook       `json:"hook"`
	Functions []Function `json:"functions"`
}

// Function is one function at a hook. Name is the kernel's, "" if unknown; Table and Chain are set for rules.
type Function struct {
	Name     string `json:"name,omitempty"`
	Priority int32  `json:"priority"`
	Table    string `json:"table,omitempty"`
	Chain    string `json:"chain,omitempty"`
}

// String returns a short name: the table and the chain, else the kernel's function, else the priority.
func (f Function) String() string {
	switch {
	case f.Table != "" && f.Chain != "":
		return f.Table + " " + f.Chain
	case f.Table != "":
		return f.Table
	case f.Name != "":
		return f.Name
	}
	return fmt.Sprintf("priority %d", f.Priority)
}

// Trace is the records of one profile on one path.
type Trace struct {
	Profile  plan.Variant  `json:"profile"`
	Path     plan.Path     `json:"path"`
	Workload plan.Workload `json:"workload"`
	// Client and Server are names of hosts.
	Client string `json:"client"`
	Server string `json:"server"`
	Hosts  []Host `json:"hosts"`
	// Lost is how many events were not recorded because the buffer was full.
	Lost uint64 `json:"lost"`
	// Missing are points that this kernel cannot show, with the reason.
	Missing []string `json:"missing,omitempty"`
	// Rounds are the rounds in the order of their time.
	Rounds []Round `json:"rounds"`
	// Events are from the windows with all probes, of a sample of the transactions, in no order. Ends are from the
	// windows with probes only at both ends.
	Events []Event `json:"events"`
	Ends   []Event `json:"ends"`
}

// Round is three windows close in time: without probes, with probes at both ends of a transaction, and with all probes.
type Round struct {
	Plain Window `json:"plain"`
	Ends  Window `json:"ends"`
	All   Window `json:"all"`
}

// Window is the speed of all transactions of a window, as their client measured it.
type Window struct {
	// From and To are on the machine's monotonic clock in ns.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Rate is in transactions per second, RTT has the round-trip times, nil for a window that was not measured.
	Rate float64           `json:"rate"`
	RTT  *sample.Histogram `json:"rtt"`
	// Passed is the number of transactions that were not followed because the buffer was full.
	Passed int `json:"passed,omitempty"`
}

// Has reports whether a moment is in a window.
func (w Window) Has(at uint64) bool { return at >= w.From && at < w.To }

// Host returns the host called name, or false.
func (t Trace) Host(name string) (Host, bool) {
	return each.First(t.Hosts, func(h Host) bool { return h.Name == name })
}

// Options define how transactions are followed.
type Options struct {
	Workload plan.Workload
	// Transactions is the approximate number of transactions whose events are kept, spread over the windows with all
	// probes. Window is the total length of all windows of one kind.
	Transactions   int
	Warmup, Window time.Duration
}

// largest is the largest request or response in bytes that is one packet on every path.
const largest = 1024

// Unfit returns why the transactions of a workload cannot be followed, "" if they can: there must be one at a time,
// with a request and a response of one identifiable packet each.
func Unfit(w plan.Workload) string {
	switch t := w.Traits(); {
	case t.Work != plan.Transaction:
		return "it has no transactions: want rr, crr or ping"
	case w.Tool != "":
		return "another program sends it: leave the tool out"
	case t.Protocol == plan.UDP:
		return "datagrams carry no sequence number of the kernel's: want TCP"
	case t.Flows > 1:
		return fmt.Sprintf("%d flows have transactions at the same time: want flows=1", t.Flows)
	case t.Burst > 1 || t.Arrival == plan.Saturate || t.Beside:
		return "transactions overlap or other traffic flows beside them: want a closed loop or a low rate"
	case t.Load > 0:
		return "its capacity is not measured here: want a rate in place of a load"
	case max(t.Request, t.Response, t.Message) > largest:
		return fmt.Sprintf("%d bytes may be several packets: want at most %d", max(t.Request, t.Response, t.Message), largest)
	}
	return ""
}
