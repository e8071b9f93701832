// Package profilefile reads the files that describe the user's own dataplanes.
package profilefile

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/plan/position"
)

// kindProfile is the kind of the files that describe a user's own dataplane.
const kindProfile = "Profile"

// Profile is the content of a profile file, which describes a user's own dataplane. Its tags define the keys: name,
// help, allowed words and default. The reader, the JSON Schema and the reference page are derived from them. A key whose
// tag is adds:"yes" extends the value of a profile file in based-on; any other replaces it.
type Profile struct {
	Name     string `yaml:"name" help:"name in reports and plans: small letters, digits, - and ." need:"yes"`
	Title    string `yaml:"title" help:"name for people"`
	Summary  string `yaml:"summary" help:"what moves the packets, in one line"`
	BasedOn  string `yaml:"based-on" help:"built-in profile, or profile file in the same directory, that this one changes; its self-test applies"`
	Families []int  `yaml:"families" help:"versions of IP that the dataplane supports" usual:"4, 6"`
	CNI      *cni   `yaml:"cni" help:"CNI plugins that connect each pod, in place of those of based-on"`
	Node     node   `yaml:"node" help:"what is changed and what runs on each node"`
	Pod      pod    `yaml:"pod" help:"what is changed in each pod"`
	Expect   Expect `yaml:"expect" help:"what the self-test must find; each key replaces that of based-on"`

	// Dir is the directory of the file, to which its paths are relative.
	Dir string `yaml:"-"`
}

// Path converts a path that the file names to a path relative to the working directory. In the file, paths are relative
// to its directory. Path returns an absolute path unchanged.
func (o Profile) Path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(o.Dir, name)
}

// ChangesPods reports whether the file changes pods by other means than its CNI plugins. It returns false for a nil
// Profile.
func (o *Profile) ChangesPods() bool {
	return o != nil && (!reflect.ValueOf(o.Pod).IsZero() || slices.ContainsFunc(o.Node.BPF, func(b program) bool { return b.Dev == "pods" }))
}

// cni is a network configuration list with the plugins that it names.
type cni struct {
	Bin       string `yaml:"bin" help:"directory with the plugin binaries, relative to this file" need:"yes"`
	Conflist  string `yaml:"conflist" help:"network configuration list: its JSON, or a file relative to this file; variables are replaced" need:"yes"`
	Addresses string `yaml:"addresses" help:"where pods have their addresses: in a range of their node, or on the network of the nodes" words:"node,underlay" usual:"node"`
	Routes    *bool  `yaml:"routes" help:"add a route to the pods of each other node" usual:"true without based-on and with addresses: node"`
	// LeavesDevices means that the plugins do not remove a pod's devices, which end with its namespace.
	LeavesDevices bool `yaml:"leaves-devices" help:"DEL leaves the devices of a pod, which end with its namespace; it must remove all else" usual:"false"`
	Timeout       span `yaml:"timeout" help:"time that one call of the plugins may take" usual:"10s"`
}

// Place has what a profile file adds to the network namespace of a node or a pod. The lab adds it when the dataplane
// and its rules are complete.
type Place struct {
	Sysctls  map[string]string `yaml:"sysctls" adds:"yes" help:"kernel parameters below /proc/sys/net, such as net.ipv4.tcp_ecn: 1"`
	Routes   []route           `yaml:"routes" adds:"yes" help:"routes of the main table"`
	Rules    string            `yaml:"rules" adds:"yes" help:"text for iptables-restore --noflush; variables are replaced"`
	NFT      string            `yaml:"nft" adds:"yes" help:"text for nft -f; variables are replaced"`
	TC       string            `yaml:"tc" adds:"yes" help:"lines for tc -batch; variables are replaced"`
	Offloads map[string]string `yaml:"offloads" adds:"yes" help:"features of a device, as ethtool names them: eth0: rx-gro=off,rx-gro-list=on"`
	BPF      []program         `yaml:"bpf" adds:"yes" help:"BPF programs of object files"`
}

// route is a route that a profile file adds.
type route struct {
	To  string `yaml:"to" help:"destination with prefix length; variables are replaced" need:"yes"`
	Via string `yaml:"via" help:"next hop; variables are replaced"`
	Dev string `yaml:"dev" help:"device" need:"yes"`
	MTU int    `yaml:"mtu" help:"MTU of the route in bytes"`
}

