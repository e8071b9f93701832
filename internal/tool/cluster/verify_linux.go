package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os/exec"
	"strings"
	"time"
)

// verifyNamespace is the namespace of the pods of a verification.
const verifyNamespace = "cnibench-e2e-verify"

// verifyTimeout bounds each wait of a verification.
const verifyTimeout = "--timeout=120s"

// probe is one pod of the verification: it answers HTTP with the name of its node.
type probe struct {
	Pod, Node string
	Addrs     []netip.Addr
}

// target is the Service in front of all probes.
type target struct {
	Addrs    []netip.Addr
	NodePort int
}

// verify checks that the cluster connects all that it has to: pods of every pair of nodes, Services from pods, from
// nodes and from outside, in both families, and the streams that the API server forwards. It removes what it made.
func (c *cluster) verify(ctx context.Context) (err error) {
	began := time.Now()
	manifest, err := render("probe.yaml", values{Namespace: verifyNamespace})
	if err != nil {
		return err
	}
	defer func() {
		_, gone := c.kubectl(context.WithoutCancel(ctx), "", "delete", "namespace", verifyNamespace, "--ignore-not-found", verifyTimeout)
		err = errors.Join(err, gone)
	}()
	if err := c.apply(ctx, string(manifest)); err != nil {
		return err
	}
	all := fmt.Sprintf("--for=jsonpath={.status.numberReady}=%d", c.Nodes)
	if _, err := c.kubectl(ctx, "", "-n", verifyNamespace, "wait", verifyTimeout, all, "daemonset/probe"); err != nil {
		return err
	}
	c.say(began, "a probe runs on every node")
	probes, service, err := c.findProbes(ctx)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func(context.Context, []probe, target) error
	}{
		{"pod to pod, all pairs, both families", c.verifyPods},
		{"pod, node and outside to Service, the name of the API server", c.verifyService},
		{"exec, logs and port-forward", c.verifyStreams},
		{"NetworkPolicies", c.verifyPolicies},
	} {
		if step.what == "NetworkPolicies" && (len(probes) < 2 || !c.has(kubeRouter) && !c.has(cilium)) {
			continue
		}
		if err := step.do(ctx, probes, service); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		c.say(began, "%s", step.what)
	}
	return nil
}

// findProbes returns the pods and the Service with their addresses.
func (c *cluster) findProbes(ctx context.Context) ([]probe, target, error) {
	pods, err := c.kubectl(ctx, "", "-n", verifyNamespace, "get", "pods", "-o", "json")
	if err != nil {
		return nil, target{}, err
	}
	service, err := c.kubectl(ctx, "", "-n", verifyNamespace, "get", "service", "probe", "-o", "json")
	if err != nil {
		return nil, target{}, err
	}
	return parseProbes([]byte(pods), []byte(service))
}

// parseProbes parses lists of pods and a Service as kubectl prints them.
func parseProbes(pods, service []byte) ([]probe, target, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ NodeName string }
			Status   struct{ PodIPs []struct{ IP netip.Addr } }
		}
	}
	var s struct {
		Spec struct {
			ClusterIPs []netip.Addr
			Ports      []struct{ NodePort int }
		}
	}
	if err := errors.Join(json.Unmarshal(pods, &list), json.Unmarshal(service, &s)); err != nil {
		return nil, target{}, err
	}
	if len(s.Spec.Ports) != 1 {
		return nil, target{}, fmt.Errorf("the Service has %d ports, want 1", len(s.Spec.Ports))
	}
	var probes []probe
	for _, item := range list.Items {
		p := probe{Pod: item.Metadata.Name, Node: item.Spec.NodeName}
		for _, a := range item.Status.PodIPs {
			p.Addrs = append(p.Addrs, a.IP)
		}
		if len(p.Addrs) != 2 {
			return nil, target{}, fmt.Errorf("pod %s has %d addresses, want one of each family", p.Pod, len(p.Addrs))
		}
		probes = append(probes, p)
	}
	return probes, target{Addrs: s.Spec.ClusterIPs, NodePort: s.Spec.Ports[0].NodePort}, nil
}

