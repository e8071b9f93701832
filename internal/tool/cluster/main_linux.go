package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

const usageText = `usage: cluster VERB [flags]

  build                   fetch and build every program and image into the cache
  up [flags]              raise a cluster; it replaces one of the same name (up -h for the flags)
  down                    remove it; only the cache remains
  status                  the nodes, their processes and what they use
  verify                  prove that pods, Services, exec and port-forward work, between all nodes, in both families
  load FILE...            import image archives into every node
  exec NODE -- CMD...     run a command inside a node, or in the switch: sw
  restart NODE/DAEMON     kill a daemon; the node starts it again at once (apiserver is short for n1/kube-apiserver)
  pause NODE[/DAEMON]     suspend a node's kubelet, or another daemon; resume continues it

Every verb but build takes --name (default e2e).
`

func main() {
	err := command(os.Args[1:])
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case errors.As(err, &exit) && errors.Is(err, errPassOn):
		os.Exit(exit.ExitCode())
	default:
		fmt.Fprintln(os.Stderr, "cluster:", err)
		if advice := advice.Of(err); advice != "" {
			fmt.Fprintln(os.Stderr, "hint:", advice)
		}
		if errors.As(err, new(badInput)) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// badInput is an error in the command line; the exit code is 2.
type badInput struct{ error }

func (b badInput) Unwrap() error { return b.error }

func usage(format string, args ...any) error { return badInput{fmt.Errorf(format, args...)} }

// errPassOn marks the failure of a command that was run for the user and that has printed its own message.
var errPassOn = errors.New("the command failed")

func command(args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usageText)
		return flag.ErrHelp
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch verb, rest := args[0], args[1:]; verb {
	case "build", "up", "down", "status", "verify", "load", "exec", "restart", "pause", "resume":
		return dispatch(ctx, verb, rest)
	case "node-init", "node-run", "switch":
		stop() // they live until they are killed
		return inside(verb, rest)
	default:
		fmt.Fprint(os.Stderr, usageText)
		return usage("no verb %q", verb)
	}
}

// inside is the entry point of the processes of a cluster: this program, called by itself.
func inside(verb string, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s is for the tool itself", verb)
	}
	if verb == "switch" {
		return runSwitch(args[0])
	}
	spec, err := readSpec(args[0])
	if err != nil {
		return err
	}
	if verb == "node-init" {
		return nodeInit(spec, args[0])
	}
	return nodeRun(spec)
}

func dispatch(ctx context.Context, verb string, args []string) error {
	store, err := openCache()
	if err != nil {
		return err
	}
	r := request{}
	flags := flag.NewFlagSet(verb, flag.ContinueOnError)
	flags.StringVar(&r.Name, "name", "e2e", "the cluster's name")
	if verb == "up" {
		flags.IntVar(&r.Nodes, "nodes", 3, "how many; the first is the control plane too")
		flags.StringVar(&r.CNI, "cni", "flannel-vxlan", strings.Join(cnis, ", ")+"; "+noCNI+" for recipes")
		flags.StringVar(&r.Proxy, "proxy", "", "mode of kube-proxy: "+strings.Join(proxies, ", ")+" (default iptables, and no kube-proxy with Cilium)")
		flags.BoolVar(&r.Policies, "policies", false, "enforce NetworkPolicies, by kube-router's firewall beside the CNI; Cilium and kube-router do it themselves")
		flags.StringVar(&r.DaemonCPUs, "daemon-cpus", "", "CPUs of control plane, kubelets and container runtimes")
		flags.StringVar(&r.PodCPUs, "pod-cpus", "", "CPUs of pods")
		flags.BoolVar(&r.Keep, "keep", false, "leave a cluster that does not come up as it is, to be looked at")
		flags.Func("image", "archive to import into every node; may be repeated", func(s string) error {
			r.Images = append(r.Images, s)
			return nil
		})
	}
	if err := flags.Parse(args); err != nil {
		return flag.ErrHelp // the flag set has printed what is wrong
	}
	if verb == "build" {
		return store.build(ctx, os.Stdout, everything)
	}
	if verb == "up" {
		r.Proxy = cmp.Or(r.Proxy, r.defaultProxy())
		if err := r.check(); err != nil {
			return badInput{err}
		}
		return newCluster(store, r, os.Stdout).up(ctx)
	}
	if !goodName.MatchString(r.Name) {
		return usage("name %q: want up to 16 small letters and digits, a letter first", r.Name)
	}
	c := newCluster(store, r, os.Stdout)
	if verb == "down" {
		return c.down()
	}
	if err := c.readRequest(); err != nil {
		return err
	}
	return c.use(ctx, verb, flags.Args())
}

