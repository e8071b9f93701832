package detect

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// lookoutContainer is the name of the container in a pod of a Lookout.
const lookoutContainer = "agent"

// LookoutOptions describe the pods of a Lookout.
type LookoutOptions struct {
	// Run is the run's id. It is in the name of the namespace and in the labels of all objects.
	Run string
	// Image has cnibench as /cnibench.
	Image string
	// PullSecrets are the image pull Secrets to copy into the namespace.
	PullSecrets []api.PullSecret
	// Nodes are the nodes to inspect: the first is the client's, the second the server's.
	Nodes []string
	// Pods adds an ordinary pod on each node.
	Pods bool
	// Sampling also gives the host-network pods the rights that CPU samplers require.
	Sampling bool
	// TTL bounds the life of the pods; 0 is 15 minutes.
	TTL time.Duration
	// Family is the IP family of the ends' addresses, 4 or 6; 0 is the cluster's first family.
	Family int
}

// Lookout has pods in a namespace of their own that inspect nodes. Its host-network pods may list netfilter's chains and BPF
// programs, capture frames, and read /etc/cni/net.d. It may also have ordinary pods.
type Lookout struct {
	clients   Clients
	namespace string
	// made is true if this Lookout has created the namespace, or may have.
	made bool
	ends []End
}

// Post creates the namespace and the pods of a Lookout, and waits up to postLimit until all pods run. It fails if the cluster
// refuses such pods. After an error it removes what it has created.
func Post(ctx context.Context, c Clients, o LookoutOptions) (*Lookout, error) {
	if o.TTL == 0 {
		o.TTL = 15 * time.Minute
	}
	l := &Lookout{clients: c, namespace: "cnibench-" + o.Run + "-look"}
	err := l.createPods(ctx, o)
	if err == nil {
		return l, nil
	}
	undo, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer stop()
	return nil, errors.Join(err, l.Close(undo))
}

func (l *Lookout) createPods(ctx context.Context, o LookoutOptions) error {
	ns := api.Namespace(o.objectMeta("", l.namespace), "privileged")
	if _, err := l.clients.Kube.Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		l.made = !apierrors.IsForbidden(err) && !apierrors.IsAlreadyExists(err) // after other errors ours may exist
		return fmt.Errorf("create namespace %s: %w", l.namespace, err)
	}
	l.made = true
	if err := api.CopySecrets(ctx, l.clients.Kube, o.PullSecrets, o.objectMeta(l.namespace, "")); err != nil {
		return err
	}
	pods := lookoutPods(l.namespace, o)
	for _, p := range pods {
		if _, err := l.clients.Kube.Pods(l.namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create pod %s: %w", p.Name, err)
		}
	}
	running, err := l.awaitPods(ctx, pods)
	if err != nil {
		return err
	}
	for _, p := range pods {
		up := running[p.Name]
		e := End{Pod: p.Name, Node: up.Spec.NodeName, By: l, Host: p.Spec.HostNetwork}
		e.Address, _ = netip.ParseAddr(api.PickFamily(api.Addresses(up), o.Family)) // unknown is the zero address
		for i, role := range []string{"client", "server"} {
			if i < len(o.Nodes) && o.Nodes[i] == e.Node {
				e.Role = role
			}
		}
		l.ends = append(l.ends, e)
	}
	return nil
}

// objectMeta returns the metadata of an object: its name, the labels of the run, and the time at which it may be removed.
func (o LookoutOptions) objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: api.Labels(o.Run), Annotations: api.Until(time.Now().Add(o.TTL))}
}

