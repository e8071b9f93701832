// Package load is the load engine: one side of one trial, for every workload.
//
// # Life of a trial
//
//	Prepare   sockets; the server listens, the client connects its flows and greets, so that on return every flow has
//	          its thread at both ends and nothing is left to set up
//	Run       opens the gate and moves the phase on, by this side's own monotonic clock
//	Close     ends the threads, closes the sockets, gives the runtime its settings back
//
// # The state machine that all workloads share
//
// One word, the phase, is written by Run alone and read by every load thread before each operation:
//
//	warmup ──► window ──► [drain] ──► after ──► stop
//	                │        │          │         └ Close or cancel: threads leave
//	                │        │          └ results are frozen; a client's threads leave, a server's serve on, so that
//	                │        │            the client's last operations are not cut
//	                │        └ only where datagrams are counted: stragglers of the window may still come in
//	                └ what counts
//
// A thread that finds the phase changed marks the edge: it copies its counters and reads the time and its CPU clock, all
// at the same instant. So operations, CPU time and the length of the window belong together exactly, on either side,
// however the two sides' windows lie to each other and whoever was held up. An operation belongs to the window if it was
// begun in it. A thread that blocks marks when it wakes; while it blocked, neither its counters nor its CPU clock moved.
// Start the server's Run before the client's; then the server's window ends first and always under load.
//
// # Threads
//
// Each flow has one OS thread, and http has threads with many connections each (http_linux.go). A thread is locked and
// pinned, makes raw system calls (package sock) and shares nothing with another but the phase. It takes no lock and
// allocates nothing. Its counters are alone on their cache lines, and Run reads them for the interval rows. Histograms and
// ledgers are the thread's own until it has marked the end. The garbage collector rests from Prepare to Close, and
// GOMAXPROCS is raised by the number of threads, because a raw call that blocks keeps its processor.
//
// # Closed and open loops
//
// In a closed loop a flow's next request waits for the response. The plain clients block in their calls, which costs
// least; with Wait "spin" they ask again and again (worker.recv). Where requests follow a schedule, or several are under way
// on a flow, a client is paced: schedule.go says what is due, flight.go keeps what is under way, paced_linux.go has the
// rest in which a thread waits for both, and rr_paced, crr_paced and http_paced do the sending and receiving on sockets
// that do not block. A time counts from when the request fell due. The servers are the same for all.
//
// # Nothing hangs
//
// A pulse (package thread) interrupts every thread's blocking calls each 25 ms, and the thread then looks at the phase.
// There are no socket timeouts on the way, which cost a timer per blocking call, and none to set on the connections of
// crr, where setting them would be a sixth system call. Only who must notice a lost packet sooner than the pulse has
// one: rr over UDP and ping.
//
// # Normal ends and failures
//
// A client's flow is closed by the client. To the server, a flow that goes near or after the end of the window is the
// normal end; one that goes earlier is a "peer gone". To the client, a server that goes is always a failure. Failures
// within the window are counted by kind in Observation.Errors; a side that completed nothing, or lost all its flows,
// returns an *Error.
//
// Read engine_linux.go, worker_linux.go, then one workload: rr_linux.go is the plainest. pace.go and ledger.go are the
// arithmetic of UDP streams, schedule.go and flight.go that of paced clients, without sockets. Times are ns since Prepare unless said.
package load
