package detect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/env/kube/api/apitest"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/netstate"
	reporttext "github.com/cnibench/cnibench/internal/report/text"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// scripted answers for pods: what look sees there, and what becomes of its errands.
type scripted struct {
	sights map[string]netstate.State
	mtu    any
	send   any
	wire   any
}

func (l *scripted) Exec(ctx context.Context, pod string, argv []string) ([]byte, error) {
	answer := func(v any) ([]byte, error) {
		if err, ok := v.(error); ok {
			return nil, err
		}
		return json.Marshal(v)
	}
	if argv[0] != "/cnibench" || argv[1] != "look" {
		return nil, errors.New("what is " + strings.Join(argv, " "))
	}
	if len(argv) == 2 || argv[2] == "--pod" {
		s, ok := l.sights[pod]
		if !ok {
			return nil, errors.New("pod " + pod + " has gone")
		}
		return answer(s)
	}
	if argv[2] != "--mark" || len(argv[3]) != 32 {
		return nil, errors.New("no mark")
	}
	switch argv[4] {
	case "--echo":
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case "--mtu":
		return answer(l.mtu)
	case "--send":
		return answer(l.send)
	case "--wire":
		return answer(l.wire)
	}
	return nil, errors.New("what is " + argv[4])
}

func node(host string, mtu int, more ...netstate.Device) netstate.State {
	return netstate.State{Host: host, BootID: "boot-" + host, Devices: append([]netstate.Device{{Name: "eth0", Kind: "device", MTU: mtu, SpeedMbit: 10000}}, more...),
		Routes: []netstate.Route{{To: netip.MustParsePrefix("0.0.0.0/0"), Device: "eth0"}},
		Chains: &netstate.Chains{Services: 4, Prefixes: map[string]int{"KUBE-": 9}}, ProxyMode: "iptables",
		Machine: map[string]string{facts.Kernel: "6.12", facts.CPUModel: "Some CPU", facts.IRQAccounting: facts.IRQInTask}}
}

func pod(host string, mtu int) netstate.State {
	return netstate.State{Host: "pod", BootID: "boot-" + host, Devices: []netstate.Device{{Name: "lo", Kind: "device", MTU: 65536}, {Name: "eth0", Kind: "veth", MTU: mtu}}}
}

var flannelDevice = netstate.Device{Name: "flannel.1", Kind: "vxlan", MTU: 1450, VNI: 1, Port: 8472}

// stage is flannel in two nodes, all as it should be.
func stage(t *testing.T) (Snapshot, Ground, *scripted) {
	t.Helper()
	s, err := Read(t.Context(), load(t, "testdata/clusters/flannel-vxlan.txtar").clients)
	if err != nil {
		t.Fatal(err)
	}
	l := &scripted{
		sights: map[string]netstate.State{"node-1": node("n1", 1500, flannelDevice), "node-2": node("n2", 1500, flannelDevice), "pod-1": pod("n1", 1450), "pod-2": pod("n2", 1450)},
		mtu:    netstate.PathMTU{There: 1450, Back: 1450, Own: 1450}, send: netstate.Sending{Sent: 30, Answered: 30},
		wire: netstate.Wire{Device: "eth0", Marked: []netstate.Wrapping{{Kind: netstate.VXLAN, Port: 8472, VNI: 1, Frames: 60}}},
	}
	g := Ground{Profile: "flannel-vxlan", Routes: []Route{{"pod-to-pod/cross-node", "pod-1", "pod-2"}}}
	for i, role := range []string{"client", "server"} {
		n, at := []string{"n1", "n2"}[i], netip.MustParseAddr("10.244.0.1")
		g.Ends = append(g.Ends,
			End{Pod: []string{"node-1", "node-2"}[i], Node: n, By: l, Host: true, Role: role, Address: at},
			End{Pod: []string{"pod-1", "pod-2"}[i], Node: n, By: l, Role: role, Address: at})
	}
	return s, g, l
}

func prove(t *testing.T, s Snapshot, g Ground) (Snapshot, Verdict, []Proof) {
	t.Helper()
	after, v, proofs, err := Prove(t.Context(), s, g)
	if err != nil {
		t.Fatal(err)
	}
	return after, v, proofs
}

