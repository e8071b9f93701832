package detect

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	k8stesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/env/kube/api/apitest"
	"github.com/cnibench/cnibench/internal/measure/netstate"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

// cluster is one archive under testdata/clusters: objects.yaml as kubectl shows them; status/NODE, what cilium-dbg says
// there; seen/NODE and pod/NODE, what look sees there; forbidden, lines "verb resource" or "exec".
type cluster struct {
	clients Clients
	seen    []seenAtEnd
}

var listKinds = map[schema.GroupVersionResource]string{
	{Group: "operator.tigera.io", Version: "v1", Resource: "installations"}:          "InstallationList",
	{Group: "crd.projectcalico.org", Version: "v1", Resource: "ippools"}:             "IPPoolList",
	{Group: "crd.projectcalico.org", Version: "v1", Resource: "felixconfigurations"}: "FelixConfigurationList",
	{Group: "projectcalico.org", Version: "v3", Resource: "ippools"}:                 "IPPoolList",
	{Group: "projectcalico.org", Version: "v3", Resource: "felixconfigurations"}:     "FelixConfigurationList",
	{Group: "operator.openshift.io", Version: "v1", Resource: "networks"}:            "NetworkList",
}

func load(t *testing.T, path string) cluster {
	t.Helper()
	return loadWith(t, path)
}

// loadWith loads a cluster in which more is forbidden than its archive says.
func loadWith(t *testing.T, path string, forbidden ...string) cluster {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var typed, custom []runtime.Object
	status := map[string]string{}
	var c cluster
	for _, f := range archive.Files {
		dir, node := filepath.Split(f.Name)
		switch {
		case f.Name == "objects.yaml":
			typed, custom = decode(t, f.Data)
		case f.Name == "forbidden":
			forbidden = append(forbidden, strings.Split(strings.TrimSpace(string(f.Data)), "\n")...)
		case dir == "status/":
			status[node] = string(f.Data)
			typed = append(typed, agentPod(node))
		case dir == "seen/" || dir == "pod/":
			s, err := netstate.Parse(f.Data)
			if err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
			c.seen = append(c.seen, seenAtEnd{Pod: "cnibench/" + dir[:3] + "-" + node, Node: node, Host: dir == "seen/", State: s})
		default:
			t.Fatalf("%s: what is %s?", path, f.Name)
		}
	}
	c.clients = clients(typed, custom, status, forbidden)
	return c
}

func decode(t *testing.T, data []byte) (typed, custom []runtime.Object) {
	t.Helper()
	for _, doc := range strings.Split(string(data), "\n---\n") {
		body, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		if o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
			typed = append(typed, o)
			continue
		}
		var u unstructured.Unstructured
		if err := u.UnmarshalJSON(body); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		custom = append(custom, &u)
	}
	return typed, custom
}

func agentPod(node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cilium-" + node, Labels: map[string]string{"k8s-app": "cilium"}},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func clients(typed, custom []runtime.Object, status map[string]string, forbidden []string) Clients {
	kube := apitest.NewClientset(typed...)
	kube.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &apiversion.Info{GitVersion: "v1.36.3"}
	dyn := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds, custom...)
	for _, line := range forbidden {
		verb, resource, _ := strings.Cut(line, " ")
		refuse := func(a k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: a.GetResource().Resource}, "", errors.New("RBAC"))
		}
		kube.PrependReactor(verb, resource, refuse)
		dyn.PrependReactor(verb, resource, refuse)
	}
	c := Clients{Kube: kube.Client, Dynamic: dyn}
	if len(status) > 0 {
		c.Exec = func(_ context.Context, ref ContainerRef, argv []string) ([]byte, error) {
			if slices.Contains(forbidden, "exec") {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods/exec"}, ref.Pod, errors.New("RBAC"))
			}
			out, ok := status[strings.TrimPrefix(ref.Pod, "cilium-")]
			if !ok || argv[len(argv)-1] != "--verbose" {
				return nil, errors.New("no such agent")
			}
			return []byte(out), nil
		}
	}
	return c
}

// TestClusters: each cluster under testdata is read and judged as its golden file says.
func TestClusters(t *testing.T) {
	paths, err := filepath.Glob("testdata/clusters/*.txtar")
	if err != nil || len(paths) < 20 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			c := load(t, path)
			s, err := Read(t.Context(), c.clients)
			if err != nil {
				t.Fatal(err)
			}
			s.Seen = c.seen
			v := Detect(s)
			b, err := json.MarshalIndent(v, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, "clusters/"+name+".json", append(b, '\n'))
			if _, ok := profile.Lookup(v.Profile); v.Profile != "" && !ok {
				t.Errorf("profile %q is not in the catalogue", v.Profile)
			}
			if v.Title == "" {
				t.Error("the verdict has no words")
			}
			if again := Detect(s); !reflect.DeepEqual(again, v) {
				t.Error("the same snapshot is judged otherwise the second time")
			}
		})
	}
}

