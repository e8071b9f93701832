package sample

import "testing"

// TestGather: counts are sums, the first member's account is the job's, and counters of two machines stay apart though their
// CPUs have the same numbers.
func TestGather(t *testing.T) {
	ns := func(n int64) *int64 { return &n }
	member := func(machine string, cpu int, bytes uint64) *Observation {
		return &Observation{Side: "server", Machine: machine, ElapsedNs: 900, Operations: 5, BytesSent: bytes, BytesReceived: bytes,
			CPU: CPUTime{ThreadsNs: 10 * int64(bytes)}, Host: &HostDelta{CPUs: map[int]map[string]int64{cpu: {"user": 5}}, KsoftirqdNs: ns(7)}}
	}
	first := member("a", 0, 1)
	first.Side, first.ElapsedNs, first.Job = "client", 1000, &Job{Members: []Member{{Name: "x", Waits: 3}, {Name: "y"}, {Name: "z"}, {Name: "u"}}}
	whole := Gather([]*Observation{first, member("a", 0, 2), member("b", 0, 3), member("b", 1, 4)})
	if whole.Side != "client" || whole.ElapsedNs != 1000 || whole.Operations != 5 || whole.BytesSent != 10 || whole.CPU.ThreadsNs != 100 {
		t.Errorf("%+v", whole)
	}
	if j := whole.Job; len(j.Elsewhere) != 1 || *j.Elsewhere[0].KsoftirqdNs != 14 || len(j.Elsewhere[0].CPUs) != 2 || *whole.Host.KsoftirqdNs != 7 {
		t.Errorf("%+v %+v", whole.Host, j)
	}
	if m := whole.Job.Members; m[0].Waits != 3 || m[3].BytesSent != 4 || m[2].CPUNs != 30 {
		t.Errorf("%+v", m)
	}
	if first.Job.Members[1].BytesSent != 0 {
		t.Error("gathering changed the first member")
	}
	if Gather(nil) != nil || Gather([]*Observation{{}}) != nil {
		t.Error("a job without an account")
	}
}
