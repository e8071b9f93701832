package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/probe"
	"github.com/cnibench/cnibench/internal/kernel/proc"
	"github.com/cnibench/cnibench/internal/measure/netstate"
)

const (
	// conflistSize bounds the bytes of a CNI configuration file, conflistCount the number of files read.
	conflistSize, conflistCount = 64 << 10, 32
	// answerTime bounds the wait for kube-proxy's answer.
	answerTime = 2 * time.Second
)

// Options define where to look. The zero value is right for a host-network pod.
type Options struct {
	// CNI is the directory of CNI configuration; "" is /etc/cni/net.d.
	CNI string
	// Pod is true if this process is in a pod's own network namespace.
	Pod bool
	// Proxy is the URL of kube-proxy's mode; "" is http://127.0.0.1:10249/proxyMode.
	Proxy string
}

// gathering collects the result of one Gather.
type gathering struct {
	netstate.State
	ns *netns.NS
	h  *link.Handle
}

// addUnproven adds an entry to Unproven: what was not read, and err as the reason.
func (g *gathering) addUnproven(what string, err error) {
	g.Unproven = append(g.Unproven, unprovenEntry(what, err))
}

// unprovenEntry returns an entry of Unproven: what was not read, and err as the reason.
func unprovenEntry(what string, err error) netstate.Unproven {
	why := err.Error()
	if errors.Is(err, fs.ErrPermission) {
		why = "no right: " + why
	}
	return netstate.Unproven{What: what, Why: why}
}

// Gather reads the network state of this process's namespace. What it cannot read is listed in Unproven. It fails if
// netlink cannot be opened or the devices cannot be listed, and if ctx ends.
func Gather(ctx context.Context, o Options) (netstate.State, error) {
	if o.CNI == "" {
		o.CNI = "/etc/cni/net.d"
	}
	if o.Proxy == "" {
		o.Proxy = "http://127.0.0.1:10249/proxyMode"
	}
	ns, err := netns.Here()
	if err != nil {
		return netstate.State{}, err
	}
	defer ns.Close()
	h, err := link.Open(ns)
	if err != nil {
		return netstate.State{}, err
	}
	defer h.Close()
	g := &gathering{ns: ns, h: h}
	g.readMachine(ctx, o.Pod)
	if err := g.readNetwork(); err != nil {
		return netstate.State{}, err
	}
	g.readConntrack()
	g.countChains()
	g.listPrograms()
	g.readConflists(o.CNI)
	g.readProxyMode(ctx, o.Proxy)
	g.readLimits("/sys/fs/cgroup")
	return g.State, ctx.Err()
}

func (g *gathering) readMachine(ctx context.Context, pod bool) {
	g.Host, _ = os.Hostname() // an error leaves the name empty
	g.BootID = proc.BootID()
	g.Namespace, _ = g.ns.Inode()
	f, err := probe.Collect(ctx, probe.Collection{Pod: pod})
	if err != nil {
		g.addUnproven("facts of the machine", err)
		return
	}
	g.Machine = f
}

// readNetwork lists devices, routes and routing rules, and counts neighbours. It fails if the devices cannot be listed.
func (g *gathering) readNetwork() error {
	devices, err := g.h.Devices()
	if err != nil {
		return err
	}
	neighbours := 0
	for _, d := range devices {
		one := d.Device
		if _, err := os.Stat("/sys/class/net/" + d.Name + "/device"); err == nil { // hardware, or a hypervisor's device
			one.SpeedMbit = deviceSpeed(d.Name)
		}
		// A device that went while we looked has neither.
		one.Segmentation, _ = g.h.Segmentation(d.Name)
		g.Devices = append(g.Devices, one)
		if list, err := g.h.Neighbours(d.Name); err == nil {
			neighbours += len(list)
		}
	}
	g.Neighbours = &neighbours
	routes, err := g.h.Routes()
	if err != nil {
		g.addUnproven("routes", err)
	}
	for _, r := range routes {
		one := netstate.Route{To: r.To, Device: r.Dev, MTU: r.MTU, Blackhole: r.Blackhole}
		if r.Via.IsValid() {
			one.Via = &r.Via
		}
		g.Routes = append(g.Routes, one)
	}
	rules, err := g.h.Policy()
	if err != nil {
		g.addUnproven("routing rules", err)
	}
	for _, r := range rules {
		g.Rules = append(g.Rules, netstate.Rule(r))
	}
	return nil
}

// deviceSpeed returns a device's speed in Mbit/s as its driver reports it, 0 if unknown.
func deviceSpeed(device string) int {
	n, err := strconv.Atoi(proc.Text("/sys/class/net/" + device + "/speed"))
	if err != nil || n <= 0 {
		return 0
	}
	return n
}

func (g *gathering) readConntrack() {
	const file = "/proc/sys/net/netfilter/nf_conntrack_count"
	b, err := os.ReadFile(file)
	if err != nil {
		g.addUnproven(netstate.WhatConntrack, err)
		return
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		g.addUnproven(netstate.WhatConntrack, fmt.Errorf("%s: %w", file, err))
		return
	}
	g.Conntrack = &netstate.Conntrack{Entries: n}
}

// readConflists reads the configuration files of CNI plugins in dir, at most conflistCount. They are visible only if the
// node's directory is mounted.
func (g *gathering) readConflists(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		g.addUnproven(netstate.WhatConflists, err)
		return
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !slices.Contains([]string{".conflist", ".conf", ".json"}, ext) || len(g.Conflists) == conflistCount {
			continue
		}
		text, err := readBoundedFile(filepath.Join(dir, e.Name()), conflistSize)
		if err != nil {
			g.addUnproven(netstate.WhatConflists+"/"+e.Name(), err)
			continue
		}
		g.Conflists = append(g.Conflists, netstate.Conflist{File: e.Name(), Text: text})
	}
	if len(entries) == 0 {
		g.addUnproven(netstate.WhatConflists, errors.New("it is empty here"))
	}
}

// readBoundedFile returns the text of a file. It fails if the file is larger than size bytes.
func readBoundedFile(name string, size int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, size+1))
	if err == nil && int64(len(b)) > size {
		err = fmt.Errorf("is larger than %d bytes", size)
	}
	return string(b), err
}

// readProxyMode asks kube-proxy for its mode, and stores the mode in ProxyMode. kube-proxy answers only on the node's
// loopback.
func (g *gathering) readProxyMode(ctx context.Context, url string) {
	ctx, stop := context.WithTimeout(ctx, answerTime)
	defer stop()
	mode, err := fetchProxyMode(ctx, url)
	if err != nil {
		g.addUnproven(netstate.WhatProxyMode, err)
		return
	}
	g.ProxyMode = mode
}

// modes are the modes that kube-proxy may report.
var modes = []string{"iptables", "ipvs", "nftables", "kernelspace", "userspace"}

// fetchProxyMode requests url and returns kube-proxy's answer. It fails if the answer is not one of modes.
func fetchProxyMode(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	// The environment's proxy is not for this machine's own loopback.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, 64))
	mode := strings.TrimSpace(string(b))
	switch {
	case err != nil:
		return "", err
	case answer.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%s answers %s", url, answer.Status)
	case !slices.Contains(modes, mode):
		return "", fmt.Errorf("%s answers %q, which is not a mode of kube-proxy", url, mode)
	}
	return mode, nil
}
