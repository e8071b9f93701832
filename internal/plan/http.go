package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// HTTP sends requests of HTTP/1.1, one at a time on each connection.
type HTTP struct {
	// Rate, Load and Arrival define the schedule of requests; see checkPacing.
	Rate, Load float64
	Arrival    string
	// ResponseSize is the length of the body in bytes.
	ResponseSize int
	// Threads and Connections are the numbers of the client's threads and connections. The connections are spread evenly
	// over the threads.
	Threads, Connections int
	// Connection is "keep-alive", or "close" for a new connection for each request.
	Connection string
	// Backends is the number of servers behind the Service of a path, spread evenly over the nodes. The locality of the
	// path is the place of the first server.
	Backends int
	// Drain is how long a backend that was taken out of its Service still serves before its server ends, from 0 to
	// maxDrain. 0 (default) is like an application that ends on SIGTERM.
	Drain      time.Duration
	Congestion string
	// Roll makes the run roll the backends during the measurement, as a rolling update does. Each in turn is taken out
	// of the Service, its server ends and starts again, and the backend is put back (see RollStep).
	Roll bool
}

// Limits and defaults of http. The defaults of threads and connections are those of wrk.
const (
	MaxThreads         = 64
	MaxConnections     = 4096
	MaxBackends        = 250
	DefaultThreads     = 2
	DefaultConnections = 10
	defaultBody        = 1024
)

var httpKind = kind{name: "http", about: "HTTP/1.1 requests", title: "HTTP requests", zero: HTTP{}, options: slices.Concat(
	[]option{singleTransportOption[HTTP](TCP)},
	pacingOptions(func(s *HTTP) (*float64, *float64, *string) { return &s.Rate, &s.Load, &s.Arrival }),
	[]option{
		fieldOption("responseSize", "response", "length of the body", sizeValues(MaxRequest), func(s *HTTP) *int { return &s.ResponseSize }),
		fieldOption("threads", "threads", "threads of the client", wholeNumberValues(1, MaxThreads), func(s *HTTP) *int { return &s.Threads }),
		fieldOption("connections", "connections", "connections of the client, at least one for each thread", wholeNumberValues(1, MaxConnections),
			func(s *HTTP) *int { return &s.Connections }),
		fieldOption("connection", "connection", "what the client does after a response", wordValues("keep-alive", "close"), func(s *HTTP) *string { return &s.Connection }),
		fieldOption("backends", "backends", "servers behind the Service", wholeNumberValues(1, MaxBackends), func(s *HTTP) *int { return &s.Backends }),
		fieldOption("drain", "drain", "how long a backend serves after it was taken out", durationValues(0, maxDrain), func(s *HTTP) *time.Duration { return &s.Drain }),
		fieldOption("congestion", "congestion", "TCP congestion control", algorithms, func(s *HTTP) *string { return &s.Congestion }),
		byTool,
		byWindow,
		boolOption("roll", "take each backend out of the Service in turn, and put it back", func(s *HTTP) *bool { return &s.Roll }),
	},
)}

func (s HTTP) kindEntry() *kind { return &httpKind }

// Traits implements Spec.
func (s HTTP) Traits() Traits {
	t := Traits{Protocol: TCP, Work: Request, Flows: s.Connections, Response: s.ResponseSize, Reconnect: s.Connection == "close",
		Rate: s.Rate, Load: s.Load, Arrival: s.Arrival, Congestion: s.Congestion, rolling: rolling{s.Backends, s.Roll, s.Drain},
		Decides: []string{metric.RequestRate, metric.ResponseTime + ".p50"}}
	if t.Open() {
		t.Decides = t.Decides[1:]
	}
	return t
}