func TestProveHolds(t *testing.T) {
	s, g, _ := stage(t)
	after, v, proofs := prove(t, s, g)
	for _, p := range proofs {
		if p.Result != OK {
			t.Error(p)
		}
	}
	if v.MTU.Value != "1450" || v.KubeProxy.Mode != "iptables" || len(v.Unproven) > 0 {
		t.Errorf("%+v", v)
	}
	f := Facts(v, after, proofs)
	for name, want := range map[string]string{
		facts.KubeCNI: "flannel", facts.KubeProfile: "flannel-vxlan", facts.KubeProxyMode: "iptables", facts.KubeMTU: "1450", facts.KubeEncapsulation: "vxlan",
		facts.NodesMachines: "2", facts.Nodes: "2", "node.client.kernel": "6.12", facts.Kernel: "6.12", facts.IRQAccounting: facts.IRQInTask, "node.server.nic.speed": "10000 Mbit/s", "node.client.nic.mtu": "1500",
		facts.KubeUnproven: "", facts.KubeDisproved: "", facts.Leftovers: "",
	} {
		if f[name] != want {
			t.Errorf("fact %s is %q, want %q", name, f[name], want)
		}
	}
	limit := 0.5
	after.Seen[1].CPU = &netstate.CPU{Limit: &limit}
	after.Seen[3].Machine = map[string]string{facts.Kernel: "5.15"}
	f = Facts(v, after, proofs)
	if f["cpu.limit.client"] != "0.5 CPUs" || f["cpu.limit.client.of"] != "pod pod-1" || f["cpu.limit.server"] != "" {
		t.Errorf("limits: %v", f)
	}
	if _, same := f[facts.Kernel]; same || f["node.server.kernel"] != "5.15" {
		t.Errorf("kernels that differ are one fact: %v", f)
	}
	for name, value := range f {
		if value == "" {
			t.Errorf("fact %s is empty", name)
		}
	}
	var b bytes.Buffer
	if err := reporttext.Render(&b, Finding{v, proofs}.Document(), reporttext.Options{}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "finding.txt", b.Bytes())
}

