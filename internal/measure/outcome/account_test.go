package outcome

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// pinned is a trial of stream on CPU 1 alone, as the lab recorded it: 67.2 % by load threads, 32.3 % by ksoftirqd, 0.2 % idle.
func pinned() (plan.Workload, *sample.Observation, *sample.Observation) {
	w, c, s := bulk()
	c.CPU, s.CPU = sample.CPUTime{ThreadsNs: 336e6, ProcessNs: 339e6}, sample.CPUTime{ThreadsNs: 336e6, ProcessNs: 338e6}
	h := sample.HostDelta{
		SpanNs: 1004e6, IdleNs: map[int]int64{1: 25e5}, KsoftirqdNs: ptr(324e6),
		CPUs: map[int]map[string]int64{1: {sample.User: 4e7, sample.System: 56e7, sample.SoftIRQ: 39e7, sample.Idle: 1e7}},
	}
	again := h
	c.Host, s.Host = &h, &again
	return w, c, s
}

// ran adds a task to what both ends saw, whose time CPU 1 was idle for before; negative, it was the path's.
func ran(command string, n int, ns int64) func(c, s *sample.Observation) {
	return func(c, s *sample.Observation) {
		for _, h := range []*sample.HostDelta{c.Host, s.Host} {
			h.Tasks = append(h.Tasks, sample.Task{Command: command, CPU: n, Ns: ns})
		}
	}
}

// half is a path that uses half as much.
func half(c, s *sample.Observation) {
	for _, o := range []*sample.Observation{c, s} {
		o.CPU.ThreadsNs, o.CPU.ProcessNs, o.Host.KsoftirqdNs = o.CPU.ThreadsNs/2, o.CPU.ProcessNs/2, ptr(162e6)
	}
}

