package load

import (
	"fmt"
	"os"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/engine/httpwire"
	"github.com/cnibench/cnibench/internal/kernel/sock"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// HTTP/1.1: threads x connections as with wrk, one request under way on each connection. Each thread has its own epoll
// instance and its own connections, which are watched by edges: a connection costs one epoll_ctl in its life. In the
// steady state a request takes two system calls at each side, send and recv, and its part of an epoll_wait. A step of a
// thread is one such wait and the exchanges that it reports.
//
// A response counts in the window in which it is whole. The response time begins before the request is sent, so the
// connect is not in it.
//
// Prepare makes the keep-alive connections. If the server announces the close of a connection, the client connects
// again and counts no error. A broken connection counts by kind, and the client connects again after a pause. With a
// connection for each request the rules of crr hold: the client peeks at the end of the response and closes, so the
// kernel resets the connection and neither side keeps a TIME_WAIT. The client's sockets have the system's congestion
// control, because setting it is a system call.
//
// The client's part is in http_client_linux.go, the server's in http_server_linux.go; package httpwire has the bytes.

// Sizes and limits of http.
const (
	pollBatch     = 64
	receiveSize   = 64 << 10
	dialBatch     = 64                    // connections that are opened at a time before the trial
	retryPause    = 10 * time.Millisecond // wait before a broken connection is replaced
	spareSockets  = 64                    // descriptors of a process in addition to its connections
	longAgo       = -int64(time.Hour)
	listenerTag   = 1<<32 - 1 // no connection has it
	acceptsAtOnce = 64
)

// httpWork returns how one side runs http. A server has one thread for each CPU that it is given, otherwise as many
// as the client. It may stay idle, because one backend of several may get no connection.
func httpWork(s plan.HTTP, client bool, cpus int) work {
	w := work{open: openAnswerer, prepare: prepareHTTP, threads: s.Threads, mayIdle: !client}
	switch {
	case !client && cpus > 0:
		w.threads = cpus
	case !client:
	case s.Arrival != "":
		w.open = openPacedGetter
	default:
		w.open = openGetter
	}
	return w
}

// prepareHTTP sets the default name of the server. It fails if the name cannot be sent in a header field, or if the limit
// of descriptors is too low for the connections.
func prepareHTTP(o *control.Prepare) error {
	if o.Name == "" {
		name, err := os.Hostname()
		if err != nil || !httpwire.ValidName(name) {
			name = "cnibench"
		}
		o.Name = name
	}
	if !httpwire.ValidName(o.Name) {
		return usageError("name %q of the server: want 1 to %d characters of visible ASCII", o.Name, httpwire.MaxName)
	}
	limit, err := sock.Descriptors()
	if err != nil {
		return asError("descriptors", err)
	}
	connections := o.Workload.Traits().Flows
	if need := uint64(connections + spareSockets); need > limit {
		return &Error{Kind: descriptors.String(), Op: "prepare " + o.Workload.String(), Err: fmt.Errorf(
			"%d connections need %d descriptors and the limit is %d: raise it (ulimit -n), or take fewer connections",
			connections, need, limit)}
	}
	return nil
}

// sumShares adds up the threads' counts of each backend. It returns nil if no backend has sent its name.
func sumShares(workers []*worker) map[string]sample.Backend {
	sum := map[string]sample.Backend{}
	for _, w := range workers {
		switch g := w.flow.(type) {
		case *getter:
			g.shares.addCountsTo(sum)
		case *pacedGetter:
			g.shares.addCountsTo(sum)
		}
	}
	if len(sum) == 0 {
		return nil
	}
	return sum
}