// TestProveFails: each claim is disproved by what contradicts it, and by nothing else.
func TestProveFails(t *testing.T) {
	ipip := netstate.Wire{Marked: []netstate.Wrapping{{Kind: netstate.IPIP, Frames: 3}}}
	for _, c := range []struct {
		name  string
		alter func(s *Snapshot, g *Ground, l *scripted)
		what  string
		want  proofResult
		words string
	}{
		{"another profile", func(_ *Snapshot, g *Ground, _ *scripted) { g.Profile = "calico-vxlan" }, "profile", mismatch, "calico-vxlan is claimed, flannel-vxlan is seen"},
		{"a pod elsewhere", func(_ *Snapshot, _ *Ground, l *scripted) { l.sights["pod-2"] = pod("n1", 1450) }, "placement", mismatch, "n2 is claimed, n1 is seen"},
		{"a virtual machine", func(_ *Snapshot, _ *Ground, l *scripted) { l.sights["pod-2"] = pod("vm", 1450) }, "placement", mismatch, "another kernel"},
		{"a node unknown", func(s *Snapshot, _ *Ground, _ *scripted) { s.Nodes = s.Nodes[:1] }, "placement", notProven, "the API server does not list node n2"},
		{"a pod without veth", func(_ *Snapshot, _ *Ground, l *scripted) {
			l.sights["pod-1"] = netstate.State{BootID: "boot-n1", Devices: []netstate.Device{{Name: "eth0", Kind: "ipvlan", MTU: 1450}}}
		}, "device of the pod", mismatch, "veth is claimed, ipvlan is seen"},
		{"an MTU too large", func(_ *Snapshot, _ *Ground, l *scripted) { l.sights["pod-1"] = pod("n1", 1500) }, "MTU of the pod", doubtful, "at most 1450 is claimed, 1500 is seen: 50 bytes are added"},
		{"an MTU too large for an IPv6 underlay", func(s *Snapshot, _ *Ground, _ *scripted) {
			s.Nodes = slices.Clone(s.Nodes)
			for i := range s.Nodes {
				s.Nodes[i].Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "fd00::1"}}
			}
		}, "MTU of the pod", doubtful, "at most 1430 is claimed, 1450 is seen: 70 bytes are added"},
		{"no tunnel", func(_ *Snapshot, _ *Ground, l *scripted) { l.sights["node-2"] = node("n2", 1500) }, "tunnel of the node", mismatch, "no such device"},
		{"another proxy", func(_ *Snapshot, _ *Ground, l *scripted) {
			x := node("n2", 1500, flannelDevice)
			x.Chains = &netstate.Chains{Tables: []string{"ip kube-proxy"}}
			l.sights["node-2"] = x
		}, "kube-proxy", mismatch, "rules of mode nftables"},
		{"a proxy that is not there", func(_ *Snapshot, _ *Ground, l *scripted) {
			x := node("n2", 1500, flannelDevice)
			x.Chains, x.ProxyMode = &netstate.Chains{}, ""
			l.sights["node-2"] = x
		}, "kube-proxy", mismatch, "none of its rules"},
		{"a black hole", func(_ *Snapshot, _ *Ground, l *scripted) {
			l.mtu = netstate.PathMTU{There: 1400, Back: 1450, Own: 1450, Silent: true}
		}, "MTU end to end", mismatch, "1400 there, 1450 back is seen: larger packets vanish"},
		{"a narrow place that says so", func(_ *Snapshot, _ *Ground, l *scripted) {
			l.mtu = netstate.PathMTU{There: 1430, Back: 1430, Own: 1450}
		}, "MTU end to end", doubtful, "packets larger than 1430 are refused with an ICMP error"},
		{"a blocked port", func(_ *Snapshot, _ *Ground, l *scripted) { l.mtu = errors.New("no answer from 10.244.0.1") }, "MTU end to end", notProven, "no answer"},
		{"another tunnel", func(_ *Snapshot, _ *Ground, l *scripted) { l.wire = ipip }, "encapsulation on the wire", mismatch, "vxlan is claimed, ipip (3 frames) is seen"},
		{"no right to see frames", func(_ *Snapshot, _ *Ground, l *scripted) { l.wire = errors.New("operation not permitted") }, "encapsulation on the wire", notProven, "not permitted"},
		{"nothing answered", func(_ *Snapshot, _ *Ground, l *scripted) { l.send = netstate.Sending{Sent: 9} }, "encapsulation on the wire", notProven, "none of 9 datagrams"},
		{"nothing seen", func(_ *Snapshot, _ *Ground, l *scripted) { l.wire = netstate.Wire{} }, "encapsulation on the wire", notProven, "no frame"},
		{"no host pods", func(_ *Snapshot, g *Ground, _ *scripted) {
			g.Ends = slices.DeleteFunc(g.Ends, func(e End) bool { return e.Host })
		}, "encapsulation on the wire", notProven, "no host-network pod"},
		{"a pod that went", func(_ *Snapshot, _ *Ground, l *scripted) { delete(l.sights, "pod-1") }, "what is visible", notProven, "has gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, g, l := stage(t)
			c.alter(&s, &g, l)
			after, v, proofs := prove(t, s, g)
			found := false
			for _, p := range proofs {
				if p.What == c.what && p.Result == c.want && strings.Contains(p.String(), c.words) {
					found = true
				}
				if p.Result == mismatch && p.What != c.what {
					t.Errorf("also %s", p)
				}
			}
			if !found {
				t.Errorf("no %s of %s with %q in %v", c.want, c.what, c.words, proofs)
			}
			f := Facts(v, after, proofs)
			if doubted := strings.Contains(f[facts.KubeDoubts], c.what+" ("); doubted != (c.want == doubtful) {
				t.Errorf("doubts: %q", f[facts.KubeDoubts])
			}
			if (f[facts.KubeDisproved] != "") != (c.want == mismatch) {
				t.Errorf("disproved: %q", f[facts.KubeDisproved])
			}
		})
	}
}

// TestProveCanal: as upstream ships it, its pods have the MTU of the node's device over a tunnel that takes less. It is
// canal all the same, and its numbers have the doubt with them.
func TestProveCanal(t *testing.T) {
	s, err := Read(t.Context(), load(t, "testdata/clusters/canal.txtar").clients)
	if err != nil {
		t.Fatal(err)
	}
	_, g, l := stage(t)
	g.Profile = "canal"
	for _, c := range []struct {
		mtu    int
		silent bool
		want   []Proof
	}{
		{mtu: 1450},
		{mtu: 1500, want: []Proof{{What: "MTU of the pod", Where: "pod-1", Result: doubtful}, {What: "MTU of the pod", Where: "pod-2", Result: doubtful}, {What: whatMTU, Where: "pod-to-pod/cross-node", Result: doubtful}}},
		{mtu: 1500, silent: true, want: []Proof{{What: "MTU of the pod", Where: "pod-1", Result: doubtful}, {What: "MTU of the pod", Where: "pod-2", Result: doubtful}, {What: whatMTU, Where: "pod-to-pod/cross-node", Result: mismatch}}},
	} {
		l.sights["pod-1"], l.sights["pod-2"] = pod("n1", c.mtu), pod("n2", c.mtu)
		l.mtu = netstate.PathMTU{There: 1450, Back: 1450, Own: c.mtu, Silent: c.silent}
		after, v, proofs := prove(t, s, g)
		var got []Proof
		for _, p := range proofs {
			if p.Result == doubtful || p.Result == mismatch {
				got = append(got, Proof{What: p.What, Where: p.Where, Result: p.Result})
			}
		}
		if !slices.Equal(got, c.want) || v.Profile != "canal" {
			t.Errorf("MTU %d, silent %v: %s: %v", c.mtu, c.silent, v.Profile, got)
		}
		doubts := Facts(v, after, proofs)[facts.KubeDoubts]
		if c.want != nil && strings.Count(doubts, "MTU of the pod (pod-1, pod-2): at most 1450 is claimed, 1500 is seen") != 1 {
			t.Errorf("MTU %d: doubts %q", c.mtu, doubts)
		}
	}
}

