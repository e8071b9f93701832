package plan

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// RR sends requests and receives responses over flows that exist during the whole window.
type RR struct {
	Protocol Protocol
	Flows    int
	// Rate, Load and Arrival define the schedule of requests; see checkPacing.
	Rate, Load float64
	Arrival    string
	// RequestSize and ResponseSize are the payloads in bytes. The default is 1 for TCP, and MinDatagram for UDP, which
	// has a sequence number.
	RequestSize, ResponseSize int
	Congestion                string
	// Burst is the number of requests that are scheduled at once; 0 means one. A closed loop sends the next burst when
	// all responses of the previous one have arrived.
	Burst int
	// Wait is how threads wait. "sleep" (default) waits in the kernel, as an application does. "spin" polls, so that
	// the time includes no wake-up.
	Wait string
	// Under is other traffic on the path during rr over TCP: "" for none, "stream" for a TCP stream from the client.
	Under string
}

// maxBurst is the largest RR.Burst.
const maxBurst = 1024

// spinning is the value of Wait for threads that poll instead of sleeping.
const spinning = "spin"

// waits are the values of the option wait, the default first.
var waits = wordValues("sleep", spinning)

var rrKind = kind{name: "rr", about: "requests and responses over standing flows", title: "Requests on standing connections", zero: RR{}, options: slices.Concat(
	[]option{
		transportOption(func(s *RR) *Protocol { return &s.Protocol }, TCP, UDP),
		fieldOption("flows", "flows", "concurrent flows, each with a thread", wholeNumberValues(1, maxFlows), func(s *RR) *int { return &s.Flows }),
	},
	pacingOptions(func(s *RR) (*float64, *float64, *string) { return &s.Rate, &s.Load, &s.Arrival }),
	[]option{
		fieldOption("requestSize", "request", "payload of a request", sizeValues(MaxRequest), func(s *RR) *int { return &s.RequestSize }),
		fieldOption("responseSize", "response", "payload of a response", sizeValues(MaxRequest), func(s *RR) *int { return &s.ResponseSize }),
		fieldOption("congestion", "congestion", "TCP congestion control", algorithms, func(s *RR) *string { return &s.Congestion }).restrictedTo(TCP),
		fieldOption("burst", "burst", "requests that are scheduled at once", wholeNumberValues(1, maxBurst), func(s *RR) *int { return &s.Burst }),
		fieldOption("wait", "wait", "how threads wait for data", waits, func(s *RR) *string { return &s.Wait }),
		fieldOption("under", "under", "what is sent beside the requests", wordValues("stream"), func(s *RR) *string { return &s.Under }).restrictedTo(TCP),
		byTool,
		byWindow,
	},
)}

func (s RR) kindEntry() *kind { return &rrKind }

// Traits implements Spec.
func (s RR) Traits() Traits {
	return Traits{Protocol: s.Protocol, Work: Transaction, Flows: s.Flows, Request: s.RequestSize, Response: s.ResponseSize,
		Rate: s.Rate, Load: s.Load, Arrival: s.Arrival, Burst: s.Burst, Spin: s.Wait == spinning, Beside: s.Under != "", Congestion: s.Congestion,
		Decides: []string{metric.RTT + ".p50"}}
}

func (s RR) normalize() Spec {
	s.Protocol, s.Flows = cmp.Or(s.Protocol, TCP), max(s.Flows, 1)
	s.Arrival = normalizeArrival(s.Rate, s.Load, s.Arrival)
	size := 1
	if s.Protocol == UDP {
		size = MinDatagram
		s.Congestion, s.Under = "", ""
	} else {
		s.Congestion = cmp.Or(s.Congestion, DefaultCongestion)
	}
	s.RequestSize, s.ResponseSize = cmp.Or(s.RequestSize, size), cmp.Or(s.ResponseSize, size)
	s.Wait = cmp.Or(s.Wait, "sleep")
	if s.Burst == 1 {
		s.Burst = 0
	}
	return s
}

func (s RR) addFaults(f *faultList) {
	n := s.normalize().(RR)
	f.checkPacing(n.Rate, n.Load, n.Arrival)
	f.refuseIf(n.Arrival == Saturate && n.Burst != 0, "arrival saturate takes no burst: there are always %d requests under way on a flow", SaturationDepth)
	if n.Protocol == UDP {
		f.checkDatagramSize("request", n.RequestSize, UDP)
		f.checkDatagramSize("response", n.ResponseSize, UDP)
	}
}