// fetchAll returns a shell command that prints one line for each URL: the answer, or that there was none. It uses
// timeout, because Debian's static busybox crashes with wget's own limit.
func fetchAll(urls []string) []string {
	return []string{"sh", "-c", "for u in " + strings.Join(urls, " ") + `; do timeout 5 wget -q -O - "$u" || echo "nothing from $u"; done`}
}

func url(a netip.Addr, port int) string {
	return "http://" + netip.AddrPortFrom(a, uint16(port)).String() + "/"
}

// podExec runs a command in a probe.
func (c *cluster) podExec(ctx context.Context, p probe, stdin string, args ...string) (string, error) {
	return c.kubectl(ctx, stdin, append([]string{"-n", verifyNamespace, "exec", "-i", p.Pod, "--"}, args...)...)
}

func (c *cluster) verifyPods(ctx context.Context, probes []probe, _ target) error {
	var urls, want []string
	for _, p := range probes {
		for _, a := range p.Addrs {
			urls, want = append(urls, url(a, 8080)), append(want, p.Node)
		}
	}
	for _, from := range probes {
		out, err := c.podExec(ctx, from, "", fetchAll(urls)...)
		if err != nil {
			return err
		}
		if got := strings.Join(strings.Fields(out), " "); got != strings.Join(want, " ") {
			return fmt.Errorf("from the pod on %s: got %q, want %q", from.Node, got, want)
		}
		if err := c.verifyPing(ctx, from, probes); err != nil {
			return err
		}
	}
	return nil
}

// verifyPing sends an ICMP echo from a node to every pod; the pods have no permission to send their own.
func (c *cluster) verifyPing(ctx context.Context, from probe, probes []probe) error {
	for _, p := range probes {
		for _, a := range p.Addrs {
			if _, err := c.inNode(ctx, from.Node, "busybox", "ping", "-c", "1", "-W", "5", a.String()); err != nil {
				return err
			}
		}
	}
	return nil
}

// inNode runs a command in a node, or in the switch with the machine's files, and returns its output.
func (c *cluster) inNode(ctx context.Context, node string, args ...string) (string, error) {
	holder, err := c.holder(node)
	if err != nil {
		return "", err
	}
	cmd, group, err := nodeCommand(ctx, holder, args...)
	if err != nil {
		return "", err
	}
	defer group.Close()
	return output(cmd)
}

// verifyService sends several requests: one of the three endpoints of a Service that does not answer is then met with
// near certainty.
func (c *cluster) verifyService(ctx context.Context, probes []probe, service target) error {
	const times = 6
	nodes := c.nodes()
	var inside, outside []string
	for range times {
		for _, a := range service.Addrs {
			inside = append(inside, url(a, 80))
		}
		for _, n := range nodes {
			outside = append(outside, url(n.Addr4, service.NodePort), url(n.Addr6, service.NodePort))
		}
	}
	for _, from := range probes {
		out, err := c.podExec(ctx, from, "", fetchAll(inside)...)
		if err := everyNode(out, err, len(inside), nodes); err != nil {
			return fmt.Errorf("ClusterIP from the pod on %s: %w", from.Node, err)
		}
		if out, err = c.podExec(ctx, from, "", "busybox", "nslookup", "kubernetes.default.svc.cluster.local"); err != nil || !strings.Contains(out, apiService) {
			return fmt.Errorf("name of the API server from the pod on %s: got %q, %w", from.Node, out, err)
		}
		out, err = c.inNode(ctx, from.Node, append([]string{"busybox"}, fetchAll(inside)...)...)
		if err := everyNode(out, err, len(inside), nodes); err != nil {
			return fmt.Errorf("ClusterIP from %s itself: %w", from.Node, err)
		}
	}
	busybox := c.cache.bin("busybox") // the switch sees the machine's files
	out, err := c.inNode(ctx, "sw", append([]string{busybox}, fetchAll(outside)...)...)
	if err := everyNode(out, err, len(outside), nodes); err != nil {
		return fmt.Errorf("NodePort from outside: %w", err)
	}
	return nil
}

