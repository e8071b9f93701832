package drive

import (
	"context"
	"slices"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/child"
	"github.com/cnibench/cnibench/internal/plan"
)

const (
	// patience bounds how long a tool may take to say its version, mostWords how much it may say in bytes.
	patience  = 2 * time.Second
	mostWords = 64 << 10
)

// Version returns the version of the tool that sends w as the program at path says it, "" if it does not.
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
	// Some say it and exit as failed; what counts is whether it is there.
	return parseVersion(s, slices.Concat(p.Stdout(), p.Stderr()))
}
