package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// neighbour is work that disturbs a run as others on a shared machine do.
type neighbour struct {
	name string
	// about says what it does, as the begin of a sentence.
	about string
	// start disturbs until stop is called.
	start func(context.Context) (stop func())
}

var (
	nothing  = neighbour{"nothing", "Alone", func(context.Context) func() { return func() {} }}
	compiles = neighbour{"compile", "Beside a compile job (`go build -a std`, again and again)",
		func(ctx context.Context) func() { return beside(ctx, 1, compile) }}
	bursts = neighbour{"bursts", "Beside bursts: on as many threads as CPUs, 50 to 400 ms of work after 0.2 to 2 s of rest",
		func(ctx context.Context) func() { return beside(ctx, runtime.NumCPU(), burst) }}
	neighbours = []neighbour{nothing, compiles, bursts}
)

func (n neighbour) String() string { return n.name }

// beside repeats work on so many threads.
func beside(ctx context.Context, threads int, work func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for range threads {
		all.Go(func() {
			for ctx.Err() == nil {
				work(ctx)
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

func compile(ctx context.Context) {
	cmd := exec.CommandContext(ctx, "go", "build", "-a", "std")
	if out, err := cmd.CombinedOutput(); err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "the compile job: %v: %s\n", err, out)
	}
}

func burst(ctx context.Context) {
	rest := time.NewTimer(200*time.Millisecond + rand.N(1800*time.Millisecond))
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
		return
	}
	for until := time.Now().Add(50*time.Millisecond + rand.N(350*time.Millisecond)); time.Now().Before(until); {
	}
}
