package sample

import (
	"maps"
	"reflect"
	"slices"
	"testing"
)

func TestMerge(t *testing.T) {
	ns := func(n int64) *int64 { return &n }
	one := func(cpu int, operations uint64, errors map[string]uint64) *Observation {
		return &Observation{
			Side: "server", ElapsedNs: 1000 + int64(operations), Operations: operations, BytesSent: 10 * operations, Errors: errors,
			CPU: CPUTime{ThreadsNs: 100, ProcessNs: 120}, Placed: Placed{Threads: []Thread{{ID: int(operations)}}},
			Host: &HostDelta{
				CPUs: map[int]map[string]int64{cpu: {"user": 5}}, KsoftirqdNs: ns(7), SoftnetDropped: uint64(cpu),
				SNMP: map[string]int64{"Tcp.OutSegs": 3}, MemoryBytes: 50, NodeMemoryUsedBytes: 900, ThrottledNs: 4, HotStops: 5,
			},
		}
	}
	a, b, c := one(1, 10, map[string]uint64{"reset": 1}), one(1, 20, nil), one(2, 30, map[string]uint64{"reset": 2, "timeout": 1})
	want := &Observation{
		Side: "server", ElapsedNs: 336 + 340 + 343, Operations: 60, BytesSent: 600,
		Errors: map[string]uint64{"reset": 3, "timeout": 1}, CPU: CPUTime{ThreadsNs: 300, ProcessNs: 360},
		Placed: Placed{Threads: []Thread{{ID: 10}, {ID: 20}, {ID: 30}}},
		Host: &HostDelta{
			// CPU 1 is reported twice and was spent once.
			CPUs: map[int]map[string]int64{1: {"user": 5}, 2: {"user": 5}}, KsoftirqdNs: ns(14), SoftnetDropped: 2,
			SNMP: map[string]int64{"Tcp.OutSegs": 9}, MemoryBytes: 150, NodeMemoryUsedBytes: 900, ThrottledNs: 12, HotStops: 5,
		},
	}
	if got := Merge([]*Observation{a, b, c}, ""); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v %+v\nwant %+v %+v", got, got.Host, want, want.Host)
	}
	if !reflect.DeepEqual(a, one(1, 10, map[string]uint64{"reset": 1})) {
		t.Error("merging changed what was merged")
	}
	if Merge(nil, "") != nil || Merge([]*Observation{a}, "") != a {
		t.Error("none or one")
	}
	a.Host.KsoftirqdNs, c.Host = nil, nil
	if got := Merge([]*Observation{a, c}, ""); got.Host == nil || got.Host.KsoftirqdNs != nil || len(got.Host.CPUs) != 1 {
		t.Errorf("%+v", got.Host)
	}
}

// TestMergeMachines: CPUs of one number are one on a machine, and two on two machines. Those of the client's keep their number.
func TestMergeMachines(t *testing.T) {
	ns := func(n int64) *int64 { return &n }
	on := func(machine string) *Observation {
		return &Observation{Machine: machine, Host: &HostDelta{
			CPUs: map[int]map[string]int64{3: {"user": 5}}, IdleNs: map[int]int64{3: 9}, KsoftirqdNs: ns(7), SpanNs: 20,
			Tasks: []Task{{Command: "kworker", CPU: 3, Ns: 4}, {Command: "gone", CPU: -1, Ns: 2}},
		}}
	}
	for _, c := range []struct {
		machines []string
		home     string
		want     []int
	}{
		{[]string{"a", "a"}, "a", []int{3}},
		{[]string{"b", "a", "b", "c"}, "a", []int{3, 3 + MachineCPUs, 3 + 2*MachineCPUs}},
		{[]string{"b", "c"}, "a", []int{3 + MachineCPUs, 3 + 2*MachineCPUs}},
		{[]string{"b", "c"}, "", []int{3}}, // the client's is unknown
		{[]string{"", ""}, "a", []int{3}},
	} {
		var all []*Observation
		for _, m := range c.machines {
			all = append(all, on(m))
		}
		h := Merge(all, c.home).Host
		if got := slices.Sorted(maps.Keys(h.CPUs)); !slices.Equal(got, c.want) || !slices.Equal(slices.Sorted(maps.Keys(h.IdleNs)), c.want) || *h.KsoftirqdNs != int64(7*len(c.want)) {
			t.Errorf("%q: CPUs %v, idle %v, ksoftirqd %d, want %v", c.machines, got, h.IdleNs, *h.KsoftirqdNs, c.want)
		}
		if len(h.Tasks) != len(c.want)+1 {
			t.Errorf("%q: tasks %v", c.machines, h.Tasks)
		}
		if !reflect.DeepEqual(all[0], on(c.machines[0])) {
			t.Errorf("%q: merging changed what was merged", c.machines)
		}
	}
}
