package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/recipe"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Timeouts of a start, on a slow and busy machine.
const (
	apiTimeout   = 3 * time.Minute
	nodesTimeout = 3 * time.Minute
	pollEvery    = 200 * time.Millisecond
)

// kubectl runs kubectl as the administrator.
func (c *cluster) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.cache.bin("kubectl"), append([]string{"--kubeconfig", c.kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	return output(cmd)
}

// apply creates or updates the objects of a manifest.
func (c *cluster) apply(ctx context.Context, manifest string) error {
	_, err := c.kubectl(ctx, manifest, "apply", "-f", "-")
	return err
}

// poll calls try until it succeeds. After the time within it returns the last error.
func poll(ctx context.Context, every, within time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w after %v: %w", ctx.Err(), within, err)
		}
	}
}

func (c *cluster) waitForAPI(ctx context.Context) error {
	err := poll(ctx, pollEvery, apiTimeout, func(ctx context.Context) error {
		_, err := c.kubectl(ctx, "", "get", "--raw", "/readyz")
		return err
	})
	if err != nil {
		return fmt.Errorf("API server is not ready (logs: %s/n1/log): %w", c.dir, err)
	}
	return nil
}

// imageFiles returns the archives that every node imports: our own, and those of --image.
func (c *cluster) imageFiles() []string {
	var names []string
	for _, m := range c.cache.wanted(c.has) {
		names = append(names, c.cache.image(m.name))
	}
	return append(names, c.Images...)
}

// importImages imports archives into the container runtime of every node, as soon as the runtime answers.
func (c *cluster) importImages(ctx context.Context, archives []string) error {
	return each.AtOnce(c.nodes(), func(_ int, n node) error { return c.importInto(ctx, n.Name, archives) })
}

func (c *cluster) importInto(ctx context.Context, node string, archives []string) error {
	var ctr []string
	err := poll(ctx, pollEvery, apiTimeout, func(ctx context.Context) error {
		// A node has no name for a moment, while its first process executes its program.
		holder := holders(c.Name)[node]
		if holder == 0 {
			return fmt.Errorf("node %s is not running", node)
		}
		// The runtime's socket, through the node's root as the machine sees it.
		ctr = []string{"--address", fmt.Sprintf("/proc/%d/root/run/containerd/containerd.sock", holder), "--namespace", "k8s.io"}
		_, err := run(ctx, "", nil, c.cache.bin("ctr"), append(ctr, "version")...)
		return err
	})
	if err != nil {
		return fmt.Errorf("containerd does not answer: %w", err)
	}
	for _, a := range archives {
		if _, err := run(ctx, "", nil, c.cache.bin("ctr"), append(ctr, "images", "import", a)...); err != nil {
			return fmt.Errorf("import %s: %w", filepath.Base(a), err)
		}
	}
	return nil
}

// connectPods installs kube-proxy, the CNI, kube-router as the CNI or in addition to it, and the name server.
func (c *cluster) connectPods(ctx context.Context, began time.Time) error {
	server := netip.AddrPortFrom(c.nodes()[0].Addr4, apiPort).String()
	apply := func(what string) error {
		if !c.has(what) {
			return nil
		}
		text, err := render(what+".yaml", values{Server: server, Proxy: c.Proxy, Routes: c.CNI == kubeRouter})
		if err != nil {
			return err
		}
		return c.apply(ctx, string(text))
	}
	if err := apply(kubeProxy); err != nil {
		return err
	}
	if err := c.installCNI(ctx, began); err != nil {
		return err
	}
	if err := apply(kubeRouter); err != nil { // it exits if its CNI configuration is missing
		return err
	}
	return apply(resolver)
}

func (c *cluster) installCNI(ctx context.Context, began time.Time) error {
	switch {
	case c.CNI == noCNI:
		return nil
	case c.has(cilium):
		return c.installRecipe(ctx, began)
	case c.has(flannel):
		upstream, err := os.ReadFile(c.cache.kept("flannel", flannelManifestFile))
		if err != nil {
			return err
		}
		manifest, err := flannelManifest(string(upstream), strings.TrimPrefix(c.CNI, "flannel-"))
		if err != nil {
			return err
		}
		return c.apply(ctx, manifest)
	}
	return c.staticCNI(ctx)
}

// installRecipe installs Cilium as `cnibench cni install` does, from the chart in the component's module.
func (c *cluster) installRecipe(ctx context.Context, began time.Time) error {
	if _, err := c.waitForPodCIDRs(ctx); err != nil {
		return err
	}
	to, err := kube.Connect(kube.Options{Kubeconfig: c.kubeconfig()})
	if err != nil {
		return err
	}
	i, err := recipe.NewInstaller(to.Config(), recipe.Options{
		Source: c.cache.kept("cilium", "cilium"), Params: recipe.Params{PodCIDR: netip.MustParsePrefix(podRange4)},
		// The recipe is for IPv4, and the cluster has both families. A privileged agent gets the available
		// capabilities: root on this machine may lack CAP_SYS_RESOURCE, which the chart requests by name.
		Sets: []string{"ipv6.enabled=true", "ipv6NativeRoutingCIDR=" + podRange6, "securityContext.privileged=true"}, Timeout: nodesTimeout,
		Say: func(format string, args ...any) { c.say(began, format, args...) },
	})
	if err != nil {
		return err
	}
	return i.Install(ctx, c.CNI)
}

