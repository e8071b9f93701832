package load

import (
	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/plan"
)

// work is how a workload plays one side.
type work struct {
	open     func(w *worker) error // gives the worker its flow
	standing bool                  // flows are connected once, before the trial
	sends    bool                  // moves data without being asked, so it must wait for Run
	timed    bool                  // its socket has timeouts instead of a pulse
}

// workOf is the list of what the engine can do.
func workOf(side string, w plan.Workload) (work, error) {
	if side != control.SideClient && side != control.SideServer {
		return work{}, usage("side %q", side)
	}
	client := side == control.SideClient
	sender := client != w.Reverse
	switch {
	case w.Kind == plan.Stream && w.Bidirectional:
		return work{open: openEitherWay, standing: true, sends: true}, nil
	case w.Kind == plan.Stream && w.Protocol == plan.TCP && sender:
		return work{open: openSender, standing: true, sends: true}, nil
	case w.Kind == plan.Stream && w.Protocol == plan.TCP:
		return work{open: openReceiver, standing: true}, nil
	case w.Kind == plan.Stream && w.Protocol == plan.UDP && sender:
		return work{open: openDatagramSender, standing: true, sends: true}, nil
	case w.Kind == plan.Stream && w.Protocol == plan.UDP:
		return work{open: openDatagramReceiver, standing: true}, nil
	case w.Kind == plan.RR && client && scheduled(w) && w.Protocol == plan.TCP:
		return work{open: openPacedRequester, standing: true}, nil
	case w.Kind == plan.RR && client && scheduled(w):
		return work{open: openPacedDatagramRequester, standing: true}, nil
	case w.Kind == plan.RR && w.Protocol == plan.TCP && client:
		return work{open: openRequester, standing: true}, nil
	case w.Kind == plan.RR && w.Protocol == plan.TCP:
		return work{open: openResponder, standing: true}, nil
	case w.Kind == plan.RR && w.Protocol == plan.UDP && client:
		return work{open: openDatagramRequester, standing: true, timed: true}, nil
	case w.Kind == plan.RR && w.Protocol == plan.UDP:
		return work{open: openDatagramResponder, standing: true}, nil
	case w.Kind == plan.CRR && client && scheduled(w):
		return work{open: openPacedConnector}, nil
	case w.Kind == plan.CRR && client:
		return work{open: openConnector}, nil
	case w.Kind == plan.CRR:
		return work{open: openAcceptor}, nil
	case w.Kind == plan.HTTP && client && w.Open():
		return work{open: openPacedGetter}, nil
	case w.Kind == plan.HTTP && client:
		return work{open: openGetter}, nil
	case w.Kind == plan.HTTP:
		return work{open: openAnswerer}, nil
	case w.Kind == plan.Ping:
		return work{open: openPinger, timed: true}, nil
	}
	return work{}, usage("no workload %q over %q", w.Kind, w.Protocol)
}

// scheduled says whether the client sends by a schedule, or has several requests under way on a flow.
func scheduled(w plan.Workload) bool { return w.Arrival != "" || w.Burst > 1 }
