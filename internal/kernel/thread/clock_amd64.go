package thread

// haveTicks is true: the CPU has a counter. ticksSource is the kernel's name of the clock that uses it.
const (
	haveTicks   = true
	ticksSource = "tsc"
)

// ticks returns the time stamp counter.
func ticks() uint64
