package kube

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
)

var (
	threeNodes = placement{client: "n1", server: "n2", third: "n3"}
	twoNodes   = placement{client: "n1", server: "n2", why: "two nodes alone can take pods"}
	oneNode    = placement{client: "n1", why: "one node alone can take pods"}
)

// cni is a variant of the bare node, or of any CNI.
func cni(isBare bool) plan.Variant {
	if isBare {
		return plan.VariantOf(profileHost)
	}
	return plan.VariantOf("cni")
}

// TestEveryPathIsWhereItSays checks the two ends of every path against its own words.
func TestEveryPathIsWhereItSays(t *testing.T) {
	for _, isBare := range []bool{false, true} {
		for _, p := range plan.Paths {
			e, why := threeNodes.ends(Options{}, plan.Single(cni(isBare), p))
			if p.To == plan.External {
				if why == "" {
					t.Errorf("%s has ends %+v", p, e)
				}
				continue
			}
			if why != "" {
				t.Errorf("%s is not served: %s", p, why)
				continue
			}
			from, to := threeNodes.nodeOf(e.client), threeNodes.nodeOf(e.servers[0])
			far := p.Locality == plan.CrossNode || p.Locality == plan.Remote || p.To == plan.LoadBalancer
			entered := from
			if p.From == plan.External {
				entered = threeNodes.client
				if from != "n3" {
					t.Errorf("%s: the client is on %s", p, from)
				}
			}
			if (entered != to) != far {
				t.Errorf("%s leads from %s to %s", p, entered, to)
			}
			hostEnds := []struct {
				role plan.Role
				pod  string
			}{{p.From, e.client}, {p.To, e.servers[0]}}
			for _, end := range hostEnds {
				inHost := isBare || end.role == plan.Host || end.role == plan.External
				if isHostPod(end.pod) != inHost {
					t.Errorf("%s, bare %t: %s is at %s", p, isBare, end.role, end.pod)
				}
			}
			spec := serviceSpec{Name: e.service}
			if (e.service != "") != p.ByService() || spec.NodePort() != (p.To == plan.NodePort) || spec.Balancer() != (p.To == plan.LoadBalancer) {
				t.Errorf("%s leads to Service %q", p, e.service)
			}
			if (p.To == plan.Self) != (e.client == e.servers[0] && !isBare && p.To != plan.Host) && !isBare {
				t.Errorf("%s leads from %s to %s", p, e.client, e.servers[0])
			}
		}
	}
}

