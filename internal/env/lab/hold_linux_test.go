package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/profilefile"
)

// held is what a program that holds a lab says about it.
type held struct {
	Namespaces []uint64
	Agents     []int
	Janitor    int
	Tree       string
}

// hold raises a lab with two agents and a command in it, says what it has, and waits to be killed; if anew, while it
// raises the lab anew again and again, and if churn, while policies among some Services change.
func hold(anew, churn bool) int {
	ctx := context.Background()
	tested := plan.VariantOf("calico-vxlan")
	if churn {
		tested = plan.VariantOf("calico-vxlan(services=300,churn=policies=200/s)")
	}
	l, err := Up(ctx, []plan.Variant{plan.VariantOf("raw"), tested}, Options{Program: program})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var h held
	for _, i := range l.Instances() {
		if i.Err != nil {
			fmt.Fprintln(os.Stderr, i.Err)
			return 1
		}
		for _, host := range i.Hosts() {
			inode, _ := host.NS.Inode()
			h.Namespaces = append(h.Namespaces, inode)
		}
	}
	i := l.Instance(tested)
	for _, host := range []*Host{&i.Nodes[0].Pods[0].Host, &i.Nodes[1].Host} {
		stream, err := l.startAgent(ctx, host.Name, host)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		h.Agents = append(h.Agents, stream.(*agent).cmd.Process.Pid)
	}
	if l.groups.janitor != nil {
		h.Janitor, h.Tree = l.groups.janitor.cmd.Process.Pid, l.groups.tree.Path()
	}
	b, _ := json.Marshal(h)
	fmt.Println(string(b))
	for anew {
		for _, err := range l.Renew(ctx, plan.Variants("calico-vxlan", "raw")) {
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
	for churn {
		if _, err := l.Churn(ctx, control.Churning{Variant: tested, Window: time.Minute}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	select {}
}

// holder starts a program that holds a lab; said is what it says once the lab stands.
func holder(t *testing.T, more ...string) (cmd *exec.Cmd, said *bufio.Reader) {
	t.Helper()
	needRights(t)
	cmd = exec.Command("/proc/self/exe", append([]string{"hold"}, more...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// standingHolder is a holder whose lab stands.
func standingHolder(t *testing.T, more ...string) (*exec.Cmd, held) {
	t.Helper()
	cmd, said := holder(t, more...)
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	line, err := said.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var h held
	if err := json.Unmarshal(line, &h); err != nil {
		t.Fatal(err)
	}
	return cmd, h
}

func TestKilledProgramLeavesNothing(t *testing.T) {
	t.Run("idle", func(t *testing.T) { killed(t) })
	t.Run("while rules change", func(t *testing.T) { killed(t, "churn") })
}

func killed(t *testing.T, more ...string) {
	devices := interfaces(t)
	cmd, h := standingHolder(t, more...)
	if h.Tree == "" {
		t.Log("no cgroup v2 here: that part is not tested")
	} else if _, err := os.Stat(h.Tree); err != nil {
		t.Errorf("while it stands: %v", err)
	}
	if holders := namespaceHolders(t, h.Namespaces); len(holders) == 0 {
		t.Fatal("nobody is seen to hold the namespaces: this test cannot fail")
	}
	if len(more) > 0 {
		time.Sleep(100 * time.Millisecond) // changes are under way
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	gone(t, "namespaces", func() string { return strings.Join(namespaceHolders(t, h.Namespaces), ", ") })
	gone(t, "processes", func() string { return running(append(h.Agents, h.Janitor)) })
	gone(t, "cgroups", func() string { return existing(h.Tree) })
	if after := interfaces(t); !slices.Equal(after, devices) {
		t.Errorf("devices of the host: %v before, %v after", devices, after)
	}
}

// TestKilledWhileItIsRaised kills at moments spread over the time that raising takes, for the first time and anew.
func TestKilledWhileItIsRaised(t *testing.T) {
	for i := range 12 {
		var more []string
		if i%2 == 1 {
			more = []string{"anew"}
		}
		cmd, said := holder(t, more...)
		if len(more) > 0 {
			if _, err := said.ReadBytes('\n'); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(rand.N(400 * time.Millisecond))
		pid := cmd.Process.Pid
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		gone(t, "cgroups", func() string {
			var mine []string
			for _, tree := range trees(t) {
				if strings.HasPrefix(filepath.Base(tree), fmt.Sprintf("%s-%d-", treePrefix, pid)) {
					mine = append(mine, tree)
				}
			}
			return strings.Join(mine, ", ")
		})
	}
}

// hangingPlugin gives a pod that stands its device and a file of IPAM. ADD of a new pod hangs in a child.
const hangingPlugin = `#!/bin/sh
[ $CNI_COMMAND = ADD ] || exit 0
echo "$CNI_CONTAINERID" > /var/lib/%[1]s
case ${CNI_CONTAINERID##*-} in
1|2) ip link add "${CNI_CONTAINERID##*-}" type veth peer name eth0 netns "$CNI_NETNS" ;;
*) echo "$CNI_CONTAINERID" hangs > %[2]s; sleep 1000 & wait ;;
esac
echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.77.0.9/24"}]}'
`

// arrive raises a lab of a profile file, says which namespaces it has, and makes new pods.
func arrive(file string) int {
	ctx := context.Background()
	p := plan.Default()
	p.Profiles = plan.Variants(file)
	p, _ = profilefile.Load(p, os.ReadFile)
	l, err := Up(ctx, p.Profiles, Options{Program: program, Own: p.Own})
	if err == nil {
		err = l.Instances()[0].Err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var h held
	for _, host := range l.Instances()[0].Hosts() {
		inode, _ := host.NS.Inode()
		h.Namespaces = append(h.Namespaces, inode)
	}
	h.Tree = l.groups.tree.Path()
	b, _ := json.Marshal(h)
	fmt.Println(string(b))
	_, err = l.NewPods(ctx, control.Arrivals{Route: plan.Single(plan.VariantOf("own"), plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}),
		To: control.Endpoint{Address: "10.77.0.9", Port: 1}, Rate: 10, Window: time.Second, Timeout: time.Minute, Opens: func() error { return nil }})
	fmt.Fprintln(os.Stderr, "it was not killed:", err)
	return 1
}

// TestKilledWhileAPluginHangs kills a program while the plugin of a new pod hangs: no process, no cgroup and no file of IPAM
// is left.
func TestKilledWhileAPluginHangs(t *testing.T) {
	dir := t.TempDir()
	mark, hung := fmt.Sprintf("cnibench-kill-%d", os.Getpid()), filepath.Join(dir, "hung")
	for file, text := range map[string]string{
		"mine": fmt.Sprintf(hangingPlugin, mark, hung),
		"own.yaml": "apiVersion: cnibench/v1\nkind: Profile\nname: own\ncni:\n  bin: .\n  timeout: 1m\n" +
			"  conflist: '{\"cniVersion\": \"1.0.0\", \"name\": \"own\", \"disableCheck\": true, \"plugins\": [{\"type\": \"mine\"}]}'\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd, h := standingHolder(t, filepath.Join(dir, "own.yaml"))
	for existing(hung) == "" {
		time.Sleep(10 * time.Millisecond)
	}
	if holders := namespaceHolders(t, h.Namespaces); len(holders) < 3 {
		t.Errorf("the plugin and its child are not seen: %v", holders)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	gone(t, "processes", func() string { return strings.Join(namespaceHolders(t, h.Namespaces), ", ") })
	gone(t, "cgroups", func() string { return existing(h.Tree) })
	if _, err := os.Stat("/var/lib/" + mark); err == nil {
		t.Error("a file of the plugin is on the machine")
	}
}

// gone waits until left returns nothing.
func gone(t *testing.T, what string, left func() string) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for {
		rest := left()
		if rest == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s are left: %s", what, rest)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// namespaceHolders lists who is in one of the namespaces or holds it open.
func namespaceHolders(t *testing.T, inodes []uint64) []string {
	t.Helper()
	links := map[string]bool{}
	for _, i := range inodes {
		links[fmt.Sprintf("net:[%d]", i)] = true
	}
	var holders []string
	for _, pattern := range []string{"/proc/[0-9]*/ns/net", "/proc/[0-9]*/fd/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if to, err := os.Readlink(f); err == nil && links[to] {
				holders = append(holders, f)
			}
		}
	}
	return holders
}

func running(pids []int) string {
	var left []string
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		// A zombie has ended; whoever inherited it will wait for it.
		if pid != 0 && err == nil && !strings.Contains(string(b), ") Z ") {
			left = append(left, strconv.Itoa(pid))
		}
	}
	return strings.Join(left, ", ")
}

func existing(path string) string {
	if _, err := os.Stat(path); path == "" || err != nil {
		return ""
	}
	return path
}

func interfaces(t *testing.T) []string {
	t.Helper()
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
	}
	return names
}

func TestClosedLabLeavesNothing(t *testing.T) {
	needRights(t)
	l, err := Up(t.Context(), plan.Variants("raw", "flannel-vxlan"), Options{Program: program})
	if err != nil {
		t.Fatal(err)
	}
	var inodes []uint64
	for _, i := range standing(t, l) {
		for _, h := range i.Hosts() {
			n, err := h.NS.Inode()
			if err != nil {
				t.Fatal(err)
			}
			inodes = append(inodes, n)
		}
	}
	host := &l.Instance(plan.VariantOf("raw")).Nodes[0].Host
	a, err := l.startAgent(t.Context(), "raw/node-1", host)
	if err != nil {
		t.Fatal(err)
	}
	pid := a.(*agent).cmd.Process.Pid
	tree := ""
	if l.groups.tree != nil {
		tree = l.groups.tree.Path()
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := running([]int{pid}); left != "" {
		t.Errorf("agent %s runs on", left)
	}
	if left := existing(tree); left != "" {
		t.Errorf("%s is left", left)
	}
	if left := namespaceHolders(t, inodes); len(left) > 0 {
		t.Errorf("namespaces are held by %v", left)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := l.startAgent(t.Context(), "raw/node-1", host); err == nil {
		t.Error("an agent starts in a closed lab")
	}
	if err := a.Close(); err != nil {
		t.Errorf("closing an agent of a closed lab: %v", err)
	}
}

func TestTwoLabsAtOnceDoNotMeet(t *testing.T) {
	_, h := standingHolder(t)
	// This lab sweeps at its start, and must not take the other one for dead.
	l := up(t, plan.Lab{}, "raw", "calico-vxlan")
	for _, i := range standing(t, l) {
		e, err := i.Spec.Ends(plan.Path{From: plan.Host, To: plan.Host, Locality: plan.CrossNode})
		if err != nil {
			t.Fatal(err)
		}
		if err := connect(i, e); err != nil {
			t.Errorf("%s: %v", i.Name, err)
		}
	}
	if h.Tree != "" && existing(h.Tree) == "" {
		t.Error("the other lab's cgroups were swept")
	}
	if left := running(h.Agents); len(strings.Split(left, ", ")) != len(h.Agents) {
		t.Errorf("of the other lab's agents %v there are left: %q", h.Agents, left)
	}
}

func TestAgents(t *testing.T) {
	l := up(t, plan.Lab{CPU: "one"}, "calico-vxlan")
	i := standing(t, l)[0]
	client, server, err := endsOf(l, i.Name, plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote})
	if err != nil {
		t.Fatal(err)
	}
	if client.Name != "calico-vxlan/node-1/pod-1" || server.Name != "calico-vxlan/node-2/pod-1" || server.Address != addressing4.remote.String() {
		t.Errorf("endpoints %+v, %+v", client, server)
	}
	stream, err := client.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if got, err := say(stream, "hello"); err != nil || got != "hello\n" {
		t.Errorf("the agent answers %q, %v", got, err)
	}
	a := stream.(*agent)
	pid := a.cmd.Process.Pid
	if ns, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); ns != namespaceLink(t, i.Host("node-1/pod-1")) {
		t.Errorf("the agent is in %s", ns)
	}
	if group := i.Nodes[0].group; group != nil {
		if pids, err := os.ReadFile(group.Path() + "/cgroup.procs"); err != nil || !slices.Contains(strings.Fields(string(pids)), strconv.Itoa(pid)) {
			t.Errorf("the agent %d is not in its node's cgroup: %q, %v", pid, pids, err)
		}
	}
	beside(t, a, i)
	if _, err := say(stream, "die"); err == nil || !strings.Contains(err.Error(), "told to die") {
		t.Errorf("a dying agent's last words: %v", err)
	}
	if last := a.LastWords(); last != "told to die" {
		t.Errorf("last words %q", last)
	}
	blocked(t, server)
}

// beside checks that an agent begins beside the measured CPU, where there is another, and may move onto it.
func beside(t *testing.T, a *agent, i *Instance) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "Cpus_allowed_list:\t")
	allowed, _, _ := strings.Cut(rest, "\n")
	mine, err := thread.CPUs()
	if err != nil {
		t.Fatal(err)
	}
	measured := strconv.Itoa(i.Nodes[0].CPUs[0])
	if len(mine) == 1 {
		if allowed != measured {
			t.Errorf("the agent begins on CPUs %s, there is only %s", allowed, measured)
		}
		return
	}
	if slices.Contains(strings.Split(allowed, ","), measured) {
		t.Errorf("the agent begins on CPUs %s, among them the measured one, %s", allowed, measured)
	}
}

// blocked checks that Close wakes a Read under way.
func blocked(t *testing.T, e control.Endpoint) {
	t.Helper()
	stream, err := e.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := stream.Read(make([]byte, 1))
		read <- err
	}()
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-read:
		if err == nil {
			t.Error("a Read of a closed agent returned something")
		}
	case <-time.After(10 * time.Second):
		t.Error("Close does not wake Read")
	}
}

func say(s io.ReadWriter, line string) (string, error) {
	if _, err := io.WriteString(s, line+"\n"); err != nil {
		return "", err
	}
	return bufio.NewReader(s).ReadString('\n')
}

func namespaceLink(t *testing.T, h *Host) string {
	t.Helper()
	n, err := h.NS.Inode()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("net:[%d]", n)
}

func TestJanitorRefusesWhatIsNotOurs(t *testing.T) {
	for _, path := range []string{"/", "/sys/fs/cgroup", "/tmp/cnibench", ""} {
		if err := Janitor(path, strings.NewReader("")); err == nil {
			t.Errorf("the janitor goes to work on %q", path)
		}
	}
	if err := Janitor(filepath.Join(t.TempDir(), "cnibench-1-x"), strings.NewReader("")); err != nil {
		t.Errorf("a tree that is gone: %v", err)
	}
}
