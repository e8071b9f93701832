package recipe

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Params are the parameters of a cluster that recipes use. A field with the zero value is unknown.
type Params struct {
	// PodCIDR is the range of all pods.
	PodCIDR netip.Prefix
	// APIServer is the API server's own address, HOST:PORT. A Service's address would not work before a CNI is installed.
	APIServer string
	// MTU is the MTU of the nodes' devices in bytes; 0 leaves it to the CNI.
	MTU int
	// Device is the name of the device by which nodes reach one another.
	Device string
	// NodeSubnet is the subnet of the nodes' own addresses, PodRange the part of this subnet that pods get.
	NodeSubnet, PodRange netip.Prefix
	// Gateway is the router of NodeSubnet.
	Gateway netip.Addr
	// Cluster is the name of the kind cluster.
	Cluster string
	// Nodes are the cluster's nodes.
	Nodes []Node
}

// Node has the parameters that differ between the nodes of a cluster.
type Node struct {
	Name    string
	Address netip.Addr
	PodCIDR netip.Prefix
}

// WithDefaults returns p with defaults for two fields: PodCIDR is 10.244.0.0/16, as in flannel's manifest, and Cluster is
// "kind".
func (p Params) WithDefaults() Params {
	if !p.PodCIDR.IsValid() {
		p.PodCIDR = netip.MustParsePrefix("10.244.0.0/16")
	}
	p.Cluster = cmp.Or(p.Cluster, "kind")
	return p
}

// flags has the parameters of recipes by name, each with a description of the flag that sets it.
var flags = map[string]string{
	"pod-cidr":    "--pod-cidr CIDR, the range of all pods",
	"api-host":    "--api-server HOST:PORT, the API server's own address, not a Service's",
	"api-port":    "--api-server HOST:PORT, the API server's own address, not a Service's",
	"device":      "--device NAME, the nodes' device towards one another",
	"node-subnet": "--node-subnet CIDR, the subnet of the nodes' own addresses",
	"gateway":     "--gateway ADDRESS, the router of the nodes' subnet",
	"range-first": "--pod-range CIDR, the part of the nodes' subnet that pods get",
	"range-last":  "--pod-range CIDR, the part of the nodes' subnet that pods get",
	"node-cidr":   "a podCIDR of every node",
}

// MissingError lists the missing parameters of a recipe.
type MissingError struct {
	Profile, Variant string
	// Flags describe the flags to give, one for each parameter.
	Flags []string
	// Learnable is true if the API server's address is missing. Learn could read it from a cluster.
	Learnable bool
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s for %s: missing: %s", e.Profile, e.Variant, strings.Join(e.Flags, "; "))
}

// kindName matches valid names of kind clusters.
var kindName = pattern.New(`^[a-z0-9.-]+$`)

