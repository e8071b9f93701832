package load

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// spare is how many processors are left to everything that is not a load thread: the yardstick, and the runtime's own.
const spare = 5

// quiet is the state of the Go runtime that trials of this process share: while any is under way the collector rests
// and GOMAXPROCS covers all load threads. It is global because what it guards is.
var quiet struct {
	sync.Mutex
	trials, threads       int
	collector, processors int
}

// quiesceRuntime stops the collector and adds processors for a trial of n threads.
func quiesceRuntime(n int) {
	quiet.Lock()
	defer quiet.Unlock()
	if quiet.trials == 0 {
		quiet.processors = runtime.GOMAXPROCS(0)
		quiet.collector = debug.SetGCPercent(-1)
	}
	quiet.trials++
	quiet.threads += n
	// Set even if it is enough: once set, the runtime no longer adapts it by itself, which would stop the world.
	runtime.GOMAXPROCS(max(quiet.threads+spare, runtime.GOMAXPROCS(0)))
}

// restoreRuntime undoes quiesceRuntime; the last trial restores what was before the first.
func restoreRuntime(n int) {
	quiet.Lock()
	defer quiet.Unlock()
	quiet.trials--
	quiet.threads -= n
	if quiet.trials == 0 {
		runtime.GOMAXPROCS(quiet.processors)
		debug.SetGCPercent(quiet.collector)
	}
}
