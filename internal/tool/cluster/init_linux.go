package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// nodeSpec is the input of a node's first process.
type nodeSpec struct {
	// Process is the name of the process and of the cgroups, Hostname the host name of the node.
	Process, Hostname string
	// Dir has etc and log of this node, and a directory for its root. Bin has the cache's programs.
	Dir, Bin   string
	DaemonCPUs string
	Daemons    []daemon
}

// namespaces of a node that its first process is created in. The cgroup namespace comes later, when the process is in
// its groups.
const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

// The main goroutine stays on the main thread. During an execve from another thread, the namespaces of the process
// cannot be read by its pid.
func init() { runtime.LockOSThread() }

// nodeInit is the first half of a node's first process: groups and the cgroup namespace. After an execve the whole
// program has the namespace of the thread that called it.
func nodeInit(spec nodeSpec, specFile string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	if err := joinCgroups(all, spec.Process); err != nil {
		return fmt.Errorf("join the node's cgroups: %w", err)
	}
	if err := syscall.Unshare(cloneNewCgroup); err != nil {
		return fmt.Errorf("make a cgroup namespace: %w", err)
	}
	return syscall.Exec("/proc/self/exe", []string{spec.Process, "node-run", specFile}, os.Environ())
}

// cloneNewCgroup is CLONE_NEWCGROUP, which package syscall does not define on every platform.
const cloneNewCgroup = 0x02000000

// nodeRun is the second half: the file system, the kernel parameters, and the daemons until the node ends. It starts
// the daemons after a line on standard input, which means that the network is ready. If standard input ends instead,
// the process that started the cluster has died, and the node ends.
func nodeRun(spec nodeSpec) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	if err := makeRoot(spec, all); err != nil {
		return fmt.Errorf("make the node's file system: %w", err)
	}
	if err := partDaemons(inNode(all), spec.DaemonCPUs); err != nil {
		return fmt.Errorf("part daemons from pods: %w", err)
	}
	if err := syscall.Sethostname([]byte(spec.Hostname)); err != nil {
		return err
	}
	for name, value := range map[string]string{
		"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1", "ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0",
		"bridge/bridge-nf-call-iptables": "1", "bridge/bridge-nf-call-ip6tables": "1",
	} {
		if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0); err != nil {
			return err
		}
	}
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("the process that raised the cluster has died: %w", err)
	}
	return keepRunning(spec.Daemons)
}

// inNode returns the hierarchies as makeRoot mounted them: at the same places, with the node's groups as roots.
func inNode(all []hierarchy) []hierarchy {
	moved := make([]hierarchy, len(all))
	for i, h := range all {
		moved[i] = hierarchy{mount: h.mount, own: h.mount, option: h.option}
	}
	return moved
}

// makeRoot builds a root file system in memory and makes it the process's. It has /usr and /dev of the machine and
// copies of a few files of /etc. Nothing in it is visible from outside.
func makeRoot(spec nodeSpec, all []hierarchy) error {
	root := filepath.Join(spec.Dir, "root")
	m := mounter{root: root}
	m.mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	m.dir(root)
	m.mount("node", root, "tmpfs", 0, "size=4g,mode=755")
	for _, d := range []string{"tmp", "var/tmp", "run/lock", "var/lib", "var/log", "etc/cni/net.d", "opt/cni/bin", "root", "home"} {
		m.dir(filepath.Join(root, d))
	}
	m.usr()
	m.do("link /var/run", func() error { return os.Symlink("../run", filepath.Join(root, "var/run")) })
	m.bind("/dev", "dev", false)
	for _, d := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		m.likeHost(d)
	}
	m.bind(spec.Bin, "opt/cnibench/bin", true)
	m.bind(filepath.Join(spec.Dir, "etc"), "etc/kubernetes", false)
	m.bind(filepath.Join(spec.Dir, "log"), "var/log/node", false)
	m.etc(spec.Hostname)
	for _, p := range cniPlugins {
		m.copy(filepath.Join(spec.Bin, p), "opt/cni/bin/"+p)
	}
	m.kernel(all)
	m.sealSysctls()
	if m.err != nil {
		return m.err
	}
	return pivot(root)
}

func pivot(root string) error {
	old := filepath.Join(root, "machine")
	if err := os.Mkdir(old, 0o755); err != nil {
		return err
	}
	if err := syscall.PivotRoot(root, old); err != nil {
		return os.NewSyscallError("pivot_root", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := syscall.Unmount("/machine", syscall.MNT_DETACH); err != nil {
		return os.NewSyscallError("umount2", err)
	}
	if err := os.Remove("/machine"); err != nil {
		return err
	}
	// Pods with bidirectional mounts need it.
	return os.NewSyscallError("mount", syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""))
}

// keepRunning starts the daemons, restarts those that end, and reaps orphans, as the first process of a pid namespace
// must. When it ends, all of them end.
func keepRunning(daemons []daemon) error {
	if err := os.Setenv("PATH", nodePath); err != nil {
		return err
	}
	running := map[int]daemon{}
	again := make(chan daemon, len(daemons))
	ended := make(chan int)
	for _, d := range daemons {
		again <- d
	}
	go reap(ended)
	for {
		select {
		case d := <-again:
			pid, err := start(d)
			if err != nil {
				return err
			}
			running[pid] = d
		case pid := <-ended:
			if d, ok := running[pid]; ok {
				delete(running, pid)
				fmt.Fprintf(os.Stderr, "%s %s ended; starting it again\n", time.Now().Format(time.TimeOnly), d.Name)
				time.AfterFunc(restartDelay, func() { again <- d })
			}
		}
	}
}

// nodePath has programs of Kubernetes before those of the machine.
const nodePath = "/opt/cnibench/bin:/opt/cni/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// restartDelay keeps a daemon that cannot start from taking the machine.
const restartDelay = 500 * time.Millisecond

// reap waits for every child and orphan and sends their pids. It polls while there are no children.
func reap(ended chan<- int) {
	idle := time.NewTicker(50 * time.Millisecond)
	defer idle.Stop()
	for {
		pid, err := syscall.Wait4(-1, nil, 0, nil)
		switch {
		case err == nil:
			ended <- pid
		case errors.Is(err, syscall.ECHILD):
			<-idle.C
		}
	}
}

// start starts a daemon with its log in a file that is visible on the machine. It returns its pid.
func start(d daemon) (int, error) {
	log, err := os.OpenFile("/var/log/node/"+d.Name+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	p, err := os.StartProcess("/opt/cnibench/bin/"+d.Name, append([]string{d.Name}, d.Args...), &os.ProcAttr{
		Env:   []string{"PATH=" + nodePath, "HOME=/root"},
		Files: []*os.File{nil, log, log},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", d.Name, err)
	}
	pid := p.Pid
	return pid, p.Release()
}

// readSpec reads the input of a node's first process.
func readSpec(file string) (nodeSpec, error) {
	var s nodeSpec
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fmt.Errorf("node %s: %w", strings.TrimSuffix(filepath.Base(file), ".json"), err)
	}
	return s, nil
}
