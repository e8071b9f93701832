package lab

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/cnibench/cnibench/internal/env/lab/service"
	"github.com/cnibench/cnibench/internal/kernel/ipvs"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// serveIPVS makes the cluster addresses of all Services a node's own, and virtual servers of them and of the node ports.
// What is there already is changed to what is wanted.
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
		if err := at.AddDummy(service.IPVSDevice); err != nil {
			return withoutIPVS(err)
		}
	}
	for _, a := range service.IPVSAddresses(c) {
		if !slices.Contains(held, a) {
			if err := at.AddAddress(service.IPVSDevice, a); err != nil {
				return err
			}
		}
	}
	return withoutIPVS(ipvs.Apply(ns, service.IPVSServers(c, node)))
}

// localAddresses are those of the node: of all its devices but the loopback, and of the one for Services, nil if there is
// none.
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

// withoutIPVS adds the way out to the refusal of a kernel that cannot.
func withoutIPVS(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return advice.With(err, "modprobe ip_vs ip_vs_rr dummy, or let kube-proxy be in another mode: --service-proxy iptables")
	}
	return err
}
