package lab

import (
	"net/netip"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Description describes an instance for another process that measures it.
type Description struct {
	Name  plan.Variant
	Facts facts.Facts
	Hosts []HostDescription
	// Ends maps each served path to its ends. Refused maps each other path to the reason why it is not served.
	Ends    map[string]Ends
	Refused map[string]string
	// Shared are the Services with several backends.
	Shared []serviceDescription
}

// serviceDescription describes a Service with several backends.
type serviceDescription struct {
	Name    string
	Address netip.AddrPort
	// Backends are the names of hosts that listen on TargetPort.
	Backends   []string
	TargetPort int
}

// HostDescription describes a host.
type HostDescription struct {
	Name string
	// Node is the name of the host's node; a node has its own name here. It is "" for the switch and the external
	// client.
	Node string
	Addr netip.Addr
	// CPUs are the CPUs of its load threads, Aside those on which its other threads start. An empty list means any
	// CPU.
	CPUs, Aside []int
}

// Describe describes an instance that is up.
func (i *Instance) Describe() Description {
	d := Description{Name: i.Name, Facts: i.lab.Facts(), Ends: map[string]Ends{}, Refused: map[string]string{}}
	add := func(node string, h *Host) {
		d.Hosts = append(d.Hosts, HostDescription{Name: h.Name, Node: node, Addr: h.Addr, CPUs: h.CPUs, Aside: h.aside})
	}
	add("", i.Switch)
	add("", i.External)
	for _, n := range i.Nodes {
		add(n.Name, &n.Host)
		for _, p := range n.Pods {
			add(n.Name, &p.Host)
		}
	}
	for _, p := range plan.Paths {
		ends, err := i.Spec.Ends(p)
		if err != nil {
			d.Refused[p.String()] = err.Error()
			continue
		}
		d.Ends[p.String()] = ends
	}
	for _, svc := range i.Services {
		if svc.Idle || len(svc.Backends) < 2 {
			continue
		}
		d.Shared = append(d.Shared, serviceDescription{
			Name: svc.Name, Address: netip.AddrPortFrom(svc.VIP, uint16(svc.Port)), TargetPort: svc.TargetPort,
			Backends: each.Of(svc.Backends, func(p *Pod) string { return p.Name }),
		})
	}
	return d
}
