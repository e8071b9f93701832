// Package cli is the command line: one file for each command, and the only place that knows arguments, exit codes,
// signals, terminals and the process's environment.
//
// Main builds the tree of commands and runs one. A command with several steps has a type: a value is one invocation,
// with the flags as fields, the steps as methods, and the program, which has what commands share. A command calls the
// package that does the work, and prints: the product to stdout, progress to stderr. Errors are returned to Main, which
// prints them once, with their hint, and turns them into an exit code (exit.go). run.go is the main command;
// plan_flags.go turns its flags into a plan; environment.go opens the environment of a plan.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/env"
	"github.com/cnibench/cnibench/internal/plan"
)

// program is one invocation of cnibench: its streams, flags that several commands share, and how it opens a lab.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// openLab opens the lab of a plan; say reports progress.
	openLab func(ctx context.Context, p plan.Plan, say func(format string, args ...any)) (env.Environment, error)
	// plugin is true if kubectl called the program.
	plugin bool
	// kubeconfig is the value of the flag --kubeconfig, "" for kubectl's default.
	kubeconfig string
	// charts is where recipes find their charts and manifests, "" for their original sources.
	charts string
	// shared gives clusters a Service with several backends, so that diagnose can examine it.
	shared bool
	// settle bounds the wait for a first connection on each path of a cluster, 0 for the default.
	settle time.Duration
	// leftovers has the lines to print if a second interrupt ends the program at once.
	leftovers leftoverLines
	// running is true once a command has begun its work. An error before that is a usage error: cobra refused the arguments.
	running bool
}

// Main runs the command line argv and returns the exit code. argv begins with the name of the program.
func Main(argv []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{stdin: stdin, stdout: stdout, stderr: stderr, openLab: openLab}
	return p.main(p.parseProgramName(argv))
}

// Tree returns the tree of commands, for programs that document it: man pages, completions, the reference.
func Tree() *cobra.Command {
	return (&program{stdout: io.Discard, stderr: io.Discard}).rootCommand(nil)
}

func (p *program) main(args []string) int {
	ctx, stop := p.interruptibleContext(context.Background())
	defer stop()
	root := p.rootCommand(args)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var coded *exitError
	if err != nil && !p.running && !errors.As(err, &coded) {
		err = usageError(improveGroupError(err))
	}
	return p.reportError(err)
}

// leftoverLines has a line about each thing that remains if the program ends at once, such as objects in a cluster.
type leftoverLines struct {
	mu    sync.Mutex
	lines []string
}

// noteLeftover adds a line about something that remains if the program ends at once. gone removes the line again.
func (p *program) noteLeftover(line string) (gone func()) {
	p.leftovers.mu.Lock()
	defer p.leftovers.mu.Unlock()
	p.leftovers.lines = append(p.leftovers.lines, line)
	return sync.OnceFunc(func() {
		p.leftovers.mu.Lock()
		defer p.leftovers.mu.Unlock()
		if i := slices.Index(p.leftovers.lines, line); i >= 0 {
			p.leftovers.lines = slices.Delete(p.leftovers.lines, i, i+1)
		}
	})
}

// clearLeftovers removes all lines of noteLeftover.
func (p *program) clearLeftovers() {
	p.leftovers.mu.Lock()
	defer p.leftovers.mu.Unlock()
	p.leftovers.lines = nil
}

// interruptibleContext returns a context that the first interrupt cancels, and a function that stops watching for
// interrupts. The second interrupt ends the program at once: a lab leaves nothing behind even then, and for a cluster
// the program prints what remains.
func (p *program) interruptibleContext(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		if _, ok := <-signals; !ok {
			return
		}
		cancel(errInterrupted)
		if _, ok := <-signals; ok {
			p.leftovers.mu.Lock()
			for _, line := range p.leftovers.lines {
				fmt.Fprintln(p.stderr, "cnibench: "+line)
			}
			os.Exit(exitInterrupted)
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

const rootLong = `cnibench measures what a Kubernetes network costs, compared with another. Without a cluster it raises a lab of network
namespaces on this machine. The lab needs root, or a user namespace (unshare -Urnm), and is gone when the command ends.`

// rootCommand returns the tree of commands. If args start an agent, the tree has only that command, to start faster:
// every trial waits for two agents.
func (p *program) rootCommand(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:           "cnibench",
		Short:         "Measure what a Kubernetes network costs",
		Long:          rootLong,
		Example:       "  sudo cnibench run\n  cnibench report -f markdown result.jsonl > report.md",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          refuseUnknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return commandUsageError(cmd, improveFlagError(cmd, err))
	})
	if own := findAgentCommand(p, args); own != nil {
		root.AddCommand(own)
		p.trackRunning(root)
		return root
	}
	root.AddCommand(runCommand(p), explainCommand(p), reportCommand(p), compareCommand(p), checkCommand(p), reproduceCommand(p), importCommand(p), listCommand(), versionCommand(), doctorCommand(p), labCommand(p), journeyCommand(p), diagnoseCommand(p))
	root.AddCommand(imageCommand(p), kubeCommand(p), cniCommand(p), holdCommand(p))
	root.AddCommand(linuxCommands(p)...)
	root.InitDefaultCompletionCmd(args...)
	if completion, _, err := root.Find([]string{"completion"}); err == nil && completion != root {
		addSubcommands(completion)
	}
	root.InitDefaultHelpCmd()
	setHelp(root)
	p.trackRunning(root)
	if p.plugin {
		adaptToKubectl(root)
	}
	return root
}

// trackRunning makes cmd and all commands below it set p.running when they begin their work.
func (p *program) trackRunning(cmd *cobra.Command) {
	if work := cmd.RunE; work != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			p.running = true
			return work(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		p.trackRunning(sub)
	}
}
