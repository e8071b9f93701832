package plan

import (
	"cmp"
	"strconv"

	"github.com/cnibench/cnibench/internal/plan/position"
)

// IMIX is the value of Mix for datagrams in the sizes and proportions of the simple Internet mix. Of twelve frames,
// seven have 64 bytes, four 570 and one 1518, including Ethernet's checksum, over IPv4 (RFC 6985 has the notation).
const IMIX = "imix"

// GSO is the value of Mode for a UDP stream that passes many packets to the kernel at a time.
const GSO = "gso"

// Limits and defaults of datagrams, in bytes of payload. The smallest datagram holds a sequence number and a time.
const (
	defaultDatagram = 1400
	MinDatagram     = 16
	MaxDatagram     = 65507
)

// maxBuffer bounds a socket's buffer in bytes.
const maxBuffer = 1 << 30

// Payloads are the payloads of IMIX in bytes, in the order of sending: an Ethernet frame of 64, 570 or 1518 bytes minus
// 18 bytes of Ethernet, 20 of IPv4 and 8 of UDP. Over IPv6 the frames are 20 bytes longer.
var Payloads = []int{18, 18, 524, 18, 18, 524, 18, 1472, 524, 18, 18, 524}

// meanPayload is the mean of Payloads, rounded up to a whole byte.
const meanPayload = (7*18 + 4*524 + 1472 + 11) / 12

// messageOption returns the option for the size of messages, at most high bytes, or for a mix of sizes.
func messageOption[S Spec](high int, fields func(s *S) (size *int, mix *string)) option {
	v := sizeValues(high)
	return option{Key: "messageSize", Word: "message", Help: "payload of one send call; imix mixes datagram sizes", Values: v.describe() + ", imix", schema: position.AnyOf(v.schema, position.Enum(IMIX)),
		set: func(w *Workload, text string) error {
			s := w.Spec.(S)
			size, mix := fields(&s)
			var err error
			if text == IMIX {
				*mix = text
			} else {
				*mix = ""
				*size, err = v.parse(text)
			}
			w.Spec = s
			return err
		},
		text: func(w Workload) string {
			s := w.Spec.(S)
			size, mix := fields(&s)
			if *mix != "" {
				return *mix
			}
			return strconv.Itoa(*size)
		},
	}
}

// normalizeDatagrams returns the size in bytes and the mode of datagrams, with their defaults filled in. The size of a mix is
// its mean.
func normalizeDatagrams(size int, mix, mode string) (int, string) {
	size = cmp.Or(size, defaultDatagram)
	if mix != "" {
		size = meanPayload
	}
	if mode != GSO {
		mode = ""
	}
	return size, mode
}

// checkDatagrams adds faults for datagrams that cannot be sent with this size, mix and mode.
func (f *faultList) checkDatagrams(size int, mix, mode string) {
	f.checkDatagramSize("message", size, UDP)
	f.refuseIf(mix != "" && mode == GSO, "mode gso cuts packets of one size, and imix has three")
}
