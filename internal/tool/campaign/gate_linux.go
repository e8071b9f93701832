package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// gate runs the action of this repository, step by step as a runner of GitHub would, on pairs of a base and a change whose
// verdict is known: equal, fifty more rules for each packet, two builds of a plugin, a machine that is too busy, a change
// that cannot be raised. It fails if the action says anything else.
//
// Read scenarios (the pairs), then gate_action_linux.go (the runner, and gh).
type gate struct{ only string }

func (g *gate) flags(f *flag.FlagSet) {
	f.StringVar(&g.only, "only", "", "`name` of the one scenario that is run")
}

// measure runs the scenarios. Those that are not run keep their row of the document.
func (g *gate) measure(ctx context.Context, in setting) (string, error) {
	program, err := filepath.Abs(in.program)
	if err != nil {
		return "", err
	}
	root, err := os.Getwd()
	if err != nil {
		return "", err
	}
	before := ""
	if in.document != "" {
		if _, before, _, err = parts(in.document, "gate"); err != nil {
			return "", err
		}
	}
	var table strings.Builder
	table.WriteString("| base and change | verdict | comment | time | what the action says |\n|---|---|---|---|---|\n")
	var wrong []error
	for _, s := range scenarios {
		if g.only != "" && s.name != g.only {
			table.WriteString(rowOf(before, s.about))
			continue
		}
		fmt.Fprintf(os.Stderr, "gate: %s\n", s.name)
		began := time.Now()
		d, err := s.run(ctx, root, program)
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.name, err)
		}
		if !slices.Contains(strings.Split(s.verdict, " or "), d.verdict) {
			wrong = append(wrong, fmt.Errorf("%s: the verdict is %s, want %s", s.name, d.verdict, s.verdict))
		}
		commented := "none"
		if d.comment != "" {
			commented = "one"
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %d s | %s |\n", s.about, d.verdict, commented, int(time.Since(began).Seconds()), d.said())
	}
	return table.String(), errors.Join(wrong...)
}

// rowOf is the row about a scenario in a table that was written before, or "".
func rowOf(table, about string) string {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| "+about+" |") {
			return line
		}
	}
	return ""
}

// scenario is a pair whose verdict is known.
type scenario struct {
	name, about string
	// base and change are two profile files, or one of the repository.
	base, change string
	// budgets are those of the action; its default if empty.
	budgets string
	// plugins says that the files need the reference plugins, busy that others work on every CPU, bursts that they do now
	// and then.
	plugins, busy, bursts bool
	// verdict is the output of the action, or one of two.
	verdict string
}

// calico is a profile file: calico-vxlan with so many rules that no packet matches before those of the node.
func calico(name string, rules int) string {
	text := "apiVersion: cnibench/v1\nkind: Profile\nname: " + name + "\ntitle: the dataplane of the " + name + "\nbased-on: calico-vxlan\n"
	if rules > 0 {
		text += "node:\n  rules: |\n    *raw\n" + strings.Repeat("    -A PREROUTING -s 192.0.2.1/32 -p sctp -j DROP\n", rules) + "    COMMIT\n"
	}
	return text
}

// bridge is a profile file of the reference plugin, from a directory of its own.
func bridge(name string) string {
	return `apiVersion: cnibench/v1
kind: Profile
name: ` + name + `
title: the plugin of the ` + name + `
based-on: bridge
cni:
  bin: ` + name + `-bin
  conflist: |
    {"cniVersion": "1.0.0", "name": "reference", "disableCheck": true, "plugins": [
      {"type": "bridge", "bridge": "cni0", "isGateway": true, "mtu": ${mtu},
       "ipam": {"type": "host-local", "ranges": [[{"subnet": "${node-cidr}"}]], "routes": [{"dst": "${default}"}]}}]}
`
}

