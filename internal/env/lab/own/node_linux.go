// Package own runs what a profile file adds to the nodes of the lab: CNI plugins by the specification's library,
// commands and daemons in the node's namespace and cgroup, and changes to its settings, rules and devices.
//
//	n, err := own.Open(own.Options{...})     one for each node
//	err = n.Prepare(ctx)                     commands, then daemons until they are ready
//	at, err := n.Add(ctx, pod)               ADD of the plugins
//	err = n.Join(ctx, values)                commands for another node
//	err = n.Dead()                           a daemon that has ended by itself
//	err = n.Close()                          DEL of each pod, end of the daemons
//
// What programs write below /run, /var/lib and /etc is private to the node (child.Room). Package profilefile
// has the keys; package lab builds the nodes.
package own

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/child"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan/profilefile"
)

// Options describe a node.
type Options struct {
	Profile profilefile.Profile
	// Name is, for example, "node-1".
	Name string
	NS   *netns.NS
	// Values maps the names of the profile file's variables to their values.
	Values map[string]string
	// CPUs are the CPUs that the programs may use; none means any.
	CPUs []int
	// Cgroup is the descriptor of the node's cgroup, 0 without one.
	Cgroup int
	// IPv6 selects the family of a pod's addresses.
	IPv6 bool
}

// Node is a node with programs of a profile file.
type Node struct {
	Options
	room    *child.Room
	plugins *plugins
	daemons []*daemon
	// pods are the added pods, in order.
	pods []Pod
}

// Open makes the environment for the node's programs and reads the configuration of its plugins. It starts no program.
// The caller closes the node.
func Open(o Options) (*Node, error) {
	n := &Node{Options: o}
	var err error
	if n.room, err = child.OpenRoom(o.NS, o.CPUs); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	if o.Profile.CNI != nil {
		if n.plugins, err = n.openPlugins(); err != nil {
			n.room.Close()
			return nil, fmt.Errorf("%s: %w", o.Name, err)
		}
	}
	return n, nil
}

