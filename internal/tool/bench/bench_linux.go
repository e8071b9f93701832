package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/proc"
)

// Names of the tasks; pingpong is told them.
const (
	taskStream = "stream"
	taskUDP    = "udp"
	taskRR     = "rr"
	taskCRR    = "crr"
	taskHTTP   = "http"
	taskHTTPs  = "http, many" // connections
)

// traceLength is long enough for what a process does once to vanish beside what it does each time.
const traceLength = 2 * time.Second

// Options of a comparison.
type Options struct {
	// Program is the command line that runs an agent on stdin and stdout.
	Program []string
	// Repetitions is how often each tool does each task; default and least sensible 10.
	Repetitions int
	// Length of each run; whole seconds, at least and by default 1.
	Length time.Duration
	// CPU has the load of both ends; default the last one.
	CPU *int
	// Progress gets a line per repetition; (optional).
	Progress io.Writer
}

func (o *Options) fill() error {
	if len(o.Program) == 0 {
		return errors.New("compare with peers: no program to run as agent")
	}
	if o.Repetitions == 0 {
		o.Repetitions = 10
	}
	if o.Length == 0 {
		o.Length = time.Second
	}
	if o.Repetitions < 1 || o.Length < time.Second || o.Length%time.Second != 0 {
		return fmt.Errorf("compare with peers: %d repetitions of %v: at least one, of whole seconds", o.Repetitions, o.Length)
	}
	if o.CPU == nil {
		last := runtime.NumCPU() - 1
		o.CPU = &last
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return nil
}

// bar is the least ratio of rates that we want against a peer; 0 is none.
func bar(task, peer string) float64 {
	switch task + " " + peer {
	case "stream iperf3", "rr netperf", "crr netperf", "http wrk", "http, many wrk":
		return 1
	case "udp iperf3":
		return 2
	case "rr C":
		return 0.97
	}
	return 0
}

func tasks(length time.Duration) []task {
	return []task{
		{name: taskStream, unit: "bit/s", work: "KB", message: 128 << 10, length: length},
		{name: taskUDP, unit: "datagrams/s", work: "datagram", message: 1400, length: length},
		{name: taskRR, unit: "transactions/s", work: "transaction", sizes: [2]int{1, 1}, length: length},
		{name: taskCRR, unit: "transactions/s", work: "transaction", sizes: [2]int{1, 1}, length: length},
		{name: taskHTTP, unit: "requests/s", work: "request", threads: 1, connections: 10, length: length},
		{name: taskHTTPs, unit: "requests/s", work: "request", threads: 2, connections: 100, length: length},
	}
}

// tool is what does tasks.
type tool interface {
	run(ctx context.Context, w *world, t task) (reading, error)
}

// Run compares and writes the page to w. A peer that is not installed is named on the page and left out; any run that
// fails fails the comparison, for a comparison with holes flatters somebody.
func Run(ctx context.Context, w io.Writer, o Options) error {
	if err := o.fill(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cnibench-bench-")
	if err != nil {
		return fmt.Errorf("compare with peers: %w", err)
	}
	defer os.RemoveAll(dir)
	world, err := newWorld(*o.CPU)
	if err != nil {
		return err
	}
	p := &page{repetitions: o.Repetitions}
	err = compare(ctx, world, &o, p, dir)
	if err = errors.Join(err, world.close()); err != nil {
		return err
	}
	return p.write(w)
}

func compare(ctx context.Context, w *world, o *Options, p *page, dir string) error {
	peers := p.findPeers(ctx, o, dir)
	p.conditions(w, o)
	us, err := dial(ctx, w, o.Program, nil)
	if err != nil {
		return err
	}
	err = p.measure(ctx, w, us, peers, o)
	if err = errors.Join(err, us.close()); err != nil {
		return err
	}
	if _, err := exec.LookPath("strace"); err != nil {
		p.missing = append(p.missing, "system calls: strace is not installed")
		return nil
	}
	return p.count(ctx, w, peers, o, dir)
}

// findPeers returns the peers that are here, and notes those that are not.
func (p *page) findPeers(ctx context.Context, o *Options, dir string) []*peer {
	var found []*peer
	for _, tool := range []*peer{iperf3(), netperf(), wrk(o.Program)} {
		if _, err := exec.LookPath(tool.title); err != nil {
			p.missing = append(p.missing, tool.title+": not installed")
			continue
		}
		found = append(found, tool)
	}
	c, err := pingpong(ctx, dir)
	if err != nil {
		p.missing = append(p.missing, "C ping-pong: "+err.Error())
		return found
	}
	return append(found, c)
}

// measure runs all tools in turn; who is first changes with each repetition.
func (p *page) measure(ctx context.Context, w *world, us *ours, peers []*peer, o *Options) error {
	for repetition := range o.Repetitions {
		i := 0
		for _, t := range tasks(o.Length) {
			var competitors []*peer
			for _, c := range peers {
				if c.does(t) {
					competitors = append(competitors, c)
				}
			}
			if len(competitors) == 0 {
				continue
			}
			readings, err := round(ctx, w, t, turn(us, competitors, repetition))
			if err != nil {
				return err
			}
			for _, c := range competitors {
				if repetition == 0 {
					p.pairings = append(p.pairings, &pairing{task: t.name, peer: c.title, unit: t.unit, work: t.work, bar: bar(t.name, c.title)})
				}
				p.pairings[i].ours = append(p.pairings[i].ours, readings[us])
				p.pairings[i].theirs = append(p.pairings[i].theirs, readings[c])
				i++
			}
		}
		fmt.Fprintf(o.Progress, "repetition %d of %d\n", repetition+1, o.Repetitions)
	}
	return nil
}

// turn returns the tools in an order that starts with another one each repetition.
func turn(us *ours, peers []*peer, repetition int) []tool {
	all := []tool{us}
	for _, p := range peers {
		all = append(all, p)
	}
	at := repetition % len(all)
	return append(all[at:len(all):len(all)], all[:at]...)
}

func round(ctx context.Context, w *world, t task, order []tool) (map[tool]reading, error) {
	readings := map[tool]reading{}
	for _, c := range order {
		r, err := c.run(ctx, w, t)
		if err != nil {
			return nil, err
		}
		readings[c] = r
	}
	return readings, nil
}

// count is the pass under strace.
func (p *page) count(ctx context.Context, w *world, peers []*peer, o *Options, dir string) error {
	for _, t := range tasks(traceLength) {
		if t.sizes[0] == 0 && t.connections == 0 {
			continue
		}
		r, err := traceOurs(ctx, w, o.Program, t, dir)
		if err != nil {
			return err
		}
		p.tracings = append(p.tracings, r)
		for _, c := range peers {
			if !c.does(t) {
				continue
			}
			if r, err = c.trace(ctx, w, t, dir); err != nil {
				return err
			}
			p.tracings = append(p.tracings, r)
		}
	}
	return nil
}

// conditions notes what the numbers depend on.
func (p *page) conditions(w *world, o *Options) {
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
	add("Run", fmt.Sprintf("%v, %d repetitions, interleaved", o.Length, o.Repetitions))
	add("Go", runtime.Version())
	for _, v := range [][]string{{"iperf3", "--version"}, {"netperf", "-V"}, {"cc", "--version"}} {
		if out, err := exec.Command(v[0], v[1:]...).Output(); err == nil {
			first, _, _ := strings.Cut(string(out), "\n")
			add(v[0], first)
		}
	}
}
