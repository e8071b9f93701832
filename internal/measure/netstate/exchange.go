package netstate

// Names of the things that a State may list as not read.
const (
	WhatChains    = "netfilter chains"
	WhatLegacy    = "chains of iptables-legacy"
	WhatPrograms  = "BPF programs on devices"
	WhatConntrack = "conntrack entries"
	WhatConflists = "/etc/cni/net.d"
	WhatProxyMode = "kube-proxy's own answer"
)

// PathMTU is the result of `cnibench look --mtu`: the largest packets that pass between two places, and the times of
// some exchanges.
type PathMTU struct {
	To string `json:"to"`
	// There and Back are the sizes of the largest IP packets, in bytes, that arrived at the other end and here, with
	// fragmentation forbidden.
	There int `json:"there"`
	Back  int `json:"back"`
	// Own is the MTU of the device that packets leave by.
	Own int `json:"own"`
	// Trip is the time in ns from sending a datagram to its answer, Connect the time in ns of a TCP connect; 0 is unknown.
	Trip    int64 `json:"trip,omitempty"`
	Connect int64 `json:"connect,omitempty"`
	// Shortest are the shortest trips of several datagrams.
	Shortest Trips `json:"shortest,omitzero"`
	// SeenAs is our address as the other end saw it.
	SeenAs string `json:"seenAs"`
	// Silent is true if larger packets vanished without an ICMP error.
	Silent bool `json:"silent,omitempty"`
	// HopsThere and HopsBack are how many routers decremented the packets' TTL, plus 1; 0 is unknown.
	HopsThere int `json:"hopsThere,omitempty"`
	HopsBack  int `json:"hopsBack,omitempty"`
}

// Trips are times in ns from sending a datagram to the arrival of its answer; 0 is unknown. For Small, the datagram and
// its answer are small. For There, only the datagram is large; for Back, only the answer.
type Trips struct {
	Small int64 `json:"small,omitempty"`
	There int64 `json:"there,omitempty"`
	Back  int64 `json:"back,omitempty"`
}

// NoAnswer and ButTo are parts of the error of `cnibench look --mtu` if the port does not answer. After
// NoAnswer comes the address of the port. After ButTo come the requests that the same host does answer.
const (
	NoAnswer = "no answer from"
	ButTo    = ", but to "
)

// Sending counts marked datagrams and their answers (`cnibench look --send`).
type Sending struct {
	To       string `json:"to"`
	Sent     int    `json:"sent"`
	Answered int    `json:"answered"`
	// SeenAs is our address as the other end saw it, "" without an answer.
	SeenAs string `json:"seenAs,omitempty"`
}

// Kinds of a Wrapping.
const (
	Bare   = "bare"
	VXLAN  = "vxlan"
	Geneve = "geneve"
	IPIP   = "ipip"
	GRE    = "gre"
	// UDP is another UDP tunnel whose mark is readable; Port identifies it.
	UDP = "udp"
	// WireGuard and ESP are encrypted: their contents cannot be seen.
	WireGuard = "wireguard"
	ESP       = "esp"
)

// Wire counts the frames on a device (`cnibench look --wire`).
type Wire struct {
	Device string `json:"device"`
	// Marked are the packets with a readable mark.
	Marked []Wrapping `json:"marked,omitempty"`
	// Sealed are encrypted packets, which may contain marked ones.
	Sealed []Wrapping `json:"sealed,omitempty"`
	// Lost counts frames that were not read in time.
	Lost int `json:"lost,omitempty"`
}

// Wrapping is one encapsulation, and the number of frames that have it.
type Wrapping struct {
	Kind string `json:"kind"`
	// Port is the outer UDP port, VNI is VXLAN's.
	Port uint16 `json:"port,omitempty"`
	VNI  uint32 `json:"vni,omitempty"`
	// Source and Destination are the outermost addresses.
	Source      string `json:"source"`
	Destination string `json:"destination"`
	Frames      int    `json:"frames"`
}

// Content is the result of exchanging messages of known content with an Echo (`cnibench look --content`).
type Content struct {
	// Small are datagrams of 128 bytes, Large the largest datagrams that pass. Bare are datagrams without a checksum, as
	// large as the device may send: the receiver's kernel delivers them even if they are damaged. Words and Blocks are
	// parts of one TCP stream: first small parts, each in its own packet, then large ones.
	Small  Exchange `json:"small"`
	Large  Exchange `json:"large"`
	Bare   Exchange `json:"bare"`
	Words  Exchange `json:"words"`
	Blocks Exchange `json:"blocks"`
	// Dials are TCP connections to the Echo.
	Dials Dialled `json:"dials"`
}

// Exchange counts messages both ways.
type Exchange struct {
	There Traffic `json:"there"`
	Back  Traffic `json:"back"`
}

// Traffic counts messages in one direction: those sent, those that did not arrive, and those that arrived with other
// content. Resent is how often TCP retransmitted a message.
type Traffic struct {
	Sent   int `json:"sent"`
	Lost   int `json:"lost,omitempty"`
	Wrong  int `json:"wrong,omitempty"`
	Resent int `json:"resent,omitempty"`
}

// Plus returns the sum of t and u.
func (t Traffic) Plus(u Traffic) Traffic {
	return Traffic{t.Sent + u.Sent, t.Lost + u.Lost, t.Wrong + u.Wrong, t.Resent + u.Resent}
}
