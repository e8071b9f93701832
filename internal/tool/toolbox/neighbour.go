package toolbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Neighbour is one of them.
type Neighbour struct {
	Name string
	// About says what it does, as the begin of a sentence.
	About string
	// Start disturbs until stop is called.
	Start func(context.Context) (stop func())
}

// All are the neighbours.
var All = []Neighbour{
	{"nothing", "Alone", func(context.Context) func() { return func() {} }},
	{"compile", "Beside a compile job (`go build -a std`, again and again)",
		func(ctx context.Context) func() { return beside(ctx, 1, compile) }},
	{"bursts", "Beside bursts: on as many threads as CPUs, 50 to 400 ms of work after 0.2 to 2 s of rest",
		func(ctx context.Context) func() { return beside(ctx, runtime.NumCPU(), burst) }},
}

// Names are those of some neighbours, separated by commas.
func Names(some []Neighbour) string {
	return strings.Join(each.Of(some, func(n Neighbour) string { return n.Name }), ",")
}

// Parse returns the neighbours of names that are separated by commas.
func Parse(names string) ([]Neighbour, error) {
	var out []Neighbour
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(All, func(n Neighbour) bool { return n.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no neighbour %q: one of %s", name, Names(All))
		}
		out = append(out, All[i])
	}
	return out, nil
}

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
