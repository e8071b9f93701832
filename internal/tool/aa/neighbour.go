package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"
)

// neighbours disturb a run from when they are called until what they return is.
var neighbours = map[string]func(context.Context) (stop func()){
	"nothing": func(context.Context) func() { return func() {} },
	"compile": func(ctx context.Context) func() { return beside(ctx, 1, compile) },
	"bursts":  func(ctx context.Context) func() { return beside(ctx, runtime.NumCPU(), burst) },
}

// about says what each neighbour does.
var about = map[string]string{
	"nothing": "Alone",
	"compile": "Beside a compile job (`go build -a std`, again and again)",
	"bursts":  "Beside bursts: on as many threads as CPUs, 50 to 400 ms of work after 0.2 to 2 s of rest",
}

func names() []string {
	return slices.SortedFunc(maps.Keys(neighbours), func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
}

var order = []string{"nothing", "compile", "bursts"}

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
		fmt.Fprintf(os.Stderr, "aa: the compile job: %v: %s\n", err, out)
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
