package load

import (
	"time"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/plan"
)

// work is how one side runs a workload.
type work struct {
	open func(w *worker) (flow, error) // returns the worker's flow
	// beside returns the flow of the last worker, which is not part of the workload. (optional)
	beside    func(w *worker) (flow, error)
	prepare   func(o *control.Prepare) error // refuses options and fills in defaults. (optional)
	threads   int                            // 0 is one for each flow
	buffer    int                            // of every socket in bytes, 0 for the default
	timeout   time.Duration                  // of one exchange, 0 for the default
	standing  bool                           // flows are connected once, before the trial
	sends     bool                           // sends without a request, so it must wait for Run
	timed     bool                           // its socket has timeouts instead of a pulse
	straggles bool                           // datagrams of the window may arrive after it
	mayIdle   bool                           // a side that completes nothing has not failed
}

// workOf lists the workloads that the engine can send. A throughput search is many streams.
func workOf(o *control.Prepare) (work, error) {
	client := o.Side == control.SideClient
	if !client && o.Side != control.SideServer {
		return work{}, usage("side %q", o.Side)
	}
	switch s := o.Workload.Spec.(type) {
	case plan.Stream:
		return streamWork(s, client), nil
	case plan.RR:
		return rrWork(s, client), nil
	case plan.CRR:
		return crrWork(s, client), nil
	case plan.Ping:
		return pingWork(), nil
	case plan.HTTP:
		return httpWork(s, client, len(o.CPUs)), nil
	}
	return work{}, usage("the engine cannot send workload %q", o.Workload)
}

// specOf returns what is sent, for a worker whose kind of workload is known.
func specOf[S plan.Spec](w *worker) S { return w.trial.o.Workload.Spec.(S) }