// waitForPodCIDRs waits until every node has its ranges, and returns them.
func (c *cluster) waitForPodCIDRs(ctx context.Context) (ranges map[string][]netip.Prefix, err error) {
	err = poll(ctx, pollEvery, nodesTimeout, func(ctx context.Context) error {
		text, err := c.kubectl(ctx, "", "get", "nodes", "-o", "json")
		if err != nil {
			return err
		}
		ranges, err = parsePodCIDRs([]byte(text))
		if err == nil && len(ranges) < c.Nodes {
			err = fmt.Errorf("%d of %d nodes have a range for pods", len(ranges), c.Nodes)
		}
		return err
	})
	return ranges, err
}

// staticCNI writes the configuration of a node's plugin, and the routes between nodes if no daemon adds them.
func (c *cluster) staticCNI(ctx context.Context) error {
	ranges, err := c.waitForPodCIDRs(ctx)
	if err != nil {
		return err
	}
	pids := holders(c.Name)
	nodes := c.nodes()
	for _, n := range nodes {
		if c.CNI != kubeRouter {
			if err := configureNetwork(ctx, pids[n.Name], podRoutes(n, nodes, ranges)); err != nil {
				return fmt.Errorf("routes of %s: %w", n.Name, err)
			}
		}
		conf, err := conflist(c.CNI, ranges[n.Name])
		if err != nil {
			return err
		}
		// Containerd must see complete files only, so they are renamed into place.
		dir := fmt.Sprintf("/proc/%d/root/etc/cni/net.d/", pids[n.Name])
		if err := os.WriteFile(dir+".new", conf, 0o644); err != nil {
			return err
		}
		if err := os.Rename(dir+".new", dir+"10-cnibench.conflist"); err != nil {
			return err
		}
	}
	return nil
}

// waitReady waits until the DaemonSets that connect pods run on all nodes. If there is a CNI, it also waits until every
// node is ready.
func (c *cluster) waitReady(ctx context.Context) error {
	for _, s := range []struct{ only, set string }{
		{kubeProxy, "-n=kube-system daemonset/kube-proxy"}, {kubeRouter, "-n=kube-system daemonset/kube-router"},
		{flannel, "-n=kube-flannel daemonset/kube-flannel-ds"}, {cilium, "-n=kube-system daemonset/cilium"},
		{resolver, "-n=kube-system daemonset/resolver"},
	} {
		if !c.has(s.only) || c.CNI == noCNI && s.only != kubeProxy {
			continue
		}
		args := append([]string{"wait", "--timeout=" + nodesTimeout.String(), fmt.Sprintf("--for=jsonpath={.status.numberReady}=%d", c.Nodes)}, strings.Fields(s.set)...)
		if _, err := c.kubectl(ctx, "", args...); err != nil {
			return err
		}
	}
	if c.CNI == noCNI {
		return nil
	}
	if _, err := c.kubectl(ctx, "", "wait", "--timeout="+nodesTimeout.String(), "--for=condition=Ready", "nodes", "--all"); err != nil {
		return err
	}
	return poll(ctx, pollEvery, nodesTimeout, c.connected)
}

// connected waits for what the daemons of a CNI do after their nodes are ready. A pod that starts before flannel has
// written the file of its plugin fails, and the kubelet tries again ten seconds later. kube-router's daemons take
// seconds to exchange their routes.
func (c *cluster) connected(ctx context.Context) error {
	pids := holders(c.Name)
	for _, n := range c.nodes() {
		switch {
		case c.has(flannel):
			if _, err := os.Stat(fmt.Sprintf("/proc/%d/root/run/flannel/subnet.env", pids[n.Name])); err != nil {
				return fmt.Errorf("flannel on %s: %w", n.Name, err)
			}
		case c.CNI == kubeRouter:
			for _, family := range []string{"-4", "-6"} {
				routes, err := output(exec.CommandContext(ctx, "nsenter", "--net", fmt.Sprintf("--target=%d", pids[n.Name]), "ip", family, "route", "show", "proto", "17"))
				if err != nil {
					return err
				}
				if got := strings.Count(routes, " via "); got < c.Nodes-1 {
					return fmt.Errorf("kube-router on %s: %d of %d routes to other nodes, ip %s", n.Name, got, c.Nodes-1, family)
				}
			}
		}
	}
	return nil
}
