package aws

import (
	"errors"
	"net/netip"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/kernel/bpf/awspolicy"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Program loads the programs of the network policy agent and attaches them to all pods. Without policies, the agent is off, as
// by default on EKS. If it is on, the plugin attaches its programs to each new pod, and a pod that no policy selects may send and
// receive everything.
func (vpc) Program(p dataplane.Programming) (dataplane.Programs, error) {
	if p.Policies+p.PoliciesUnselected == 0 {
		return dataplane.Programs{}, nil
	}
	agent, err := awspolicy.Load(p.NS)
	if err != nil {
		return dataplane.Programs{}, err
	}
	err = dataplane.Run(
		func() error { return allowStrangers(agent, p) },
		func() error { return setChurnPolicy(agent, p, false) },
		func() error {
			return each.AtOnce(p.Node.Pods, func(_ int, pod dataplane.Pod) error { return agent.Attach(pod.HostDevice, pod.Addr.Addr()) })
		},
	)
	if err != nil {
		return dataplane.Programs{}, errors.Join(err, agent.Close())
	}
	return dataplane.Programs{
		Closer: agent, LastSeen: agent.LastSeen,
		Deny: func(in bool) error { return setChurnPolicy(agent, p, in) },
		Connect: func(count int) (int, error) {
			return count, agent.Connect(count, func(i int) (from, to netip.AddrPort) { return dataplane.Standing(p.Node, i) })
		},
	}, nil
}

// allowStrangers adds the node, which may always reach its pods, and the peers that the policies but the last allow.
func allowStrangers(agent *awspolicy.Agent, p dataplane.Programming) error {
	if err := agent.Allow(dataplane.Single(p.Node.Addr.Addr()), awspolicy.Ports{Protocol: awspolicy.Any}); err != nil {
		return err
	}
	for i := range p.Policies - 1 {
		if err := agent.Allow(dataplane.Single(p.Stranger(i)), awspolicy.Ports{Protocol: awspolicy.TCP}); err != nil {
			return err
		}
	}
	return nil
}

// setChurnPolicy adds the policy that churn creates, or removes it if in is false: it replaces the port entries of all other
// peers. If no other policy selects the pods, they are then selected or not, too.
func setChurnPolicy(agent *awspolicy.Agent, p dataplane.Programming, in bool) error {
	everyone := dataplane.Everywhere(p.Node.Addr.Addr())
	var denied []uint16
	if p.Policies > 0 {
		denied = append(denied, policy.DeniedPort)
	}
	if in {
		denied = append(denied, policy.ChurnedPort)
	}
	if denied == nil {
		return dataplane.Run(
			func() error { return agent.SetSelected(false) },
			func() error { return agent.Allow(everyone) })
	}
	return dataplane.Run(
		func() error { return agent.Allow(everyone, allBut(denied)...) },
		func() error { return agent.SetSelected(true) })
}

// allBut returns the port entries that allow everything but TCP to some ports, in ascending order. A NetworkPolicy has ranges
// of ports for that (endPort). It cannot name ICMP beside ports; the entry for it is the lab's own, so that ping is measured.
func allBut(denied []uint16) (ports []awspolicy.Ports) {
	start := uint16(1)
	for _, d := range denied {
		if d > start {
			ports = append(ports, awspolicy.Ports{Protocol: awspolicy.TCP, Start: start, End: d - 1})
		}
		start = d + 1
	}
	return append(ports, awspolicy.Ports{Protocol: awspolicy.TCP, Start: start, End: 65535},
		awspolicy.Ports{Protocol: awspolicy.UDP}, awspolicy.Ports{Protocol: awspolicy.SCTP}, awspolicy.Ports{Protocol: awspolicy.ICMP})
}
