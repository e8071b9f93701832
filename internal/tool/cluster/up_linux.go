package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// cluster is a cluster that is being started, used or removed.
type cluster struct {
	cache cache
	request
	// dir has its state: request, kubeconfig, and etc and log of each node.
	dir string
	// out receives the progress.
	out io.Writer
	// ended gets the error of a node that ends while the cluster is being started.
	ended chan error
}

func newCluster(c cache, r request, out io.Writer) *cluster {
	return &cluster{cache: c, request: r, dir: filepath.Join(c.home, "run", r.Name), out: out, ended: make(chan error, maxNodes)}
}

func (c *cluster) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// say prints progress with the seconds since began.
func (c *cluster) say(began time.Time, format string, args ...any) {
	fmt.Fprintf(c.out, "%5.1f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
}

// up starts the cluster. It first removes an earlier cluster of the same name, and it removes a cluster that fails.
func (c *cluster) up(ctx context.Context) (err error) {
	if os.Geteuid() != 0 {
		return advice.With(errors.New("nodes are namespaces with mounts and cgroups: only root can make them"), "run it with sudo")
	}
	for _, f := range c.Images {
		if _, err := os.Stat(f); err != nil {
			return fmt.Errorf("image: %w", err)
		}
	}
	if err := c.cache.build(ctx, c.out, c.has); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.remove(); err != nil {
		return fmt.Errorf("remove what an earlier %s left: %w", c.Name, err)
	}
	if err := roomForInotify(c.Nodes); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // if a node ends, the wait for it ends
		select {
		case err := <-c.ended:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	began := time.Now()
	if err := c.raise(ctx, began); err != nil {
		return c.fail(ctx, err)
	}
	c.say(began, "ready: export KUBECONFIG=%s", c.kubeconfig())
	return nil
}

// fail removes the cluster, unless --keep is set. It joins the error with its cause and the logs of the nodes' first
// processes.
func (c *cluster) fail(ctx context.Context, err error) error {
	grace := time.NewTimer(100 * time.Millisecond)
	defer grace.Stop()
	select {
	case <-ctx.Done(): // interrupted, or a node has died and that was the reason
		err = errors.Join(context.Cause(ctx), err)
	case <-grace.C:
	}
	logs, globErr := filepath.Glob(filepath.Join(c.dir, "*.log"))
	err = errors.Join(err, globErr)
	for _, l := range logs {
		if text, readErr := os.ReadFile(l); readErr == nil && len(text) > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %s", filepath.Base(l), lastLines(text, 3)))
		}
	}
	if c.Keep {
		return advice.With(err, "look around in "+c.dir+"; then: cluster down --name "+c.Name)
	}
	return errors.Join(err, c.remove())
}

// lastLines are the last n lines of a text.
func lastLines(text []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// lock prevents two tools from starting or removing one cluster at the same time. The lock ends with the process.
func (c *cluster) lock() (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(c.dir), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(c.dir+".lock", os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("cluster %s is being raised or removed by another process (%s.lock): %w", c.Name, c.dir, err)
	}
	return func() { f.Close() }, nil
}

func (c *cluster) raise(ctx context.Context, began time.Time) error {
	// No address is given: the kernel picks a free port, which is in the kubeconfig.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	if err := c.writeState(l.Addr().String()); err != nil {
		return err
	}
	if err := c.startMachines(ctx, l.(*net.TCPListener)); err != nil {
		return err
	}
	c.say(began, "nodes started")
	imported := make(chan error, 1)
	go func() { imported <- c.importImages(ctx, c.imageFiles()) }()
	if err := c.waitForAPI(ctx); err != nil {
		return err
	}
	c.say(began, "API server ready")
	if err := <-imported; err != nil {
		return err
	}
	c.say(began, "images imported")
	if err := c.connectPods(ctx, began); err != nil {
		return fmt.Errorf("install %s: %w", c.CNI, err)
	}
	return c.waitReady(ctx)
}

// writeState writes the files that nodes and users read.
func (c *cluster) writeState(hostServer string) error {
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return err
	}
	reserved, err := reservedCPUs(strings.TrimSpace(string(online)), c.PodCPUs)
	if err != nil {
		return err
	}
	perNode, admin, err := clusterFiles(c.request, machineFacts{HostServer: hostServer, ReservedCPUs: reserved, Now: time.Now()})
	if err != nil {
		return err
	}
	for name, fs := range perNode {
		for _, d := range []string{"etc", "log"} {
			if err := os.MkdirAll(filepath.Join(c.dir, name, d), 0o700); err != nil {
				return err
			}
		}
		for file, text := range fs {
			if err := os.WriteFile(filepath.Join(c.dir, name, "etc", file), text, 0o600); err != nil {
				return err
			}
		}
	}
	state, err := json.MarshalIndent(c.request, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(c.kubeconfig(), admin, 0o600), os.WriteFile(filepath.Join(c.dir, "cluster.json"), state, 0o644))
}

