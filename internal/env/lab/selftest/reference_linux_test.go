package selftest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	vishvananda "github.com/vishvananda/netns"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan"
)

// referenceVersion is the version of the reference plugins that the built-in dataplanes are compared with.
const referenceVersion = "v1.9.1"

// referenceConfig are the plugins' own settings by profile: what the profile's recipe gives them, without hairpin.
var referenceConfig = map[string]map[string]any{
	"bridge":  {"bridge": "cni0", "isGateway": true},
	"ptp":     {},
	"macvlan": {"master": nic, "mode": "bridge"},
	"ipvlan":  {"master": nic, "mode": "l2"},
}

// referencePlugins returns a directory with the reference plugins. It installs them on first use by the go command.
func referencePlugins(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no cache directory for the reference plugins: %v", err)
	}
	dir := filepath.Join(cache, "cnibench", "cni-plugins-"+referenceVersion)
	args := []string{"install"}
	for _, name := range []string{"main/bridge", "main/ptp", "main/macvlan", "main/ipvlan", "ipam/host-local"} {
		if _, err := os.Stat(filepath.Join(dir, filepath.Base(name))); err != nil {
			args = append(args, "github.com/containernetworking/plugins/plugins/"+name+"@"+referenceVersion)
		}
	}
	if len(args) > 1 {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-trimpath")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("cannot install the reference CNI plugins %s: %v\n%s", referenceVersion, err, out)
		}
	}
	return dir
}

// referencePod is a pod that a reference plugin connects.
type referencePod struct {
	pod    *lab.Pod
	plugin string
	config map[string]any
	env    []string
	run    *netns.Starter
}

