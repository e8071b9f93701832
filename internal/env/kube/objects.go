package kube

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/plan/kubetext"
)

// Labels and annotations of everything that a run makes.
const (
	LabelManagedBy = api.LabelManagedBy
	ManagedBy      = api.ManagedBy
	LabelRun       = api.LabelRun
	// labelPod has the pod's name as its value.
	labelPod = "cnibench.dev/pod"
	// annotationExpires has the time from which the run's leftovers may be removed, in the format of RFC 3339.
	annotationExpires = api.AnnotationExpires
	// labelBehind, followed by a Service's name, is the label of that Service's backends. Its value is isBehind.
	labelBehind = "cnibench.dev/behind-"
	isBehind    = "true"
)

const (
	// containerName is the name of a pod's only container.
	containerName = "agent"
	// agentVerb is the subcommand of cnibench that runs one end of a trial.
	agentVerb = "agent"
	// program is the path of cnibench in the image.
	program = "/cnibench"
	// forwardPort is the loopback port on which a pod's main process accepts port-forwards.
	forwardPort = 5199
	// The port of a host-network pod is one of hostForwardPorts ports from firstHostForwardPort. They are below the
	// ports of NodePorts and of clients.
	firstHostForwardPort, hostForwardPorts = 20000, 2000
	// toolFiles bounds the size of the files that tools write into /tmp, in bytes.
	toolFiles = 256 << 20
	// TokenVariable is the environment variable with the token that a port-forward must send.
	TokenVariable = "CNIBENCH_TOKEN"
)

// identity identifies a run in the names, labels and annotations of its objects, and towards its pods.
type identity struct {
	// run is the run's id.
	run string
	// expires is when the run's objects may be removed.
	expires time.Time
	// token authenticates this controller to the pods' main process.
	token string
}

// namespace returns the name of the namespace of a run's pods, or of its host-network pods if host is true.
func (i identity) namespace(host bool) string {
	if host {
		return "cnibench-" + i.run + "-host"
	}
	return "cnibench-" + i.run
}

func (i identity) objectMeta(name string, host bool) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: i.namespace(host),
		Labels:      api.Labels(i.run),
		Annotations: api.Until(i.expires),
	}
}

// namespaceObject returns the namespace of a run's pods, or of its host-network pods if host is true. Its PodSecurity level is
// the strictest that admits these pods.
func namespaceObject(i identity, host bool) *corev1.Namespace {
	meta, level := i.objectMeta(i.namespace(host), host), "restricted"
	meta.Namespace = ""
	if host {
		level = "privileged"
	}
	return api.Namespace(meta, level)
}

// podObject returns the pod to create for s. It runs until it is deleted or the run has expired.
func podObject(i identity, o Options, s podSpec) *corev1.Pod {
	host := s.Host()
	if strings.HasPrefix(s.Name, backend+"-") {
		o.CPULimit = cmp.Or(o.BackendCPULimit, o.CPULimit)
	}
	p := api.Restricted(i.objectMeta(s.Name, host), s.Node, containerOf(i, o, host))
	p.Labels[labelPod] = s.Name
	// With these labels, service meshes leave the pod alone: otherwise a proxy between the ends would be measured, and
	// not the CNI.
	p.Labels["sidecar.istio.io/inject"], p.Labels["istio.io/dataplane-mode"] = "false", "none"
	p.Annotations["linkerd.io/inject"] = "disabled"
	for _, service := range s.Behind {
		p.Labels[labelBehind+service] = isBehind
	}
	p.Spec.ActiveDeadlineSeconds, p.Spec.SecurityContext.RunAsGroup = new(int64(o.TTL.Seconds())), new(int64(api.User))
	p.Spec.Tolerations, p.Spec.ImagePullSecrets = tolerations(o), api.Pulling(api.PullSecrets(o.PullSecrets, ""))
	if len(o.Tools) > 0 { // iperf3 stores the data that it sends in a file
		p.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(toolFiles, resource.BinarySI)}}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}}
	}
	if host {
		p.Spec.HostNetwork, p.Spec.DNSPolicy = true, corev1.DNSDefault
	} else { // lets a process without rights send an echo request
		p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ping_group_range", Value: "0 2147483647"}}
	}
	return p
}

