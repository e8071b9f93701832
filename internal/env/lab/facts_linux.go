package lab

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/cnibench/cnibench/internal/kernel/conntrack"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Facts of a lab, in addition to package facts.
const (
	factNodes      = "lab.nodes"      // nodes of each profile
	factPods       = "lab.pods"       // pods of each node
	factFamily     = "lab.family"     // version of IP that nodes, pods and Services have
	factServices   = "lab.services"   // Services in addition to the measured ones
	factEndpoints  = "lab.endpoints"  // endpoints of each of these Services
	factPosition   = "lab.position"   // position of the measured Services among the other Services
	factLineRate   = "lab.line_rate"  // line rate of each node's NIC in bit/s, or "unshaped"
	factDelay      = "lab.delay"      // delay of packets from a node, for tests
	factPlants     = "lab.plants"     // faults of nodes and links, planted for tests
	factLoss       = "lab.loss"       // share of the frames from a node that are lost, for tests
	factCgroup     = "lab.cgroup"     // "v2", or why nodes have no cgroups
	factSteering   = "lab.rps"        // whether receive work is steered to the node's CPUs
	factPodMTU     = "lab.pod_mtu"    // set if it differs from the profile's own
	factGRO        = "lab.gro"        // which received packets nodes merge
	factBigTCP     = "lab.big_tcp"    // whether super-packets may be longer than 64 KiB
	factEncryption = "lab.encryption" // encryption of packets between nodes, in profiles that support it
	factIPSet      = "ipset"
	// factBackend is why the lab chose iptables-legacy; not set if it did not.
	factBackend = "lab.iptables.reason"
	// factPolicies is the number of NetworkPolicies that select every pod, and of those that select none.
	factPolicies = "lab.policies"
	// factTrafficPolicy is the externalTrafficPolicy of the measured Services.
	factTrafficPolicy = "lab.traffic_policy"
	// factConntrack is yes or no: whether connections between pods are tracked.
	factConntrack = "lab.conntrack"
	// factFlowtable is the number of packets after which a connection bypasses the rules of nodes by a flowtable. 0
	// means never. It is for nodes whose CNI has a flowtable.
	factFlowtable = "lab.flowtable"
	// factBridgeNetfilter says whether netfilter sees bridged packets.
	factBridgeNetfilter = "lab.bridge_netfilter"
	// factConnections is how many other connections each node tracks.
	factConnections = "lab.connections"

	factChurn = "lab.churn"         // changes during the trials
	factProxy = "lab.service_proxy" // mode of kube-proxy if the profile does not determine it
	// factSendBuffer and factReceiveBuffer are the least, default and largest buffers of a TCP socket in bytes.
	factSendBuffer    = "lab.tcp_wmem"
	factReceiveBuffer = "lab.tcp_rmem"
	// factDefaultCongestion is the default congestion control of sockets in the lab.
	factDefaultCongestion = "tcp.congestion.default"
)

// Facts returns the conditions of the lab, and the tools and settings that it uses.
func (l *Lab) Facts() facts.Facts {
	c := l.options.Lab
	f := facts.Facts{
		facts.Placement: l.place.String(),
		facts.NIC:       string(c.NIC),
		facts.MTU:       strconv.Itoa(c.MTU),
		factFamily:      strconv.Itoa(c.Family),
		factNodes:       strconv.Itoa(c.Nodes),
		factPods:        strconv.Itoa(c.PodsPerNode),
		factServices:    strconv.Itoa(c.Services),
		factEndpoints:   strconv.Itoa(c.Endpoints),
		factPosition:    string(c.Position),
		factLineRate:    "unshaped",
		factCgroup:      "v2",
		factSteering:    "off",
		factGRO:         string(c.GRO),
		factBigTCP:      string(c.BigTCP),
		factProxy:       string(c.ServiceProxy),
		factChurn:       c.Churn.String(),
		factSendBuffer:  sendBuffer,

		factReceiveBuffer: receiveBuffer,
		factPolicies:      fmt.Sprintf("%d, and %d that select no pod", c.Policies, c.PoliciesUnselected),
		factTrafficPolicy: string(c.TrafficPolicy),
		factConnections:   strconv.Itoa(c.Connections),
		factConntrack:     string(cmp.Or(c.Conntrack, condition.ConntrackOn)),
		factFlowtable:     strconv.Itoa(c.Flowtable),

		factBridgeNetfilter: string(cmp.Or(c.BridgeNetfilter, condition.BridgeNetfilterOn)),
		factEncryption:      string(cmp.Or(c.Encryption, condition.EncryptionOff)),
	}
	if c.NIC == plan.NICIdeal {
		f[factGRO] = "as the kernel has it"
	}
	if c.LineRate > 0 {
		f[factLineRate] = strconv.FormatFloat(c.LineRate, 'f', 0, 64)
	}
	if c.PodMTU > 0 {
		f[factPodMTU] = strconv.Itoa(c.PodMTU)
	}
	if c.Delay > 0 {
		f[factDelay] = c.Delay.String()
	}
	if len(c.Plants) > 0 {
		s, _ := plan.SettingOf("plant")
		f[factPlants] = s.Text(plan.Plan{Lab: c})
	}
	if c.Loss > 0 {
		f[factLoss] = plan.FormatShare(c.Loss)
	}
	if l.groups.failed != nil {
		f[factCgroup] = "none: " + l.groups.failed.Error()
	}
	if l.place.mode == condition.PlacementSplit && c.RPS != condition.RPSOff {
		f[factSteering] = "to the node's CPUs"
		l.mu.Lock()
		if l.unsteered != nil {
			f[factSteering] = "off: " + l.unsteered.Error()
		}
		l.mu.Unlock()
	}
	if tool, err := l.tools.iptables(); err == nil {
		f[facts.Iptables] = tool.Name()
		if l.tools.why != "" {
			f[factBackend] = l.tools.why
		}
	}
	if tool, err := l.tools.ipset(); err == nil {
		f[factIPSet] = tool.Version
	}
	for _, i := range l.Instances() {
		if i.Err != nil {
			continue
		}
		if cc, err := netns.GetSysctl(i.Nodes[0].NS, "net/ipv4/tcp_congestion_control"); err == nil {
			f[factDefaultCongestion] = cc
			break
		}
	}
	return f
}

