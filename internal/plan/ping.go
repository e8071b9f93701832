package plan

import (
	"cmp"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Ping sends ICMP echoes.
type Ping struct {
	Flows int
	// MessageSize is the payload of an echo in bytes.
	MessageSize int
	// Interval is the time between echoes. With 0, the next echo is sent when the reply has arrived.
	Interval time.Duration
}

// defaultPingPayload is the default payload of ping(8) in bytes.
const defaultPingPayload = 56

var pingKind = kind{name: "ping", about: "ICMP echoes", title: "Echo", zero: Ping{}, options: []option{
	singleTransportOption[Ping](icmp),
	fieldOption("flows", "flows", "concurrent flows, each with a thread", wholeNumberValues(1, maxFlows), func(s *Ping) *int { return &s.Flows }),
	fieldOption("messageSize", "message", "payload of an echo", sizeValues(MaxDatagram), func(s *Ping) *int { return &s.MessageSize }),
	fieldOption("interval", "interval", "time between echoes; 0 waits for the reply alone", durationValues(0, time.Minute), func(s *Ping) *time.Duration { return &s.Interval }),
	byTool,
	byWindow,
}}

func (s Ping) kindEntry() *kind { return &pingKind }

// Traits implements Spec.
func (s Ping) Traits() Traits {
	return Traits{Protocol: icmp, Work: Transaction, Flows: s.Flows, Message: s.MessageSize, Interval: s.Interval,
		Decides: []string{metric.RTT + ".p50"}}
}

func (s Ping) normalize() Spec {
	s.Flows, s.MessageSize = max(s.Flows, 1), cmp.Or(s.MessageSize, defaultPingPayload)
	return s
}

func (s Ping) addFaults(f *faultList) {
	f.checkDatagramSize("message", s.normalize().(Ping).MessageSize, icmp)
}