// TestCalicoPodDevice: the device that Calico is asked for is compared with that of the pods, and a pod with a veth device is a
// doubt, because the plugin falls back to it.
func TestCalicoPodDevice(t *testing.T) {
	c := load(t, "testdata/clusters/calico-ebpf-dsr.txtar")
	s, err := Read(t.Context(), c.clients)
	if err != nil {
		t.Fatal(err)
	}
	pod := func(kind string) seenAtEnd {
		return seenAtEnd{Pod: "pod-1", Node: "n1", State: netstate.State{Devices: []netstate.Device{{Name: "eth0", Kind: kind, MTU: 1450}}, Routes: []netstate.Route{{To: netip.MustParsePrefix("0.0.0.0/0"), Device: "eth0"}}}}
	}
	host := seenAtEnd{Node: "n1", Host: true, State: netstate.State{Conflists: []netstate.Conflist{
		{File: "10-calico.conflist", Text: `{"name": "k8s-pod-network", "plugins": [{"type": "calico", "device_type": "netkit"}]}`},
	}}}
	for _, x := range []struct {
		name, asked, device string
		conflist            bool
		want                proofResult
	}{
		{"not asked", "", "veth", false, OK},
		{"not asked, and there", "", "netkit", false, mismatch},
		{"asked of the operator, and there", "Netkit", "netkit", false, OK},
		{"asked of the operator, and fallen back", "Netkit", "veth", false, doubtful},
		{"asked of the operator, and another", "Netkit", "macvlan", false, mismatch},
		{"asked of the plugin, and there", "", "netkit", true, OK},
		{"asked of the plugin, and fallen back", "", "veth", true, doubtful},
	} {
		for _, o := range s.Objects {
			if o["kind"] == "Installation" {
				network := o["spec"].(map[string]any)["calicoNetwork"].(map[string]any)
				delete(network, "linuxPodInterfaceType")
				if x.asked != "" {
					network["linuxPodInterfaceType"] = x.asked
				}
			}
		}
		s.Seen = []seenAtEnd{pod(x.device)}
		if x.conflist {
			s.Seen = append(s.Seen, host)
		}
		v := Detect(s)
		proof := podProofs(v, s, s.Seen[0])[0]
		if v.Profile != "calico-ebpf-dsr" || proof.Result != x.want || x.want == doubtful && !strings.Contains(proof.Why, "before 6.7") {
			t.Errorf("%s: %s, %s", x.name, v.Profile, proof)
		}
	}
}

// TestTurnedOff: a CNI's DaemonSet that no node selects does not run. So Cilium's instructions for EKS leave aws-node.
func TestTurnedOff(t *testing.T) {
	c := load(t, "testdata/clusters/cilium-native.txtar")
	s, err := Read(t.Context(), c.clients)
	if err != nil {
		t.Fatal(err)
	}
	for desired, want := range map[int32]string{0: "cilium-native", 3: ""} {
		with := s
		with.Workloads = append(slices.Clone(s.Workloads), workloadSpec{Kind: daemonSetKind, Namespace: "kube-system", Name: "aws-node", Desired: int(desired), Ready: int(desired)})
		if v := Detect(with); v.Profile != want {
			t.Errorf("%d pods of aws-node: %q, want %q (%s)", desired, v.Profile, want, v.Doubts)
		}
	}
}

// TestTunnels: nodes without IPv4 have the tunnel of IPv6 alone, and an egress gateway has Cilium's tunnel beside native routing.
func TestTunnels(t *testing.T) {
	flannel, _ := profile.Lookup("flannel-vxlan")
	calicos, _ := profile.Lookup("calico-vxlan")
	for _, c := range []struct {
		tunnel profile.Tunnel
		device string
		want   proofResult
	}{
		{*flannel.Tunnel, "flannel.1", OK}, {*flannel.Tunnel, "flannel-v6.1", OK}, {*flannel.Tunnel, "flannel-v6.7", OK}, {*flannel.Tunnel, "vxlan-v6.calico", mismatch},
		{*calicos.Tunnel, "vxlan-v6.calico", OK}, {*calicos.Tunnel, "flannel-v6.1", mismatch},
	} {
		seen := seenAtEnd{Node: "n1", Host: true, State: netstate.State{Devices: []netstate.Device{{Name: c.device, Kind: "vxlan", Addresses: []netip.Prefix{netip.MustParsePrefix("fd00::1/128")}}}}}
		if got := tunnelProof(c.tunnel, Verdict{}, seen); got.Result != c.want {
			t.Errorf("%s: %s", c.device, got)
		}
	}
	seen := seenAtEnd{Node: "n1", Host: true, State: netstate.State{Devices: []netstate.Device{{Name: "cilium_vxlan", Kind: "vxlan"}}}}
	for key, want := range map[string]proofResult{"enable-egress-gateway": OK, "enable-ipv4-egress-gateway": OK, "enable-vtep": OK, "enable-bgp-control-plane": mismatch} {
		s := Snapshot{ConfigMaps: []configMap{{Namespace: "kube-system", Name: "cilium-config", Data: map[string]string{key: "true"}}}}
		if got := nodeProofs(Verdict{CNI: cilium, Profile: "cilium-native"}, s, seen)[0]; got.Result != want {
			t.Errorf("%s: %s", key, got)
		}
	}
}

