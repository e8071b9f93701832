package plan

import (
	"time"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Throughput searches for the highest rate of UDP datagrams at which at most the accepted share is lost.
type Throughput struct {
	Flows int
	// MessageSize and Mix have the same meaning as in Stream.
	MessageSize int
	Mix         string
	// Rate is the highest rate that the search tries first, in bit/s. With 0, it begins by sending as fast as possible.
	Rate float64
	// Loss is the accepted share of lost datagrams, from 0 (default, as in RFC 2544) to maxLoss.
	Loss float64
	// Mode and Buffer have the same meaning as in Stream.
	Mode   string
	Buffer int
}

// maxLoss is the largest share of lost packets that a throughput search may accept or a lab may cause on purpose.
const maxLoss = 0.5

// maxDelay is the largest delay that a lab may add to what a host sends.
const maxDelay = time.Second

var throughputKind = kind{name: "throughput", about: "UDP datagrams at the highest rate without loss", title: "Highest rate without loss", zero: Throughput{}, options: []option{
	singleTransportOption[Throughput](UDP),
	fieldOption("flows", "flows", "concurrent flows, each with a thread", wholeNumberValues(1, maxFlows), func(s *Throughput) *int { return &s.Flows }),
	messageOption(maxMessage, func(s *Throughput) (*int, *string) { return &s.MessageSize, &s.Mix }),
	fieldOption("rate", "rate", "highest rate to try; 0 starts as fast as possible", rates, func(s *Throughput) *float64 { return &s.Rate }),
	fieldOption("loss", "loss", "share of datagrams that may be lost", losses, func(s *Throughput) *float64 { return &s.Loss }),
	fieldOption("mode", "mode", "gso hands the kernel many packets at a time", wordValues(GSO), func(s *Throughput) *string { return &s.Mode }),
	fieldOption("buffer", "buffer", "socket buffers", sizeValues(maxBuffer), func(s *Throughput) *int { return &s.Buffer }),
	byTool,
	byWindow,
}, unchanged: "%s searches in many short probes: measure churn under stream(udp,rate=...) instead"}

func (s Throughput) kindEntry() *kind { return &throughputKind }

// Traits implements Spec.
func (s Throughput) Traits() Traits {
	return Traits{Protocol: UDP, Work: Packet, Flows: s.Flows, Message: s.MessageSize, Mix: s.Mix != "", Rate: s.Rate, Searches: true,
		Decides: []string{metric.Throughput}}
}

func (s Throughput) normalize() Spec {
	s.Flows = max(s.Flows, 1)
	s.MessageSize, s.Mode = normalizeDatagrams(s.MessageSize, s.Mix, s.Mode)
	return s
}

func (s Throughput) addFaults(f *faultList) {
	n := s.normalize().(Throughput)
	f.checkDatagrams(n.MessageSize, n.Mix, n.Mode)
}

// Probe returns the workload of one probe of a throughput search: a UDP stream with the same datagrams on the same
// flows. rate is in bit/s of payload, 0 for as fast as possible.
func (s Throughput) Probe(rate float64) Workload {
	return Workload{Spec: Stream{Protocol: UDP, Flows: s.Flows, MessageSize: s.MessageSize, Mix: s.Mix, Rate: rate, Mode: s.Mode, Buffer: s.Buffer}}.Normalize()
}
