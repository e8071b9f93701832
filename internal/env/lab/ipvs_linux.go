package lab

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/kernel/ipvs"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// serveIPVS gives a node the cluster addresses of all Services, and virtual servers for these addresses and the node
// ports. It updates existing servers and removes those of other Services, but not their addresses.
func serveIPVS(ns *netns.NS, c service.Config) error {
	at, err := link.Open(ns)
	if err != nil {
		return err
	}
	defer at.Close()
	node, held, err := localAddresses(at)
	if err != nil {
		return err
	}
	if held == nil {
		if err := at.Add(link.Dummy{Name: service.IPVSDevice}); err != nil {
			return withIPVSAdvice(err)
		}
	}
	for _, a := range service.IPVSAddresses(c) {
		if !slices.Contains(held, a) {
			if err := at.Add(link.Address{Dev: service.IPVSDevice, Addr: a}); err != nil {
				return err
			}
		}
	}
	return withIPVSAdvice(ipvs.Apply(ns, service.IPVSServers(c, node)))
}

// localAddresses returns the addresses of a node. held has the addresses of kube-proxy's device for Services, nil without
// that device. node has the addresses of all other devices except loopback.
func localAddresses(at *link.Handle) (node []netip.Addr, held []netip.Prefix, err error) {
	devices, err := at.Devices()
	for _, d := range devices {
		switch d.Name {
		case link.Loopback:
		case service.IPVSDevice:
			held = append(make([]netip.Prefix, 0, 1), d.Addresses...)
		default:
			for _, a := range d.Addresses {
				node = append(node, a.Addr())
			}
		}
	}
	return node, held, err
}

// withIPVSAdvice returns err, with advice if the kernel does not support IPVS.
func withIPVSAdvice(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return advice.With(err, "modprobe ip_vs ip_vs_rr dummy, or use another mode: --service-proxy iptables")
	}
	return err
}
