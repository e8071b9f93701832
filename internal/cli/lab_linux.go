package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/env/lab/testbed"
	"github.com/cnibench/cnibench/internal/kernel/cgroup"
	"github.com/cnibench/cnibench/internal/kernel/child"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/probe"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// run raises the profiles of a plan in each of the given versions of IP and prints what their self-tests found.
func (a *labTest) run(ctx context.Context, want plan.Plan, families []int) error {
	a.table = tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(a.table, "\tIP\tPROFILE\tASSERTION\tWHAT\tWANT\tGOT")
	for _, want.Lab.Family = range families {
		if err := a.testProfiles(ctx, want); err != nil {
			return errors.Join(err, a.table.Flush()) // the family before has results
		}
	}
	if err := a.table.Flush(); err != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	fmt.Fprintf(a.stderr, "cnibench: %d assertions, %d failed; %d profiles skipped\n", a.all, a.bad, a.skipped)
	if a.bad > 0 || a.all == 0 {
		return quietError(exitFailed)
	}
	return nil
}

// testProfiles raises a lab, runs the self-tests of its profiles, adds their assertions to the table, and removes the lab.
func (a *labTest) testProfiles(ctx context.Context, want plan.Plan) (err error) {
	l, err := lab.Up(ctx, want.Profiles, lab.Options{Lab: want.Lab, Own: want.Own, TestServices: true, Program: []string{thisProgram, agentVerb}})
	if err != nil {
		return err
	}
	defer func() { err = env.Close(ctx, l, err) }()
	printVerifierLogs(a.stderr, l.VerifierLogs(), a.verbose)
	for _, tested := range testbed.SelfTests(ctx, l.Instances()) {
		if why := skipReason(ctx, tested.Instance); why != "" {
			a.skipped++
			fmt.Fprintf(a.table, "skip\t%d\t%s\t-\t%s\t-\t%s\n", want.Lab.Family, tested.Instance.Name, why, oneLine(tested.Instance.Err.Error()))
			continue
		}
		for _, s := range tested.Assertions {
			mark := "ok"
			if !s.OK {
				mark = "FAIL"
				a.bad++
			}
			a.all++
			row := []string{mark, strconv.Itoa(want.Lab.Family), s.Profile, s.ID, oneLine(s.What), oneLine(s.Want), oneLine(s.Got)}
			fmt.Fprintln(a.table, strings.Join(row, "\t"))
		}
	}
	return nil
}

// skipReason returns why this machine cannot raise the profile of inst, such as a missing feature. It returns "" if the
// profile is up, or if no such reason is known; then a profile that is not up counts as a failure.
func skipReason(ctx context.Context, inst *lab.Instance) string {
	for _, never := range []error{lab.ErrNoIPv6, lab.ErrNoIPVS, lab.ErrNoStrictIPVS} {
		if errors.Is(inst.Err, never) {
			return never.Error()
		}
	}
	needs := inst.Spec.Needs()
	if inst.Err == nil || len(needs) == 0 {
		return ""
	}
	findings, err := probe.Check(ctx, needs...)
	if err != nil {
		return ""
	}
	if list := missingFeatures(needs, findings); len(list) > 0 {
		return "this machine lacks " + strings.Join(list, ", ")
	}
	return ""
}

// backendCounts returns the number of backends of each Service that lab up adds: one Service with 2 backends, for diagnose. It
// returns nil if the lab has fewer than two nodes, or fewer than two pods on each node.
func backendCounts(l plan.Lab) []int {
	if l = l.Filled(); l.Nodes < 2 || l.PodsPerNode < 2 {
		return nil
	}
	return []int{2}
}