// TestProgramsOfNodes: CNIs whose programs are always there are asked for them by their prefix, and AWS's is not: its policy agent
// may be off.
func TestProgramsOfNodes(t *testing.T) {
	seen := seenAtEnd{Node: "n1", Host: true, State: netstate.State{Programs: &[]netstate.Program{}}}
	for _, c := range []struct{ cni, profile, want string }{
		{cilium, "cilium-native", "cil_*"}, {calico, "calico-ebpf", "cali_*"}, {"aws-vpc", "aws-vpc", ""}, {"aws-vpc", "aws-vpc-branch", ""},
	} {
		got := ""
		for _, p := range nodeProofs(Verdict{CNI: c.cni, Profile: c.profile}, Snapshot{}, seen) {
			if p.What == "BPF programs on devices" {
				got += p.Claimed
			}
		}
		if got != c.want {
			t.Errorf("%s: asked for programs %q, want %q", c.profile, got, c.want)
		}
	}
}

// TestCalledConflist: the conflist that Multus calls counts, whether it is named by its file, by its name, or not at all.
func TestCalledConflist(t *testing.T) {
	list := func(file, text string) conflist {
		c, err := parseConflist(text)
		if err != nil {
			t.Fatal(err)
		}
		c.File = file
		return c
	}
	ptp := list("10-a.conflist", `{"name": "a", "plugins": [{"type": "ptp"}]}`)
	bridge := list("20-b.conflist", `{"name": "b", "plugins": [{"type": "bridge"}]}`)
	for text, want := range map[string]string{
		`{"name": "m", "type": "multus-shim", "clusterNetwork": "/host/etc/cni/net.d/20-b.conflist"}`: "bridge",
		`{"name": "m", "type": "multus-shim", "clusterNetwork": "b"}`:                                 "bridge",
		`{"name": "m", "type": "multus-shim"}`:                                                        "ptp",
		`{"name": "m", "type": "multus", "delegates": [{"type": "macvlan"}]}`:                         "macvlan",
		`{"name": "c", "type": "calico", "clusterNetwork": "b"}`:                                      "calico",
	} {
		if got := calledConflist([]conflist{list("00-m.conf", text), ptp, bridge}).main().Type; got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	alone := list("00-m.conf", `{"name": "m", "type": "multus-shim"}`)
	if got := calledConflist([]conflist{alone}).main().Type; got != "multus-shim" {
		t.Errorf("alone: %s", got)
	}
}

// TestNames: what the golden files come to, at one glance.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"flannel-vxlan": "flannel-vxlan iptables vxlan", "flannel-otherwise": "flannel-vxlan nftables vxlan", "k3s": "flannel-wireguard  wireguard",
		"canal": "canal iptables vxlan", "rke2-canal": "canal iptables vxlan", "calico-vxlan": "calico-vxlan iptables vxlan",
		"calico-ebpf-dsr": "calico-ebpf-dsr  vxlan", "calico-manifest-ipip": "calico-ipip iptables ipip", "calico-underlay": "calico-underlay iptables none",
		"calico-nftables": "calico-nftables nftables vxlan", "calico-wireguard": " iptables vxlan", "cilium-vxlan": "cilium-vxlan iptables vxlan",
		"cilium-fallback": "cilium-native-legacy  none", "cilium-native": "cilium-native  none", "cilium-native-dsr": "cilium-native-dsr  none",
		"cilium-netkit": "cilium-netkit  none", "cilium-differs": "  none", "cilium-old": "cilium-native  none", "kindnet": "kindnetd iptables none", "kindnet-own": "kindnet iptables none", "kindnet-1.0": "kindnet iptables none",
		"bridge": "bridge nftables none", "kube-router-firewall": "bridge nftables none", "kube-router": "kube-router  ipip between subnets", "planted": "ptp  none", "macvlan-multus": "macvlan iptables none", "aws": "aws-vpc iptables none", "eks-1.12": "aws-vpc iptables none", "eks-1.23": "aws-vpc iptables none", "eks-cilium-chained": " iptables none", "aks-cilium": "cilium-native-legacy  none",
		"openshift-4.19": "  geneve", "gke": "  ", "several": "  ", "no-rights": "  ",
	} {
		b, err := os.ReadFile("testdata/clusters/" + name + ".json")
		if err != nil {
			t.Error(err)
			continue
		}
		var v Verdict
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		if got := v.Profile + " " + v.KubeProxy.Mode + " " + v.Encapsulation.Value; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