// Prepare runs the commands of node.prepare, then starts the daemons one after another. It fails if a command fails, or
// if a daemon is not ready in time.
func (n *Node) Prepare(ctx context.Context) error {
	if err := n.runCommands(ctx, n.Profile.Node.Prepare, n.Values, nil); err != nil {
		return err
	}
	for _, d := range n.Profile.Node.Daemons {
		if d.On != "" && d.On != n.Name {
			continue
		}
		if err := n.startDaemon(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// Join runs the commands of node.join with another node's values in addition to this node's.
func (n *Node) Join(ctx context.Context, peer map[string]string) error {
	values := maps.Clone(n.Values)
	maps.Copy(values, peer)
	if err := n.runCommands(ctx, n.Profile.Node.Join, values, nil); err != nil {
		return fmt.Errorf("join %s: %w", peer["peer"], err)
	}
	return nil
}

// Serve runs the commands of node.services, each with the objects of the Services as input.
func (n *Node) Serve(ctx context.Context, objects []byte) error {
	return n.runCommands(ctx, n.Profile.Node.Services, n.Values, objects)
}

// Shell runs one command that is not in the profile file, for a user or a test.
func (n *Node) Shell(ctx context.Context, command string) error {
	return n.runCommand(ctx, command, n.Values, nil)
}

// runCommands runs commands one after another until one fails, each with the same input.
func (n *Node) runCommands(ctx context.Context, commands []string, values map[string]string, input []byte) error {
	for _, command := range commands {
		if err := n.runCommand(ctx, command, values, input); err != nil {
			return err
		}
	}
	return nil
}

// runCommand runs a command until it ends or its timeout passes, and kills the processes that it left. nil input is empty
// input.
func (n *Node) runCommand(ctx context.Context, command string, values map[string]string, input []byte) error {
	limit := n.Profile.Node.Timeout.Or(profilefile.DefaultTimeout)
	bounded, stop := context.WithTimeout(ctx, limit)
	defer stop()
	var said child.Tail
	cmd := n.shellCommand(bounded, command, values, &said)
	if input != nil {
		cmd.Stdin = bytes.NewReader(input)
	}
	err := n.room.Do(cmd.Start)
	if err == nil {
		err = cmd.Wait()
		_ = child.Signal(cmd, syscall.SIGKILL) // processes that the command left running
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrWaitDelay) { // its output stayed open
		err = errors.New("left a process in the background, which was killed: make it a daemon (node.daemons)")
	}
	if bounded.Err() != nil {
		err = fmt.Errorf("did not end within %s", limit)
	}
	if err != nil {
		return fmt.Errorf("%s: command %q: %w%s", n.Name, command, err, outputSuffix(&said))
	}
	return nil
}

// shellCommand returns a shell command that is not started. It has the node's namespace, cgroup and variables, and
// runs in the directory of the profile file. Its output goes to said.
func (n *Node) shellCommand(ctx context.Context, text string, values map[string]string, said *child.Tail) *exec.Cmd {
	cmd := n.programCommand(ctx, "/bin/sh", "-ec", text)
	cmd.Env = commandEnv(cmd, values)
	cmd.Stdout, cmd.Stderr = said, said
	return cmd
}

// programCommand returns a command that runs a program and is not started. It has the node's namespace and cgroup,
// and runs in the directory of the profile file.
func (n *Node) programCommand(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := n.room.Command(ctx, path, args...)
	cmd.Dir = n.Profile.Dir
	if n.Cgroup > 0 {
		child.InCgroup(cmd, n.Cgroup)
	}
	return cmd
}

// commandEnv returns the environment of cmd with the variables added.
func commandEnv(cmd *exec.Cmd, values map[string]string) []string {
	env := append(cmd.Environ(), "TMPDIR="+child.Temporary)
	for _, v := range profilefile.Variables {
		if value, ok := values[v.Name]; ok {
			env = append(env, v.Env()+"="+value)
		}
	}
	return env
}

// outputSuffix returns ": " and the last 500 bytes of an output, or "" if there is no output.
func outputSuffix(t *child.Tail) string {
	const most = 500
	words := strings.Join(strings.Fields(t.String()), " ")
	if words == "" {
		return ""
	}
	if len(words) > most {
		words = "…" + words[len(words)-most:]
	}
	return ": " + words
}

// daemon is a program that runs as long as the node.
type daemon struct {
	profilefile.Daemon
	node *Node
	cmd  *exec.Cmd
	said child.Tail
	// ended is closed when the program has ended and Wait has returned. err may be read after that.
	ended chan struct{}
	err   error
}

// startDaemon starts a daemon and waits until it is ready. Close ends it, also after an error.
func (n *Node) startDaemon(ctx context.Context, spec profilefile.Daemon) error {
	d := &daemon{Daemon: spec, node: n, ended: make(chan struct{})}
	d.cmd = n.shellCommand(context.WithoutCancel(ctx), spec.Run, n.Values, &d.said)
	if err := n.room.Do(d.cmd.Start); err != nil {
		return fmt.Errorf("%s: daemon %s: %w", n.Name, spec.Name, err)
	}
	n.daemons = append(n.daemons, d)
	go func() {
		d.err = d.cmd.Wait()
		close(d.ended)
	}()
	return d.awaitReady(ctx)
}

// retryTime is the time between two checks whether a daemon is ready.
const retryTime = 20 * time.Millisecond

// awaitReady waits until the daemon is ready. It fails if the daemon ends or its time limit passes.
func (d *daemon) awaitReady(ctx context.Context) error {
	limit := d.Ready.Within.Or(profilefile.DefaultTimeout)
	bounded, stop := context.WithTimeout(ctx, limit)
	defer stop()
	retry := time.NewTicker(retryTime)
	defer retry.Stop()
	for {
		why := d.readinessError(bounded)
		if err := d.exitError(); err != nil {
			return err
		}
		if why == nil {
			return nil
		}
		select {
		case <-d.ended:
		case <-retry.C:
		case <-bounded.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s: daemon %s is not ready within %s: %w%s", d.node.Name, d.Name, limit, why, outputSuffix(&d.said))
		}
	}
}

// readinessError makes each check of the daemon's Ready once. It returns why the daemon is not ready, or nil if it is.
func (d *daemon) readinessError(ctx context.Context) error {
	if d.Ready.File != "" {
		if err := d.node.room.Do(func() error { _, err := os.Stat(d.Ready.File); return err }); err != nil {
			return err
		}
	}
	if d.Ready.Address != "" {
		address := strings.ReplaceAll(d.Ready.Address, "${node-ip}", d.node.Values["node-ip"])
		if err := d.node.checkDial(address); err != nil {
			return err
		}
	}
	if d.Ready.Command != "" {
		var said child.Tail
		cmd := d.node.shellCommand(ctx, d.Ready.Command, d.node.Values, &said)
		err := d.node.room.Do(cmd.Start)
		if err == nil {
			err = cmd.Wait()
		}
		if err != nil {
			return fmt.Errorf("command %q: %w%s", d.Ready.Command, err, outputSuffix(&said))
		}
	}
	return nil
}

// dialTime bounds one connection to a daemon.
const dialTime = 200 * time.Millisecond

// checkDial checks that a TCP address accepts a connection from the node.
func (n *Node) checkDial(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return n.room.Do(func() error {
		conn, err := net.DialTimeout("tcp", to.String(), dialTime)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// exitError returns an error with the end of the output if the daemon has ended. It returns nil if the daemon runs.
func (d *daemon) exitError() error {
	select {
	case <-d.ended:
		how := "it exited with 0"
		if d.err != nil {
			how = d.err.Error()
		}
		return fmt.Errorf("%s: daemon %s died: %s%s", d.node.Name, d.Name, how, outputSuffix(&d.said))
	default:
		return nil
	}
}

// Dead returns an error that names each daemon that has ended by itself, with the end of its output. It returns nil
// if all daemons run.
func (n *Node) Dead() error {
	var errs []error
	for _, d := range n.daemons {
		errs = append(errs, d.exitError())
	}
	return errors.Join(errs...)
}

// stop sends the daemon its stop signal, kills it after its deadline, and waits for its end.
func (d *daemon) stop() {
	signals := map[string]syscall.Signal{
		"": syscall.SIGTERM, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "KILL": syscall.SIGKILL,
	}
	_ = child.Signal(d.cmd, signals[d.Signal]) // fails if the daemon has ended
	late := time.NewTimer(d.Stop.Or(profilefile.DefaultStop))
	defer late.Stop()
	select {
	case <-d.ended:
	case <-late.C:
	}
	_ = child.Signal(d.cmd, syscall.SIGKILL) // its children too
	<-d.ended
}

// Close removes the pods by DEL, ends the daemons and closes the node. If a DEL fails, it skips the remaining pods and
// returns that error. A second Close does nothing.
func (n *Node) Close() error {
	if n == nil || n.room == nil {
		return nil
	}
	var err error
	for _, p := range slices.Backward(slices.Clone(n.pods)) {
		if err = n.Del(context.Background(), p); err != nil {
			break // the other pods would wait as long; their devices end with the namespaces
		}
	}
	for _, d := range slices.Backward(n.daemons) {
		d.stop()
	}
	n.room.Close()
	n.room, n.pods, n.daemons = nil, nil, nil
	return err
}