// program is a BPF program in an object file, with the device to which it is attached.
type program struct {
	File    string `yaml:"file" help:"object file, relative to this file" need:"yes"`
	Program string `yaml:"program" help:"name of the program in the file" need:"yes"`
	Dev     string `yaml:"dev" help:"device; pods is the node's end of each pod's device" need:"yes"`
	Hook    string `yaml:"hook" help:"side of the device" words:"ingress,egress" need:"yes"`
}

// node has the changes on each node, and the programs that run there.
type node struct {
	Place
	Prepare  []string `yaml:"prepare" adds:"yes" help:"shell commands that run once, before the pods are connected"`
	Join     []string `yaml:"join" adds:"yes" help:"shell commands that run once for each other node, after the pods are connected"`
	Services []string `yaml:"services" adds:"yes" help:"shell commands that make the Services in place of kube-proxy, after join and at each change; their input is the Services and EndpointSlices in JSON"`
	Daemons  []Daemon `yaml:"daemons" adds:"yes" help:"programs that run as long as the node, started in this order after prepare"`
	Timeout  span     `yaml:"timeout" help:"time that one command may take" usual:"10s"`
}

// Daemon is a program that runs as long as its node.
type Daemon struct {
	Name   string `yaml:"name" help:"name in messages" need:"yes"`
	Run    string `yaml:"run" help:"shell command" need:"yes"`
	On     string `yaml:"on" help:"only node that it runs on, such as node-1"`
	Ready  ready  `yaml:"ready" help:"when it is ready: all that is given must hold"`
	Signal string `yaml:"signal" help:"signal that ends it" words:"TERM,INT,HUP,QUIT,KILL" usual:"TERM"`
	Stop   span   `yaml:"stop" help:"time that it may take to end, then it is killed" usual:"2s"`
}

// ready has the conditions under which a daemon is ready.
type ready struct {
	File    string `yaml:"file" help:"file that exists"`
	Command string `yaml:"command" help:"shell command that exits with 0"`
	Address string `yaml:"address" help:"TCP address that accepts connections, such as 127.0.0.1:2379"`
	Within  span   `yaml:"within" help:"time that it may take" usual:"10s"`
}

// pod has the changes in each pod.
type pod struct {
	Place
	MTU int `yaml:"mtu" help:"MTU of the pods' devices in bytes"`
}

// Expect describes what the self-test must find.
type Expect struct {
	Paths         map[string]string `yaml:"paths" help:"paths that work, with the client that the server sees: any, own, node, tunnel or first-of-range"`
	Datagrams     map[string]string `yaml:"datagrams" help:"the same for UDP, where it differs"`
	Refused       []string          `yaml:"refused" help:"paths that must not work; they are not measured"`
	Attach        *attachment       `yaml:"attach" help:"connection of a pod to its node"`
	Tracked       *bool             `yaml:"tracked" help:"conntrack tracks connections between pods on every node that they cross"`
	Untouched     *bool             `yaml:"untouched" help:"the nodes' iptables rules count no packets between pods"`
	AffinityAfter span              `yaml:"affinity-after" help:"time from which session affinity holds after a client's first connection to a Service; those before may reach another endpoint"`
	Route         *expectedRoute    `yaml:"route" help:"route of a node to the pods of another node"`
	Tunnel        *expectedTunnel   `yaml:"tunnel" help:"device that encapsulates packets between nodes; without it they cross the wire plain"`
	Plain         bool              `yaml:"plain" help:"packets between nodes cross the wire plain, although the profile file in based-on has a tunnel" usual:"false"`
}

// attachment describes how pods are connected to their node.
type attachment struct {
	Bridge   string `yaml:"bridge" help:"node's bridge with the pods' devices"`
	Gateway  string `yaml:"gateway" help:"next hop of the pods' default route" words:"none,first-address,link-local" usual:"none"`
	SameTTL  int    `yaml:"same-ttl" help:"remaining TTL, of 64, at a pod of the same node" usual:"64"`
	CrossTTL int    `yaml:"cross-ttl" help:"remaining TTL, of 64, at a pod of another node" usual:"64"`
	ProxyARP bool   `yaml:"proxy-arp" help:"the node's end of the pod's device answers for any address"`
	OwnMAC   bool   `yaml:"own-mac" help:"frames on the wire have the MAC address of the pod"`
}

// expectedRoute describes the route of a node to the pods of another node.
type expectedRoute struct {
	Dev      string `yaml:"dev" help:"device; that of the tunnel if not given"`
	OnLink   bool   `yaml:"onlink" help:"the next hop is on the link although no route says so"`
	Protocol int    `yaml:"protocol" help:"number of the protocol that made the route; 0 is any"`
}

