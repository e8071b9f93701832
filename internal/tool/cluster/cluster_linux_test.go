package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/advice"
)

var e2e = flag.Bool("e2e", false, "raise real clusters; the first time everything is built, which takes minutes")

// TestMain lets the test program be what the tool is: a cluster's processes are the program that raises it.
func TestMain(m *testing.M) {
	if strings.HasPrefix(os.Args[0], "cnib-e2e-") {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestParseHierarchies(t *testing.T) {
	const hybridOwn = "9:name=systemd:/\n4:memory:/jobs/7\n1:cpu,cpuacct:/\n0::/\n"
	const hybridMounts = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:5 - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
42 31 0:38 / /run/again rw,relatime - cgroup2 cgroup2 rw
`
	want := []hierarchy{
		{mount: "/sys/fs/cgroup/cpu,cpuacct", own: "/sys/fs/cgroup/cpu,cpuacct", option: "cpu,cpuacct"},
		{mount: "/sys/fs/cgroup/memory", own: "/sys/fs/cgroup/memory/jobs/7", option: "memory"},
		{mount: "/sys/fs/cgroup/systemd", own: "/sys/fs/cgroup/systemd", option: "name=systemd"},
		{mount: "/sys/fs/cgroup/unified", own: "/sys/fs/cgroup/unified"},
	}
	if got := parseHierarchies(hybridOwn, hybridMounts); !slices.Equal(got, want) {
		t.Errorf("hybrid: got %+v, want %+v", got, want)
	}
	// A container's mount shows only its own part of the tree.
	got := parseHierarchies("0::/docker/12ab/sub\n", "30 23 0:26 /docker/12ab /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n")
	if want := []hierarchy{{mount: "/sys/fs/cgroup", own: "/sys/fs/cgroup/sub"}}; !slices.Equal(got, want) {
		t.Errorf("container: got %+v, want %+v", got, want)
	}
	if got := parseHierarchies("", "nonsense\n- - -\n"); len(got) != 0 {
		t.Errorf("nonsense gives %+v", got)
	}
}

func FuzzParseHierarchies(f *testing.F) {
	f.Add("0::/\n", "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n")
	f.Fuzz(func(t *testing.T, own, mounts string) {
		for _, h := range parseHierarchies(own, mounts) {
			if h.own == "" {
				t.Errorf("%+v has no directory", h)
			}
		}
	})
}

func TestInGroup(t *testing.T) {
	const groups = "4:memory:/jobs/7/cnib-e2e-a-n1/kubepods\n0::/cnib-e2e-a-n12\n"
	for name, want := range map[string]bool{"cnib-e2e-a-n1": true, "cnib-e2e-a-n12": true, "cnib-e2e-a-n": false, "cnib-e2e-a-n2": false} {
		if got := inGroup(groups, name); got != want {
			t.Errorf("inGroup(%s) = %v, want %v", name, got, want)
		}
	}
}

func TestParseProbes(t *testing.T) {
	const pods = `{"items": [{"metadata": {"name": "probe-x"}, "spec": {"nodeName": "n2"}, "status": {"podIPs": [{"ip": "10.244.0.3"}, {"ip": "fd00::3"}]}}]}`
	const service = `{"spec": {"clusterIPs": ["10.96.0.7", "fd00:10:96::7"], "ports": [{"nodePort": 31000}]}}`
	probes, to, err := parseProbes([]byte(pods), []byte(service))
	if err != nil {
		t.Fatal(err)
	}
	if len(probes) != 1 || probes[0].Node != "n2" || len(probes[0].Addrs) != 2 || to.NodePort != 31000 || len(to.Addrs) != 2 {
		t.Errorf("got %+v and %+v", probes, to)
	}
	if _, _, err := parseProbes([]byte(strings.Replace(pods, `, {"ip": "fd00::3"}`, "", 1)), []byte(service)); err == nil {
		t.Error("a pod of one family is taken for one of two")
	}
	if _, _, err := parseProbes([]byte(pods), []byte(`{"spec": {}}`)); err == nil {
		t.Error("a Service without a port is taken")
	}
}

func TestEveryNode(t *testing.T) {
	nodes := request{Nodes: 2}.nodes()
	if err := everyNode("n1\nn2\nn1\n", nil, 3, nodes); err != nil {
		t.Error(err)
	}
	for name, out := range map[string]string{"too few": "n1\nn2\n", "a stranger": "n1\nn2\nn3\n", "silence": "n1\nnothing from http://x\nn2\n", "none": ""} {
		if everyNode(out, nil, 3, nodes) == nil {
			t.Errorf("%s is taken for three answers", name)
		}
	}
}

// TestComponentsAreLinked: what is built already is not built again, whatever else is new in the directory of all.
func TestComponentsAreLinked(t *testing.T) {
	home := t.TempDir()
	comp := component{name: "a b", module: "example.invalid/a", version: "1.0.0", packages: []string{"example.invalid/a/cmd/x"}}
	for _, dir := range []string{"first", "second"} {
		c := cache{home: home, dir: filepath.Join(home, dir)}
		for _, d := range []string{c.dir + "/bin", c.part(comp) + "/bin"} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(c.part(comp), "bin/x"), []byte("program"), 0o755); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time it is all there
			var said strings.Builder
			if err := c.component(t.Context(), &said, comp); err != nil || said.Len() > 0 {
				t.Fatalf("%v, %s", err, said.String())
			}
		}
		if got, err := os.ReadFile(c.bin("x")); err != nil || string(got) != "program" {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// TestSwitchHandsConnectionsOn runs the forwarder without a cluster.
func TestSwitchHandsConnectionsOn(t *testing.T) {
	far, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	go func() {
		c, err := far.Accept()
		if err != nil {
			return
		}
		pump(c, c) // an echo; the end is passed on too
		c.Close()
	}()
	near, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	go func() {
		for {
			c, err := near.Accept()
			if err != nil {
				return
			}
			go forward(c, far.Addr().String())
		}
	}()
	if got := roundTrip(t, near.Addr().String()); got != "hello" {
		t.Errorf("got %q back", got)
	}
	far.Close()
	if got := roundTrip(t, near.Addr().String()); got != "" {
		t.Errorf("nobody listens there, and %q comes back", got)
	}
}

// roundTrip sends a word, ends, and returns what comes until the other side ends too.
func roundTrip(t *testing.T, addr string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte("hello")) // the other side may have gone already
	_ = c.(*net.TCPConn).CloseWrite()
	var got []byte
	buf := make([]byte, 64)
	for {
		n, err := c.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			return string(got)
		}
	}
}

// realCluster is one for tests, with a cache that holds everything.
func realCluster(t *testing.T, r request) *cluster {
	t.Helper()
	if !*e2e {
		t.Skip("needs -e2e: go test ./internal/tool/cluster -e2e -timeout 30m")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, for namespaces, mounts and cgroups")
	}
	store, err := openCache()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.check(); err != nil {
		t.Fatal(err)
	}
	c := newCluster(store, r, testWriter{t})
	t.Cleanup(func() {
		if err := c.remove(); err != nil {
			t.Error(err)
		}
	})
	return c
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// machine lists what a cluster could leave: mounts, devices, named namespaces, cgroups, processes, files, kernel parameters.
func machine(t *testing.T, c *cluster) []string {
	t.Helper()
	var list []string
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, c.cache.home) || strings.Contains(line, "cnib-e2e") {
			list = append(list, "mount "+line)
		}
	}
	devices, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range devices {
		list = append(list, "device "+d.Name)
	}
	groups, err := cgroupsOf(c.Name)
	if err != nil {
		t.Fatal(err)
	}
	processes := holders(c.Name)
	for _, g := range groups {
		list = append(list, "cgroup "+g)
	}
	for p := range processes {
		list = append(list, "process "+p)
	}
	if _, err := os.Stat(c.dir); !errors.Is(err, fs.ErrNotExist) {
		list = append(list, "state "+c.dir)
	}
	for _, p := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "kernel/unprivileged_bpf_disabled", "kernel/timer_migration",
		"net/core/bpf_jit_enable", "net/ipv4/ip_forward", "net/netfilter/nf_conntrack_max"} {
		value, err := os.ReadFile("/proc/sys/" + p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		list = append(list, "parameter "+p+" "+strings.TrimSpace(string(value)))
	}
	slices.Sort(list)
	return list
}

// sameMachine compares listings.
func sameMachine(t *testing.T, before, after []string) {
	t.Helper()
	for _, line := range after {
		if !slices.Contains(before, line) {
			t.Errorf("left: %s", line)
		}
	}
	for _, line := range before {
		if !slices.Contains(after, line) {
			t.Errorf("gone: %s", line)
		}
	}
}

// TestEveryCNI raises each kind of cluster, proves it and takes it down, and looks whether the machine is as before.
func TestEveryCNI(t *testing.T) {
	for _, cni := range cnis {
		modes := proxies
		if (request{CNI: cni}).has(cilium) {
			modes = []string{""}
		}
		for _, proxy := range modes {
			t.Run(cni+"/"+proxy, func(t *testing.T) {
				c := realCluster(t, request{Name: "test", Nodes: 3, CNI: cni, Proxy: proxy, Policies: proxy == "nftables" && !(request{CNI: cni}).enforces()})
				before := machine(t, c)
				if err := c.up(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(machine(t, c)) <= len(before) {
					t.Error("the listing does not see the cluster, so it cannot see what is left of it")
				}
				if err := c.verify(t.Context()); err != nil {
					t.Error(err)
				}
				began := time.Now()
				if err := c.remove(); err != nil {
					t.Fatal(err)
				}
				t.Logf("down in %.1f s", time.Since(began).Seconds())
				sameMachine(t, before, machine(t, c))
			})
		}
	}
}

// TestKilledUpIsRemoved kills the raising at different moments, as nobody can be asked to clean up then.
func TestKilledUpIsRemoved(t *testing.T) {
	c := realCluster(t, request{Name: "test", Nodes: 3, CNI: "bridge", Proxy: "iptables"})
	before := machine(t, c)
	for _, after := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second} {
		pid, err := syscall.ForkExec("/proc/self/exe", []string{"cnib-e2e-raise", "up", "--name", c.Name, "--nodes", "2"}, &syscall.ProcAttr{Env: os.Environ()})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(after)
		if after >= time.Second && len(machine(t, c)) <= len(before) {
			t.Errorf("after %v nothing of the cluster is there to be removed", after)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.remove(); err != nil {
			t.Fatal(err)
		}
		sameMachine(t, before, machine(t, c))
	}
}

// TestFaults needs two CPUs, to tell those of pods from those of daemons. It injects what tests of the product need: a node
// that stops, an API server that restarts.
func TestFaults(t *testing.T) {
	c := realCluster(t, request{Name: "test", Nodes: 2, CNI: "bridge", Proxy: "iptables", DaemonCPUs: "0", PodCPUs: "1"})
	if err := c.up(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait := func(condition string) {
		t.Helper()
		if _, err := c.kubectl(t.Context(), "", "wait", "--timeout=60s", "--for=condition=Ready="+condition, "node/n2"); err != nil {
			t.Error(err)
		}
	}
	if err := c.signal("n2", syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	wait("Unknown")
	t.Logf("a stopped kubelet is noticed after %.1f s", time.Since(began).Seconds())
	if err := c.signal("n2", syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	wait("True")

	holder, err := c.holder("n1")
	if err != nil {
		t.Fatal(err)
	}
	old, err := daemonPID(holder, "kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.signal("apiserver", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	if err := poll(t.Context(), pollEvery, time.Minute, func(context.Context) error {
		if pid, err := daemonPID(holder, "kube-apiserver"); err != nil || pid == old {
			return fmt.Errorf("no new API server yet: %v", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.waitForAPI(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("the API server is ready again after %.1f s", time.Since(began).Seconds())
	checkCPUs(t, c)
}

// checkCPUs looks at where the node's processes may run: daemons on 0, pods on 1.
func checkCPUs(t *testing.T, c *cluster) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	daemons, pods := 0, 0
	for _, d := range dirs {
		groups, err := os.ReadFile(filepath.Join(d, "cgroup"))
		if err != nil || !inGroup(string(groups), processName(c.Name, "n1")) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(d, "status"))
		if err != nil {
			continue
		}
		if strings.HasPrefix(string(status), "Name:\tpause\n") {
			continue // a sandbox sleeps, and no kubelet says where
		}
		_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:")
		list, _, _ = strings.Cut(strings.TrimSpace(list), "\n")
		want := "0"
		if inGroup(string(groups), "kubepods") {
			want = "1"
			pods++
		} else {
			daemons++
		}
		if list != want {
			t.Errorf("%s may run on %s, want %s:\n%s", d, list, want, groups)
		}
	}
	if daemons < 7 || pods < 1 {
		t.Errorf("saw %d daemons and %d processes of pods; there are more", daemons, pods)
	}
}

// TestReadyBeforeBuild: a program that an image takes from this machine is looked for before anything is built, and only
// for images that are missing.
func TestReadyBeforeBuild(t *testing.T) {
	dir := t.TempDir()
	c := cache{home: dir, dir: filepath.Join(dir, "v")}
	t.Setenv("PATH", t.TempDir())
	var out strings.Builder
	err := c.build(t.Context(), &out, everything)
	if err == nil || !strings.Contains(err.Error(), "xtables-nft-multi") || out.Len() > 0 {
		t.Fatalf("%v, after %q", err, out.String())
	}
	if err := os.MkdirAll(filepath.Join(c.dir, "images"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.allImages() {
		if err := os.WriteFile(c.image(m.name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.ready(everything); err != nil {
		t.Errorf("all images are there: %v", err)
	}
}

// TestOnlyWhatIsNeeded: a machine without Cilium's compiler raises every other CNI, and the error of Cilium names the
// compiler.
func TestOnlyWhatIsNeeded(t *testing.T) {
	dir, path := t.TempDir(), t.TempDir()
	for _, p := range []string{"xtables-nft-multi", "nft", "ipset", "bash", "find", "ip", "nsenter"} {
		if err := os.WriteFile(filepath.Join(path, p), []byte("#!"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", path)
	c := cache{home: dir, dir: filepath.Join(dir, "v")}
	for _, cni := range cnis {
		r := request{CNI: cni, Policies: true}
		r.Proxy = r.defaultProxy()
		err := c.ready(r.has)
		if !r.has(cilium) {
			if err != nil {
				t.Errorf("%s: %v", cni, err)
			}
		} else if err == nil || advice.Of(err) != "apt-get install "+clang {
			t.Errorf("%s: %v, advice %q", cni, err, advice.Of(err))
		}
	}
}

func TestFilesOfATree(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"a.c", "lib/b.h", "tests/c.c", "lib/tests/d.h"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(f)), 0o755), os.WriteFile(filepath.Join(dir, f), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	s := fileSet{paths: map[string]string{}}
	s.tree("/bpf", dir, "tests")
	want := map[string]string{"/bpf/a.c": dir + "/a.c", "/bpf/lib/b.h": dir + "/lib/b.h", "/bpf/lib/tests/d.h": dir + "/lib/tests/d.h"}
	if s.err != nil || !maps.Equal(s.paths, want) {
		t.Errorf("%v, %v, want %v", s.paths, s.err, want)
	}
	// Before the component is built there is nothing to see.
	if s.tree("/bpf", dir+"/nowhere"); s.err != nil {
		t.Error(s.err)
	}
}
