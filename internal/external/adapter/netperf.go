package adapter

import "github.com/cnibench/cnibench/internal/plan"

// NetperfTests are the workloads of netperf's tests by their names on its command line, which other tools use too.
var NetperfTests = map[string]plan.Spec{
	"TCP_STREAM": plan.Stream{}, "UDP_STREAM": plan.Stream{Protocol: plan.UDP}, "TCP_RR": plan.RR{}, "UDP_RR": plan.RR{Protocol: plan.UDP},
	"TCP_CRR": plan.CRR{Close: "fin"},
}

// Sizes are what an output says of one of NetperfTests; 0 is not said.
type Sizes struct{ Flows, Message, Request, Response int }

// Sized returns one of NetperfTests with the sizes that its kind has.
func Sized(s plan.Spec, n Sizes) plan.Workload {
	switch w := s.(type) {
	case plan.Stream:
		w.Flows, w.MessageSize = n.Flows, n.Message
		s = w
	case plan.RR:
		w.Flows, w.RequestSize, w.ResponseSize = n.Flows, n.Request, n.Response
		s = w
	case plan.CRR:
		w.Flows, w.RequestSize, w.ResponseSize = n.Flows, n.Request, n.Response
		s = w
	}
	return plan.Workload{Spec: s}
}