// recordSteeringError records the first reason why receive work is not steered.
func (l *Lab) recordSteeringError(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsteered == nil {
		l.unsteered = err
	}
}

// Drops returns the drop counters of all devices that a route may cross. These are the devices of its two ends, of
// all nodes and of the switch.
func (l *Lab) Drops(r plan.Route) ([]sample.Drop, error) {
	inst, err := l.raisedInstance(r.Variant)
	if err != nil {
		return nil, err
	}
	ends, err := pairEnds(inst.Spec, r.Path, r.Pair)
	if err != nil {
		return nil, err
	}
	var all []sample.Drop
	for _, h := range inst.Crossed(ends) {
		drops, err := h.readDrops()
		if err != nil {
			return nil, err
		}
		all = append(all, drops...)
	}
	return all, nil
}

// Crossed returns the client's host, all nodes, the switch and the server's host, each namespace once.
func (i *Instance) Crossed(e Ends) []*Host {
	hosts := []*Host{i.Host(e.Client)}
	for _, n := range i.Nodes {
		hosts = append(hosts, &n.Host)
	}
	return distinctHosts(append(hosts, i.Switch, i.Host(e.Server)))
}

func (h *Host) readDrops() ([]sample.Drop, error) {
	drops, err := link.At(h.NS, (*link.Handle).Drops)
	if err != nil {
		return nil, fmt.Errorf("read what %s drops: %w", h.Name, err)
	}
	if s, err := conntrack.ReadStats(h.NS); err == nil { // a host without connection tracking refuses no connections
		drops = append(drops, sample.Drop{Kind: sample.DropInsert, Packets: s.InsertFailed}, sample.Drop{Kind: sample.Clash, Packets: s.Clashes})
	}
	for i := range drops {
		drops[i].Host = h.Name
	}
	return drops, nil
}

// Full returns how often the tables of a profile's nodes were full since the lab was raised. It counts dropped
// packets or forgotten connections, by a description of the table. An error may come with a partial result. LRU
// maps of BPF programs are never full, because they evict the oldest entry, as in the products.
func (l *Lab) Full(profile plan.Variant) (map[string]uint64, error) {
	inst, err := l.raisedInstance(profile)
	if err != nil {
		return nil, err
	}
	full := map[string]uint64{}
	return full, errors.Join(each.Of(inst.Nodes, func(n *Node) error { return n.countFullTables(full) })...)
}

// countFullTables adds the node's counters of full tables to a map; see Full.
func (n *Node) countFullTables(to map[string]uint64) error {
	drops, err := n.programs.Drops()
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	for _, d := range drops {
		if d.Full {
			to[n.Name+": BPF programs: "+d.Reason()] += d.Packets
		}
	}
	s, err := conntrack.ReadStats(n.NS)
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	for what, count := range map[string]uint64{
		"packets of new connections dropped (nf_conntrack_max)":         s.Refused(),
		"connections forgotten to make room for new (nf_conntrack_max)": s.EarlyDrop,
		"packets dropped, too many connections in a bucket":             s.ChainTooLong,
	} {
		to[n.Name+": conntrack table: "+what] = count
	}
	return nil
}