func containerOf(i identity, o Options, host bool) corev1.Container {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(i.forwardPort(host)))
	return corev1.Container{
		Name: containerName, Image: o.Image, ImagePullPolicy: corev1.PullIfNotPresent, Resources: resources(o),
		Command: []string{program}, Args: []string{"hold", "--for", o.TTL.String(), "--listen", address},
		Env: []corev1.EnvVar{
			{Name: TokenVariable, Value: i.token}, {Name: control.RuntimeVariable, Value: control.RuntimeSetting},
		},
	}
}

// forwardPort returns the loopback port on which a pod's main process accepts port-forwards. For a host-network pod it depends
// on the run, because pods of other runs may listen on the same node.
func (i identity) forwardPort(host bool) int {
	if !host {
		return forwardPort
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(i.run)) // it never fails
	return firstHostForwardPort + int(h.Sum32()%hostForwardPorts)
}

// tolerations returns the tolerations of the options as API objects.
func tolerations(o Options) []corev1.Toleration {
	var all []corev1.Toleration
	for _, text := range o.Tolerations {
		t, _ := kubetext.ParseToleration(text) // the plan is valid
		to := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)}
		if t.Exists {
			to.Operator = corev1.TolerationOpExists
		}
		all = append(all, to)
	}
	return all
}

// resources returns the requests and limits of a pod. A CPU limit throttles what is measured.
func resources(o Options) corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	set := func(list corev1.ResourceList, name corev1.ResourceName, value string) {
		if value != "" {
			list[name] = resource.MustParse(value) // the plan is valid
		}
	}
	set(r.Requests, corev1.ResourceCPU, o.CPURequest)
	set(r.Requests, corev1.ResourceMemory, o.MemoryRequest)
	set(r.Limits, corev1.ResourceCPU, o.CPULimit)
	set(r.Limits, corev1.ResourceMemory, o.MemoryLimit)
	return r
}

// serviceObject returns the Service to create for s. It serves each of ports and the next port, for TCP and UDP. A Service of
// type LoadBalancer serves only ports, and UDP only if it is needed: clouds charge by the port, and not all support both
// protocols on one port.
func serviceObject(i identity, o Options, s serviceSpec, ports []int) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: i.objectMeta(s.Name, s.Host)}
	svc.Spec = corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{LabelRun: i.run, labelBehind + s.Name: isBehind},
	}
	if s.NodePort() {
		svc.Spec.Type, svc.Spec.ExternalTrafficPolicy = corev1.ServiceTypeNodePort, corev1.ServiceExternalTrafficPolicy(o.TrafficPolicy)
	}
	numbers, protocols := 2, []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} // a tool's control connection, and its data
	if s.Balancer() {
		svc.Spec.Type, svc.Spec.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicy(o.TrafficPolicy)
		if o.LoadBalancerClass != "" {
			svc.Spec.LoadBalancerClass = new(o.LoadBalancerClass)
		}
		maps.Copy(svc.Annotations, o.ServiceAnnotations)
		numbers = 1
		if !o.UDP {
			protocols = protocols[:1]
		}
	}
	if o.SessionAffinity {
		svc.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	}
	if o.Family != 0 {
		svc.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
		svc.Spec.IPFamilies = []corev1.IPFamily{corev1.IPFamily(fmt.Sprintf("IPv%d", o.Family))}
	}
	for slot, first := range ports {
		for n := range numbers {
			port := first + n
			for _, protocol := range protocols {
				name := fmt.Sprintf("slot%d-%d-%s", slot, n, strings.ToLower(string(protocol)))
				svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: name, Protocol: protocol, Port: int32(port), TargetPort: intstr.FromInt32(int32(port))})
			}
		}
	}
	return svc
}

// tcpNodePorts returns the TCP node ports of a Service, by Service port.
func tcpNodePorts(svc *corev1.Service) map[int]int {
	ports := map[int]int{}
	for _, p := range svc.Spec.Ports {
		if p.Protocol == corev1.ProtocolTCP {
			ports[int(p.Port)] = int(p.NodePort)
		}
	}
	return ports
}

// sameNodePorts reports whether each port of a Service has the same node port for TCP and UDP. The API server allocates the
// two separately.
func sameNodePorts(svc *corev1.Service) bool {
	tcp := tcpNodePorts(svc)
	return !slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Protocol == corev1.ProtocolUDP && tcp[int(p.Port)] != int(p.NodePort)
	})
}
