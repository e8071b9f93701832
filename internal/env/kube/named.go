package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/judge/diagnose"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// Find returns the Service or pod that text names: NAMESPACE/NAME, or NAMESPACE/NAME:PORT with the number or the name of a
// port. A Service takes precedence over a pod of the same name. It fails with a *ConfigError if neither exists, or if
// the user may not read them.
func Find(ctx context.Context, at Location, text string) (diagnose.Named, error) {
	c, err := Connect(Options{Kubeconfig: at.Kubeconfig, Context: at.Context})
	if err != nil {
		return diagnose.Named{}, err
	}
	ctx, stop := context.WithTimeout(ctx, askLimit)
	defer stop()
	found, err := findNamed(ctx, c.client, text)
	if err != nil && ctx.Err() == nil {
		err = &ConfigError{err}
	}
	return found, err
}

func findNamed(ctx context.Context, client *api.Client, text string) (diagnose.Named, error) {
	namespace, name, _ := strings.Cut(text, "/")
	name, port, _ := strings.Cut(name, ":")
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return diagnose.Named{}, fmt.Errorf("%q names no pod or Service: want NAMESPACE/NAME or NAMESPACE/NAME:PORT", text)
	}
	service, err := client.Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return namedService(ctx, client, service, port)
	}
	pod, podErr := client.Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case podErr == nil:
		return namedPod(ctx, client, pod, port), nil
	case apierrors.IsNotFound(err) && apierrors.IsNotFound(podErr):
		return diagnose.Named{}, advice.With(fmt.Errorf("there is no Service and no pod %s in namespace %s", name, namespace), "kubectl get services,pods -n "+namespace)
	}
	return diagnose.Named{}, advice.With(errors.Join(err, podErr), "what --from and --to name must be readable: kubectl auth can-i get services,pods -n "+namespace)
}

// namedPod returns a pod with the port to connect to. port is a number, or the name of a TCP port that the pod declares; "" is
// the first declared TCP port. If there is no such port, Why has the reason.
func namedPod(ctx context.Context, client *api.Client, pod *corev1.Pod, port string) diagnose.Named {
	n := diagnose.Named{Name: "pod " + pod.Namespace + "/" + pod.Name, Node: pod.Spec.NodeName}
	number, _ := strconv.Atoi(port)
	for _, c := range pod.Spec.Containers {
		for _, declared := range c.Ports {
			if number == 0 && isTCP(declared.Protocol) && (port == "" || port == declared.Name) {
				number = int(declared.ContainerPort)
			}
		}
	}
	switch {
	case number == 0 && port != "":
		n.Why = fmt.Sprintf("it declares no TCP port %q", port)
	case number == 0:
		n.Why = "it declares no TCP port: name one, " + pod.Namespace + "/" + pod.Name + ":PORT"
	}
	behind := map[string]*corev1.Pod{pod.Name: pod}
	at := diagnose.Pod{Name: pod.Name, Node: pod.Spec.NodeName, Address: net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(number))}
	addPod(&n, at, api.StateOf(pod).Ready, behind)
	n.Policies = podPolicyNames(ctx, client, pod.Namespace, []*corev1.Pod{pod})
	return n
}

// namedService returns a Service and the pods behind one of its TCP ports. port is the port's number or name; "" is the first
// TCP port. If there is no such port, Why has the reason. It fails if it cannot list the Service's EndpointSlices.
func namedService(ctx context.Context, client *api.Client, service *corev1.Service, port string) (diagnose.Named, error) {
	n := diagnose.Named{Name: "Service " + service.Namespace + "/" + service.Name}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		n.Why = "it is a name for " + service.Spec.ExternalName + ", outside the cluster"
		return n, nil
	}
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool {
		return isTCP(p.Protocol) && (port == "" || port == p.Name || port == strconv.Itoa(int(p.Port)))
	})
	if i < 0 {
		n.Why = strings.TrimSpace("it has no TCP port " + port)
		return n, nil
	}
	chosen := service.Spec.Ports[i]
	family := discoveryv1.AddressType("")
	if ip, err := netip.ParseAddr(service.Spec.ClusterIP); err == nil { // "None" is not
		n.Address = net.JoinHostPort(ip.String(), strconv.Itoa(int(chosen.Port)))
		family = familyOf(ip)
	}
	if p := service.Spec.InternalTrafficPolicy; p != nil && *p == corev1.ServiceInternalTrafficPolicyLocal {
		n.Note = "its internalTrafficPolicy is Local: a node without one of its pods reaches none"
	}
	behind := podsBehind(ctx, client, service)
	list, err := client.EndpointSlices(service.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name})
	if err != nil {
		return n, advice.With(fmt.Errorf("read the pods behind it: %w", err), "kubectl auth can-i list endpointslices.discovery.k8s.io -n "+service.Namespace)
	}
	for _, s := range list.Items {
		family = cmp.Or(family, s.AddressType) // of a headless Service
		p := slices.IndexFunc(s.Ports, func(p discoveryv1.EndpointPort) bool { return p.Port != nil && p.Name != nil && *p.Name == chosen.Name })
		if s.AddressType != family || p < 0 {
			continue
		}
		for _, e := range s.Endpoints {
			at := diagnose.Pod{Name: e.Addresses[0], Address: net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*s.Ports[p].Port)))}
			if e.TargetRef != nil {
				at.Name = e.TargetRef.Name
			}
			if e.NodeName != nil {
				at.Node = *e.NodeName
			}
			addPod(&n, at, e.Conditions.Ready == nil || *e.Conditions.Ready, behind)
		}
	}
	n.Policies = podPolicyNames(ctx, client, service.Namespace, slices.Collect(maps.Values(behind)))
	return n, nil
}

func isTCP(p corev1.Protocol) bool { return p == "" || p == corev1.ProtocolTCP }

func familyOf(ip netip.Addr) discoveryv1.AddressType {
	if ip.Is6() {
		return discoveryv1.AddressTypeIPv6
	}
	return discoveryv1.AddressTypeIPv4
}

// podsBehind returns the pods that a Service selects, by name; nil if it selects none or the user may not list pods.
func podsBehind(ctx context.Context, client *api.Client, service *corev1.Service) map[string]*corev1.Pod {
	if len(service.Spec.Selector) == 0 {
		return nil
	}
	pods, err := api.ListPods(ctx, client, service.Namespace, labels.SelectorFromSet(service.Spec.Selector).String())
	if err != nil {
		return nil
	}
	return pods
}

// addPod adds the pod that at describes to n.Pods if ready is true. Otherwise it adds the pod's name to n.Unready, with the
// reason if behind has a pod of this name.
func addPod(n *diagnose.Named, at diagnose.Pod, ready bool, behind map[string]*corev1.Pod) {
	if ready {
		n.Pods = append(n.Pods, at)
		return
	}
	if pod := behind[at.Name]; pod != nil {
		if why := cmp.Or(api.StateOf(pod).Why, unreadyReason(pod)); why != "" {
			at.Name += " (" + why + ")"
		}
	}
	n.Unready = append(n.Unready, at.Name)
}
