package netstate

// Names of the things that a State may list as not seen.
const (
	WhatChains    = "netfilter chains"
	WhatLegacy    = "chains of iptables-legacy"
	WhatPrograms  = "BPF programs on devices"
	WhatConntrack = "conntrack entries"
	WhatConflists = "/etc/cni/net.d"
	WhatProxyMode = "kube-proxy's own answer"
)

// PathMTU is the largest packet that gets through between two places, as `cnibench look --mtu` finds it.
type PathMTU struct {
	// To is who was asked.
	To string `json:"to"`
	// There and Back are the largest IP packets in bytes that came through whole, with fragmentation forbidden.
	There int `json:"there"`
	Back  int `json:"back"`
	// Own is the MTU of the device that packets leave by.
	Own int `json:"own"`
	// SeenAs is the address that the other end saw us as.
	SeenAs string `json:"seenAs"`
	// Silent says that packets above the limit vanished without word from any router.
	Silent bool `json:"silent,omitempty"`
}

// Sending is what became of marked datagrams (`cnibench look --send`).
type Sending struct {
	To       string `json:"to"`
	Sent     int    `json:"sent"`
	Answered int    `json:"answered"`
	// SeenAs is the address that the other end saw us as, "" if nothing was answered.
	SeenAs string `json:"seenAs,omitempty"`
}

// Kinds of a Wrapping.
const (
	Bare   = "bare"
	VXLAN  = "vxlan"
	Geneve = "geneve"
	IPIP   = "ipip"
	GRE    = "gre"
	// UDP is some other tunnel by UDP with the mark in plain sight; Port says which.
	UDP = "udp"
	// WireGuard and ESP are encrypted: whose packets are inside cannot be seen.
	WireGuard = "wireguard"
	ESP       = "esp"
)

// Wire is which frames a device carried (`cnibench look --wire`).
type Wire struct {
	Device string `json:"device"`
	// Marked are those with the mark in sight.
	Marked []Wrapping `json:"marked,omitempty"`
	// Sealed are encrypted ones, which may have it inside.
	Sealed []Wrapping `json:"sealed,omitempty"`
	// Lost counts frames that were not read in time.
	Lost int `json:"lost,omitempty"`
}

// Wrapping is one way in which packets travel, with how many did.
type Wrapping struct {
	Kind string `json:"kind"`
	// Port is the outer UDP port, VNI that of VXLAN.
	Port uint16 `json:"port,omitempty"`
	VNI  uint32 `json:"vni,omitempty"`
	// Source and Destination are the outermost addresses.
	Source      string `json:"source"`
	Destination string `json:"destination"`
	Frames      int    `json:"frames"`
}
