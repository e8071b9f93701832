// Package sock is the socket calls of the load engine: typed, without policy, without allocation, and without the
// scheduler.
//
// Raw calls go directly to the kernel. They do not inform the Go scheduler that the thread may block, and do not build
// an error: they return the errno, 0 for success. That saves two scheduler transitions and an allocation per call, at a
// price. A raw call that blocks keeps its processor (GOMAXPROCS counts it as running) and delays a garbage collection.
// So make raw calls only on locked threads with a pulse (package thread). Other calls inform the scheduler and return
// ordinary errors.
//
// Read Addr first, then call_linux.go (one function per system call), Chain (several calls in a row), Batch (many
// datagrams per call) and option_linux.go. Sizes are bytes, times ns unless said.
package sock
