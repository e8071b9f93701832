// Package sock is the socket calls of the load engine: typed, without policy, without allocation, and without the
// scheduler.
//
// Calls marked raw go straight to the kernel. They neither tell the Go scheduler that the thread may block nor build an
// error: they return the errno, 0 for success. That saves two scheduler transitions and an allocation per call, and it
// has a price. A raw call that blocks keeps its processor (GOMAXPROCS counts it as running) and holds up a garbage
// collection, so raw calls belong on locked threads that have a pulse (package thread), and nowhere else. Calls that
// are not marked raw may block politely and return ordinary errors.
//
// Read Addr first, then call_linux.go (one function per system call), Chain (several calls in a row), Batch (many
// datagrams per call) and option_linux.go. Sizes are bytes, times ns unless said.
package sock
