package proc

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnibench/cnibench/internal/measure/sample"
)

func TestDelta(t *testing.T) {
	before := Snapshot{
		CPUs:        map[int]sample.Time{0: {sample.User: 5, sample.Idle: 7}, 1: {sample.User: 1}, 9: {sample.User: 1}},
		KsoftirqdNs: map[int]int64{0: 100, 1: 50},
		Softnet:     []Softnet{{CPU: 0, Dropped: math.MaxUint32, Squeezed: 1}, {CPU: 1}},
		SNMP:        map[string]int64{"Tcp.RetransSegs": 3, "Tcp.CurrEstab": 2, "Ip.InReceives": 4, "Gone.X": 1},
		Devices:     map[string]int64{"eth0.tx_dropped": 1, "old.rx_bytes": 5},
		MemoryBytes: 1,
	}
	after := Snapshot{
		CPUs:        map[int]sample.Time{0: {sample.User: 8, sample.Idle: 7}, 1: {sample.User: 1}, 8: {sample.User: 1}},
		KsoftirqdNs: map[int]int64{0: 130, 1: 51, 2: 1000},
		Softnet:     []Softnet{{CPU: 0, Dropped: 2, Squeezed: 5}, {CPU: 1}},
		SNMP:        map[string]int64{"Tcp.RetransSegs": 10, "Tcp.CurrEstab": 1, "Ip.InReceives": 4, "New.X": 1},
		Devices:     map[string]int64{"eth0.tx_dropped": 4, "new.rx_bytes": 5},
		MemoryBytes: 4096, NodeMemoryUsedBytes: 8192,
	}
	ksoftirqd := int64(31)
	want := &sample.HostDelta{
		CPUs:        map[int]map[string]int64{0: {sample.User: 3}, 1: {}},
		KsoftirqdNs: &ksoftirqd, SoftnetDropped: 3, SoftnetSqueezed: 4,
		SNMP:        map[string]int64{"Tcp.RetransSegs": 7, "Tcp.CurrEstab": -1},
		Devices:     map[string]int64{"eth0.tx_dropped": 3},
		MemoryBytes: 4096, NodeMemoryUsedBytes: 8192,
	}
	if diff := cmp.Diff(want, Delta(before, after)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDeltaClaimsNothingOfWhatWasNotSeen(t *testing.T) {
	if diff := cmp.Diff(&sample.HostDelta{}, Delta(Snapshot{}, Snapshot{})); diff != "" {
		t.Errorf("of nothing (-want +got):\n%s", diff)
	}
	// On an old kernel the second line is another CPU's once one has gone offline.
	d := Delta(Snapshot{Softnet: []Softnet{{CPU: -1}, {CPU: -1, Dropped: 5}}}, Snapshot{Softnet: []Softnet{{CPU: -1, Dropped: 9}}})
	if d.SoftnetDropped != 0 {
		t.Errorf("%d drops out of lines that do not match", d.SoftnetDropped)
	}
}
