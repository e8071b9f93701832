package member

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/engine/load"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// gang are the members of a job on the loopback, prepared.
func gang(t *testing.T, workload string, window time.Duration) []*Trial {
	t.Helper()
	w, err := plan.ParseWorkload(workload)
	if err != nil {
		t.Fatal(err)
	}
	n := w.Traits().Job.Members
	peers := make([]control.Peer, n)
	for i := range peers {
		peers[i] = control.Peer{Name: fmt.Sprintf("node-%d", i+1), Address: "127.0.0.1"}
	}
	all := make([]*Trial, n)
	for rank := n - 1; rank >= 0; rank-- {
		side := control.SideServer
		if rank == 0 {
			side = control.SideClient
		}
		m, err := Prepare(t.Context(), control.Prepare{Side: side, Workload: w, Address: "127.0.0.1", Window: window, Warmup: time.Millisecond,
			Seat: &control.Seat{Rank: rank, Members: peers}, Setup: time.Minute}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
		all[rank], peers[rank].Port = m, m.Port()
	}
	return all
}

// run runs all members, and returns what each saw or ended in.
func run(ctx context.Context, all []*Trial) ([]*sample.Observation, []error) {
	seen, failed := make([]*sample.Observation, len(all)), make([]error, len(all))
	var wait sync.WaitGroup
	for i, m := range all {
		wait.Go(func() { seen[i], failed[i] = m.Run(ctx, func(bool) {}) })
	}
	wait.Wait()
	return seen, failed
}

// TestBytesOfEachMember: every pattern moves the bytes of its definition, at each member, in each step of the window.
func TestBytesOfEachMember(t *testing.T) {
	for _, workload := range []string{
		"job(size=100000)", "job(members=2,size=2)", "job(members=3,size=5)", "job(via=doubling,members=5,size=70000)", "job(pattern=broadcast,members=6,size=300000)",
		"job(pattern=broadcast,via=flat,size=300000)", "job(pattern=shuffle,members=5,size=500000,skew=50%)", "job(pattern=replicate,size=2Mi)",
		"job(pattern=replicate,via=fan-out,size=2Mi)", "job(pattern=incast,members=6,size=300000)", "job(pattern=microservice,members=8)",
		"job(pattern=microservice,members=4,fanout=1,service=200us)",
	} {
		all := gang(t, workload, 20*time.Millisecond)
		seen, failed := run(t.Context(), all)
		if err := errors.Join(failed...); err != nil {
			t.Errorf("%s: %v", workload, err)
			continue
		}
		steps := seen[0].Operations
		sent, received := make([]uint64, len(seen)), make([]uint64, len(seen))
		for _, x := range all[0].shape.Transfers() {
			sent[x.From] += steps * uint64(x.Bytes)
			received[x.To] += steps * uint64(x.Bytes)
		}
		for i, o := range seen {
			if o.Operations != steps || o.BytesSent != sent[i] || o.BytesReceived != received[i] || o.ElapsedNs <= 0 || o.CPU.ThreadsNs <= 0 {
				t.Errorf("%s: member %d: %d steps of %d, %d sent, want %d, %d received, want %d", workload, i, o.Operations, steps, o.BytesSent, sent[i], o.BytesReceived, received[i])
			}
		}
		account := seen[0].Job
		if steps == 0 || account.Step.Count() != int64(steps) || account.Exchange.Count() != int64(steps) {
			t.Errorf("%s: %d steps, an account of %d", workload, steps, account.Step.Count())
		}
		if whole := sample.Gather(seen); whole.BytesSent != whole.BytesReceived || len(whole.Job.Members) != len(seen) || whole.Job.Members[1].BytesSent != sent[1] {
			t.Errorf("%s: together %+v", workload, whole)
		}
	}
}

// TestHops: requests of a tree have times by depth, and those at a deeper member are part of those above.
func TestHops(t *testing.T) {
	seen, failed := run(t.Context(), gang(t, "job(pattern=microservice,members=8,service=1ms)", 50*time.Millisecond))
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	hops := seen[0].Job.Hops
	if len(hops) != 3 || hops[0].Count() != 2*int64(seen[0].Operations) || hops[1].Count() != 4*int64(seen[0].Operations) {
		t.Fatalf("%d depths", len(hops))
	}
	if hops[2].Min() < 1_000_000 || hops[0].Max() < hops[2].Min()+2_000_000 || seen[0].Job.Step.Min() < 4_000_000*3/4 {
		t.Errorf("1 ms of service at each: %d at depth 3, %d at depth 1, a step of %d ns", hops[2].Min(), hops[0].Max(), seen[0].Job.Step.Min())
	}
}

// TestPause: members compute before they exchange, and the exchange is timed without it.
func TestPause(t *testing.T) {
	seen, failed := run(t.Context(), gang(t, "job(size=1000,pause=20ms)", 100*time.Millisecond))
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	if j := seen[0].Job; j.Step.Min() < 20_000_000 || j.Exchange.Min() > j.Step.Min()-19_000_000 {
		t.Errorf("a step of %d ns, an exchange of %d", j.Step.Min(), j.Exchange.Min())
	}
}

// TestLostMemberIsNamed: when a member is lost its neighbours say who it is.
func TestLostMemberIsNamed(t *testing.T) {
	all := gang(t, "job(pattern=shuffle,size=100000)", time.Hour)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	own, lose := context.WithCancel(ctx)
	failed := make([]error, len(all))
	var wait sync.WaitGroup
	for i, m := range all {
		wait.Go(func() {
			if i != 2 {
				_, failed[i] = m.Run(ctx, func(bool) {})
				return
			}
			_, failed[i] = m.Run(own, func(bool) {})
			failed[i] = errors.Join(failed[i], m.Close())
		})
	}
	for look := time.NewTicker(time.Millisecond); all[0].stands.step.Load() < 3 && ctx.Err() == nil; {
		<-look.C
	}
	lose()
	wait.Wait()
	for i, err := range failed {
		var known *load.Error
		switch {
		case !errors.As(err, &known):
			t.Errorf("member %d ended in %v", i, err)
		case i == 2 && known.Kind != load.KindCancelled:
			t.Errorf("the one that was given up: %v", err)
		case i != 2 && (known.Kind != kindGone || !strings.Contains(err.Error(), "member 2 (node-3) is lost")):
			t.Errorf("member %d: %v", i, err)
		}
	}
}

// TestLostMemberLeavesAnAccount: where a job continues, the first member tells of the steps before: it missed the member, or
// the controller says that one is silent.
func TestLostMemberLeavesAnAccount(t *testing.T) {
	for _, silent := range []bool{false, true} {
		all := gang(t, "job(pattern=shuffle,size=100000,lost=continue)", time.Hour)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		finished := make(chan struct{})
		all[0].finished = finished
		own, lose := context.WithCancel(ctx)
		var seen *sample.Observation
		var first, other error
		var wait sync.WaitGroup
		wait.Go(func() { seen, first = all[0].Run(ctx, func(bool) {}); lose() })
		wait.Go(func() { _, other = all[1].Run(own, func(bool) {}) })
		wait.Go(func() { _, _ = all[3].Run(own, func(bool) {}) })
		wait.Go(func() { _, _ = all[2].Run(own, func(bool) {}); _ = all[2].Close() })
		for look := time.NewTicker(time.Millisecond); all[0].stands.step.Load() < 20 && ctx.Err() == nil; {
			<-look.C
		}
		if silent {
			close(finished)
		} else {
			lose()
		}
		wait.Wait()
		if first != nil || seen.Job.Loss == nil || other == nil {
			t.Fatalf("silent %v: the first ended in %v with %+v, another in %v", silent, first, seen, other)
		}
		if loss := seen.Job.Loss; loss.Step < 20 || loss.AfterNs <= 0 || seen.Job.Step.Count() == 0 || seen.Job.Step.Count() >= int64(loss.Step) {
			t.Errorf("silent %v: lost in step %d after %d ns, %d steps before", silent, loss.Step, loss.AfterNs, seen.Job.Step.Count())
		}
	}
}

// TestStands: a member that waits says for whom.
func TestStands(t *testing.T) {
	all := gang(t, "job(members=3,size=1000)", time.Hour)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var wait sync.WaitGroup
	for _, i := range []int{0, 1} { // member 2 never begins
		wait.Go(func() { _, _ = all[i].Run(ctx, func(bool) {}) })
	}
	for look := time.NewTicker(time.Millisecond); !strings.Contains(all[0].Stands(), "waiting for member 2 (node-3)") && ctx.Err() == nil; {
		<-look.C
	}
	if got := all[0].Stands(); !strings.HasPrefix(got, "in step 1, waiting for ") {
		t.Error(got)
	}
	stop()
	wait.Wait()
}

func TestPrepareRefuses(t *testing.T) {
	w, err := plan.ParseWorkload("job(members=3)")
	if err != nil {
		t.Fatal(err)
	}
	rr, _ := plan.ParseWorkload("rr")
	peers := make([]control.Peer, 3)
	for _, o := range []control.Prepare{
		{Workload: rr, Window: time.Second, Seat: &control.Seat{Members: peers}},
		{Workload: w, Window: time.Second},
		{Workload: w, Window: time.Second, Seat: &control.Seat{Rank: 3, Members: peers}},
		{Workload: w, Window: time.Second, Seat: &control.Seat{Members: peers[:2]}},
		{Workload: w, Seat: &control.Seat{Members: peers}},
	} {
		var known *load.Error
		if _, err := Prepare(t.Context(), o, nil); !errors.As(err, &known) || known.Kind != load.KindUsage {
			t.Errorf("%+v: %v", o, err)
		}
	}
	var known *load.Error
	peers[1] = control.Peer{Name: "node-2", Address: "127.0.0.1", Port: 1}
	_, err = Prepare(t.Context(), control.Prepare{Workload: w, Window: time.Second, Seat: &control.Seat{Members: peers}}, nil)
	if !errors.As(err, &known) || known.Kind != "connection refused" || !strings.Contains(err.Error(), "member 1 (node-2)") {
		t.Errorf("without a listener: %v", err)
	}
}