func TestNotServed(t *testing.T) {
	path := func(s string) plan.Path {
		p, err := plan.ParsePath(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct {
		at   placement
		o    Options
		path string
		why  string
	}{
		{oneNode, Options{}, "pod-to-pod/cross-node", "one node alone"},
		{oneNode, Options{}, "pod-to-pod/same-node", ""},
		{oneNode, Options{}, "pod-to-self", ""},
		{oneNode, Options{}, "external-to-nodeport/local", "needs a third node: one node alone"},
		{twoNodes, Options{}, "external-to-nodeport/local", "needs a third node: two nodes alone"},
		{threeNodes, Options{TrafficPolicy: "Local"}, "external-to-nodeport/local", ""},
		{threeNodes, Options{TrafficPolicy: "Local"}, "external-to-nodeport/remote", "externalTrafficPolicy Local"},
		{threeNodes, Options{TrafficPolicy: "Local"}, "pod-to-service/remote", ""},
		{threeNodes, Options{TrafficPolicy: "Local"}, "external-to-loadbalancer", ""}, // a balancer asks which nodes have endpoints
		{twoNodes, Options{}, "external-to-loadbalancer", "needs a third node: two nodes alone"},
		{oneNode, Options{}, "external-to-loadbalancer", "one node alone"},
		{threeNodes, Options{}, "pod-to-external", "no agent runs outside"},
	} {
		_, why := c.at.ends(c.o, plan.Single(plan.VariantOf("cni"), path(c.path)))
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%s on %+v: %q, want %q", c.path, c.at, why, c.why)
		}
	}
}

// TestSeveral wants the backends spread over the nodes, each once, the first where the path leads.
func TestSeveral(t *testing.T) {
	local := plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Local}
	remote := plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}
	balanced := plan.Path{From: plan.External, To: plan.LoadBalancer}
	for _, n := range []int{2, 3, 7, plan.MaxBackends} {
		for _, p := range []plan.Path{local, remote, balanced} {
			e, why := threeNodes.ends(Options{}, plan.Route{Variant: cni(false), Path: p, Servers: n})
			pods := e.servers
			if why != "" || len(pods) != n || e.service == "" {
				t.Fatalf("%d backends of %s: %+v, %s", n, p, e, why)
			}
			per := map[string]int{}
			for _, name := range pods {
				per[threeNodes.nodeOf(name)]++
			}
			sorted := slices.Compact(slices.Sorted(slices.Values(pods)))
			if len(sorted) != n || per["n1"]-per["n2"] > 1 || per["n2"]-per["n1"] > 1 || slices.Contains(pods, podClient) {
				t.Errorf("%d backends of %s: %v", n, p, pods)
			}
			if first := threeNodes.nodeOf(pods[0]); (first == "n2") != (p != local) {
				t.Errorf("%d backends of %s: the first is on %s", n, p, first)
			}
		}
	}
	if e, why := threeNodes.ends(Options{}, plan.Route{Variant: cni(true), Path: local, Servers: 2}); why != "" || !slices.Equal(e.servers, []string{hostClient, hostServer}) {
		t.Errorf("two bare backends: %+v, %s", e, why)
	}
	if _, why := threeNodes.ends(Options{}, plan.Route{Variant: cni(true), Path: local, Servers: 3}); !strings.Contains(why, "share the addresses of 2 nodes") {
		t.Errorf("three bare backends: %q", why)
	}
	if _, why := threeNodes.ends(Options{TrafficPolicy: "Local"}, plan.Route{Variant: cni(false), Path: plan.Path{From: plan.External, To: plan.NodePort, Locality: plan.Local}, Servers: 2}); !strings.Contains(why, "Local") {
		t.Errorf("backends elsewhere under the policy Local: %q", why)
	}
	if _, why := oneNode.ends(Options{}, plan.Route{Variant: cni(false), Path: remote, Servers: 2}); why == "" {
		t.Error("remote backends on one node")
	}
}

// TestArrange wants what the paths need, and nothing else.
func TestArrange(t *testing.T) {
	o := Options{Paths: []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}}}
	l := newLayout(o, threeNodes)
	if names := podNames(l); !slices.Equal(names, []string{podClient, podServer}) || len(l.services) != 0 || l.hasHostPod() {
		t.Errorf("one path needs %v and %v", names, l.services)
	}
	o.Host = true
	if names := podNames(newLayout(o, threeNodes)); !slices.Equal(names, []string{podClient, podServer, hostClient, hostServer}) {
		t.Errorf("with the profile host it needs %v", names)
	}
	o = Options{Paths: plan.Paths, Backends: []int{2, 5}, Host: true}
	l = newLayout(o, threeNodes)
	for _, p := range plan.Paths {
		for _, isBare := range []bool{false, true} {
			e, why := threeNodes.ends(o, plan.Single(cni(isBare), p))
			if why != "" {
				continue
			}
			i := slices.IndexFunc(l.pods, func(s *podSpec) bool { return s.Name == e.servers[0] })
			if i < 0 || !slices.Contains(podNames(l), e.client) {
				t.Errorf("%s lacks a pod of %+v", p, e)
				continue
			}
			if e.service != "" && (!slices.Contains(l.pods[i].Behind, e.service) || !slices.Contains(l.services, serviceSpec{e.service, l.pods[i].Host()})) {
				t.Errorf("%s: %+v is not behind its Service", p, l.pods[i])
			}
		}
	}
	if l = newLayout(Options{Paths: plan.Paths}, oneNode); len(l.pods) == 0 {
		t.Error("nothing is left on one node")
	}
	for _, s := range l.pods {
		if s.Node != "n1" {
			t.Errorf("pod %s is to be on node %q", s.Name, s.Node)
		}
	}
}

func podNames(l layout) []string {
	var all []string
	for _, s := range l.pods {
		all = append(all, s.Name)
	}
	return all
}