// call runs a CNI command in the namespace of the pod's node.
func (p referencePod) call(command string) ([]byte, error) {
	config, err := json.Marshal(p.config)
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(p.plugin)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(config), &stdout, &stderr
	cmd.Env = append(slices.Clone(p.env), "CNI_COMMAND="+command)
	if err := p.run.Start(p.pod.Node.NS, cmd); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("%s of %s: %w: %s%s", command, p.pod.Name, err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

// newReferencePod describes the pod to the plugin of the same name as the profile. host-local has one address to give: the
// pod's.
func newReferencePod(t *testing.T, inst *lab.Instance, pod *lab.Pod, dir, data string) referencePod {
	t.Helper()
	subnet, everywhere := pod.Node.PodCIDR, "0.0.0.0/0"
	if !subnet.IsValid() {
		subnet = underlay(t, inst)
	}
	if pod.Addr.Is6() {
		everywhere = "::/0"
	}
	ipam := map[string]any{
		"type": "host-local", "dataDir": data,
		"ranges": [][]map[string]string{{{"subnet": subnet.String(), "rangeStart": pod.Addr.String(), "rangeEnd": pod.Addr.String()}}},
	}
	if pod.Node.PodCIDR.IsValid() {
		ipam["routes"] = []map[string]string{{"dst": everywhere}}
	}
	config := map[string]any{"cniVersion": "1.0.0", "name": "reference", "type": inst.Profile.Name, "mtu": inst.Spec.Lab.MTU, "ipam": ipam}
	for key, value := range referenceConfig[inst.Profile.Name] {
		config[key] = value
	}
	starter := netns.NewStarter()
	t.Cleanup(starter.Close)
	return referencePod{
		pod: pod, plugin: filepath.Join(dir, inst.Profile.Name), config: config, run: starter,
		env: []string{
			"CNI_CONTAINERID=" + strings.ReplaceAll(pod.Name, "/", "-"), fmt.Sprintf("CNI_NETNS=/proc/%d/fd/%d", os.Getpid(), pod.NS.FD()),
			"CNI_IFNAME=" + nic, "CNI_PATH=" + dir, "PATH=" + os.Getenv("PATH"),
		},
	}
}

// underlay is the nodes' own network.
func underlay(t *testing.T, inst *lab.Instance) netip.Prefix {
	t.Helper()
	d, err := link.DeviceIn(inst.Nodes[0].NS, nic)
	if err != nil || len(d.Addresses) == 0 {
		t.Fatalf("the node's NIC: %+v, %v", d, err)
	}
	return d.Addresses[0].Masked()
}

// removeDevice removes a device and what depends on it.
func removeDevice(t *testing.T, ns *netns.NS, name string) {
	t.Helper()
	h, err := netlink.NewHandleAt(vishvananda.NsHandle(ns.FD()))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l, err := h.LinkByName(name)
	if err == nil {
		err = h.LinkDel(l)
	}
	if err != nil {
		t.Fatalf("remove %s: %v", name, err)
	}
}

// notifications are the sysctls of a pod's device that plugins set.
var notifications = []string{"net/ipv4/conf/" + nic + "/arp_notify", "net/ipv6/conf/" + nic + "/ndisc_notify"}

// connection describes what connects a pod: its device, addresses and routes, the node's end and the routes to it. Random
// names are replaced.
func connection(t *testing.T, pod *lab.Pod) string {
	t.Helper()
	var lines []string
	add := func(where string, ns *netns.NS, names ...string) {
		err := eachDevice(ns, func(_ *link.Handle, d link.Device) error {
			if slices.Contains(names, d.Name) {
				slices.SortFunc(d.Addresses, netip.Prefix.Compare)
				lines = append(lines, fmt.Sprintf("%s device %s: %s MTU %d up %v master %q addresses %v", where, d.Name, d.Kind, d.MTU, d.Up, d.Master, d.Addresses))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		list, err := routesIn(ns)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			if slices.Contains(names, r.Dev) {
				r.Protocol = 0 // who made it
				lines = append(lines, fmt.Sprintf("%s route %+v", where, r))
			}
		}
	}
	add("pod", pod.NS, nic)
	add("node", pod.Node.NS, "cni0", pod.HostDevice)
	slices.Sort(lines)
	for _, name := range notifications {
		value, err := netns.GetSysctl(pod.NS, name)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, name+" "+value)
	}
	text := strings.Join(lines, "\n")
	if pod.HostDevice != "" {
		text = strings.ReplaceAll(text, pod.HostDevice, "VETH")
	}
	return text
}

// attach replaces the pod's connection by that of the plugin.
func (p referencePod) attach(t *testing.T) {
	t.Helper()
	out, err := p.call("ADD")
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Interfaces []struct{ Name, Mac, Sandbox string }
	}
	if err := json.Unmarshal(out, &result); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	p.pod.HostDevice = ""
	for _, d := range result.Interfaces {
		if d.Sandbox == "" && d.Name != "cni0" {
			p.pod.HostDevice = d.Name
		} else if d.Sandbox != "" {
			p.pod.MAC = d.Mac
		}
	}
	p.config["prevResult"] = json.RawMessage(out)
	if _, err := p.call("CHECK"); err != nil {
		t.Error(err)
	}
}

// TestReferencePlugins holds the self-test's expectations, and what the built-in dataplanes make, against the reference
// CNI plugins: they connect the pods of a lab in place of the built-in ones (ADD, CHECK, DEL).
func TestReferencePlugins(t *testing.T) {
	t.Parallel()
	dir := referencePlugins(t)
	for name := range referenceConfig {
		for _, family := range []int{4, lab.IPv6} {
			t.Run(fmt.Sprintf("%s in IPv%d", name, family), func(t *testing.T) {
				t.Parallel()
				inst := raised(t, plan.Lab{NIC: "wire", Family: family}, name)
				data := t.TempDir()
				var pods []referencePod
				builtIn := map[string]string{}
				for _, n := range inst.Nodes {
					for _, pod := range n.Pods {
						builtIn[pod.Name] = connection(t, pod)
					}
				}
				for _, n := range inst.Nodes {
					for _, pod := range n.Pods {
						removeDevice(t, pod.NS, nic)
						pods = append(pods, newReferencePod(t, inst, pod, dir, data))
					}
					if name == "bridge" {
						removeDevice(t, n.NS, "cni0")
					}
				}
				for _, p := range pods {
					p.attach(t)
				}
				for _, p := range pods {
					if got := connection(t, p.pod); got != builtIn[p.pod.Name] {
						t.Errorf("%s: the built-in dataplane makes\n%s\nand the plugin\n%s", p.pod.Name, builtIn[p.pod.Name], got)
					}
				}
				segmentationOff(t, inst)
				for _, a := range Run(context.Background(), inst) {
					if !a.OK {
						t.Error(a)
					}
				}
				for _, p := range pods {
					if _, err := p.call("DEL"); err != nil {
						t.Error(err)
					}
					if _, err := link.DeviceIn(p.pod.NS, nic); err == nil {
						t.Errorf("%s still has %s after DEL", p.pod.Name, nic)
					}
				}
			})
		}
	}
}

// segmentationOff repeats for new devices what the lab does to have packets on the wire.
func segmentationOff(t *testing.T, inst *lab.Instance) {
	t.Helper()
	for _, n := range inst.Nodes {
		for _, h := range append([]*lab.Host{&n.Host}, hostsOf(n.Pods)...) {
			at, err := link.Open(h.NS)
			if err == nil {
				_, err = at.SegmentationOff(nil)
				at.Close()
			}
			if err != nil {
				t.Fatalf("%s: %v", h.Name, err)
			}
		}
	}
}

func hostsOf(pods []*lab.Pod) []*lab.Host {
	var hosts []*lab.Host
	for _, p := range pods {
		hosts = append(hosts, &p.Host)
	}
	return hosts
}
