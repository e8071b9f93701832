package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/plan/names"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// dnsSpec resolves names as the GNU C library does: it opens a socket for each resolution, and sends the queries for A and
// AAAA from it at once.
type dnsSpec struct {
	Protocol Protocol
	// Flows is the number of threads that resolve, each one name at a time.
	Flows int
	// Rate, Load and Arrival define the schedule of resolutions; see checkPacing.
	Rate, Load float64
	Arrival    string
	names.Shape
	// Backends is the number of servers behind the Service of a path.
	Backends int
}

// serverKey is the key of the option that determines the defaults of the other options.
const serverKey = "server"

var dnsKind = kind{name: "dns", about: "names to resolve, A and AAAA at once as the C library does", title: "Names resolved", zero: dnsSpec{}, options: slices.Concat(
	[]option{
		transportOption(func(s *dnsSpec) *Protocol { return &s.Protocol }, UDP, TCP),
		fieldOption(serverKey, serverKey, "who answers: a server of ours (own), the resolver of the pod (cluster), or an address", textValues(names.BadServer), func(s *dnsSpec) *string { return &s.Server }),
		fieldOption("flows", "flows", "threads, each with one resolution at a time", wholeNumberValues(1, maxFlows), func(s *dnsSpec) *int { return &s.Flows }),
	},
	pacingOptions(func(s *dnsSpec) (*float64, *float64, *string) { return &s.Rate, &s.Load, &s.Arrival }),
	[]option{
		fieldOption("name", "name", "name to resolve", textValues(names.BadName), func(s *dnsSpec) *string { return &s.Name }),
		fieldOption("queries", "queries", "what is asked for a name: A and AAAA at once from one socket (race: by two threads at the same instant), or A", wordValues(names.Queries()...), func(s *dnsSpec) *string { return &s.Queries }),
		fieldOption("ndots", "ndots", "dots that a name needs to be asked for before the search list; Kubernetes sets 5", wholeNumberValues(1, names.MaxNdots), func(s *dnsSpec) *int { return &s.Ndots }),
		fieldOption("timeout", "timeout", "time without an answer after which a query is sent again", durationValues(names.MinTimeout, names.MaxTimeout), func(s *dnsSpec) *time.Duration { return &s.Timeout }),
		fieldOption("attempts", "attempts", "how often a query is sent to a server", wholeNumberValues(1, names.MaxAttempts), func(s *dnsSpec) *int { return &s.Attempts }),
		fieldOption("backends", "backends", "servers behind the Service", wholeNumberValues(1, MaxBackends), func(s *dnsSpec) *int { return &s.Backends }),
		byWindow,
	},
)}

func (s dnsSpec) kindEntry() *kind { return &dnsKind }

// Traits implements Spec.
func (s dnsSpec) Traits() Traits {
	return Traits{Protocol: s.Protocol, Work: resolution, Flows: s.Flows, Rate: s.Rate, Load: s.Load, Arrival: s.Arrival,
		Names: s.Shape, rolling: rolling{Backends: s.Backends}, Timeout: s.Longest(),
		Decides: []string{metric.ResolutionTime + ".p50"}}
}

func (s dnsSpec) normalize() Spec {
	s.Protocol, s.Flows = cmp.Or(s.Protocol, UDP), max(s.Flows, 1)
	s.Arrival = normalizeArrival(s.Rate, s.Load, s.Arrival)
	s.Shape = s.WithDefaults()
	s.Backends = cmp.Or(s.Backends, 1)
	return s
}

func (s dnsSpec) addFaults(f *faultList) {
	n := s.normalize().(dnsSpec)
	f.checkPacing(n.Rate, n.Load, n.Arrival)
	f.refuseIf(n.Races() && n.Protocol == TCP, "queries race is for udp: a TCP connection exists before its queries")
	f.refuseIf(n.Elsewhere() && s.Backends > 1, "backends are servers of ours: server %s takes none", s.Server)
	f.refuseIf(n.Elsewhere() && n.Load > 0, "load asks a server of ours for its capacity first: give a rate for server %s", s.Server)
	f.refuseIf(n.Elsewhere() && n.Arrival == Saturate, "arrival saturate is for servers of ours: give a rate for server %s", s.Server)
}

// whyBarred implements chooser: it returns why the spec does not support a path.
func (s dnsSpec) whyBarred(p Path) string {
	if s.Elsewhere() && (p.From != Pod || p.To != Service) {
		return "the server of the workload is not at the end of the path: want pod-to-service/local or pod-to-service/remote"
	}
	return ""
}

// checkNames adds faults for workloads that query a server other than our own, unless the plan is for a cluster.
func (fs *faults) checkNames(p Plan) {
	for _, w := range p.Workloads {
		if w.Spec != nil && w.Traits().Names.Elsewhere() && !p.OnCluster() {
			fs.Add("workloads", "%s: a lab has servers of ours alone: leave server out, or take a cluster (--env kubernetes)", w)
		}
	}
}