// readRequest reads the request that a cluster was started with.
func (c *cluster) readRequest() error {
	text, err := os.ReadFile(filepath.Join(c.dir, "cluster.json"))
	if errors.Is(err, os.ErrNotExist) {
		return advice.With(fmt.Errorf("there is no cluster %s", c.Name), "raise it: cluster up --name "+c.Name)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &c.request)
}

// use runs the verbs that need a running cluster.
func (c *cluster) use(ctx context.Context, verb string, args []string) error {
	switch verb {
	case "status":
		return c.status(ctx, os.Stdout)
	case "verify":
		return c.verify(ctx)
	case "load":
		if len(args) == 0 {
			return usage("load what? want archives of images")
		}
		return c.importImages(ctx, args)
	}
	if len(args) == 0 {
		return usage("%s what? want a node: n1, n2 ... or sw", verb)
	}
	if verb == "exec" {
		return c.exec(ctx, args[0], args[1:])
	}
	signal := map[string]syscall.Signal{"restart": syscall.SIGKILL, "pause": syscall.SIGSTOP, "resume": syscall.SIGCONT}[verb]
	return c.signal(args[0], signal)
}

// exec runs a command in a node, connected to this program's terminal.
func (c *cluster) exec(ctx context.Context, node string, args []string) error {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return usage("exec what? want a node and a command: exec n1 -- ip route")
	}
	pid, err := c.holder(node)
	if err != nil {
		return err
	}
	cmd, group, err := nodeCommand(ctx, pid, args...)
	if err != nil {
		return err
	}
	defer group.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return errors.Join(errPassOn, err)
	}
	return nil
}

func (c *cluster) holder(node string) (int, error) {
	if pid, ok := holders(c.Name)[node]; ok {
		return pid, nil
	}
	return 0, fmt.Errorf("cluster %s has no node %q", c.Name, node)
}

// signal sends a signal to a daemon: "n2/containerd", "n2" for its kubelet, "apiserver" for the only one of that name.
func (c *cluster) signal(target string, s syscall.Signal) error {
	node, daemon := parseTarget(target)
	holder, err := c.holder(node)
	if err != nil {
		return err
	}
	pid, err := daemonPID(holder, daemon)
	if err != nil {
		return fmt.Errorf("%s: %w", node, err)
	}
	return os.NewSyscallError("kill", syscall.Kill(pid, s))
}

// status prints the cluster, its nodes and the memory of each node.
func (c *cluster) status(ctx context.Context, w io.Writer) error {
	pids := holders(c.Name)
	enforced := ""
	if c.has(kubeRouter) {
		enforced = ", NetworkPolicies by kube-router"
	}
	fmt.Fprintf(w, "cluster %s: %s, kube-proxy %s%s\nkubeconfig %s\nkubectl    %s\n", c.Name, c.CNI, cmp.Or(c.Proxy, "none"), enforced, c.kubeconfig(), c.cache.bin("kubectl"))
	for _, n := range c.nodes() {
		fmt.Fprintf(w, "%s  %v  pid %d  %d MiB resident\n", n.Name, n.Addr4, pids[n.Name], residentMemory(processName(c.Name, n.Name))>>20)
	}
	out, err := c.kubectl(ctx, "", "get", "nodes", "-o", "wide")
	fmt.Fprint(w, out)
	return err
}