func (s HTTP) normalize() Spec {
	s.Arrival = normalizeArrival(s.Rate, s.Load, s.Arrival)
	s.ResponseSize = cmp.Or(s.ResponseSize, defaultBody)
	s.Threads = cmp.Or(s.Threads, DefaultThreads)
	s.Connections = cmp.Or(s.Connections, max(DefaultConnections, s.Threads))
	s.Connection = cmp.Or(s.Connection, "keep-alive")
	s.Backends = cmp.Or(s.Backends, 1)
	s.Congestion = cmp.Or(s.Congestion, DefaultCongestion)
	if s.Roll = s.Roll && s.Backends > 1; !s.Roll {
		s.Drain = 0
	}
	return s
}

func (s HTTP) addFaults(f *faultList) {
	n := s.normalize().(HTTP)
	f.checkPacing(n.Rate, n.Load, n.Arrival)
	f.refuseIf(n.Arrival == Saturate, "http has no arrival saturate: a closed loop over its connections measures its capacity")
	f.refuseIf(n.Connections < n.Threads, "connections %d are fewer than the %d threads: want one for each thread", n.Connections, n.Threads)
	f.refuseIf(s.Roll && s.Backends < 2, "roll takes one backend after the other out of the Service: want backends=2 or more")
	f.refuseIf(s.Drain != 0 && !s.Roll, "drain is for backends that are rolled: want roll, too")
}

// maxDrain is the largest HTTP.Drain. The default grace period of a pod in Kubernetes is 30 s.
const maxDrain = time.Minute

// The parts of a step of a roll. One backend is in service for a quarter of the step, out for a half, and in again for
// the last quarter.
const (
	rollOut  = 0.25
	rollBack = 0.75
)

// RollStep returns when backend i of the workload, counted from 0, is taken out of its Service and when it is put back,
// both from the start of the window. The backends have equal parts of the window, one after the other, so at most one
// is out at any moment.
func (w Workload) RollStep(window time.Duration, i int) (out, back time.Duration) {
	step := float64(window) / float64(max(w.Traits().Backends, 1))
	return time.Duration((float64(i) + rollOut) * step), time.Duration((float64(i) + rollBack) * step)
}

// whyUnfit implements fitter: it returns why a window is too short to roll the backends.
func (s HTTP) whyUnfit(window time.Duration) string {
	t := s.Traits()
	if !t.Roll {
		return ""
	}
	out, back := Workload{Spec: s}.RollStep(window, 0)
	away := back - out
	switch {
	case away < leastAway:
		return fmt.Sprintf("a window of %s removes each of %d backends for %s, want at least %s: give a longer window (--duration %s)",
			window, t.Backends, away, leastAway, 2*leastAway*time.Duration(t.Backends))
	case t.Drain > away*4/5:
		return fmt.Sprintf("in a window of %s each of %d backends is out %s and drains %s: give a longer window (--duration) or a shorter drain",
			window, t.Backends, away, t.Drain)
	}
	return ""
}

const (
	// leastAway is the shortest time that a backend may be out of its Service.
	leastAway = 50 * time.Millisecond
	// rollShare is the part of the window that Fit allows for each backend. On a cluster it is rollShareAfar, because
	// kube-proxy applies changes once a second.
	rollShare     = 400 * time.Millisecond
	rollShareAfar = 4 * time.Second
	// drainsPerStep is the least ratio of a backend's part of the window to the drain. The drain is then at most half
	// of the time that the backend is out.
	drainsPerStep = 4
)

// leastRollWindow returns the shortest window that Fit may choose for a workload that rolls its backends. It returns 0 for
// other workloads.
func leastRollWindow(t Traits, onCluster bool) time.Duration {
	switch {
	case !t.Roll:
		return 0
	case onCluster:
		return time.Duration(t.Backends) * max(rollShareAfar, drainsPerStep*t.Drain)
	}
	return time.Duration(t.Backends) * max(rollShare, drainsPerStep*t.Drain)
}

// Rolled reports whether the workload's servers are rolled on a path. It is false on paths without a Service.
func (w Workload) Rolled(p Path) bool { return w.Traits().Roll && w.Servers(p) > 1 }
