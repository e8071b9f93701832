package selftest

import (
	"maps"

	"github.com/cnibench/cnibench/internal/plan"
)

// nameIn6 are the devices that are called otherwise in IPv6.
var nameIn6 = map[string]string{"flannel.1": "flannel-v6.1", "vxlan.calico": "vxlan-v6.calico", "flannel-wg": "flannel-wg-v6"}

// inIPv6 is what is to be found of a profile in a lab of IPv6: the same, but for names and for how a node chooses the
// address that it sends from.
func (x expectation) inIPv6() expectation {
	x.ipv6 = true
	// On a node without kube-proxy it is kubelet's rule about the loopback that makes the kernel track connections, and in
	// IPv6 there is none.
	x.trackedBetween = false
	if x.tunnel != nil {
		t := *x.tunnel
		t.device = renamed(t.device)
		if t.sealed {
			t.port++ // on a dual-stack node there is one for each version
		}
		x.tunnel = &t
	}
	if x.remote != nil {
		r := *x.remote
		r.device = renamed(r.device)
		x.remote = &r
	}
	if x.tunnel == nil || x.attach == nil || x.attach.gateway != linkLocal {
		return x
	}
	// The node's end of a Calico pod's link has no address of its own. Among the node's others IPv6 takes the one that has
	// most in common with the destination (RFC 6724, rule 8), and that is the tunnel's.
	x.served = maps.Clone(x.served)
	for _, p := range []plan.Path{hostPodSame, hostSvcLocal, extPortLocal, podSelf} {
		if who, ok := x.served[p]; ok && who == clientNode {
			x.served[p] = tunnelEnd
		}
	}
	if x.bpf != nil {
		// The routes by which the node's own datagrams come to a Service name the address to send from.
		x.datagrams = maps.Clone(x.datagrams)
		x.datagrams[hostSvcLocal] = clientNode
		x.datagrams[podSelf] = tunnelEnd
	}
	return x
}

func renamed(device string) string {
	if name, ok := nameIn6[device]; ok {
		return name
	}
	return device
}

// setting is the name of a setting that both versions of IP have.
func (x expectation) setting(in4, in6 string) string {
	if x.ipv6 {
		return in6
	}
	return in4
}