// TestAccount: the busy time of a pinned CPU is the path's, or it has a name.
func TestAccount(t *testing.T) {
	on1 := Conditions{CPUs: []int{1}}
	for name, c := range map[string]struct {
		c     Conditions
		spoil []func(c, s *sample.Observation)
		says  string // "" for an account that closes
	}{
		"closes":               {c: on1},
		"a worker of the path": {on1, []func(c, s *sample.Observation){half, ran("kworker/1:1+wg-crypt-wg0", 1, 495e6)}, ""},
		"a program": {on1, []func(c, s *sample.Observation){half, ran("gzip", 1, 480e6), ran("kworker/1:1-events", 1, 10e6), ran("cc1", 1, 5e6)},
			"other work took 50% of the time of the path's CPUs: gzip 48%, kworker/1:1-events 1%, cc1 0.5%"},
		"threads of one name":         {on1, []func(c, s *sample.Observation){half, ran("cc1", 1, 240e6), ran("cc1", 1, 250e6)}, "CPUs: cc1 49%"},
		"no task":                     {on1, []func(c, s *sample.Observation){half}, "50% in no task that is still there"},
		"a task elsewhere":            {on1, []func(c, s *sample.Observation){half, ran("gzip", 0, 480e6)}, "50% in no task that is still there"},
		"ended, and more of them":     {on1, []func(c, s *sample.Observation){half, ran("ended children of make", -1, 9e9), ran("make", 1, 100e6)}, "make 10%, ended children of make 40%"},
		"a task that is at large":     {on1, []func(c, s *sample.Observation){ran("ended children of make", -1, 9e9)}, ""},
		"too much for the CPU":        {on1, []func(c, s *sample.Observation){func(c, s *sample.Observation) { c.Host.IdleNs[1] = 3e8 }}, "29% more time than the path's CPUs were busy"},
		"1.5 % is too little to tell": {on1, []func(c, s *sample.Observation){func(c, s *sample.Observation) { c.CPU.ThreadsNs, c.CPU.ProcessNs = 322e6, 322e6 }}, ""},
		"3 % is told":                 {on1, []func(c, s *sample.Observation){func(c, s *sample.Observation) { c.CPU.ThreadsNs, c.CPU.ProcessNs = 306e6, 306e6 }}, "3% of the time"},
		"3 % that the meter may have": {on1, []func(c, s *sample.Observation){func(c, s *sample.Observation) { c.CPU.ThreadsNs = 306e6 }}, ""},
		"the CPUs of a whole node":    {Conditions{}, []func(c, s *sample.Observation){func(c, s *sample.Observation) { c.CPU.ThreadsNs, c.CPU.ProcessNs = 200e6, 200e6 }}, ""},
		"old agents":                  {on1, []func(c, s *sample.Observation){half, func(c, s *sample.Observation) { c.Host.SpanNs = 0 }}, ""},
		"a hypervisor had as much":    {on1, []func(c, s *sample.Observation){half, func(c, s *sample.Observation) { c.Host.CPUs[1][sample.Steal] = 49e7 }}, ""},
		"interrupts apart": {Conditions{CPUs: []int{1}, IRQApart: true}, []func(c, s *sample.Observation){half, func(c, s *sample.Observation) {
			c.Host.CPUs[1][sample.SoftIRQ] = 66e7
		}}, ""},
	} {
		w, client, server := pinned()
		for _, spoil := range c.spoil {
			spoil(client, server)
		}
		_, warnings := Derive(w, client, server, c.c)
		var got string
		for _, x := range warnings {
			if x.ID == OtherLoad {
				got = x.Message
			}
		}
		if (c.says == "") != (got == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
}

// TestCoarseClocksRaiseNoDoubt: in windows of 140 ms, a machine that counts idle time in ticks of 10 ms says up to a tick
// too much or too little. That alone is no other work, and a neighbour with a third of the CPU still is.
func TestCoarseClocksRaiseNoDoubt(t *testing.T) {
	for _, off := range []int64{-tick, 0, tick} {
		for share, want := range map[float64]bool{0: false, 0.33: true} {
			w, c, s := pinned()
			for _, o := range []*sample.Observation{c, s} {
				o.ElapsedNs = 140e6
				o.CPU = sample.CPUTime{ThreadsNs: int64(50e6 * (1 - share)), ProcessNs: int64(50e6 * (1 - share))}
				o.Host.SpanNs, o.Host.IdleNs, o.Host.KsoftirqdNs = 140e6, nil, ptr(int64(20e6*(1-share)))
				o.Host.CPUs = map[int]map[string]int64{1: {sample.User: 120e6 - off, sample.Idle: 20e6 + off}}
			}
			_, warnings := Derive(w, c, s, Conditions{CPUs: []int{1}})
			var got []string
			for _, x := range warnings {
				if x.ID == OtherLoad {
					got = append(got, x.Message)
				}
			}
			if (len(got) > 0) != want {
				t.Errorf("%d ns off, %g of the CPU by another: %q", off, share, got)
			}
		}
	}
}

// TestAccountClosesOnWhatDemandSays: what the account takes for the path's is service demand times rate, wherever the work
// was.
func TestAccountClosesOnWhatDemandSays(t *testing.T) {
	w, c, s := pinned()
	ran("kworker/1:2-wg-crypt-wg0", 1, 100e6)(c, s)
	before, _ := Derive(w, c, s, Conditions{CPUs: []int{1}})
	tr := &trial{w: w, is: w.Traits(), c: Conditions{CPUs: []int{1}}}
	tr.client, tr.server = newSide(tr.is, c), newSide(tr.is, s)
	a, ok := tr.cpuAccount()
	if demand := before[metric.ServiceDemand] * tr.client.units() / float64(c.ElapsedNs); !ok || math.Abs(demand-a.load-a.kernel) > 0.01 {
		t.Errorf("service demand x rate is %.4f CPUs, the account has %+v", demand, a)
	}
	// The same work on another CPU costs as much and is not the path's CPU's. Softirqs there are its, other tasks are not.
	for _, h := range []*sample.HostDelta{c.Host, s.Host} {
		h.Tasks[0] = sample.Task{Command: "kworker/0:2-wg-crypt-wg0", CPU: 0, Ns: 100e6}
	}
	same, _ := Derive(w, c, s, Conditions{CPUs: []int{1}})
	if maps.Equal(same, before) == false {
		t.Errorf("%v, on the CPU of the path %v", same[metric.ServiceDemand], before[metric.ServiceDemand])
	}
	ran("ksoftirqd/0", 0, 50e6)(c, s)
	ran("gzip", 0, 70e6)(c, s)
	more, _ := Derive(w, c, s, Conditions{CPUs: []int{1}})
	if d := more[metric.ServiceDemand] - same[metric.ServiceDemand]; math.Abs(d-50e6/tr.client.units()) > 1e-9 {
		t.Errorf("softirqs for a worker elsewhere add %v", d)
	}
	// What ksoftirqd does there beyond that is for others.
	ran("kworker/2:0-wg-crypt-wg0", 2, 2e6)(c, s)
	ran("ksoftirqd/2", 2, 90e6)(c, s)
	little, _ := Derive(w, c, s, Conditions{CPUs: []int{1}})
	if d := little[metric.ServiceDemand] - more[metric.ServiceDemand]; math.Abs(d-4e6/tr.client.units()) > 1e-9 {
		t.Errorf("a little work and much of ksoftirqd elsewhere add %v", d)
	}
	more = little
	// Each machine answers for itself.
	apart, _ := Derive(w, c, s, Conditions{CPUs: []int{1}, Apart: true})
	if d := apart[metric.KernelCPU] - 2*more[metric.KernelCPU]; math.Abs(d) > 1e-9 {
		t.Errorf("two machines of the same: %v and %v", apart[metric.KernelCPU], more[metric.KernelCPU])
	}
}
