// Command bench compares the load engine with the tools that people use, and writes docs/results/engine.md: bulk
// transfer and datagrams with iperf3, request-response and connections with netperf and with a plain C program, HTTP
// with wrk, whose server is ours. Tools that are not installed are named on the page.
//
// Two network namespaces are joined by a veth pair. Repetitions interleave all tools. Both ends, and the softirq work
// that veth does for them, run on one CPU. Each end is an agent of this program; the agents run the tools as `run
// --tool` does, by package external. What is compared:
//
//   - the rate (goodput, transactions, datagrams delivered, per second)
//   - the CPU time per unit of work, both ends together: of a tool the whole process from start to end, of ours the whole
//     process within the window, control threads included
//   - the system calls per transaction at the client, counted by strace in a short pass of its own
//
// A comparison is the ratio of the two runs of each repetition, with the interval that package stat gives.
//
// Read compare, then reading.go (the numbers of a trial), pingpong.go (the C program as a tool) and table.go (the
// page).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/engine/agent"
	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/plan"
)

// The main thread never enters a namespace, as in cnibench.
func init() { runtime.LockOSThread() }

// agentVerb makes this program one end of a trial.
const agentVerb = "agent"

// traceLength is long enough that what a process does once is negligible compared with what it does each time.
const traceLength = 2 * time.Second

