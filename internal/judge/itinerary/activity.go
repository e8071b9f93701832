package itinerary

import (
	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Activity is what a part of the time was used for.
type Activity string

// The activities, in the order of legends.
const (
	Socket    Activity = "socket"
	Wake      Activity = "wake"
	Stack     Activity = "stack"
	Netfilter Activity = "netfilter"
	BPF       Activity = "bpf"
	Tunnel    Activity = "tunnel"
	Bridge    Activity = "bridge"
	Link      Activity = "link"
	Queue     Activity = "queue"
)

// Activities are all activities with their names in legends.
var Activities = []struct {
	Activity Activity
	About    string
}{
	{Socket, "socket, TCP"},
	{Wake, "wake-up"},
	{Stack, "IP, routing"},
	{Netfilter, "netfilter"},
	{BPF, "BPF program"},
	{Tunnel, "tunnel"},
	{Bridge, "bridge"},
	{Link, "link, backlog"},
	{Queue, "queue"},
}

// rule determines the activity between two events.
type rule struct {
	activity Activity
	// why is the reason why the two events show the activity.
	why string
	is  func(t journey.Trace, from, to journey.Event) bool
}

// rules are in the order in which they are applied. Time that matches no rule belongs to the IP stack: there is nothing
// else on the path.
var rules = []rule{
	{Netfilter, "a probe is the first function of the hook, another is the last", func(_ journey.Trace, from, to journey.Event) bool { return passesHook(from, to) }},
	{Tunnel, "headers of a tunnel came or went in between", func(t journey.Trace, from, to journey.Event) bool {
		return from.Depth != to.Depth && from.Device+to.Device != ""
	}},
	{Queue, "a queueing discipline gave the packet to the driver", func(_ journey.Trace, from, to journey.Event) bool { return from.Point == journey.Queue }},
	{Link, "a driver passed the packet on to the other end of its link, or to the device below", func(t journey.Trace, from, to journey.Event) bool {
		return from.Point == journey.Transmit && deviceOf(t, from).Kind != "bridge" && (to.Point == journey.Arrive || transmits(to) || from.Host != to.Host)
	}},
	{Link, "the backlog of a CPU kept the packet until the soft interrupt", func(_ journey.Trace, from, to journey.Event) bool { return from.Point == journey.Arrive }},
	{Wake, "the socket's owner was woken, and its application ran", func(_ journey.Trace, from, to journey.Event) bool {
		return from.Point == journey.Wake || from.Point == journey.Deliver || to.Point == journey.Deliver
	}},
	{Socket, "TCP makes a packet of bytes, or bytes of a packet", func(_ journey.Trace, from, to journey.Event) bool {
		return from.Point == journey.Send || from.Point == journey.Socket || to.Point == journey.Wake
	}},
	{BPF, "programs are on the device that received, or on the device that transmits; what is around them is in this time, too",
		func(t journey.Trace, from, to journey.Event) bool { return len(programsBetween(t, from, to)) > 0 }},
	{Bridge, "a port of a bridge received the packet, or transmits it", func(t journey.Trace, from, to journey.Event) bool {
		return from.Host == to.Host && (isAtBridge(t, from) || isAtBridge(t, to))
	}},
	{Socket, "TCP got the packet", func(_ journey.Trace, _, to journey.Event) bool { return to.Point == journey.Socket }},
}

// isAtBridge reports whether an event is at a bridge or at one of its ports.
func isAtBridge(t journey.Trace, e journey.Event) bool {
	d := deviceOf(t, e)
	return e.Index != 0 && (d.Kind == "bridge" || d.Master != "")
}

// activityBetween returns the activity between two events.
func activityBetween(t journey.Trace, from, to journey.Event) Activity {
	if r, ok := each.First(rules, func(r rule) bool { return r.is(t, from, to) }); ok {
		return r.activity
	}
	return Stack
}
