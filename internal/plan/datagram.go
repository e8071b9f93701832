package plan

import (
	"errors"
	"fmt"
)

// IMIX is the Mix of datagrams in the sizes and proportions of the simple Internet mix: of twelve frames seven of 64, four
// of 570 and one of 1518 bytes, as Ethernet counts them with their checksum, over IPv4 (RFC 6985 has the notation).
const IMIX = "imix"

// GSO is the Mode of a UDP stream whose packets are handed to the kernel many at a time.
const GSO = "gso"

// MaxBuffer bounds a socket's buffer in bytes.
const MaxBuffer = 1 << 30

// Payloads are those of IMIX in the order in which they are sent: what an Ethernet frame of 64, 570 or 1518 bytes has
// left behind 18 of Ethernet, 20 of IPv4 and 8 of UDP. Over IPv6 the frames are 20 bytes longer.
var Payloads = []int{18, 18, 524, 18, 18, 524, 18, 1472, 524, 18, 18, 524}

// MeanPayload is the mean of Payloads, rounded up to a whole byte.
const MeanPayload = (7*18 + 4*524 + 1472 + 11) / 12

// datagram takes over from w how datagrams are sent.
func (n *Workload) datagram(w Workload) {
	n.MessageSize = orInt(w.MessageSize, DefaultDatagram)
	n.Mix, n.Buffer = w.Mix, w.Buffer
	if n.Mix != "" {
		n.MessageSize = MeanPayload
	}
	if w.Mode == GSO {
		n.Mode = GSO
	}
}

// checkStream says what does not go together in how a stream moves bytes, which Normalize would silently drop.
func (w Workload) checkStream() error {
	var errs []error
	n := w.Normalize()
	switch {
	case w.Mode == GSO && n.Protocol != UDP:
		errs = append(errs, errors.New("mode gso is for udp, and this is tcp"))
	case w.Mode != "" && w.Mode != GSO && n.Protocol == UDP:
		errs = append(errs, errors.New("mode is for tcp, and this is udp, which has gso alone"))
	}
	if w.Mix != "" && n.Mix == "" {
		errs = append(errs, fmt.Errorf("message imix is for datagrams of stream(udp) and throughput, and this is %s over %s", w.Kind, n.Protocol))
	}
	if n.Reverse && n.Bidirectional {
		errs = append(errs, errors.New("reverse is one of the two directions that bidirectional has"))
	}
	if n.Bidirectional && n.Flows > MaxFlows/2 {
		errs = append(errs, fmt.Errorf("flows %d each way are out of range for bidirectional: want 1 to %d", n.Flows, MaxFlows/2))
	}
	if n.Mix != "" && n.Mode == GSO {
		errs = append(errs, errors.New("mode gso cuts packets of one size, and imix has three"))
	}
	return errors.Join(errs...)
}
