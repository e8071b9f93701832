package kube

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

var anIdentity = identity{run: "abcdefgh", expires: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), token: "secret"}

func someOptions() Options {
	return Options{Cluster: plan.Cluster{
		Image: "cnibench.local/cnibench:1", PullSecrets: []string{"registry"}, CPURequest: "500m", MemoryRequest: "64Mi", TTL: time.Hour,
		Tolerations: []string{"dedicated=bench:NoSchedule"},
	}}.withDefaults()
}

// TestObjects keeps the objects of a run as they are written down.
func TestObjects(t *testing.T) {
	o := someOptions()
	six := o
	six.Family, six.SessionAffinity, six.TrafficPolicy, six.CPULimit = 6, true, "Local", "2"
	balanced := o
	balanced.LoadBalancerClass, balanced.ServiceAnnotations, balanced.UDP = "example.com/internal", map[string]string{"example.com/scheme": "internal"}, true
	var b bytes.Buffer
	for _, object := range []any{
		namespaceObject(anIdentity, false), namespaceObject(anIdentity, true),
		podObject(anIdentity, o, podSpec{Name: podServer, Node: "n2", Behind: []string{"remote", "remote-nodeport"}}),
		podObject(anIdentity, six, podSpec{Name: hostServer, Node: "n2"}),
		serviceObject(anIdentity, o, serviceSpec{Name: "local"}, podPorts()),
		serviceObject(anIdentity, six, serviceSpec{Name: "remote-nodeport", Host: true}, []int{22010}),
		serviceObject(anIdentity, six, serviceSpec{Name: "balancer"}, podPorts()),
		serviceObject(anIdentity, balanced, serviceSpec{Name: "balancer-3"}, podPorts()),
	} {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	golden.Check(t, "objects.golden", b.Bytes())
}

// TestPodsAreRestricted holds what the level restricted of PodSecurity demands of every pod outside the host namespace,
// and of the others all but the host's network.
func TestPodsAreRestricted(t *testing.T) {
	o := someOptions()
	for _, s := range newLayout(Options{Paths: plan.Paths, Host: true, Backends: []int{2, 9}}, threeNodes).pods {
		p := podObject(anIdentity, o, *s)
		c := p.Spec.Containers[0]
		sc, psc := c.SecurityContext, p.Spec.SecurityContext
		switch {
		case p.Spec.HostNetwork != s.Host() || p.Spec.HostPID || p.Spec.HostIPC || len(p.Spec.Volumes) > 0:
			t.Errorf("%s takes of its host what it must not", s.Name)
		case *sc.AllowPrivilegeEscalation || *sc.Privileged || !*sc.ReadOnlyRootFilesystem || len(sc.Capabilities.Add) > 0 || sc.Capabilities.Drop[0] != "ALL":
			t.Errorf("%s has rights: %+v", s.Name, sc)
		case !*psc.RunAsNonRoot || *psc.RunAsUser == 0 || psc.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault:
			t.Errorf("%s runs as %+v", s.Name, psc)
		case *p.Spec.AutomountServiceAccountToken || *p.Spec.EnableServiceLinks || p.Spec.RestartPolicy != corev1.RestartPolicyNever || *p.Spec.ActiveDeadlineSeconds != 3600:
			t.Errorf("%s: %+v", s.Name, p.Spec)
		case len(c.Resources.Limits) > 0:
			t.Errorf("%s is limited to %v", s.Name, c.Resources.Limits)
		case !slices.Contains(c.Env, corev1.EnvVar{Name: control.RuntimeVariable, Value: control.RuntimeSetting}):
			t.Errorf("%s: load threads are interrupted by Go's runtime: %v", s.Name, c.Env)
		}
		for key, value := range p.Labels {
			if faults := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(faults) > 0 {
				t.Errorf("label %s=%s: %v", key, value, faults)
			}
		}
		if faults := validation.IsDNS1123Label(p.Name); len(faults) > 0 {
			t.Errorf("pod %s: %v", p.Name, faults)
		}
	}
}

// TestServices selects exactly the pods that are to stand behind each Service.
func TestServices(t *testing.T) {
	o := someOptions()
	l := newLayout(Options{Paths: plan.Paths, Host: true, Backends: []int{2, 5}}, threeNodes)
	for _, spec := range l.services {
		svc := serviceObject(anIdentity, o, spec, podPorts())
		selected := 0
		for _, s := range l.pods {
			p := podObject(anIdentity, o, *s)
			matches := p.Namespace == svc.Namespace
			for key, value := range svc.Spec.Selector {
				matches = matches && p.Labels[key] == value
			}
			if matches {
				selected++
			}
		}
		want := 1
		if strings.HasSuffix(spec.Name, "-2") {
			want = 2
		} else if strings.HasSuffix(spec.Name, "-5") {
			want = 5
		}
		if selected != want {
			t.Errorf("Service %v selects %d pods, want %d", spec, selected, want)
		}
		seen := map[string]bool{}
		for _, port := range svc.Spec.Ports {
			if faults := validation.IsValidPortName(port.Name); len(faults) > 0 || seen[port.Name] {
				t.Errorf("port %s: %v", port.Name, faults)
			}
			seen[port.Name] = true
		}
		if faults := validation.IsDNS1035Label(svc.Name); len(faults) > 0 {
			t.Errorf("Service %s: %v", svc.Name, faults)
		}
	}
}

func TestNodePorts(t *testing.T) {
	svc := serviceObject(anIdentity, someOptions(), serviceSpec{Name: "local-nodeport"}, []int{5201})
	for i := range svc.Spec.Ports {
		svc.Spec.Ports[i].NodePort = 30000 + svc.Spec.Ports[i].Port - 5201
	}
	if !sameNodePorts(svc) || tcpNodePorts(svc)[5201] != 30000 || tcpNodePorts(svc)[5202] != 30001 {
		t.Errorf("node ports %v, one number %t", tcpNodePorts(svc), sameNodePorts(svc))
	}
	svc.Spec.Ports[1].NodePort = 31000
	if sameNodePorts(svc) {
		t.Error("TCP and UDP have different node ports, and nobody minds")
	}
}

func TestHostDoors(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		i := identity{run: RunID()}
		if port := i.forwardPort(true); port < firstHostForwardPort || port >= firstHostForwardPort+hostForwardPorts {
			t.Fatalf("port %d", port)
		} else {
			seen[port] = true
		}
	}
	if len(seen) < 25 {
		t.Errorf("50 runs have %d ports", len(seen))
	}
	if anIdentity.forwardPort(false) != forwardPort {
		t.Error("a pod's own loopback needs no luck")
	}
}
