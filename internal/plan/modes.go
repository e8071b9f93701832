package plan

// The modes of a lab. Their words are those of files and flags.
type (
	// NIC is how the nodes of a lab send bulk data.
	NIC string
	// Placement is which CPUs the nodes of a lab work on.
	Placement string
	// ProxyMode is the mode of kube-proxy.
	ProxyMode string
	// TrafficPolicy is the externalTrafficPolicy of Services.
	TrafficPolicy string
	// IptablesBackend is which of the iptables programs write rules.
	IptablesBackend string
)

const (
	// NICWire cuts everything into frames of the MTU before the path, NICIdeal after it.
	NICWire  NIC = "wire"
	NICIdeal NIC = "ideal"

	// PlacementOne has both ends on one CPU, PlacementSplit each node on its own. PlacementAuto chooses by their number.
	PlacementAuto  Placement = "auto"
	PlacementOne   Placement = "one"
	PlacementSplit Placement = "split"

	ProxyIptables ProxyMode = "iptables"
	ProxyNftables ProxyMode = "nftables"
	ProxyIPVS     ProxyMode = "ipvs"

	// TrafficCluster lets a node send traffic from outside to endpoints on other nodes, TrafficLocal does not.
	TrafficCluster TrafficPolicy = "Cluster"
	TrafficLocal   TrafficPolicy = "Local"

	IptablesAuto   IptablesBackend = "auto"
	IptablesNFT    IptablesBackend = "nft"
	IptablesLegacy IptablesBackend = "legacy"
)
