package sample

// NodeRest is what one node used while nothing was sent, by its kubelet's counters.
type NodeRest struct {
	// Node is its name. Side is the end of the path on it, "client" or "server".
	Node string `json:"node"`
	Side string `json:"side"`
	// Whole is the node itself. Parts are the kubelet, the container runtime, the daemons of the network, the pods of
	// the run and all others.
	Whole Usage      `json:"whole"`
	Parts []RestPart `json:"parts,omitempty"`
	// Lost names daemons of the network that are not among Parts, because their counters restarted or did not advance
	// within the window. LostOthers names other parts that are missing for the same reason.
	Lost       []string `json:"lost,omitempty"`
	LostOthers []string `json:"lost_others,omitempty"`
}

// RestPart is what one part of a node used.
type RestPart struct {
	// Name is "kubelet", "runtime", "this run", "other pods", or the namespace and the container of a daemon of the
	// network.
	Name string `json:"name"`
	// Network is true for the daemons of the CNI and kube-proxy.
	Network bool `json:"network,omitempty"`
	Usage
}

// Usage is CPU time between two samples of the kubelet, and memory at the second sample.
type Usage struct {
	// Cores is CPU seconds per second between the two samples, which are SpanNs apart.
	Cores  float64 `json:"cores"`
	SpanNs int64   `json:"span_ns"`
	// MemoryBytes is the working set.
	MemoryBytes uint64 `json:"memory_bytes"`
}
