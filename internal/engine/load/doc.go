// Package load is the load engine: it runs one side of one trial, for every workload.
//
// # Life of a trial
//
//	Prepare   opens the sockets; the server listens, the client connects its flows and greets. On return every flow has
//	          its thread at both ends
//	Run       opens the gate and advances the phase, by this side's own monotonic clock
//	Close     ends the threads, closes the sockets, restores the settings of the runtime
//
// # The state machine that all workloads share
//
// One word, the phase, is written by Run alone and read by every load thread before each operation:
//
//	warmup ──► window ──► [drain] ──► after ──► stop
//	                │        │          │         └ Close or cancel: threads leave
//	                │        │          └ results are frozen; a client's threads leave, a server's continue to serve,
//	                │        │            so that the client's last operations end
//	                │        └ only where datagrams are counted: stragglers of the window may still arrive
//	                └ the measurement
//
// A thread that finds a new phase marks the edge: it copies its counters and reads the time and its CPU clock, all at the
// same instant. So operations, CPU time and the length of the window match exactly on each side, even if the two windows
// differ or a thread is late. An operation belongs to the window if it began in it. A blocked thread marks when it wakes;
// while it blocked, neither its counters nor its CPU clock moved. Start the server's Run before the client's: then the
// server's window ends first, and always under load.
//
// # Threads
//
// Each flow has one OS thread; http has threads with many connections each (http_linux.go). A thread is locked and
// pinned, makes raw system calls (package sock) and shares only the phase with other threads. It takes no lock and
// allocates nothing. Its counters have cache lines of their own, and Run reads them for the interval rows. Histograms and
// ledgers belong to the thread until it has marked the end. The garbage collector is off from Prepare to Close, and
// GOMAXPROCS grows by the number of threads, because a raw call that blocks keeps its processor.
//
// # Closed and open loops
//
// In a closed loop a flow's next request waits for the response. The plain clients block in their calls, which costs
// least; with Wait "spin" they poll (worker.recv). A client is paced if its requests follow a schedule, or if several
// are under way on a flow. Then schedule.go decides what is due, paced_linux.go waits and keeps the requests under
// way, and rr_paced, crr_paced and http_paced send and receive on sockets that do not block. A response time counts
// from the scheduled time of the request. The servers are the same for all.
//
// # Nothing hangs
//
// A pulse (package thread) interrupts every thread's blocking calls each 25 ms, and the thread then checks the phase.
// Sockets have no timeouts: a timeout costs a timer for each blocking call, and for crr a sixth system call. The
// exceptions must notice a lost packet sooner than the pulse: rr over UDP and ping.
//
// # Normal ends and failures
//
// The client closes its flows. On the server, a flow that ends near or after the end of the window ends normally; an earlier
// end is a "peer gone". On the client, the end of the server is always a failure. Observation.Errors counts the failures
// within the window by kind; a side that completed nothing, or lost all its flows, returns an *Error.
//
// Read engine_linux.go, worker_linux.go, then one workload: rr_linux.go is the simplest. ledger.go (UDP streams) and
// schedule.go (paced clients) are arithmetic without sockets. Times are ns since Prepare by default.
package load
