package plan

// The tools of these tests; package external tests the real ones.
func init() {
	Tool{Name: "iperf3", Kinds: []Spec{Stream{}}, WholeSeconds: true, Omits: true, Ports: 1, Congestion: true}.Register()
	Tool{Name: "wrk", Kinds: []Spec{HTTP{}}, WholeSeconds: true, Ports: 1}.Register()
}
