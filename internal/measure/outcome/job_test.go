package outcome

import (
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// jobSeen is a job of 4 members on one machine: 40 steps of 2 ms, of which the exchange took 1 ms, 1 GB in all.
func jobSeen() *sample.Observation {
	ns := int64(20e6)
	j := &sample.Job{Step: sample.NewHistogram(), Exchange: sample.NewHistogram(), Members: []sample.Member{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}}
	for range 40 {
		j.Step.Record(2e6)
		j.Exchange.Record(1e6)
	}
	return &sample.Observation{Side: "client", ElapsedNs: 80e6, Operations: 40, BytesSent: 1e9, BytesReceived: 1e9, Job: j,
		CPU: sample.CPUTime{ThreadsNs: 60e6, ProcessNs: 60e6}, Host: &sample.HostDelta{KsoftirqdNs: &ns, CPUs: map[int]map[string]int64{0: {"user": 80e6}}}}
}

func jobOf(s string) plan.Workload {
	w, err := plan.ParseWorkload(s)
	if err != nil {
		panic(err)
	}
	return w
}

func deriveJob(t *testing.T, workload string, o *sample.Observation) (map[string]float64, string) {
	t.Helper()
	m, warnings := Derive(jobOf(workload), o, nil, Conditions{})
	var ids []string
	for _, x := range warnings {
		ids = append(ids, x.ID+": "+x.Message)
	}
	return m, strings.Join(ids, "\n")
}

func about(got, want float64) bool { return got > 0.998*want && got < 1.002*want }

// TestJobMetrics: bandwidths as nccl-tests defines them, from the exchange alone; CPU time of all members and kernels per GB.
func TestJobMetrics(t *testing.T) {
	m, warnings := deriveJob(t, "job(size=1000000)", jobSeen())
	for name, want := range map[string]float64{
		"step_rate": 500, "step_time.p50": 2e6, "exchange_time.mean": 1e6, "algorithm_bandwidth": 8e9, "bus_bandwidth": 12e9, "service_demand": 80e6, "cpu.ksoftirqd": 20e6,
	} {
		if !about(m[name], want) {
			t.Errorf("%s is %v, want %v", name, m[name], want)
		}
	}
	if strings.Contains(warnings, "p95") || strings.Contains(warnings, "straggler") || strings.Contains(warnings, "disagree") {
		t.Error(warnings)
	}
	two := jobSeen()
	two.Job.Elsewhere = []*sample.HostDelta{two.Host}
	if m, _ := deriveJob(t, "job", two); !about(m["service_demand"], 100e6) {
		t.Errorf("the kernels of two machines: %v", m["service_demand"])
	}
	for workload, want := range map[string]float64{"job(pattern=broadcast,size=1000000)": 8e9, "job(pattern=shuffle,size=1000000)": 6e9, "job(pattern=incast,size=1000000)": 0, "job(pattern=shuffle,size=1000000,skew=10%)": 0} {
		if m, _ := deriveJob(t, workload, jobSeen()); !about(m["bus_bandwidth"], want) && m["bus_bandwidth"] != want {
			t.Errorf("%s: bus bandwidth %v, want %v", workload, m["bus_bandwidth"], want)
		}
	}
	if m, _ := deriveJob(t, "job(pattern=incast,size=1000000)", jobSeen()); !about(m["algorithm_bandwidth"], 24e9) {
		t.Errorf("three answers: %v", m["algorithm_bandwidth"])
	}
}

// TestStraggler: a member is named if the others mostly wait for its data alone.
func TestStraggler(t *testing.T) {
	for _, tt := range []struct {
		late  int64
		waits uint64
		named bool
	}{{90e6, 100, true}, {90e6, 10, false}, {50e6, 100, false}, {0, 0, false}} {
		o := jobSeen()
		o.Job.ChoiceNs = 120e6
		o.Job.Members[2].LateNs, o.Job.Members[2].Waits = tt.late, tt.waits
		m, warnings := deriveJob(t, "job(pattern=shuffle)", o)
		if named := strings.Contains(warnings, "straggler: members that wait for several spend 75% of their time waiting for c alone"); named != tt.named {
			t.Errorf("%+v: %s", tt, warnings)
		}
		if want := float64(tt.late) / 120e6; m["waited_share"] != want {
			t.Errorf("%+v: %v", tt, m["waited_share"])
		}
	}
}

// TestJobBytes: all members have the same steps, so what they send is received.
func TestJobBytes(t *testing.T) {
	o := jobSeen()
	o.BytesReceived--
	if _, warnings := deriveJob(t, "job", o); !strings.Contains(warnings, "sent 1000000000 bytes and received 999999999") {
		t.Error(warnings)
	}
}

// TestHops: times of requests by depth.
func TestHops(t *testing.T) {
	o := jobSeen()
	for range 2 {
		h := sample.NewHistogram()
		for range 30 {
			h.Record(5000)
		}
		o.Job.Hops = append(o.Job.Hops, h)
	}
	m, _ := deriveJob(t, "job(pattern=microservice)", o)
	if !about(m["hop_time.1.p50"], 5000) || !about(m["hop_time.2.p50"], 5000) || m["hop_time.1.p99"] != 0 || m["algorithm_bandwidth"] != 0 {
		t.Errorf("%v", m)
	}
}