// TestProveEncryption: what is inside cannot be seen, that it is not outside can.
func TestProveEncryption(t *testing.T) {
	for _, c := range []struct {
		wire netstate.Wire
		want proofResult
	}{
		{netstate.Wire{Sealed: []netstate.Wrapping{{Kind: netstate.WireGuard, Port: 51820, Frames: 60}}}, OK},
		{netstate.Wire{Marked: []netstate.Wrapping{{Kind: netstate.Bare, Frames: 60}}, Sealed: []netstate.Wrapping{{Kind: netstate.WireGuard, Frames: 2}}}, mismatch},
		{netstate.Wire{}, notProven},
	} {
		var p Proof
		if p.judgeFrames(c.wire, "wireguard"); p.Result != c.want {
			t.Errorf("%+v: %s", c.wire, p)
		}
	}
	for claimed, want := range map[string]proofResult{"none": OK, "vxlan between subnets": OK, "vxlan": mismatch, "": OK} {
		var p Proof
		if p.judgeFrames(netstate.Wire{Marked: []netstate.Wrapping{{Kind: netstate.Bare, Frames: 1}}}, claimed); p.Result != want {
			t.Errorf("bare frames and %q: %s", claimed, p)
		}
	}
}

func TestProveEndsWithItsContext(t *testing.T) {
	s, g, _ := stage(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := Prove(ctx, s, g); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestLeftovers(t *testing.T) {
	s := node("n1", 1500, flannelDevice, netstate.Device{Name: "cilium_host", Kind: "veth"})
	s.Chains.Prefixes["cali-"] = 3
	for cni, want := range map[string]int{cilium: 2, calico: 2, canal: 1, flannel: 2, "": 0} {
		if got := foreignLeftovers(cni, s); len(got) != want {
			t.Errorf("under %q: %q", cni, got)
		}
	}
}

// runner makes the fake API server run the pods that are made.
func runner(kube *apitest.Clientset, status corev1.PodStatus) {
	kube.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		p := a.(k8stesting.CreateAction).GetObject().(*corev1.Pod)
		p.Status = status
		p.Spec.NodeName = p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
		return false, nil, nil
	})
}

var options = LookoutOptions{Run: "r1", Image: "cnibench.local/cnibench:1", Nodes: []string{"n1", "n2"}, Pods: true}

func TestLookout(t *testing.T) {
	kube := apitest.NewClientset()
	runner(kube, corev1.PodStatus{PodIP: "10.0.0.1", PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}},
		ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}})
	o := options
	o.Family = 6
	l, err := Post(t.Context(), Clients{Kube: kube.Client}, o)
	if err != nil {
		t.Fatal(err)
	}
	if ends := l.Ends(); len(ends) != 4 || !ends[0].Host || ends[0].Role != "client" || ends[3].Node != "n2" || ends[3].Address.String() != "fd00::1" {
		t.Errorf("%+v", ends)
	}
	if routes := l.Routes(); len(routes) != 2 {
		t.Errorf("%+v", routes)
	}
	ns, err := kube.CoreV1().Namespaces().Get(t.Context(), "cnibench-r1-look", metav1.GetOptions{})
	if err != nil || ns.Labels[api.LabelManagedBy] != api.ManagedBy || ns.Labels[api.LabelRun] != "r1" || ns.Annotations[api.AnnotationExpires] == "" {
		t.Errorf("%+v, %v", ns, err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := kube.CoreV1().Namespaces().Get(t.Context(), "cnibench-r1-look", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace is left: %v", err)
	}
}

// TestLookoutPulls: the pods find what they are pulled with in their own namespace, before they are made.
func TestLookoutPulls(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "registry"}, Data: map[string][]byte{".dockerconfigjson": []byte("{}")}}
	o := options
	o.PullSecrets = []api.PullSecret{{Namespace: "team", Name: "registry"}}
	kube := apitest.NewClientset(secret)
	runner(kube, corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}})
	pods := 0
	kube.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
		pods++
		if refs := a.(k8stesting.CreateAction).GetObject().(*corev1.Pod).Spec.ImagePullSecrets; len(refs) != 1 || refs[0].Name != "registry" {
			t.Errorf("pulled with %v", refs)
		}
		twin, err := kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("secrets"), a.GetNamespace(), "registry")
		if err != nil || twin.(*corev1.Secret).Labels[api.LabelRun] != "r1" {
			t.Errorf("%+v, %v", twin, err)
		}
		return false, nil, nil
	})
	if _, err := Post(t.Context(), Clients{Kube: kube.Client}, o); err != nil || pods != 4 {
		t.Errorf("%d pods, %v", pods, err)
	}

	kube = apitest.NewClientset()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if _, err := Post(ctx, Clients{Kube: kube.Client}, o); err == nil || !strings.Contains(err.Error(), "image pull Secret registry in namespace team") {
		t.Errorf("%v", err)
	}
	if list, err := kube.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("left %v, %v", list.Items, err)
	}
}

