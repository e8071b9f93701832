package service

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/each"
)

// Objects returns Services and their EndpointSlices as Kubernetes has them, in JSON: an object with the lists
// "services" and "endpoints". Services that differ only in their protocol become ports of one Service.
func Objects(all []Service) ([]byte, error) {
	var out struct {
		Services  []object `json:"services"`
		Endpoints []object `json:"endpoints"`
	}
	for len(all) > 0 {
		first := all[0]
		same := func(s Service) bool { return s.Namespace == first.Namespace && s.Name == first.Name }
		ports := each.Where(all, same)
		out.Services = append(out.Services, kubernetesService(ports))
		if len(first.Endpoints) > 0 {
			out.Endpoints = append(out.Endpoints, endpointSlice(ports))
		}
		all = slices.DeleteFunc(slices.Clone(all), same)
	}
	return json.Marshal(out)
}

// object is an object of Kubernetes, or a part of one.
type object map[string]any

func (s Service) metadata(more object) object {
	more["name"], more["namespace"] = s.Name, s.Namespace
	return more
}

// kubernetesService returns the Kubernetes Service with these ports, which have its name and namespace.
func kubernetesService(ports []Service) object {
	s, kind := ports[0], "ClusterIP"
	var list []object
	for _, p := range ports {
		port := object{"name": p.PortName, "protocol": strings.ToUpper(p.Protocol), "port": p.Port}
		if len(p.Endpoints) > 0 {
			port["targetPort"] = p.Endpoints[0].Addr.Port()
		}
		if p.NodePort != 0 {
			kind, port["nodePort"] = "NodePort", p.NodePort
		}
		list = append(list, port)
	}
	spec, status := object{"clusterIP": s.VIP, "clusterIPs": []any{s.VIP}, "ports": list}, object{}
	if len(s.LoadBalancerIPs) > 0 {
		var ingress []object
		for _, ip := range s.LoadBalancerIPs {
			ingress = append(ingress, object{"ip": ip})
		}
		kind, status["loadBalancer"] = "LoadBalancer", object{"ingress": ingress}
	}
	if s.ExternalTrafficPolicyLocal {
		spec["externalTrafficPolicy"] = "Local"
	}
	if s.SessionAffinity {
		spec["sessionAffinity"] = "ClientIP"
		spec["sessionAffinityConfig"] = object{"clientIP": object{"timeoutSeconds": int(affinityTime.Seconds())}}
	}
	spec["type"] = kind
	return object{"apiVersion": "v1", "kind": "Service", "metadata": s.metadata(object{}), "spec": spec, "status": status}
}

// endpointSlice returns the EndpointSlice of a Service with these ports; all endpoints are ready.
func endpointSlice(ports []Service) object {
	s, kind := ports[0], "IPv4"
	if s.VIP.Is6() {
		kind = "IPv6"
	}
	var endpoints, list []object
	for _, e := range s.Endpoints {
		endpoints = append(endpoints, object{"addresses": []any{e.Addr.Addr()}, "conditions": object{"ready": true, "serving": true, "terminating": false}})
	}
	for _, p := range ports {
		list = append(list, object{"name": p.PortName, "protocol": strings.ToUpper(p.Protocol), "port": p.Endpoints[0].Addr.Port()})
	}
	return object{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": kind, "endpoints": endpoints, "ports": list,
		"metadata": s.metadata(object{"labels": object{"kubernetes.io/service-name": s.Name}}),
	}
}
