package own

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/cnibench/cnibench/internal/kernel/child"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan/profilefile"
)

// Device is the name of a pod's device inside the pod.
const Device = "eth0"

// Pod is a pod that the plugins connect.
type Pod struct {
	// Name is, for example, "node-1/pod-2".
	Name string
	NS   *netns.NS
}

// attached is the result of ADD for a pod.
type attached struct {
	Addr netip.Prefix
	MAC  net.HardwareAddr
	// Devices are the node's devices that the plugins name.
	Devices []string
}

// plugins are the plugins of a node's network configuration.
type plugins struct {
	cni  *libcni.CNIConfig
	list *libcni.NetworkConfigList
}

// cache is the directory of the CNI library's own files, which is private to the node.
const cache = "/run/cnibench-cni"

// openPlugins reads the network configuration of the node.
func (n *Node) openPlugins() (*plugins, error) {
	bin, err := filepath.Abs(n.Profile.Path(n.Profile.CNI.Bin))
	if err != nil {
		return nil, err
	}
	list, err := libcni.NetworkConfFromBytes([]byte(profilefile.Expand(n.Profile.CNI.Conflist, n.Values)))
	if err != nil {
		return nil, fmt.Errorf("conflist: %w", err)
	}
	return &plugins{cni: libcni.NewCNIConfigWithCacheDir([]string{bin}, cache, &executor{node: n}), list: list}, nil
}

// runtimeConf returns the parameters by which kubelet would describe the pod to the plugins.
func (p Pod) runtimeConf() *libcni.RuntimeConf {
	name := strings.ReplaceAll(p.Name, "/", "-")
	return &libcni.RuntimeConf{
		ContainerID: name, NetNS: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), p.NS.FD()), IfName: Device,
		Args: [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "default"}, {"K8S_POD_NAME", name}, {"K8S_POD_INFRA_CONTAINER_ID", name}},
	}
}

// Try connects a pod, lets CHECK confirm it, and disconnects it.
func (n *Node) Try(ctx context.Context, p Pod) error {
	if _, err := n.Add(ctx, p); err != nil {
		return err
	}
	return errors.Join(n.Check(ctx, p), n.Del(ctx, p))
}

// Add connects a pod by ADD. It fails if ADD exceeds the deadline of ctx or the timeout of the profile file. After a
// successful ADD, Close disconnects the pod unless Del did.
func (n *Node) Add(ctx context.Context, p Pod) (at attached, err error) {
	err = n.callPlugins(ctx, "ADD", p, func(bounded context.Context) error {
		got, err := n.plugins.cni.AddNetworkList(bounded, n.plugins.list, p.runtimeConf())
		if err != nil {
			return err
		}
		at, err = n.readResult(got)
		return err
	})
	if err == nil {
		n.pods = append(n.pods, p)
	}
	return at, err
}

// readResult returns the part of a result that the lab needs. It fails without an address of the lab's family.
func (n *Node) readResult(got types.Result) (at attached, err error) {
	if got == nil {
		return at, errors.New("the plugins returned no result")
	}
	result, err := types100.GetResult(got)
	if err != nil {
		return at, err
	}
	for _, i := range result.Interfaces {
		if i.Sandbox == "" {
			at.Devices = append(at.Devices, i.Name)
		} else if i.Name == Device {
			at.MAC, _ = net.ParseMAC(i.Mac) // the lab reads it from the device
		}
	}
	for _, ip := range result.IPs {
		addr, ok := netip.AddrFromSlice(ip.Address.IP)
		if addr = addr.Unmap(); !ok || addr.Is6() != n.IPv6 {
			continue
		}
		bits, _ := ip.Address.Mask.Size()
		at.Addr = netip.PrefixFrom(addr, bits)
		return at, nil
	}
	return at, fmt.Errorf("the result has no IPv%d address: the conflist needs an ipam plugin", map[bool]int{false: 4, true: 6}[n.IPv6])
}