func TestLookoutFails(t *testing.T) {
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "no such image"}}}}}
	}
	forbid := func(kube *apitest.Clientset, resource string) {
		kube.PrependReactor("create", resource, func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("PodSecurity"))
		})
	}
	for words, arrange := range map[string]func(*apitest.Clientset){
		"ImagePullBackOff: no such image":   func(k *apitest.Clientset) { runner(k, waiting("ImagePullBackOff")) },
		"ContainerCreating":                 func(k *apitest.Clientset) { runner(k, waiting("ContainerCreating")) },
		"create namespace cnibench-r1-look": func(k *apitest.Clientset) { forbid(k, "namespaces") },
		"create pod node-1":                 func(k *apitest.Clientset) { forbid(k, "pods") },
	} {
		kube := apitest.NewClientset()
		arrange(kube)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		_, err := Post(ctx, Clients{Kube: kube.Client}, options)
		stop()
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q in it", err, words)
		}
		if list, err := kube.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
			t.Errorf("%s: left %v, %v", words, list.Items, err)
		}
	}
}

// TestLookoutWaitsNoLonger: Post stops waiting for a pod that cannot start, and the error has the pod's state. Where nothing
// else ends the waiting, the hour does.
func TestLookoutWaitsNoLonger(t *testing.T) {
	unscheduled := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available: 2 Insufficient cpu."},
	}}
	creating := corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
		{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
	}}
	for name, c := range map[string]struct {
		status      corev1.PodStatus
		node        bool
		why, advice string
	}{
		"unscheduled": {unscheduled, false, "pod node-1 on node n1: it cannot be scheduled: 0/2 nodes are available: 2 Insufficient cpu.", api.AdviceSchedule},
		"unheard of":  {corev1.PodStatus{Phase: corev1.PodPending}, false, "waited 3m0s for pod node-1: it was not scheduled", ""},
		"not begun":   {corev1.PodStatus{Phase: corev1.PodPending}, true, "waited 3m0s for pod node-1: node n1 has not started it", api.AdviceImage},
		"creating":    {creating, true, "waited 3m0s for pod node-1: node n1 has not started it", api.AdviceImage},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kube := apitest.NewClientset()
				kube.PrependReactor("create", "pods", func(a k8stesting.Action) (bool, runtime.Object, error) {
					p := a.(k8stesting.CreateAction).GetObject().(*corev1.Pod)
					if p.Status = c.status; c.node {
						p.Spec.NodeName = "n1"
					}
					return false, nil, nil
				})
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				_, err := Post(ctx, Clients{Kube: kube.Client}, options)
				if err == nil || err.Error() != c.why || advice.Of(err) != c.advice {
					t.Errorf("%v, hint %q; want %q, %q", err, advice.Of(err), c.why, c.advice)
				}
				if list, err := kube.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
					t.Errorf("left %v, %v", list.Items, err)
				}
			})
		})
	}
}

// TestUnmarked: a failure in a pod has the same words in every run.
func TestUnmarked(t *testing.T) {
	cause := errors.New("/cnibench look --mark 0123 --wire eth0 in pod a: exit code 1: capture on eth0:\nnot permitted")
	err := unmarkedError(cause, "0123")
	if got, want := err.Error(), "/cnibench look --wire eth0 in pod a: exit code 1: capture on eth0: not permitted"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
