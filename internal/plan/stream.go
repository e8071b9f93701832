package plan

import (
	"cmp"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// Stream sends bulk data over TCP or UDP.
type Stream struct {
	Protocol Protocol
	// Flows is the number of concurrent 5-tuples. Each has its own thread.
	Flows int
	// MessageSize is the payload of one send call in bytes.
	MessageSize int
	// Mix is "" for datagrams of one size, or IMIX. With IMIX, MessageSize is the mean size of a datagram.
	Mix string
	// Rate is the intended load over UDP in each direction: bit/s of payload, summed over all flows. With 0, datagrams
	// are sent as fast as possible.
	Rate float64
	// Mode is how bytes are moved. Over UDP, "" sends one packet for each call, and GSO leaves the segmentation to the
	// device or its driver (UDP_SEGMENT, UDP_GRO). Over TCP, it is "copy" (comparable with iperf3), "sendfile" (from a
	// memfd) or "trunc" (copy on send, MSG_TRUNC on receive).
	Mode string
	// Buffer is the requested size of both buffers of every socket in bytes. 0 is the default: for TCP that of the
	// kernel, for UDP a receive buffer of 4 MiB.
	Buffer     int
	Congestion string
	// NIC is the model of the nodes' NICs for this workload; "" means the model of the lab.
	NIC NIC
	// Reverse makes the server send (netperf's MAERTS).
	Reverse bool
	// Bidirectional makes both sides send and receive, with Flows flows in each direction.
	Bidirectional bool
}

// Limits and defaults of streams.
const (
	DefaultStreamMessage = 128 << 10 // iperf3's
	maxMessage           = 16 << 20
)

var streamKind = kind{name: "stream", about: "bulk data, TCP or UDP", title: "Bulk transfer", zero: Stream{}, options: []option{
	transportOption(func(s *Stream) *Protocol { return &s.Protocol }, TCP, UDP),
	fieldOption("flows", "flows", "concurrent flows, each with a thread", wholeNumberValues(1, maxFlows), func(s *Stream) *int { return &s.Flows }),
	messageOption(maxMessage, func(s *Stream) (*int, *string) { return &s.MessageSize, &s.Mix }),
	fieldOption("rate", "rate", "payload to send; 0 is as fast as possible", rates, func(s *Stream) *float64 { return &s.Rate }).restrictedTo(UDP),
	fieldOption("mode", "mode", "how bytes are moved: copy, sendfile and trunc over TCP, gso over UDP", wordValues("copy", "sendfile", "trunc", GSO),
		func(s *Stream) *string { return &s.Mode }),
	fieldOption("buffer", "buffer", "socket buffers", sizeValues(maxBuffer), func(s *Stream) *int { return &s.Buffer }),
	fieldOption("congestion", "congestion", "TCP congestion control", algorithms, func(s *Stream) *string { return &s.Congestion }).restrictedTo(TCP),
	fieldOption("nic", "nic", "NIC model of the lab between nodes, where it is not that of the run", wordValues(NICIdeal, NICWire), func(s *Stream) *NIC { return &s.NIC }),
	byTool,
	byWindow,
	boolOption("reverse", "the server sends", func(s *Stream) *bool { return &s.Reverse }),
	boolOption("bidirectional", "both sides send", func(s *Stream) *bool { return &s.Bidirectional }),
}}

func (s Stream) kindEntry() *kind { return &streamKind }

// Traits implements Spec.
func (s Stream) Traits() Traits {
	t := Traits{Protocol: s.Protocol, Work: Kilobyte, Flows: s.Flows, Message: s.MessageSize, Mix: s.Mix != "", Rate: s.Rate,
		Congestion: s.Congestion, Reverse: s.Reverse, Bidirectional: s.Bidirectional}
	t.Decides = []string{metric.Goodput, metric.PacketRate}
	if s.Protocol == UDP {
		t.Work = Packet
	}
	if s.Rate > 0 {
		t.Decides = []string{metric.FrameLossRate}
	}
	return t
}

func (s Stream) normalize() Spec {
	s.Protocol, s.Flows = cmp.Or(s.Protocol, TCP), max(s.Flows, 1)
	if s.Protocol == UDP {
		s.Congestion = ""
		s.MessageSize, s.Mode = normalizeDatagrams(s.MessageSize, s.Mix, s.Mode)
		return s
	}
	s.Rate, s.Mix = 0, ""
	s.MessageSize = cmp.Or(s.MessageSize, DefaultStreamMessage)
	s.Mode = cmp.Or(s.Mode, "copy")
	s.Congestion = cmp.Or(s.Congestion, DefaultCongestion)
	return s
}

func (s Stream) addFaults(f *faultList) {
	n := s.normalize().(Stream)
	udp := n.Protocol == UDP
	f.refuseIf(s.Mode == GSO && !udp, "mode gso is for udp, and this is tcp")
	f.refuseIf(s.Mode != "" && s.Mode != GSO && udp, "mode is for tcp, and this is udp, which has gso alone")
	f.refuseIf(s.Mix != "" && !udp, "message imix is for datagrams of stream(udp) and throughput, and this is stream over tcp")
	f.refuseIf(n.Reverse && n.Bidirectional, "reverse is one of the two directions of bidirectional")
	f.refuseIf(n.Bidirectional && n.Flows > maxFlows/2, "flows %d each way are out of range for bidirectional: want 1 to %d", n.Flows, maxFlows/2)
	if udp {
		f.checkDatagrams(n.MessageSize, n.Mix, n.Mode)
	}
}
