package service

import "slices"

// external writes the rules for traffic from outside the cluster: node port and load balancer addresses.
func (p *proxy) external(s Service) {
	name := s.portName()
	for _, ip := range s.LoadBalancerIPs {
		p.nat.Chain(ChainServices).Append(comment(name+" loadbalancer IP") + s.at(ip) + "-j " + s.ExternalChain())
	}
	if s.NodePort != 0 {
		p.nat.Chain(ChainNodePorts).Append(comment(name) + s.atNodePort() + "-j " + s.ExternalChain())
	}
	if s.ExternalTrafficPolicyLocal {
		p.externalLocal(s)
		return
	}
	p.nat.Chain(s.ExternalChain()).Append(
		comment("masquerade traffic for "+name+" external destinations")+"-j "+ChainMarkMasq,
		"-j "+s.ServiceChain(),
	)
}

// externalLocal writes the external chain of a service with traffic policy Local. Pods and the node itself may use every
// endpoint. Other clients use only those of this node and keep their source address.
func (p *proxy) externalLocal(s Service) {
	name, chain := s.portName(), p.nat.Chain(s.ExternalChain())
	chain.Append(
		"-s "+p.c.ClusterCIDR.Masked().String()+" "+comment("pod traffic for "+name+" external destinations")+"-j "+s.ServiceChain(),
		comment("masquerade LOCAL traffic for "+name+" external destinations")+"-m addrtype --src-type LOCAL -j "+ChainMarkMasq,
		comment("route LOCAL traffic for "+name+" external destinations")+"-m addrtype --src-type LOCAL -j "+s.ServiceChain(),
	)
	local := s.localEndpoints()
	if len(local) == 0 {
		p.closed(s, comment(name+" has no local endpoints"), "DROP")
		return
	}
	chain.Append("-j " + s.LocalChain())
	p.share(p.nat.Chain(s.LocalChain()), s, local)
}

// localEndpoints returns the endpoints of this node.
func (s Service) localEndpoints() []Endpoint {
	return slices.DeleteFunc(slices.Clone(s.Endpoints), func(e Endpoint) bool { return !e.Local })
}
