package attach

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/thread"
)

// RunCount is the number of runs of a program, and their total time in ns.
type RunCount struct {
	// Name is the program's name in the kernel, at most 15 bytes.
	Name     string
	Runs, Ns uint64
}

// RunCounter counts the runs of all BPF programs that were loaded when CountRuns was called. It also measures their
// time. The kernel's statistics (BPF_ENABLE_STATS) cost each run two clock readings, so use a RunCounter in a separate
// trial.
type RunCounter struct {
	// EmptyNs is the counted time of one run of an empty program, in ns: the cost of the clock readings.
	EmptyNs float64
	// BeganNs is the time at which Start was called, in ns of the monotonic clock.
	BeganNs int64

	stats    io.Closer
	programs []countedProgram
}

type countedProgram struct {
	*ebpf.Program
	name   string
	before ebpf.ProgramStats
}

// emptyRuns is how many runs of an empty program are counted.
const emptyRuns = 20_000

// CountRuns switches on the kernel's run statistics, and opens all loaded programs. Close switches the statistics off.
// Call Start next. It fails without CAP_SYS_ADMIN, and before Linux 5.8.
func CountRuns() (c *RunCounter, err error) {
	c = &RunCounter{}
	opened := c // an error returns nil
	if c.stats, err = ebpf.EnableStats(unix.BPF_STATS_RUN_TIME); err != nil {
		return nil, fmt.Errorf("count the runs of BPF programs: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	if c.EmptyNs, err = emptyRunTime(); err != nil {
		return nil, err
	}
	for id := ebpf.ProgramID(0); ; {
		if id, err = ebpf.ProgramGetNextID(id); errors.Is(err, os.ErrNotExist) {
			return c, nil
		} else if err != nil {
			return nil, fmt.Errorf("list BPF programs: %w", err)
		}
		p, err := ebpf.NewProgramFromID(id)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was unloaded
		}
		if err != nil {
			return nil, fmt.Errorf("open BPF program %d: %w", id, err)
		}
		info, err := p.Info()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("BPF program %d: %w", id, err), p.Close())
		}
		c.programs = append(c.programs, countedProgram{Program: p, name: info.Name})
	}
}

// emptyRunTime returns the counted time of one run of an empty program, in ns.
func emptyRunTime() (ns float64, err error) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SocketFilter, License: "Dual BSD/GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return 0, fmt.Errorf("load an empty program: %w", err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if _, err := p.Run(&ebpf.RunOptions{Data: make([]byte, 64), Repeat: emptyRuns}); err != nil {
		return 0, fmt.Errorf("run an empty program: %w", err)
	}
	s, err := p.Stats()
	if err != nil || s.RunCount == 0 {
		return 0, errors.Join(err, errors.New("the kernel did not count the runs of a BPF program"))
	}
	return float64(s.Runtime) / float64(s.RunCount), nil
}

// Start begins a window: Read returns the runs since the last Start.
func (c *RunCounter) Start() error {
	c.BeganNs = thread.Monotonic()
	for i := range c.programs {
		s, err := c.programs[i].Stats()
		if err != nil {
			return fmt.Errorf("read the runs of BPF program %s: %w", c.programs[i].name, err)
		}
		c.programs[i].before = *s
	}
	return nil
}

// Read returns the programs that ran since Start, sorted by name. Programs of the same name are one entry.
func (c *RunCounter) Read() ([]RunCount, error) {
	var list []RunCount
	for _, p := range c.programs {
		s, err := p.Stats()
		if err != nil {
			return nil, fmt.Errorf("read the runs of BPF program %s: %w", p.name, err)
		}
		ran := RunCount{p.name, s.RunCount - p.before.RunCount, uint64(s.Runtime - p.before.Runtime)}
		if ran.Runs == 0 {
			continue
		}
		i := slices.IndexFunc(list, func(x RunCount) bool { return x.Name == ran.Name })
		if i < 0 {
			list = append(list, ran)
			continue
		}
		list[i].Runs, list[i].Ns = list[i].Runs+ran.Runs, list[i].Ns+ran.Ns
	}
	slices.SortFunc(list, func(x, y RunCount) int { return cmp.Compare(x.Name, y.Name) })
	return list, nil
}

// Close switches the kernel's statistics off, unless another process uses them, and closes the programs.
func (c *RunCounter) Close() error {
	errs := []error{c.stats.Close()}
	for _, p := range c.programs {
		errs = append(errs, p.Close())
	}
	c.programs = nil
	return errors.Join(errs...)
}