// Check returns an error that lists every fault of the parameters, nil if there are none.
func (p Params) Check() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if p.APIServer != "" {
		host, port, err := net.SplitHostPort(p.APIServer)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || n == 0 {
			fault("--api-server %s: want HOST:PORT", p.APIServer)
		}
	}
	if p.PodCIDR.IsValid() && !p.PodCIDR.Addr().Is4() {
		fault("--pod-cidr %s: recipes give pods IPv4 addresses, want a network such as 10.244.0.0/16", p.PodCIDR)
	}
	if p.Cluster != "" && !kindName.MatchString(p.Cluster) {
		fault("--cluster %q: want lower-case letters, digits, dots and hyphens", p.Cluster)
	}
	if p.MTU != 0 && (p.MTU < 576 || p.MTU > 65535) {
		fault("--mtu %d: want 576 to 65535 bytes", p.MTU)
	}
	for name, prefix := range map[string]netip.Prefix{"--pod-cidr": p.PodCIDR, "--node-subnet": p.NodeSubnet, "--pod-range": p.PodRange} {
		if prefix.IsValid() && prefix != prefix.Masked() {
			fault("%s %s: the address has bits beyond the prefix, want %s", name, prefix, prefix.Masked())
		}
	}
	inside := func(name string, a netip.Addr) {
		if a.IsValid() && p.NodeSubnet.IsValid() && !p.NodeSubnet.Contains(a) {
			fault("%s %s is not in the nodes' subnet %s", name, a, p.NodeSubnet)
		}
	}
	inside("--gateway", p.Gateway)
	if p.PodRange.IsValid() {
		inside("--pod-range", p.PodRange.Addr())
		if p.NodeSubnet.IsValid() && p.PodRange.Bits() <= p.NodeSubnet.Bits() {
			fault("--pod-range %s leaves no address of %s for the nodes", p.PodRange, p.NodeSubnet)
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// values returns the known parameters by the names that recipes use. pod-mtu, the pods' MTU, leaves room for the encapsulation
// of profile q.
func (p Params) values(q profile.Profile) map[string]string {
	v := map[string]string{}
	put := func(name string, known bool, text string) {
		if known {
			v[name] = text
		}
	}
	put("pod-cidr", p.PodCIDR.IsValid(), p.PodCIDR.String())
	put("node-subnet", p.NodeSubnet.IsValid(), p.NodeSubnet.String())
	put("gateway", p.Gateway.IsValid(), p.Gateway.String())
	put("device", p.Device != "", p.Device)
	put("cluster", p.Cluster != "", p.Cluster)
	if host, port, err := net.SplitHostPort(p.APIServer); err == nil {
		v["api-host"], v["api-port"] = host, port
	}
	family := api.UnderlayFamily(each.Of(p.Nodes, func(n Node) string { return n.Address.String() }))
	v["pod-mtu"] = strconv.Itoa(cmp.Or(p.MTU, ethernetMTU) - q.ReservedOn(family))
	if p.MTU != 0 {
		v["mtu"], v["given-pod-mtu"] = strconv.Itoa(p.MTU), v["pod-mtu"]
	}
	return v
}

// ethernetMTU is the default MTU of the nodes' devices.
const ethernetMTU = 1500

// Placeholders for values of nodes that are unknown. They are not valid addresses, so that plugins refuse them.
const (
	anyNode       = "NODE"
	podCIDROfNode = "PODCIDR-OF-NODE"
	firstOfNode   = "FIRST-OF-NODE"
	lastOfNode    = "LAST-OF-NODE"
)

// nodesOrAny returns the cluster's nodes, or one node called anyNode if they are unknown.
func (p Params) nodesOrAny() []Node {
	if len(p.Nodes) > 0 {
		return p.Nodes
	}
	return []Node{{Name: anyNode}}
}

// nodeValues returns the parameters of the node at index i, by the names that recipes use.
func (p Params) nodeValues(i int) map[string]string {
	nodes := p.nodesOrAny()
	v := map[string]string{"node": nodes[i].Name}
	first, last, shared := rangePart(p.PodRange, i, len(nodes))
	if len(p.Nodes) == 0 {
		v["node-cidr"] = podCIDROfNode
		if shared {
			v["range-first"], v["range-last"] = firstOfNode, lastOfNode
		}
		return v
	}
	if nodes[i].PodCIDR.IsValid() {
		v["node-cidr"] = nodes[i].PodCIDR.String()
	}
	if shared {
		v["range-first"], v["range-last"] = first.String(), last.String()
	}
	return v
}

// rangePart divides the IPv4 range r into n equal parts and returns the first and last address of part i. It omits the first
// and last address of r, because they may be the subnet's network and broadcast address. ok is false if a part has fewer
// than four addresses, or if r is not an IPv4 range.
func rangePart(r netip.Prefix, i, n int) (first, last netip.Addr, ok bool) {
	if !r.IsValid() || !r.Addr().Is4() || n < 1 {
		return first, last, false
	}
	masked := r.Masked().Addr().As4()
	base, size := uint64(binary.BigEndian.Uint32(masked[:])), uint64(1)<<(32-r.Bits())
	each := size / uint64(n)
	if each < 4 {
		return first, last, false
	}
	from, to := base+uint64(i)*each, base+uint64(i+1)*each-1
	if i == 0 {
		from++
	}
	if i == n-1 {
		to = base + size - 2
	}
	return ipv4Addr(from), ipv4Addr(to), true
}

func ipv4Addr(n uint64) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, uint32(n))))
}

// mergeSets merges --set expressions into the values of the first chart that has values. These values lose their comments.
// It fails if no chart has values.
func (r *Rendered) mergeSets(expressions []string) error {
	if len(expressions) == 0 {
		return nil
	}
	for i, a := range r.Actions {
		if a.Kind == installChart && a.Text != "" {
			text, err := valuesWithSets(a.Text, expressions)
			r.Actions[i].Text = text
			return err
		}
	}
	with := r.Recipe.variantNames(func(v Variant) bool { return v.hasStep(installChart) })
	advice := ""
	if len(with) > 0 {
		advice = ": choose --for " + strings.Join(with, " or --for ")
	}
	return fmt.Errorf("--set is for the values of a chart, and %s for %s has none%s", r.Recipe.Profile, r.Variant.Name, advice)
}

// valuesWithSets returns the YAML document text with --set expressions merged into it. An expression with null removes its
// key. The error lists every faulty expression.
func valuesWithSets(text string, expressions []string) (string, error) {
	var values any
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		return "", err
	}
	given := map[string]any{}
	var errs []error
	for _, e := range expressions {
		if err := strvals.ParseInto(e, given); err != nil {
			errs = append(errs, fmt.Errorf("--set %s: %w", e, err))
		}
	}
	merged, err := yaml.Marshal(mergedValue(values, given))
	return string(merged), errors.Join(append(errs, err)...)
}