var scenarios = []scenario{
	{name: "equal", about: "two equal dataplane files", base: calico("base", 0), change: calico("change", 0), verdict: "kept"},
	{name: "rules", about: "fifty more rules for each packet", base: calico("base", 0), change: calico("change", 50), verdict: "broken"},
	{name: "same-plugin", about: "two equal builds of a plugin", base: bridge("base"), change: bridge("change"), plugins: true, verdict: "kept"},
	{name: "plugin", about: "a plugin, and its build with an extra pair of veth devices", base: bridge("base"),
		change: "examples/profiles/mine.yaml", plugins: true, verdict: "broken"},
	{name: "busy", about: "two equal dataplane files on a machine that is too busy", base: calico("base", 0), change: calico("change", 0), busy: true, verdict: "kept or undecided"},
	{name: "busy-tail", about: "two equal dataplane files beside bursts of work, with the budget `rr.p99 > +5%`", base: calico("base", 0), change: calico("change", 0),
		budgets: "rr.p99 > +5%", bursts: true, verdict: "undecided"},
	{name: "broken", about: "a change that iptables does not accept", base: calico("base", 0),
		change: strings.Replace(calico("change", 1), "-j DROP", "-j NOWHERE", 1), verdict: "failed"},
	{name: "no-build", about: "a change whose plugin was not built", base: bridge("base"), change: strings.Replace(bridge("change"), "change-bin", "absent", 1),
		plugins: true, verdict: "failed"},
}

// said is what a job said, in a cell: the first line of the summary, and of a failure what the run said last.
func (d done) said() string {
	line, rest, _ := strings.Cut(strings.TrimSpace(d.summary), "\n")
	if d.verdict == "failed" {
		_, rest, _ = strings.Cut(rest, "```\n")
		rest, _, _ = strings.Cut(rest, "\n```")
		line += ": `" + rest[strings.LastIndex(rest, "\n")+1:] + "`"
	}
	line = strings.TrimPrefix(line, "### ")
	return strings.ReplaceAll(strings.ReplaceAll(line, d.dir+"/", ""), "|", "\\|")
}

// done is what a scenario ended with.
type done struct{ verdict, summary, comment, dir string }

// run takes the action through a scenario.
func (s scenario) run(ctx context.Context, root, program string) (d done, err error) {
	dir, err := os.MkdirTemp("", "cnibench-gate-")
	if err != nil {
		return d, err
	}
	defer os.RemoveAll(dir)
	j, err := newJob(root, dir)
	if err != nil {
		return d, err
	}
	for name, text := range map[string]string{"base.yaml": s.base, "change.yaml": s.change} {
		if strings.HasPrefix(text, "examples/") {
			b, err := os.ReadFile(filepath.Join(root, text))
			if err != nil {
				return d, err
			}
			text = strings.NewReplacer("name: mine\n", "name: change\n", "bin: bin\n", "bin: change-bin\n").Replace(string(b))
		}
		if err := os.WriteFile(filepath.Join(j.dir, name), []byte(text), 0o644); err != nil {
			return d, err
		}
	}
	if s.plugins {
		if err := s.build(ctx, root, j.dir); err != nil {
			return d, err
		}
	}
	if s.busy {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for range 3 * runtime.NumCPU() {
			go occupy(ctx)
		}
	}
	if s.bursts {
		defer bursts.start(ctx)()
	}
	j.inputs = map[string]string{"base": "base.yaml", "change": "change.yaml", "cnibench": program,
		"args": "--paths pod-to-pod/cross-node --workloads rr,crr"}
	if s.budgets != "" {
		j.inputs["fail-on"] = s.budgets
	}
	o, err := j.runs(ctx)
	return done{o.outputs["verdict"], o.summary, j.comment(), j.dir}, err
}

// occupy takes what it gets of a CPU, at the priority that agents have.
func occupy(ctx context.Context) {
	runtime.LockOSThread() // the thread ends with its priority
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, -20); err != nil {
		fmt.Fprintln(os.Stderr, "gate: the machine is less busy than it should be:", err)
	}
	for ctx.Err() == nil {
	}
}

// build installs the reference plugins into the directory of each file, as a workflow builds those of a pull request.
func (s scenario) build(ctx context.Context, root, dir string) error {
	for _, name := range []string{"base-bin", "change-bin"} {
		const plugins = "github.com/containernetworking/plugins/plugins/"
		cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", plugins+"main/bridge@v1.9.1", plugins+"ipam/host-local@v1.9.1")
		cmd.Env = append(os.Environ(), "GOBIN="+filepath.Join(dir, name), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build the reference plugins: %w\n%s", err, out)
		}
	}
	hop, err := os.ReadFile(filepath.Join(root, "examples/profiles/bin/extra-hop"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "change-bin", "extra-hop"), hop, 0o755)
}
