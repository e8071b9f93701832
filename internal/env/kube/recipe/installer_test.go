package recipe

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	k8stesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/env/kube/api/apitest"
	"github.com/cnibench/cnibench/internal/env/kube/recipe/residue"
	"github.com/cnibench/cnibench/internal/measure/netstate"
)

// standing is an Installer over a cluster of these objects.
func standing(objects ...runtime.Object) (*Installer, *apitest.Clientset) {
	client := apitest.NewClientset(objects...)
	definitions := map[schema.GroupVersionResource]string{definitionsAt: "CustomResourceDefinitionList"}
	return &Installer{
		Options: Options{Timeout: 50 * time.Millisecond, Say: func(string, ...any) {}},
		client:  client.Client, dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), definitions),
	}, client
}

func node(name, kernel, cidr string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDR: cidr},
		Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{KernelVersion: kernel},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "fd00::1"}, {Type: corev1.NodeInternalIP, Address: "192.0.2.1"}},
		},
	}
}

func daemonSet(namespace, name string, pods int32) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: pods}}
}

func configMap(name, key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}, Data: map[string]string{key: text}}
}

// TestLearn: each parameter comes from where the cluster says it, and what is given is not asked.
func TestLearn(t *testing.T) {
	port := int32(6443)
	endpoints := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", Labels: map[string]string{"kubernetes.io/service-name": "kubernetes"}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.9"}}}, Ports: []discoveryv1.EndpointPort{{Port: &port}},
	}
	kubeadm := configMap("kubeadm-config", "ClusterConfiguration", "networking: {podSubnet: 'fd00::/48,10.96.0.0/14'}\ncontrolPlaneEndpoint: api.example:443\n")
	proxy := configMap("kube-proxy", "config.conf", "kind: KubeProxyConfiguration\nclusterCIDR: 10.42.0.0/16\nmode: nftables\n")
	for _, c := range []struct {
		name     string
		objects  []runtime.Object
		given    Params
		cidr     string
		api      string
		nodeCIDR string
	}{
		{"kubeadm says both", []runtime.Object{kubeadm, endpoints, proxy}, Params{}, "10.96.0.0/14", "api.example:443", ""},
		{"kube-proxy and the Service", []runtime.Object{endpoints, proxy}, Params{}, "10.42.0.0/16", "192.0.2.9:6443", ""},
		{"unknown", nil, Params{}, "", "", ""},
		{"given", []runtime.Object{kubeadm}, Params{PodCIDR: netip.MustParsePrefix("10.0.0.0/8"), APIServer: "x:1"}, "10.0.0.0/8", "x:1", ""},
		{"nodes", []runtime.Object{node("b", "6.1", "10.1.0.0/24"), node("a", "6.1", "10.2.0.0/24")}, Params{}, "", "", "10.2.0.0/24"},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, _ := standing(c.objects...)
			i.Params = c.given
			p, err := i.Learn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := p.PodCIDR; got.IsValid() && got.String() != c.cidr || !got.IsValid() && c.cidr != "" {
				t.Errorf("pods %v, want %q", got, c.cidr)
			}
			if p.APIServer != c.api {
				t.Errorf("API server %q, want %q", p.APIServer, c.api)
			}
			if c.nodeCIDR != "" && (p.Nodes[0].Name != "a" || p.Nodes[0].PodCIDR.String() != c.nodeCIDR || p.Nodes[0].Address.String() != "192.0.2.1") {
				t.Errorf("nodes %+v", p.Nodes)
			}
		})
	}
}

// TestBadConfigMap: a ConfigMap that cannot be read is named, and one that may not be read is no error.
func TestBadConfigMap(t *testing.T) {
	i, client := standing(configMap("kubeadm-config", "ClusterConfiguration", "{"))
	if _, err := i.Learn(t.Context()); err == nil || !strings.Contains(err.Error(), "kubeadm-config") {
		t.Errorf("%v", err)
	}
	client.PrependReactor("get", "configmaps", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", errors.New("no"))
	})
	if _, err := i.Learn(t.Context()); err != nil {
		t.Errorf("%v", err)
	}
}

