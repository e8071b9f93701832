// Package condition defines the words that a lab's conditions may have as values.
package condition

// Conditions whose values are words, as in files and flags.
type (
	// Placement is how the CPUs are divided among the nodes of one machine, in a lab and in a cluster.
	Placement string
	// GRO is generic receive offload at the NICs and tunnel devices of nodes.
	GRO string
	// BigTCP says whether super-packets may be longer than 64 KiB.
	BigTCP string
	// RPS is receive packet steering.
	RPS string
	// ProxyMode is the mode of kube-proxy.
	ProxyMode string
	// TrafficPolicy is the externalTrafficPolicy of Services.
	TrafficPolicy string
	// Conntrack is whether nodes track connections between pods.
	Conntrack string
	// BridgeNetfilter is whether netfilter sees the packets that a bridge forwards.
	BridgeNetfilter string
	// Encryption is how packets between nodes are encrypted.
	Encryption string
	// Position is the place of the measured Services among all Services.
	Position string
	// IptablesBackend is the backend of iptables: nft or legacy.
	IptablesBackend string
)

const (
	// PlacementOne puts both ends on one CPU, PlacementSplit each node on its own CPUs. PlacementAuto chooses by the number
	// of CPUs.
	PlacementAuto  Placement = "auto"
	PlacementOne   Placement = "one"
	PlacementSplit Placement = "split"

	// GROOn merges TCP packets. GROUDP also merges UDP packets that are forwarded.
	GROOff GRO = "off"
	GROOn  GRO = "on"
	GROUDP GRO = "udp"

	BigTCPOff BigTCP = "off"
	BigTCPOn  BigTCP = "on"

	// RPSAuto is on if each node has its own CPUs.
	RPSAuto RPS = "auto"
	RPSOn   RPS = "on"
	RPSOff  RPS = "off"

	ProxyIptables ProxyMode = "iptables"
	ProxyNftables ProxyMode = "nftables"
	ProxyIPVS     ProxyMode = "ipvs"

	// TrafficCluster lets a node send traffic from outside to endpoints on other nodes, TrafficLocal does not.
	TrafficCluster TrafficPolicy = "Cluster"
	TrafficLocal   TrafficPolicy = "Local"

	ConntrackOn  Conntrack = "on"
	ConntrackOff Conntrack = "off"

	BridgeNetfilterOn  BridgeNetfilter = "on"
	BridgeNetfilterOff BridgeNetfilter = "off"

	EncryptionOff       Encryption = "off"
	EncryptionWireGuard Encryption = "wireguard"
	EncryptionIPsec     Encryption = "ipsec"

	// In iptables mode, a new connection walks the rules of all Services before its own.
	PositionFirst  Position = "first"
	PositionMiddle Position = "middle"
	PositionLast   Position = "last"

	IptablesAuto   IptablesBackend = "auto"
	IptablesNFT    IptablesBackend = "nft"
	IptablesLegacy IptablesBackend = "legacy"
)

// splitFrom is the smallest number of CPUs for which "auto" means "split". With fewer CPUs a node has only the CPU of its
// load, and a trial would measure how CPUs wake each other.
const splitFrom = 4

// On returns PlacementOne or PlacementSplit: the placement that p means on a machine with this number of CPUs.
func (p Placement) On(cpus int) Placement {
	switch {
	case p == PlacementOne || p == PlacementSplit:
		return p
	case cpus < splitFrom:
		return PlacementOne
	}
	return PlacementSplit
}

// Explicit reports whether r is on or off, and not auto.
func (r RPS) Explicit() bool { return r == RPSOn || r == RPSOff }
