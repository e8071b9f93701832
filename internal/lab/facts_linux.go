package lab

import (
	"strconv"

	"github.com/cnibench/cnibench/internal/facts"
	"github.com/cnibench/cnibench/internal/kernel/sysctl"
)

// Facts that only a lab has, besides those of package facts.
const (
	FactNodes    = "lab.nodes"     // nodes of each profile
	FactPods     = "lab.pods"      // pods of each node
	FactServices = "lab.services"  // Services besides the measured ones, which stand in the middle of them
	FactLineRate = "lab.line_rate" // of each node's NIC in bit/s, or "unshaped"
	FactCgroup   = "lab.cgroup"    // "v2", or why processes of a node are in no group
	FactSteering = "lab.rps"       // is receive work steered to the node's CPUs
	FactIPSet    = "ipset"
	FactProxy    = "lab.service_proxy" // mode of kube-proxy where the profile does not fix it
	// FactSendBuffer is the least, default and largest send buffer of a TCP socket in bytes.
	FactSendBuffer = "lab.tcp_wmem"
	// FactDefaultCongestion is what a socket gets in the lab that does not choose.
	FactDefaultCongestion = "tcp.congestion.default"
)

// Facts returns the conditions that the lab was raised under.
func (l *Lab) Facts() facts.Facts {
	c := l.options.Lab
	f := facts.Facts{
		facts.Placement: l.place.String(),
		facts.NIC:       c.NIC,
		facts.MTU:       strconv.Itoa(c.MTU),
		FactNodes:       strconv.Itoa(c.Nodes),
		FactPods:        strconv.Itoa(c.PodsPerNode),
		FactServices:    strconv.Itoa(c.Services),
		FactLineRate:    "unshaped",
		FactCgroup:      "v2",
		FactSteering:    "off",
		FactProxy:       c.ServiceProxy,
		FactSendBuffer:  sendBuffer,
	}
	if c.LineRate > 0 {
		f[FactLineRate] = strconv.FormatFloat(c.LineRate, 'f', 0, 64)
	}
	if l.groups.failed != nil {
		f[FactCgroup] = "none: " + l.groups.failed.Error()
	}
	if l.place.mode == "split" {
		f[FactSteering] = "to the node's CPUs"
		l.mu.Lock()
		if l.unsteered != nil {
			f[FactSteering] = "off: " + l.unsteered.Error()
		}
		l.mu.Unlock()
	}
	if tool, err := l.tools.iptables(); err == nil {
		f[facts.Iptables] = tool.Name()
	}
	if tool, err := l.tools.ipset(); err == nil {
		f[FactIPSet] = tool.Version
	}
	for _, i := range l.instances {
		if i.Err != nil {
			continue
		}
		if cc, err := sysctl.Get(i.Nodes[0].NS, "net/ipv4/tcp_congestion_control"); err == nil {
			f[FactDefaultCongestion] = cc
			break
		}
	}
	return f
}

// notSteered remembers that receive work stays where it arrives.
func (l *Lab) notSteered(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsteered == nil {
		l.unsteered = err
		l.log.Debug("receive work is not steered", "error", err)
	}
}
