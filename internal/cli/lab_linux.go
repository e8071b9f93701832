package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/cnibench/cnibench/internal/hint"
	"github.com/cnibench/cnibench/internal/kernel/probe"
	"github.com/cnibench/cnibench/internal/lab"
	"github.com/cnibench/cnibench/internal/plan"
)

// labTest raises the profiles of p and prints what their self-tests found.
func (p *program) labTest(ctx context.Context, want plan.Plan) (err error) {
	l, err := lab.Up(ctx, want.Profiles, lab.Options{Lab: want.Lab, Program: []string{thisProgram, agentVerb}})
	if err != nil {
		return err
	}
	defer func() { err = takeDown(ctx, l, err) }()
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tPROFILE\tASSERTION\tWHAT\tWANT\tGOT")
	all, bad, skipped := 0, 0, 0
	for _, t := range selfTests(ctx, l.Instances()) {
		if missing := missing(ctx, t.instance); missing != "" {
			skipped++
			fmt.Fprintf(w, "skip\t%s\t-\tthis machine lacks %s\t-\t%s\n", t.instance.Name, missing, flat(t.instance.Err.Error()))
			continue
		}
		for _, a := range t.assertions {
			mark := "ok"
			if !a.OK {
				mark = "FAIL"
				bad++
			}
			all++
			fmt.Fprintln(w, strings.Join([]string{mark, a.Profile, a.ID, flat(a.What), flat(a.Want), flat(a.Got)}, "\t"))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	fmt.Fprintf(p.stderr, "cnibench: %d assertions, %d failed; %d profiles skipped\n", all, bad, skipped)
	if bad > 0 || all == 0 {
		return failed(exitFailed)
	}
	return nil
}

// missing returns what this machine lacks for a profile that could not be raised, or "": then it should stand, and if it
// does not, that is a failure.
func missing(ctx context.Context, inst *lab.Instance) string {
	if inst.Err == nil || len(inst.Profile.Needs) == 0 {
		return ""
	}
	findings, err := probe.Check(ctx, inst.Profile.Needs...)
	if err != nil {
		return ""
	}
	return strings.Join(lacking(inst.Profile.Needs, findings), ", ")
}

// flat makes s fit into a cell of a table.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// takeDown closes l, also when ctx is over, and adds what went wrong to err.
func takeDown(ctx context.Context, l *lab.Lab, err error) error {
	down, stop := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer stop()
	if closed := l.Close(down); closed != nil && err == nil {
		return closed
	}
	return err
}

// labUp raises one profile, shows it, and serves lab exec until it is to end.
func (p *program) labUp(ctx context.Context, name string, want plan.Plan) (err error) {
	door, err := openDoor(name)
	if err != nil {
		return err
	}
	defer door.close()
	l, err := lab.Up(ctx, want.Profiles, lab.Options{Lab: want.Lab, Program: []string{thisProgram, agentVerb}})
	if err != nil {
		return err
	}
	defer func() { err = takeDown(ctx, l, err) }()
	inst := l.Instances()[0]
	if inst.Err != nil {
		return fmt.Errorf("raise %s: %w", inst.Name, inst.Err)
	}
	if err := inst.Spec.Draw(p.stdout); err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "cnibench: the lab stands until Ctrl-C; from another terminal: cnibench lab exec --lab %s node-1 -- ip addr\n", name)
	go door.serve(rooms{inst})
	select {
	case <-ctx.Done():
	case <-ended(p.stdin):
	}
	return nil
}

// ended is closed at the end of r. A terminal is not read, since a job in the background that reads one is stopped, and
// neither is /dev/null.
func ended(r io.Reader) <-chan struct{} {
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

// labExec runs a command at a place of a lab that another process keeps standing.
func (p *program) labExec(_ context.Context, name string, args []string) error {
	name, err := chooseLab(name)
	if err != nil {
		return err
	}
	place := ""
	if len(args) > 0 {
		place = args[0]
	}
	answer, ns, err := knock(name, place)
	if err != nil {
		return err
	}
	if place == "" {
		for _, line := range answer.Places {
			fmt.Fprintln(p.stdout, line)
		}
		return nil
	}
	defer ns.Close() // only reached when the command could not be run
	return become(ns, args[1:])
}

// chooseLab returns name, or the name of the only lab that stands.
func chooseLab(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	names, err := standing()
	if err != nil {
		return "", err
	}
	switch len(names) {
	case 0:
		return "", hint.With(fmt.Errorf("no lab stands"), "raise one: cnibench lab up calico-vxlan")
	case 1:
		return names[0], nil
	}
	return "", usage(hint.With(fmt.Errorf("several labs stand: %s", strings.Join(names, ", ")), "choose one by --lab"))
}