// everyNode returns an error unless each line of out has the name of a node, and want nodes occur.
func everyNode(out string, err error, want int, nodes []node) error {
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, n := range nodes {
		known[n.Name] = true
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, l := range lines {
		if !known[l] {
			return fmt.Errorf("answer %q is not the name of a node", l)
		}
	}
	if len(lines) != want {
		return fmt.Errorf("%d answers, want %d", len(lines), want)
	}
	return nil
}

// denyAll lets nothing into the probes.
const denyAll = `{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "deny", "namespace": "` + verifyNamespace + `"},
	"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}`

// verifyPolicies applies a policy that forbids traffic to the probes and checks that no pod reaches another. Then it
// removes the policy and checks that each pod reaches the others again.
func (c *cluster) verifyPolicies(ctx context.Context, probes []probe, service target) error {
	if err := c.apply(ctx, denyAll); err != nil {
		return err
	}
	err := poll(ctx, pollEvery, policyTimeout, func(ctx context.Context) error {
		for n, from := range probes {
			to := probes[(n+1)%len(probes)]
			for _, a := range to.Addrs {
				out, err := c.podExec(ctx, from, "", fetchAll([]string{url(a, 8080)})...)
				if err == nil && !strings.HasPrefix(out, "nothing") {
					err = fmt.Errorf("the pod on %s reaches the one on %s at %v, which a policy forbids", from.Node, to.Node, a)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := c.kubectl(ctx, "", "-n", verifyNamespace, "delete", "networkpolicy", "deny"); err != nil {
		return err
	}
	return poll(ctx, pollEvery, policyTimeout, func(ctx context.Context) error { return c.verifyPods(ctx, probes, service) })
}

// policyTimeout bounds the time until a policy is enforced, and until its removal has an effect.
const policyTimeout = time.Minute

func (c *cluster) verifyStreams(ctx context.Context, probes []probe, _ target) error {
	for _, p := range probes {
		const said = "through the API server and the kubelet"
		out, err := c.podExec(ctx, p, said, "cat")
		if err != nil || out != said {
			return fmt.Errorf("exec with input on %s: got %q, %w", p.Node, out, err)
		}
		_, err = c.podExec(ctx, p, "", "sh", "-c", "exit 3")
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 3 {
			return fmt.Errorf("exec on %s does not pass exit code 3 on: %w", p.Node, err)
		}
		logs, err := c.kubectl(ctx, "", "-n", verifyNamespace, "logs", p.Pod)
		if err != nil || !strings.Contains(logs, "serving") {
			return fmt.Errorf("logs on %s: got %q, %w", p.Node, logs, err)
		}
		if err := c.verifyForward(ctx, p); err != nil {
			return fmt.Errorf("port-forward to %s: %w", p.Node, err)
		}
	}
	return nil
}

// verifyForward fetches a page through a forwarded port of this machine.
func (c *cluster) verifyForward(ctx context.Context, p probe) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.cache.bin("kubectl"), "--kubeconfig", c.kubeconfig(), "-n", verifyNamespace, "port-forward", "--address=127.0.0.1", p.Pod, ":8080")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	defer cancel()
	line, err := bufio.NewReader(stdout).ReadString('\n') // Forwarding from 127.0.0.1:PORT -> 8080
	if err != nil {
		return err
	}
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return fmt.Errorf("kubectl says %q", line)
	}
	answer, err := http.Get("http://" + fields[2])
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && strings.TrimSpace(string(body)) != p.Node {
		err = fmt.Errorf("got %q, want %q", body, p.Node)
	}
	return err
}
