package plan

import (
	"cmp"
	"slices"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// CRR opens a TCP connection for each request: connect, request, response, close.
type CRR struct {
	Flows int
	// Rate, Load and Arrival define the schedule of requests; see checkPacing.
	Rate, Load                float64
	Arrival                   string
	RequestSize, ResponseSize int
	// Close is how the client ends a connection: "rst" (default, leaves no TIME_WAIT) or "fin".
	Close      string
	Congestion string
	// Wait has the same meaning as RR.Wait.
	Wait string
}

var crrKind = kind{name: "crr", about: "a connection for each request and response", title: "A connection for each request", zero: CRR{}, options: slices.Concat(
	[]option{
		singleTransportOption[CRR](TCP),
		fieldOption("flows", "flows", "threads, each with one connection at a time", wholeNumberValues(1, maxFlows), func(s *CRR) *int { return &s.Flows }),
	},
	pacingOptions(func(s *CRR) (*float64, *float64, *string) { return &s.Rate, &s.Load, &s.Arrival }),
	[]option{
		fieldOption("requestSize", "request", "payload of a request", sizeValues(MaxRequest), func(s *CRR) *int { return &s.RequestSize }),
		fieldOption("responseSize", "response", "payload of a response", sizeValues(MaxRequest), func(s *CRR) *int { return &s.ResponseSize }),
		fieldOption("close", "close", "how the client ends a connection", wordValues("rst", "fin"), func(s *CRR) *string { return &s.Close }),
		fieldOption("congestion", "congestion", "TCP congestion control", algorithms, func(s *CRR) *string { return &s.Congestion }),
		fieldOption("wait", "wait", "how threads wait for data", waits, func(s *CRR) *string { return &s.Wait }),
		byTool,
		byWindow,
	},
)}

func (s CRR) kindEntry() *kind { return &crrKind }

// Traits implements Spec.
func (s CRR) Traits() Traits {
	t := Traits{Protocol: TCP, Work: Transaction, Flows: s.Flows, Request: s.RequestSize, Response: s.ResponseSize, Reconnect: true,
		Rate: s.Rate, Load: s.Load, Arrival: s.Arrival, Spin: s.Wait == spinning, Congestion: s.Congestion,
		Decides: []string{metric.TransactionRate}}
	if t.Open() {
		t.Decides = []string{metric.RTT + ".p50"}
	}
	return t
}

func (s CRR) normalize() Spec {
	s.Flows = max(s.Flows, 1)
	s.Arrival = normalizeArrival(s.Rate, s.Load, s.Arrival)
	s.RequestSize, s.ResponseSize = cmp.Or(s.RequestSize, 1), cmp.Or(s.ResponseSize, 1)
	s.Close, s.Wait = cmp.Or(s.Close, "rst"), cmp.Or(s.Wait, "sleep")
	s.Congestion = cmp.Or(s.Congestion, DefaultCongestion)
	return s
}

func (s CRR) addFaults(f *faultList) {
	n := s.normalize().(CRR)
	f.checkPacing(n.Rate, n.Load, n.Arrival)
}
