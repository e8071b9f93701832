package service

import (
	"net/netip"
	"testing"
)

// TestObjects: a Service of two protocols is one object with two ports, and one without endpoints has no slice.
func TestObjects(t *testing.T) {
	web := Service{
		Namespace: "default", Name: "web", PortName: "tcp", Protocol: "tcp", VIP: netip.MustParseAddr("10.96.0.1"), Port: 80, NodePort: 30080,
		ExternalTrafficPolicyLocal: true, SessionAffinity: true,
		Endpoints: []Endpoint{{Addr: netip.MustParseAddrPort("10.244.1.2:8080"), Local: true}},
	}
	udp := web
	udp.PortName, udp.Protocol = "udp", "udp"
	none := Service{Namespace: "default", Name: "none", PortName: "tcp", Protocol: "tcp", VIP: netip.MustParseAddr("10.96.0.2"), Port: 80, LoadBalancerIPs: []netip.Addr{netip.MustParseAddr("203.0.113.1")}}
	got, err := Objects([]Service{web, none, udp})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"services":[` +
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"default"},"spec":{"clusterIP":"10.96.0.1","clusterIPs":["10.96.0.1"],` +
		`"externalTrafficPolicy":"Local","ports":[{"name":"tcp","nodePort":30080,"port":80,"protocol":"TCP","targetPort":8080},` +
		`{"name":"udp","nodePort":30080,"port":80,"protocol":"UDP","targetPort":8080}],"sessionAffinity":"ClientIP",` +
		`"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":10800}},"type":"NodePort"},"status":{}},` +
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"none","namespace":"default"},"spec":{"clusterIP":"10.96.0.2","clusterIPs":["10.96.0.2"],` +
		`"ports":[{"name":"tcp","port":80,"protocol":"TCP"}],"type":"LoadBalancer"},"status":{"loadBalancer":{"ingress":[{"ip":"203.0.113.1"}]}}}],` +
		`"endpoints":[{"addressType":"IPv4","apiVersion":"discovery.k8s.io/v1",` +
		`"endpoints":[{"addresses":["10.244.1.2"],"conditions":{"ready":true,"serving":true,"terminating":false}}],"kind":"EndpointSlice",` +
		`"metadata":{"labels":{"kubernetes.io/service-name":"web"},"name":"web","namespace":"default"},` +
		`"ports":[{"name":"tcp","port":8080,"protocol":"TCP"},{"name":"udp","port":8080,"protocol":"UDP"}]}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
