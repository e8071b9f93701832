package service

import (
	"crypto/sha256"
	"encoding/base32"
)

// Names of the chains that do not depend on a service.
const (
	ChainServices         = "KUBE-SERVICES"
	ChainExternalServices = "KUBE-EXTERNAL-SERVICES"
	ChainNodePorts        = "KUBE-NODEPORTS"
	ChainPostrouting      = "KUBE-POSTROUTING"
	ChainMarkMasq         = "KUBE-MARK-MASQ"
	ChainForward          = "KUBE-FORWARD"
	ChainProxyFirewall    = "KUBE-PROXY-FIREWALL"
	ChainFirewall         = "KUBE-FIREWALL"
	chainProxyCanary      = "KUBE-PROXY-CANARY"
	chainKubeletCanary    = "KUBE-KUBELET-CANARY"
	chainHint             = "KUBE-IPTABLES-HINT"
)

// MasqueradeMark is the bit in the packet mark for packets that KUBE-POSTROUTING masquerades.
const MasqueradeMark = "0x4000"

// affinitySeconds is Kubernetes' default time for which a client keeps its endpoint.
const affinitySeconds = "10800"

// portName returns namespace/name:port as kube-proxy writes and hashes it, without the colon if the port has no name.
func (s Service) portName() string {
	if s.PortName == "" {
		return s.Namespace + "/" + s.Name
	}
	return s.Namespace + "/" + s.Name + ":" + s.PortName
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base32.StdEncoding.EncodeToString(sum[:])[:16]
}

// ServiceChain is the chain that distributes connections to all endpoints: KUBE-SVC-x.
func (s Service) ServiceChain() string { return "KUBE-SVC-" + s.hash() }

// LocalChain is the same for the endpoints of this node: KUBE-SVL-x.
func (s Service) LocalChain() string { return "KUBE-SVL-" + s.hash() }

// ExternalChain is the chain for traffic to a node port or a load balancer address: KUBE-EXT-x.
func (s Service) ExternalChain() string { return "KUBE-EXT-" + s.hash() }

// EndpointChain is the chain with the DNAT to e: KUBE-SEP-y.
func (s Service) EndpointChain(e Endpoint) string {
	return "KUBE-SEP-" + hash(s.portName()+s.Protocol+e.Addr.String())
}

func (s Service) hash() string { return hash(s.portName() + s.Protocol) }
