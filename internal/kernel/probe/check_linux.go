package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// patience is the maximum duration of one probe.
const patience = 10 * time.Second

// Check tries the named features, or all known ones if there are no names. It returns a finding for each, in their
// order. An unknown name has the outcome Unknown. It fails only if ctx ends.
func Check(ctx context.Context, names ...string) ([]Finding, error) {
	if len(names) == 0 {
		names = Features()
	}
	// Without the file the distribution is unknown, and the ways out are less precise.
	osRelease, _ := os.ReadFile("/etc/os-release")
	m := machine{family: Family(osRelease), release: kernelRelease()}
	var findings []Finding
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(requirements, func(r requirement) bool { return r.name == name })
		if i < 0 {
			findings = append(findings, requirement{name: name}.unknownFinding("no such feature is known", "one of: "+strings.Join(Features(), ", ")))
			continue
		}
		findings = append(findings, requirements[i].check(ctx, m))
	}
	return findings, nil
}

// check tries the feature r and returns the finding.
func (r requirement) check(ctx context.Context, m machine) Finding {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if r.program != "" {
		if _, err := exec.LookPath(r.program); err != nil {
			return Finding{Feature: r.name, About: r.about, Outcome: No, Missing: "the program " + r.program, WayOut: Install(r.program, m.family)}
		}
	}
	if try, ok := tries[r.name]; ok {
		return r.findingFor(m, runInThrowaway(ctx, try))
	}
	return r.findingFor(m, nil)
}

// runInThrowaway makes a namespace, runs try on a thread inside it, and removes the namespace. It returns the error of
// try.
func runInThrowaway(ctx context.Context, try probe) error {
	ns, err := netns.New()
	if err != nil {
		return err
	}
	// An error has no consequence: the kernel removes the namespace with the process.
	defer func() { _ = ns.Close() }()
	h, err := link.Open(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	return ns.Do(func() error { return try(ctx, h) })
}

// refusals are the errors by which a kernel reports that it lacks a feature.
var refusals = []error{
	unix.EOPNOTSUPP, unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, unix.ENOSYS, unix.ENOENT, unix.ENODEV, unix.ENOPROTOOPT, unix.EINVAL,
}

// findingFor turns the outcome of trying r into a finding.
func (r requirement) findingFor(m machine, err error) Finding {
	var refused *programError
	switch {
	case err == nil:
		return Finding{Feature: r.name, About: r.about, Outcome: Yes}
	case errors.Is(err, errNoRight):
		return Finding{Feature: r.name, About: r.about, Outcome: No, Missing: err.Error(), WayOut: "run as root, outside of any user namespace"}
	case errors.Is(err, os.ErrPermission), errors.As(err, &refused) && refused.lacksRight():
		return r.unknownFinding(fmt.Sprintf("no right to try: %v", err), "run as root")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return r.unknownFinding(fmt.Sprintf("it took longer than %s", patience), "try again when the machine is less busy")
	case errors.Is(err, cgroup.ErrNoMount), errors.As(err, &refused), errors.Is(err, errors.ErrUnsupported),
		slices.ContainsFunc(refusals, func(e error) bool { return errors.Is(err, e) }):
		return r.refusedFinding(m, err.Error())
	}
	return r.unknownFinding(err.Error(), "")
}

// errNoRight is the error of a missing right that only root has.
var errNoRight = errors.New("no right")

// programError is the error of a program that ran and failed.
type programError struct {
	args   []string
	output string
	err    error
}

func (e *programError) Error() string {
	return fmt.Sprintf("%s: %v: %s", strings.Join(e.args, " "), e.err, e.output)
}

func (e *programError) Unwrap() error { return e.err }

// lacksRight reports whether the program failed because a right was missing, according to its output.
func (e *programError) lacksRight() bool {
	return strings.Contains(e.output, "ermission denied") || strings.Contains(e.output, "must be root") ||
		strings.Contains(e.output, "not permitted")
}
