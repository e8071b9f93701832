package external

import (
	"context"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/child"
	"github.com/cnibench/cnibench/internal/plan"
)

const (
	// patience bounds how long a tool may take to print its version, mostWords its output in bytes.
	patience  = 2 * time.Second
	mostWords = 64 << 10
)

// Version runs the program at path, a program of w's tool, and returns the version that it prints. It returns "" if the
// program prints none within patience, or cannot be run.
func Version(ctx context.Context, w plan.Workload, path string) string {
	s := sender(w)
	if s.VersionIn == nil {
		return ""
	}
	p, err := child.Start(child.Options{Argv: append([]string{path}, s.VersionArgs...), Env: Environment, Limit: mostWords})
	if err != nil {
		return ""
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	select {
	case <-p.Ended():
	case <-ctx.Done():
		p.Kill()
		<-p.Ended()
	}
	// Some tools print the version and fail.
	return parseVersion(s, slices.Concat(p.Stdout(), p.Stderr()))
}
