//go:build linux && !amd64

package thread

// haveTicks is false: the kernel's clock is read.
const (
	haveTicks   = false
	ticksSource = ""
)

func ticks() uint64 { return 0 }