func main() {
	o := options{}
	flag.IntVar(&o.repetitions, "repetitions", 10, "how `often` each tool does each task")
	flag.DurationVar(&o.length, "length", time.Second, "`time` of each run, whole seconds")
	flag.Func("only", "measure this `task` only, such as rr; may be repeated", func(name string) error {
		o.only = append(o.only, name)
		if len(o.tasks()) < len(o.only) {
			return errors.New("no such task")
		}
		return nil
	})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if flag.Arg(0) == agentVerb {
		signal.Ignore(os.Interrupt)
		err = agent.Serve(context.Background(), os.Stdin, os.Stdout, "bench")
	} else if o.program, err = os.Executable(); err == nil {
		err = run(ctx, os.Stdout, os.Stderr, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options of a comparison.
type options struct {
	// program runs an agent when it is called with agentVerb.
	program     string
	repetitions int
	length      time.Duration
	// only names the tasks to run; if it is empty, all are run.
	only []string
}

// tasks returns the requested tasks.
func (o options) tasks() []task {
	return slices.DeleteFunc(slices.Clone(tasks), func(t task) bool { return len(o.only) > 0 && !slices.Contains(o.only, t.name) })
}

// peer is a tool that does a task, and the least acceptable ratio of our rate to its rate; 0 means no limit.
type peer struct {
	tool string
	bar  float64
}

// task is what the tools do.
type task struct {
	name string
	// unit is the unit of the rate, work the unit of work of the cost.
	unit, work string
	// workload is the workload of our engine; with tool= it becomes that of a peer.
	workload string
	traced   bool
	peers    []peer
}

var tasks = []task{
	{"stream", "bit/s", "KB", "stream(message=131072)", false, []peer{{"iperf3", 1}}},
	{"udp", "datagrams/s", "datagram", "stream(udp,message=1400)", false, []peer{{"iperf3", 2}}},
	{"rr", "transactions/s", "transaction", "rr(request=1,response=1)", true, []peer{{"netperf", 1}, {"neper", 1}, {pingpong, 0.97}}},
	{"crr", "transactions/s", "transaction", "crr(request=1,response=1)", true, []peer{{"netperf", 1}, {"neper", 1}, {pingpong, 0.97}}},
	{"http", "requests/s", "request", "http(threads=1,connections=10)", true, []peer{{"wrk", 1}}},
	{"http, many", "requests/s", "request", "http(threads=2,connections=100)", true, []peer{{"wrk", 1}}},
}

// workloadBy returns the workload of t as tool sends it; "" is our engine.
func (t task) workloadBy(tool string) (plan.Workload, error) {
	text := t.workload
	if tool != "" {
		text = strings.TrimSuffix(text, ")") + ",tool=" + tool + ")"
	}
	return plan.ParseWorkload(text)
}

// run compares and writes the page to out. A tool that is not installed is named on the page. A run that fails fails
// the comparison, because a comparison with holes is biased.
func run(ctx context.Context, out, progress io.Writer, o options) error {
	if o.repetitions < 1 || o.length < time.Second || o.length%time.Second != 0 {
		return fmt.Errorf("%d repetitions of %v: want at least one, of whole seconds", o.repetitions, o.length)
	}
	dir, err := os.MkdirTemp("", "cnibench-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	world, err := newWorld(runtime.NumCPU()-1, []string{o.program, agentVerb}, dir)
	if err != nil {
		return err
	}
	p := &page{repetitions: o.repetitions}
	err = p.compare(ctx, world, o, progress)
	if err = errors.Join(err, world.close()); err != nil {
		return err
	}
	return p.write(out)
}

func (p *page) compare(ctx context.Context, w *world, o options, progress io.Writer) error {
	here := p.findTools(ctx, w)
	p.conditions(w, o)
	us, err := w.dial(ctx, nil)
	if err != nil {
		return err
	}
	for repetition := range o.repetitions {
		if err = p.repeat(ctx, us, here, o, repetition); err != nil {
			break
		}
		fmt.Fprintf(progress, "repetition %d of %d\n", repetition+1, o.repetitions)
	}
	if err = errors.Join(err, us.close()); err != nil {
		return err
	}
	if _, err := exec.LookPath("strace"); err != nil {
		p.missing = append(p.missing, "system calls: strace is not installed")
		return nil
	}
	return p.count(ctx, w, here, o)
}

// findTools returns the tools that are installed, and notes those that are not.
func (p *page) findTools(ctx context.Context, w *world) []string {
	var here []string
	if err := w.compile(ctx); err != nil {
		p.missing = append(p.missing, pingpong+": "+err.Error())
	} else {
		here = append(here, pingpong)
	}
	for _, tool := range []string{"iperf3", "netperf", "wrk"} {
		if _, err := external.Find(tool, tool); err != nil {
			p.missing = append(p.missing, tool+": not installed")
			continue
		}
		here = append(here, tool)
	}
	return here
}

// repeat runs all tasks by all tools once. Each repetition begins with another tool.
func (p *page) repeat(ctx context.Context, us *ends, here []string, o options, repetition int) error {
	i := 0
	for _, t := range o.tasks() {
		peers := slices.DeleteFunc(slices.Clone(t.peers), func(c peer) bool { return !slices.Contains(here, c.tool) })
		if len(peers) == 0 {
			continue
		}
		order := []string{""}
		for _, c := range peers {
			order = append(order, c.tool)
		}
		readings := map[string]reading{}
		for k := range order {
			tool := order[(k+repetition)%len(order)]
			r, err := us.measure(ctx, t, tool, o.length)
			if err != nil {
				return err
			}
			readings[tool] = r
		}
		for _, c := range peers {
			if repetition == 0 {
				p.pairings = append(p.pairings, &pairing{task: t.name, peer: c.tool, unit: t.unit, work: t.work, bar: c.bar})
			}
			p.pairings[i].ours = append(p.pairings[i].ours, readings[""])
			p.pairings[i].theirs = append(p.pairings[i].theirs, readings[c.tool])
			i++
		}
	}
	return nil
}

// count is the pass under strace.
func (p *page) count(ctx context.Context, w *world, here []string, o options) error {
	for _, t := range o.tasks() {
		if !t.traced {
			continue
		}
		tools := []string{""}
		for _, c := range t.peers {
			if slices.Contains(here, c.tool) {
				tools = append(tools, c.tool)
			}
		}
		for _, tool := range tools {
			r, err := w.trace(ctx, t, tool)
			if err != nil {
				return fmt.Errorf("under strace: %w", err)
			}
			p.tracings = append(p.tracings, r)
		}
	}
	return nil
}

// conditions notes the conditions that the numbers depend on.
func (p *page) conditions(w *world, o options) {
	add := func(name, value string) { p.facts = append(p.facts, [2]string{name, value}) }
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		add("Kernel", strings.TrimSpace(string(b)))
	}
	if c, err := proc.ReadCPUInfo(); err == nil {
		virtual := ""
		if c.Hypervisor {
			virtual = ", virtual machine"
		}
		add("CPU", fmt.Sprintf("%s, %d online%s", c.Model, runtime.NumCPU(), virtual))
	}
	if l, err := proc.Loadavg(); err == nil {
		add("Load average before", fmt.Sprintf("%.2f %.2f %.2f", l[0], l[1], l[2]))
	}
	add("Path", fmt.Sprintf("two namespaces, one veth pair, MTU %d, default offloads", ethernetMTU))
	add("Placement", fmt.Sprintf("both ends on CPU %d", w.cpu))
	add("Run", fmt.Sprintf("%v, %d repetitions, interleaved", o.length, o.repetitions))
	if b, ok := debug.ReadBuildInfo(); ok {
		add("cnibench", b.Main.Version)
	}
	add("Go", runtime.Version())
	for _, v := range [][]string{{"iperf3", "--version"}, {"netperf", "-V"}, {"cc", "--version"}} {
		if out, err := exec.Command(v[0], v[1:]...).Output(); err == nil {
			first, _, _ := strings.Cut(string(out), "\n")
			add(v[0], first)
		}
	}
}