// TestSurvey: what is installed, whether kube-proxy runs, and what is left by who is gone.
func TestSurvey(t *testing.T) {
	worn := node("a", "6.1", "10.1.0.0/24")
	worn.Annotations = map[string]string{"flannel.alpha.coreos.com/backend-type": "vxlan", "projectcalico.org/IPv4Address": "x"}
	stopped := daemonSet("kube-system", "kube-proxy", 3)
	stopped.Spec.Template.Spec.NodeSelector = map[string]string{proxySelector: "true"}
	static := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy-a"}}
	for _, c := range []struct {
		name    string
		objects []runtime.Object
		cnis    []string
		proxy   bool
		left    []string
	}{
		{"flannel", []runtime.Object{worn, daemonSet("kube-flannel", "kube-flannel-ds", 1), daemonSet("kube-system", "kube-proxy", 1)}, []string{residue.Flannel}, true, []string{residue.Calico}},
		{"canal is both", []runtime.Object{worn, daemonSet("kube-system", "rke2-canal", 1), static}, []string{residue.Canal}, true, nil},
		{"nothing runs", []runtime.Object{worn, stopped}, nil, false, []string{residue.Calico, residue.Flannel}},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, _ := standing(c.objects...)
			s, err := i.Survey(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, l := range s.Left {
				left = append(left, l.Owner)
			}
			slices.Sort(left)
			left = slices.Compact(left)
			if got := slices.Sorted(maps.Keys(s.CNIs)); !slices.Equal(got, c.cnis) || s.Proxy != c.proxy || !slices.Equal(left, c.left) {
				t.Errorf("CNIs %v, kube-proxy %v, left by %v", got, s.Proxy, left)
			}
			if len(s.Unseen) != 1 || !strings.HasSuffix(s.Unseen[0], "inspected on a") {
				t.Errorf("unseen %q: the node was not inspected", s.Unseen)
			}
		})
	}
}

// TestHiddenProxy: a kube-proxy that answers on a node runs, also where no object of the cluster is one.
func TestHiddenProxy(t *testing.T) {
	silent, answers := residue.Node{Name: "a"}, residue.Node{Name: "b", Sight: netstate.State{ProxyMode: "nftables"}}
	for _, c := range []struct {
		there Survey
		nodes []residue.Node
		want  bool
		mode  string
	}{
		{Survey{ProxyMode: "iptables"}, []residue.Node{silent}, false, "iptables"},
		{Survey{ProxyMode: "iptables"}, []residue.Node{silent, answers}, true, "nftables"},
		{Survey{Proxy: true, ProxyMode: "iptables"}, []residue.Node{answers}, false, "iptables"},
	} {
		if got := c.there.addHiddenProxy(c.nodes); got != c.want || c.there.ProxyMode != c.mode {
			t.Errorf("%v, %+v, want %v and mode %s", got, c.there, c.want, c.mode)
		}
	}
}

// TestDaemonSetOfNoNode: a CNI's DaemonSet that selects no node is not installed; one whose pods are still counted is.
func TestDaemonSetOfNoNode(t *testing.T) {
	for _, c := range []struct {
		generation, observed int64
		desired              int32
		want                 bool
	}{{2, 2, 0, false}, {2, 1, 0, true}, {2, 2, 3, true}} {
		d := daemonSet("kube-system", "aws-node", c.desired)
		d.Generation, d.Status.ObservedGeneration = c.generation, c.observed
		s := Survey{CNIs: map[string]string{}}
		if s.addDaemonSet(*d); (len(s.CNIs) > 0) != c.want {
			t.Errorf("%+v: %v", c, s.CNIs)
		}
	}
}

