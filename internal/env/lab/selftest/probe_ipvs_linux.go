package selftest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/ipvs"
	"github.com/cnibench/cnibench/internal/kernel/link"
)

// probeProxyIPVS checks that each node has the addresses and virtual servers of all Services. iptables must have no
// chains of kube-proxy's iptables mode.
func probeProxyIPVS(ctx context.Context, s *scene) finding {
	addresses, ports, nodePorts := 0, 0, 0
	for _, svc := range s.inst.Spec.Services {
		protocols := 1
		if svc.UDP {
			protocols = 2
		}
		addresses++
		ports += protocols
		if svc.NodePort != 0 {
			nodePorts += protocols
		}
	}
	text := func(addresses, beyond, chains int) string {
		return fmt.Sprintf("%d addresses, %d virtual servers there, %d at each address of the node, %d chains", addresses, ports, beyond, chains)
	}
	return comparePlaces(text(addresses, nodePorts, 0), s.inst.Nodes, nodeName, func(n *lab.Node) (string, error) {
		held, own, err := nodeAddresses(n)
		if err != nil {
			return "", err
		}
		servers, err := ipvs.List(n.NS)
		if err != nil {
			return "", err
		}
		chains, err := s.countServiceChains(ctx, n)
		if err != nil {
			return "", err
		}
		at := func(list []netip.Addr) int {
			return len(slices.DeleteFunc(slices.Clone(servers), func(v ipvs.Server) bool { return !slices.Contains(list, v.Addr.Addr()) }))
		}
		if got := at(held); got != ports {
			return fmt.Sprintf("%d virtual servers at the addresses of Services", got), nil
		}
		if got := at(own); got != nodePorts*len(own) {
			return fmt.Sprintf("%d virtual servers at %d addresses of the node", got, len(own)), nil
		}
		return text(len(held), nodePorts, chains), nil
	})
}

// nodeAddresses returns the addresses of kube-proxy's device and the addresses of the node's other devices.
func nodeAddresses(n *lab.Node) (held, own []netip.Addr, err error) {
	err = eachDevice(n.NS, func(_ *link.Handle, d link.Device) error {
		for _, a := range d.Addresses {
			switch d.Name {
			case link.Loopback:
			case service.IPVSDevice:
				held = append(held, a.Addr())
			default:
				own = append(own, a.Addr())
			}
		}
		return nil
	})
	return held, own, err
}

// probeIPVSCounter requires that the first node's virtual server of RemoteService has counted connections.
func probeIPVSCounter(_ context.Context, s *scene) finding {
	const want = "connections"
	svc := s.inst.Service(lab.RemoteService)
	servers, err := ipvs.List(s.inst.Nodes[0].NS)
	if err != nil {
		return failedFinding(want, err)
	}
	for _, v := range servers {
		if v.Addr == netip.AddrPortFrom(svc.VIP, uint16(svc.Port)) && v.Connections > 0 {
			return finding{want: want, got: want}
		}
	}
	return finding{want: want, got: "nothing"}
}
