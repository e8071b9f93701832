package sample

// Kinds of Drop: what dropped the packets.
const (
	DropQdisc = "qdisc" // a queueing discipline was full, or a filter in its place dropped them
	DropTX    = "tx"    // a device that sends: interface statistics tx_dropped
	DropRX    = "rx"    // a device that receives: interface statistics rx_dropped
)

// Drop is a counter of the packets that a host dropped at one of its devices.
type Drop struct {
	// Host is the name of the network namespace or machine, Device that of the device.
	Host   string `json:"host"`
	Device string `json:"device"`
	// Kind is DropQdisc, DropTX or DropRX; What names the queueing discipline ("tbf").
	Kind    string `json:"kind"`
	What    string `json:"what,omitempty"`
	Packets uint64 `json:"packets"`
}

// at is the place of a counter.
func (d Drop) at() Drop {
	d.Packets = 0
	return d
}

// DropsBetween returns the drops between two readings of the same counters, without zeros. It leaves out a counter that is
// new or has decreased.
func DropsBetween(before, after []Drop) []Drop {
	earlier := map[Drop]uint64{}
	for _, d := range before {
		earlier[d.at()] += d.Packets
	}
	var grown []Drop
	for _, d := range after {
		if was, known := earlier[d.at()]; known && d.Packets > was {
			d.Packets -= was
			grown = append(grown, d)
		}
	}
	return grown
}