// TestSilentReason: nodes on which no pod of ours would end are named, those that only lack a CNI are not.
func TestSilentReason(t *testing.T) {
	ready := func(s corev1.ConditionStatus, os string) corev1.Node {
		n := node("a", "6.1", "10.1.0.0/24")
		n.Status.Conditions[0].Status, n.Labels = s, map[string]string{corev1.LabelOSStable: os}
		return *n
	}
	for want, n := range map[string]corev1.Node{
		"": ready(corev1.ConditionFalse, "linux"), "it runs windows": ready(corev1.ConditionTrue, "windows"), "its kubelet does not answer": ready(corev1.ConditionUnknown, "linux"),
	} {
		if got := silentReason(n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSweepAgain: what its owner leaves meanwhile is removed, too, and named if it does not stay away. What others left stays.
func TestSweepAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		again int // how often it is there again
		want  string
	}{
		{"once", 0, ""},
		{"twice", 1, ""},
		{"always", 1 << 20, "still there: a: taint node.cilium.io/agent-not-ready"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				worn := node("a", "6.1", "10.1.0.0/24")
				worn.Annotations = map[string]string{"network.cilium.io/ipv4-pod-cidr": "10.1.0.0/24", "projectcalico.org/IPv4Address": "x"}
				i, client := standing(worn)
				removed := 0
				client.PrependReactor("update", "nodes", func(a k8stesting.Action) (bool, runtime.Object, error) {
					if removed++; removed <= c.again {
						a.(k8stesting.UpdateAction).GetObject().(*corev1.Node).Spec.Taints = []corev1.Taint{{Key: "node.cilium.io/agent-not-ready"}}
					}
					return false, nil, nil
				})
				s, err := i.Survey(t.Context())
				if err != nil || len(s.Left) != 2 {
					t.Fatalf("left %v, %v", s.Left, err)
				}
				err = i.Sweep(t.Context(), slices.DeleteFunc(s.Left, func(l residue.Leftover) bool { return l.Owner != residue.Cilium }))
				switch {
				case c.want == "" && (err != nil || removed != c.again+1):
					t.Errorf("removed %d times, %v", removed, err)
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
					t.Errorf("%v, want %q", err, c.want)
				}
				if s, err = i.Survey(t.Context()); err != nil || !slices.ContainsFunc(s.Left, func(l residue.Leftover) bool { return strings.HasPrefix(l.Owner, residue.Calico) }) {
					t.Errorf("left %v, %v: Calico's was not to be removed", s.Left, err)
				}
			})
		})
	}
}