// run raises one profile, prints its topology and state, and serves lab exec until ctx or stdin ends.
func (a *labUp) run(ctx context.Context, want plan.Plan) (err error) {
	socket, err := testbed.Listen(a.name)
	if errors.Is(err, testbed.ErrNameTaken) {
		return usageError(err)
	}
	if err != nil {
		return err
	}
	defer socket.Close()
	l, err := lab.Up(ctx, want.Profiles, lab.Options{Lab: want.Lab, Own: want.Own, Backends: backendCounts(want.Lab), Account: true, Program: []string{thisProgram, agentVerb}})
	if err != nil {
		return err
	}
	defer func() { err = env.Close(ctx, l, err) }()
	printVerifierLogs(a.stderr, l.VerifierLogs(), a.verbose)
	inst := l.Instances()[0]
	if inst.Err != nil {
		return fmt.Errorf("raise %s: %w", inst.Name, inst.Err)
	}
	if _, err := inst.Connect(); err != nil {
		return fmt.Errorf("raise %s: %w", inst.Name, err)
	}
	inst.Impair()
	if err := errors.Join(inst.Spec.Draw(a.stdout), printState(a.stdout, inst.Raised)); err != nil {
		return err
	}
	fmt.Fprintf(a.stderr, "cnibench: the lab is up until Ctrl-C; from another terminal: cnibench lab exec --lab %s node-1 -- ip addr\n", a.name)
	go socket.Serve(l.Instances)
	select {
	case <-ctx.Done():
	case <-endOfInput(a.stdin):
	}
	return nil
}

// printState writes the metrics of metric.States: what the rules and programs of an instance cost. raised has the values.
func printState(w io.Writer, raised map[string]float64) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table)
	for _, name := range metric.States {
		if v, ok := raised[name]; ok {
			m, _ := metric.Lookup(name)
			scale := number.Common(m.Unit, v)
			fmt.Fprintf(table, "%s\t%s %s\n", m.Title, scale.Format(v), scale.Unit)
		}
	}
	return table.Flush()
}

// endOfInput returns a channel that is closed at the end of r. It returns nil for a terminal, since a background job
// that reads from a terminal is stopped, and for /dev/null.
func endOfInput(r io.Reader) <-chan struct{} {
	if f, ok := r.(*os.File); ok {
		if st, err := f.Stat(); err != nil || st.Mode()&os.ModeCharDevice != 0 {
			return nil
		}
	}
	end := make(chan struct{})
	go func() {
		defer close(end)
		_, _ = io.Copy(io.Discard, r) // an error is an end too
	}()
	return end
}

// execInLab runs the command args[1:] in the host args[0] of a lab of another process. Without args it lists the hosts.
func execInLab(out io.Writer, name string, args []string) error {
	name, err := chooseLab(name)
	if err != nil {
		return err
	}
	host := ""
	if len(args) > 0 {
		host = args[0]
	}
	answer, ns, err := testbed.Ask(name, host, os.Getenv("SUDO_UID"))
	if err != nil {
		return unknownNameError(err)
	}
	if host == "" {
		for _, line := range answer.Hosts {
			fmt.Fprintln(out, line)
		}
		return nil
	}
	defer ns.Close() // only reached when the command could not be run
	return execInNamespace(ns, answer.Cgroup, args[1:])
}

// unknownNameError returns err as a usage error if no lab, or no host of the lab, has the given name. It returns other
// errors as they are.
func unknownNameError(err error) error {
	if errors.Is(err, testbed.ErrNoLab) || errors.Is(err, testbed.ErrNoHost) {
		return usageError(err)
	}
	return err
}

// chooseLab returns name. If name is "", it returns the name of the only lab that is up, and fails if no lab or several labs
// are up.
func chooseLab(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	names, err := testbed.Names()
	if err != nil {
		return "", err
	}
	switch len(names) {
	case 0:
		return "", usageError(advice.With(errors.New("no lab is up"), "start one: cnibench lab up calico-vxlan"))
	case 1:
		return names[0], nil
	}
	return "", usageError(advice.With(fmt.Errorf("several labs are up: %s", strings.Join(names, ", ")), "choose one by --lab"))
}

// execInNamespace replaces this process with the command argv, in the namespace ns and in the cgroup whose directory is
// group, "" for none. Signals, terminal and exit code are the command's own. It returns only on an error.
func execInNamespace(ns *netns.NS, group string, argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return advice.With(fmt.Errorf("run %s: %w", argv[0], err), "the lab has the programs of this machine: install it, or give its path")
	}
	if group != "" {
		if err := cgroup.Join(group); err != nil {
			return advice.With(fmt.Errorf("run %s in the lab: %w", argv[0], err), "run it as root: joining a cgroup needs the rights of the lab's user")
		}
	}
	err = ns.Do(func() error { return child.Replace(path, argv, os.Environ()) })
	return advice.With(fmt.Errorf("run %s in the lab: %w", argv[0], err), "run it as root: entering a namespace needs the rights of the lab's user")
}