// startMachines starts the switch and the nodes, connects them, and then lets the nodes start their daemons.
func (c *cluster) startMachines(ctx context.Context, l *net.TCPListener) error {
	nodes, pids := c.nodes(), map[string]int{}
	sw, err := c.startSwitch(l, nodes[0])
	if err != nil {
		return fmt.Errorf("start the switch: %w", err)
	}
	begin := map[string]io.WriteCloser{}
	for _, n := range nodes {
		pid, stdin, err := c.startNode(n)
		if err != nil {
			return fmt.Errorf("start %s: %w", n.Name, err)
		}
		defer stdin.Close()
		pids[n.Name], begin[n.Name] = pid, stdin
	}
	if err := configureNetwork(ctx, sw, switchNetwork(nodes, pids)); err != nil {
		return fmt.Errorf("connect the nodes: %w", err)
	}
	for _, n := range nodes {
		if err := configureNetwork(ctx, pids[n.Name], nodeNetwork(n)); err != nil {
			return fmt.Errorf("connect %s: %w", n.Name, err)
		}
		if _, err := io.WriteString(begin[n.Name], "begin\n"); err != nil {
			return fmt.Errorf("%s does not start: %w", n.Name, err)
		}
	}
	return nil
}

// configureNetwork runs commands with ip inside the network namespace of a process.
func configureNetwork(ctx context.Context, pid int, commands string) error {
	if commands == "" {
		return nil
	}
	cmd := exec.CommandContext(ctx, "nsenter", "-t", strconv.Itoa(pid), "-n", "--", "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(commands)
	_, err := output(cmd)
	return err
}

func (c *cluster) startSwitch(l *net.TCPListener, control node) (int, error) {
	f, err := l.File()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{processName(c.Name, "sw"), "switch", fmt.Sprintf("%v:%d", control.Addr4, apiPort)}
	cmd.ExtraFiles = []*os.File{f}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	return c.launch(cmd, "sw")
}

func (c *cluster) startNode(n node) (pid int, begin io.WriteCloser, err error) {
	dir := filepath.Join(c.dir, n.Name)
	spec, err := json.MarshalIndent(nodeSpec{
		Process: processName(c.Name, n.Name), Hostname: n.Name, Dir: dir, Bin: filepath.Join(c.cache.dir, "bin"),
		DaemonCPUs: c.DaemonCPUs, Daemons: daemons(n),
	}, "", "  ")
	if err != nil {
		return 0, nil, err
	}
	file := dir + ".json"
	if err := os.WriteFile(file, spec, 0o644); err != nil {
		return 0, nil, err
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{processName(c.Name, n.Name), "node-init", file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	begin, err = cmd.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	pid, err = c.launch(cmd, n.Name)
	return pid, begin, err
}

// launch starts a process that outlives this one, and reports an end that comes before this one's.
func (c *cluster) launch(cmd *exec.Cmd, name string) (int, error) {
	log, err := os.Create(filepath.Join(c.dir, name+".log"))
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		c.ended <- fmt.Errorf("%s ended while the cluster was being raised: %w", name, cmd.Wait())
	}()
	return cmd.Process.Pid, nil
}

// remove removes the cluster, complete or not, also one that another process started.
func (c *cluster) remove() error {
	for _, pid := range holders(c.Name) {
		if err := kill(pid); err != nil {
			return err
		}
	}
	groups, err := cgroupsOf(c.Name)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if err := removeCgroup(g); err != nil {
			return err
		}
	}
	return os.RemoveAll(c.dir)
}

// down removes the cluster under the lock. The lock file remains: without it, two processes could enter at once.
func (c *cluster) down() error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return c.remove()
}