// TestAgainst: all reasons against a profile are listed at once, and nothing else.
func TestAgainst(t *testing.T) {
	fine := Survey{Proxy: true, ProxyMode: "iptables", Nodes: []corev1.Node{*node("a", "6.12.1-x", "10.1.0.0/24")}}
	with := func(change func(*Survey)) Survey { s := fine; change(&s); return s }
	for _, c := range []struct {
		name, profile string
		survey        Survey
		stop          bool
		want          []string
	}{
		{"nothing", "flannel-vxlan", fine, false, nil},
		{"a CNI", "flannel-vxlan", with(func(s *Survey) { s.CNIs = map[string]string{residue.Cilium: "kube-system/cilium"} }), false, []string{"CNI cilium is installed (kube-system/cilium)"}},
		{"a CNI beside a second one", "sriov", with(func(s *Survey) { s.CNIs = map[string]string{residue.Cilium: "kube-system/cilium"} }), false, nil},
		{"leftovers", "ptp", with(func(s *Survey) {
			s.Left = []residue.Leftover{{Node: "a", Owner: residue.Calico, Kind: "device", Name: "tunl0", Remove: "rm"}}
		}), false, []string{"tunl0"}},
		{"kube-proxy beside its replacement", "cilium-native", fine, false, []string{"kube-proxy runs"}},
		{"kube-proxy to be stopped", "cilium-native", fine, true, nil},
		{"kube-proxy's rules under a CNI without it", "cilium-native", with(func(s *Survey) {
			s.Proxy, s.Left = false, []residue.Leftover{{Owner: residue.KubeProxy, Name: "KUBE-"}}
		}), false, []string{"KUBE-"}},
		{"kube-proxy's rules under a CNI with it", "flannel-vxlan", with(func(s *Survey) { s.Left = []residue.Leftover{{Owner: residue.KubeProxy, Name: "KUBE-"}} }), false, nil},
		{"another mode", "calico-nftables", fine, false, []string{"in mode iptables"}},
		{"no kube-proxy", "calico-vxlan", with(func(s *Survey) { s.Proxy = false }), false, []string{"does not run"}},
		{"managed", "calico-ebpf", fine, false, nil},
		{"kernel and podCIDR", "cilium-netkit", with(func(s *Survey) {
			s.Proxy, s.Nodes = false, []corev1.Node{*node("old", "6.7.9-arch", ""), *node("new", "6.8.0-31-generic", "10.1.0.0/24")}
		}), false, []string{"node old has Linux 6.7.9-arch", "node old has no podCIDR"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Lookup(c.profile)
			if err != nil {
				t.Fatal(err)
			}
			got := c.survey.refusalReasons(r, c.stop)
			if len(got) != len(c.want) {
				t.Fatalf("%q, want %q", got, c.want)
			}
			for n := range got {
				if !strings.Contains(got[n], c.want[n]) {
					t.Errorf("%q, want %q", got[n], c.want[n])
				}
			}
		})
	}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"6.8.0-31-generic", "6.8", false}, {"6.7", "6.8", true}, {"5.15.0", "6.8", true}, {"6.10.1", "6.8", false}, {"4.18.0-553.el8", "5.10", true},
		{"6.8+", "6.8", false}, {"", "6.8", false}, {"newest", "6.8", false}, {"6", "6.8", false},
	} {
		if got := isOlderKernel(c.a, c.b); got != c.want {
			t.Errorf("older(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

// TestRolled: a workload has rolled out when all its pods are new and ready, and the end of the wait says what lacks.
func TestRolled(t *testing.T) {
	d := daemonSet("kube-system", "cilium", 2)
	d.Generation = 2
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cilium-x"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such host"}},
	}}}}
	i, client := standing(d, pod)
	wait := func() error { return i.awaitRollout(t.Context(), "DaemonSet kube-system/cilium") }
	if err := wait(); err == nil || !strings.Contains(err.Error(), "its controller has not seen it") {
		t.Errorf("%v", err)
	}
	d.Status = appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberReady: 1}
	update := func() {
		if _, err := client.AppsV1().DaemonSets("kube-system").Update(t.Context(), d, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	update()
	if err := wait(); err == nil || !strings.Contains(err.Error(), "1 of 2 pods are ready") || !strings.Contains(err.Error(), "cilium-x: ImagePullBackOff no such host") {
		t.Errorf("%v", err)
	}
	d.Status.NumberReady = 2
	update()
	if err := wait(); err != nil {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := i.awaitRollout(ctx, "Deployment kube-system/none"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's end", err)
	}
}

// TestInventory: what is recorded comes back, what is applied again keeps its first record, and the error for another
// profile names what is installed.
func TestInventory(t *testing.T) {
	i, _ := standing()
	if _, err := i.findInventory(t.Context(), "canal"); err == nil || !strings.Contains(err.Error(), "nothing is") {
		t.Errorf("%v", err)
	}
	inv := &inventory{Profile: "canal", Wait: []string{"DaemonSet kube-system/canal"}}
	inv.add(item{Kind: "Namespace", Name: "x", Existed: true})
	inv.add(item{Kind: "Namespace", Name: "x"})
	if err := i.saveInventory(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
	got, err := i.findInventory(t.Context(), "canal")
	if err != nil || len(got.Items) != 1 || !got.Items[0].Existed || !slices.Equal(got.Wait, inv.Wait) {
		t.Errorf("%+v, %v", got, err)
	}
	again := &inventory{Profile: "canal"}
	if err := again.copyEarlierRecord(t.Context(), i); err != nil || len(again.Items) != 1 || !again.Items[0].Existed {
		t.Errorf("installed again: %+v, %v", again, err)
	}
	var absent *NotInstalledError
	if _, err := i.findInventory(t.Context(), "ptp"); !errors.As(err, &absent) || absent.There != "canal is" {
		t.Errorf("%v", err)
	}
	if err := errors.Join(i.forgetInventory(t.Context(), "canal"), i.forgetInventory(t.Context(), "canal")); err != nil {
		t.Error(err)
	}
	if names, err := i.inventories(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
}

// TestByHand: what only files on servers install is said so, with what to choose.
func TestByHand(t *testing.T) {
	eachVariant(t, func(t *testing.T, r Recipe, v Variant) {
		out, err := Render(r, v.Name, full(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var byHand *ByHandError
		err = out.Installable()
		if errors.As(err, &byHand) != (v.Name == RKE2) || byHand != nil && len(byHand.Others) == 0 {
			t.Errorf("%v", err)
		}
	})
}

// TestBadDryRun: an option that is none is refused before anything is asked.
func TestBadDryRun(t *testing.T) {
	if _, err := NewInstaller(&rest.Config{}, Options{DryRun: "yes"}); err == nil || !strings.Contains(err.Error(), "client or server") {
		t.Errorf("%v", err)
	}
}
