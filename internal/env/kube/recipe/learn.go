package recipe

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Where kubeadm keeps kube-proxy.
const (
	proxyNamespace = "kube-system"
	proxyName      = "kube-proxy"
	// proxySelector is a label that no node has.
	proxySelector = "cnibench.dev/kube-proxy-stopped"
)

// Learn returns the parameters. Missing ones are read from the cluster: its nodes, the pods' range in the configuration of
// kubeadm or kube-proxy, and the address behind the kubernetes Service.
func (i *Installer) Learn(ctx context.Context) (Params, error) {
	p := i.Params
	if len(p.Nodes) == 0 {
		nodes, err := i.client.Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return p, err
		}
		for _, n := range nodes.Items {
			p.Nodes = append(p.Nodes, nodeOf(n))
		}
		slices.SortFunc(p.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	}
	var err error
	if !p.PodCIDR.IsValid() {
		if p.PodCIDR, err = i.podCIDR(ctx); err != nil {
			return p, err
		}
	}
	if p.APIServer == "" {
		p.APIServer, err = i.apiServer(ctx)
	}
	if p.Cluster == "" {
		p.Cluster = p.WithDefaults().Cluster
	}
	return p, err
}

// nodeOf returns the node's parameters. IPv4 is preferred.
func nodeOf(n corev1.Node) Node {
	out := Node{Name: n.Name}
	for _, a := range n.Status.Addresses {
		ip, err := netip.ParseAddr(a.Address)
		if err == nil && a.Type == corev1.NodeInternalIP && (!out.Address.IsValid() || ip.Is4()) {
			out.Address = ip
		}
	}
	for _, text := range append(slices.Clone(n.Spec.PodCIDRs), n.Spec.PodCIDR) {
		c, err := netip.ParsePrefix(text)
		if err == nil && (!out.PodCIDR.IsValid() || c.Addr().Is4() && !out.PodCIDR.Addr().Is4()) {
			out.PodCIDR = c
		}
	}
	return out
}

// podCIDR returns the range of all pods, the zero value if it is not known.
func (i *Installer) podCIDR(ctx context.Context) (netip.Prefix, error) {
	var kubeadm struct {
		Networking struct {
			PodSubnet string `json:"podSubnet"`
		} `json:"networking"`
	}
	if err := i.configMap(ctx, "kube-system", "kubeadm-config", "ClusterConfiguration", &kubeadm); err != nil {
		return netip.Prefix{}, err
	}
	if c, ok := firstIPv4(kubeadm.Networking.PodSubnet); ok {
		return c, nil
	}
	proxy, _, err := i.proxyConfig(ctx)
	if err != nil {
		return netip.Prefix{}, err
	}
	c, _ := firstIPv4(proxy.ClusterCIDR) // the zero value is unknown
	return c, nil
}

func firstIPv4(list string) (netip.Prefix, bool) {
	for text := range strings.SplitSeq(list, ",") {
		if c, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil && c.Addr().Is4() {
			return c.Masked(), true
		}
	}
	return netip.Prefix{}, false
}

// proxyConfig is what is read of kube-proxy's configuration.
type proxyConfig struct {
	Mode        string `json:"mode"`
	ClusterCIDR string `json:"clusterCIDR"`
}

// proxyConfig returns kubeadm's configuration of kube-proxy, and whether there is one.
func (i *Installer) proxyConfig(ctx context.Context) (proxyConfig, bool, error) {
	var c proxyConfig
	err := i.configMap(ctx, proxyNamespace, proxyName, "config.conf", &c)
	found := c != proxyConfig{}
	if c.Mode == "" {
		c.Mode = "iptables"
	}
	return c, found, err
}

// configMap reads the YAML under a key of a ConfigMap. It leaves into unchanged if the ConfigMap is missing or forbidden.
func (i *Installer) configMap(ctx context.Context, namespace, name, key string, into any) error {
	m, err := i.client.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal([]byte(m.Data[key]), into); err != nil {
		return fmt.Errorf("ConfigMap %s/%s, %s: %w", namespace, name, key, err)
	}
	return nil
}

// apiServer returns an address of the API server that is not a Service: kubeadm's controlPlaneEndpoint, else the first
// address behind the kubernetes Service, else "".
func (i *Installer) apiServer(ctx context.Context) (string, error) {
	var kubeadm struct {
		ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	}
	if err := i.configMap(ctx, "kube-system", "kubeadm-config", "ClusterConfiguration", &kubeadm); err != nil {
		return "", err
	}
	if host, port, err := net.SplitHostPort(kubeadm.ControlPlaneEndpoint); err == nil && host != "" && port != "" {
		return kubeadm.ControlPlaneEndpoint, nil
	}
	slices, err := i.client.EndpointSlices(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
	if apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			for _, port := range s.Ports {
				if len(e.Addresses) > 0 && port.Port != nil {
					return net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*port.Port))), nil
				}
			}
		}
	}
	return "", nil
}