// lookoutPods returns a host-network pod for each node, called node-1, node-2 and so on. If o.Pods is true, it also returns an
// ordinary pod for each node, called pod-1, pod-2 and so on.
func lookoutPods(namespace string, o LookoutOptions) []*corev1.Pod {
	var pods []*corev1.Pod
	for i, node := range o.Nodes {
		host := lookoutPod(namespace, fmt.Sprintf("node-%d", i+1), node, o)
		host.Spec.HostNetwork = true
		host.Spec.Volumes = []corev1.Volume{{Name: "cni", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/cni/net.d"}}}}
		c := &host.Spec.Containers[0]
		c.VolumeMounts = []corev1.VolumeMount{{Name: "cni", MountPath: "/etc/cni/net.d", ReadOnly: true}}
		// NET_ADMIN and SYS_ADMIN list chains and programs, NET_RAW captures frames. They change nothing. With
		// SYS_ADMIN a sampler also lets the kernel count the runs of programs.
		c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN", "NET_RAW", "SYS_ADMIN", "DAC_READ_SEARCH"}
		if o.Sampling {
			// Samplers find the load threads among the node's processes, read kernel symbols, and need memory for
			// samples.
			host.Spec.HostPID = true
			c.SecurityContext.Capabilities.Add = append(c.SecurityContext.Capabilities.Add, "SYS_PTRACE", "SYSLOG", "IPC_LOCK")
		}
		c.SecurityContext.RunAsUser = new(int64(0))
		c.SecurityContext.RunAsNonRoot = new(false)
		c.SecurityContext.AllowPrivilegeEscalation = nil
		pods = append(pods, host)
		if o.Pods {
			pods = append(pods, lookoutPod(namespace, fmt.Sprintf("pod-%d", i+1), node, o))
		}
	}
	return pods
}

// lookoutPod returns an ordinary pod that the strictest PodSecurity level admits.
func lookoutPod(namespace, name, node string, o LookoutOptions) *corev1.Pod {
	p := api.Restricted(o.objectMeta(namespace, name), node, corev1.Container{
		Name: lookoutContainer, Image: o.Image,
		Command: []string{"/cnibench"}, Args: []string{"hold", "--for", o.TTL.String()},
	})
	p.Spec.ActiveDeadlineSeconds, p.Spec.ImagePullSecrets = new(int64(o.TTL.Seconds())), api.Pulling(o.PullSecrets)
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	return p
}

const (
	// askAgain is the time between two lists of the pods while Post waits. A watch would require another right.
	askAgain = 300 * time.Millisecond
	// postLimit bounds the wait until all pods run. patience bounds how long a pod may have a fault that may pass.
	postLimit = 3 * time.Minute
	patience  = 15 * time.Second
)

// awaitPods waits until the pods run and returns them by name.
func (l *Lookout) awaitPods(ctx context.Context, pods []*corev1.Pod) (map[string]*corev1.Pod, error) {
	a := api.Await{
		Done: func(_ *corev1.Pod, now api.State) bool { return now.Running },
		List: func(ctx context.Context) (map[string]*corev1.Pod, error) {
			return api.ListPods(ctx, l.clients.Kube, l.namespace, "")
		},
		Interval: askAgain, Limit: postLimit, Patience: patience,
	}
	for _, p := range pods {
		a.Names = append(a.Names, p.Name)
	}
	running, err := a.Pods(ctx)
	var late *api.LateError
	if errors.As(err, &late) && late.Node != "" {
		err = advice.With(err, api.AdviceImage)
	}
	return running, err
}

// Ends returns the pods of the lookout.
func (l *Lookout) Ends() []End { return slices.Clone(l.ends) }

// Routes returns the path between the host-network pods on the first two nodes, and the path between the ordinary pods
// there. It omits a path if one of its pods does not exist.
func (l *Lookout) Routes() []Route {
	missing := func(pod string) bool { return !slices.ContainsFunc(l.ends, func(e End) bool { return e.Pod == pod }) }
	all := []Route{{"host-to-host/cross-node", "node-1", "node-2"}, {"pod-to-pod/cross-node", "pod-1", "pod-2"}}
	return slices.DeleteFunc(all, func(r Route) bool { return missing(r.Client) || missing(r.Server) })
}

// Exec runs argv in one of the Lookout's pods and returns its stdout.
func (l *Lookout) Exec(ctx context.Context, pod string, argv []string) ([]byte, error) {
	return l.clients.Exec(ctx, ContainerRef{l.namespace, pod, lookoutContainer}, argv)
}

// Stream runs argv in one of the Lookout's pods until it ends, with the streams of o.
func (l *Lookout) Stream(ctx context.Context, pod string, argv []string, o remotecommand.StreamOptions) error {
	return l.clients.Stream(ctx, ContainerRef{l.namespace, pod, lookoutContainer}, argv, o)
}

// Close deletes the Lookout's namespace and waits until it is gone or ctx ends.
func (l *Lookout) Close(ctx context.Context) error {
	err := api.RemoveNamespace(ctx, l.clients.Kube, l.namespace, askAgain)
	if apierrors.IsForbidden(err) && !l.made { // there is nothing
		return nil
	}
	return err
}