// expectedTunnel describes the device that encapsulates packets between nodes.
type expectedTunnel struct {
	Dev      string `yaml:"dev" help:"device" need:"yes"`
	Kind     string `yaml:"kind" help:"kind of the device" words:"vxlan,geneve,ipip" need:"yes"`
	Port     int    `yaml:"port" help:"UDP destination port, for vxlan and geneve"`
	VNI      int    `yaml:"vni" help:"network identifier, for vxlan and geneve"`
	Overhead int    `yaml:"overhead" help:"bytes that the headers add to each packet" need:"yes"`
	Tracked  *bool  `yaml:"tracked" help:"conntrack tracks the packets of the tunnel on the nodes at both ends"`
}

// clients are the possible values in Expect.Paths and Expect.Datagrams. They say which client address a server sees.
var clients = []string{"any", "own", "node", "tunnel", "first-of-range"}

// span is a duration whose text form is like 10s.
type span time.Duration

// UnmarshalText parses a duration. It fails unless the duration is above 0 and at most maxSpan.
func (s *span) UnmarshalText(b []byte) error {
	d, err := position.ParseDuration(string(b))
	if err == nil && (d <= 0 || d > maxSpan) {
		err = fmt.Errorf("%s is out of range: want more than 0 and at most %s", d, maxSpan)
	}
	*s = span(d)
	return err
}

// maxSpan is the longest duration in a profile file.
const maxSpan = 5 * time.Minute

// Or returns s, or usual if s is zero.
func (s span) Or(usual time.Duration) time.Duration {
	if s == 0 {
		return usual
	}
	return time.Duration(s)
}

// Default durations of a profile file.
const (
	DefaultTimeout = 10 * time.Second
	DefaultStop    = 2 * time.Second
)

// Supports reports whether the dataplane supports the version of IP family, 4 or 6.
func (o Profile) Supports(family int) bool {
	return len(o.Families) == 0 || slices.Contains(o.Families, family)
}

// variable is a text that profile files use as ${name}, and commands as an environment variable.
type variable struct {
	Name, Help string
	// Peer means that the variable exists only in commands of node.join.
	Peer bool
}

// Variables are all variables of profile files. Where a recipe has the same variable, the name is the same.
var Variables = []variable{
	{Name: "node", Help: "name of the node, such as node-1"},
	{Name: "node-ip", Help: "address of the node on the underlay"},
	{Name: "node-cidr", Help: "range of the node's pods"},
	{Name: "node-subnet", Help: "network of the nodes"},
	{Name: "pod-cidr", Help: "range of all pods"},
	{Name: "gateway", Help: "first address of node-cidr, or the gateway of the nodes with addresses: underlay"},
	{Name: "range-first", Help: "first address of the node's pods"},
	{Name: "range-last", Help: "last address of the node's pods"},
	{Name: "device", Help: "node's device on the underlay"},
	{Name: "mtu", Help: "MTU of the pods in bytes"},
	{Name: "default", Help: "destination of a default route: 0.0.0.0/0 or ::/0"},
	{Name: "nodes", Help: "number of nodes"},
	{Name: "peer", Help: "name of the other node", Peer: true},
	{Name: "peer-ip", Help: "address of the other node on the underlay", Peer: true},
	{Name: "peer-mac", Help: "MAC address of the other node", Peer: true},
	{Name: "peer-cidr", Help: "range of the other node's pods", Peer: true},
}

// Env returns the name of the environment variable that commands use for v, such as NODE_IP.
func (v variable) Env() string { return strings.ToUpper(strings.ReplaceAll(v.Name, "-", "_")) }

// Expand returns text with each ${name} replaced by the value of name. A name without a value stays as it is.
func Expand(text string, values map[string]string) string {
	for name, value := range values {
		text = strings.ReplaceAll(text, "${"+name+"}", value)
	}
	return text
}

// ParseFeatures parses features of a device, such as rx-gro=off,tx-gso-list=on. It fails for a part that is not
// FEATURE=on or FEATURE=off.
func ParseFeatures(text string) (map[string]bool, error) {
	all := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || name == "" || value != "on" && value != "off" {
			return nil, fmt.Errorf("%s is not FEATURE=on or FEATURE=off", strconv.Quote(part))
		}
		all[name] = value == "on"
	}
	return all, nil
}