// Check asks the plugins whether a pod is still connected as ADD left it. It returns nil for a configuration whose CNI
// version has no CHECK.
func (n *Node) Check(ctx context.Context, p Pod) error {
	if known, err := version.GreaterThanOrEqualTo(n.plugins.list.CNIVersion, "0.4.0"); err != nil || !known {
		return nil
	}
	return n.callPlugins(ctx, "CHECK", p, func(bounded context.Context) error {
		return n.plugins.cni.CheckNetworkList(bounded, n.plugins.list, p.runtimeConf())
	})
}

// Del disconnects a pod by DEL. Close does not repeat it, even if it fails.
func (n *Node) Del(ctx context.Context, p Pod) error {
	n.pods = slices.DeleteFunc(n.pods, func(other Pod) bool { return other == p })
	return n.callPlugins(ctx, "DEL", p, func(bounded context.Context) error {
		return n.plugins.cni.DelNetworkList(bounded, n.plugins.list, p.runtimeConf())
	})
}

// callPlugins runs do, which calls the plugins. It ends do at the timeout of the profile file or the deadline of
// ctx, whichever is earlier. what names the call in errors, for example "ADD".
func (n *Node) callPlugins(ctx context.Context, what string, p Pod, do func(context.Context) error) error {
	limit := n.Profile.CNI.Timeout.Or(profilefile.DefaultTimeout)
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end).Round(time.Millisecond))
	}
	bounded, stop := context.WithTimeout(ctx, limit)
	defer stop()
	err := n.room.Do(func() error { return do(bounded) })
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return context.Cause(ctx)
	case bounded.Err() != nil:
		return fmt.Errorf("%s of %s did not end within %s; its processes were killed (%w)", what, p.Name, limit, err)
	}
	return fmt.Errorf("%s of %s: %w", what, p.Name, err)
}

// executor runs plugins for the CNI library, with the namespace, cgroup and private files of the node.
type executor struct {
	version.PluginDecoder
	invoke.RawExec
	node *Node
}

// maxOutput bounds what a plugin may write to stdout, in bytes.
const maxOutput = 1 << 20

// ExecPlugin runs a plugin until it ends, and returns its stdout. It fails if the plugin fails, writes more than
// maxOutput, or writes invalid JSON.
func (e *executor) ExecPlugin(ctx context.Context, path string, stdin []byte, environ []string) ([]byte, error) {
	cmd := e.node.programCommand(ctx, path)
	cmd.Env = append(environ, "TMPDIR="+child.Temporary)
	var said child.Tail
	out := &child.Bounded{Limit: maxOutput, Burst: func() { _ = child.Signal(cmd, syscall.SIGKILL) }}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), out, &said
	err := cmd.Run()
	_ = child.Signal(cmd, syscall.SIGKILL) // processes that the plugin left running
	if out.Over() {
		return nil, fmt.Errorf("it wrote more than %d bytes to stdout", maxOutput)
	}
	if err != nil {
		var told types.Error
		if json.Unmarshal(out.Bytes(), &told) == nil && told.Msg != "" {
			return nil, fmt.Errorf("%w%s", &told, outputSuffix(&said))
		}
		return nil, fmt.Errorf("%w%s%s", err, outputSuffix(&said), stdoutSuffix(out.Bytes()))
	}
	if written := bytes.TrimSpace(out.Bytes()); len(written) > 0 && !json.Valid(written) {
		return nil, fmt.Errorf("it wrote what is not JSON: %q", clip(string(written)))
	}
	return out.Bytes(), nil
}

// stdoutSuffix returns out, the stdout of a failed plugin, as the end of an error message. It returns "" if out is
// empty.
func stdoutSuffix(out []byte) string {
	if text := strings.Join(strings.Fields(clip(string(out))), " "); text != "" {
		return ": stdout: " + text
	}
	return ""
}

// clip shortens a text to 200 bytes for a message.
func clip(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
