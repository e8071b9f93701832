package recipe

import (
	"cmp"
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

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/judge/config"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// proxyNamespace and proxyName are the namespace and the name of kube-proxy's DaemonSet and ConfigMap in a kubeadm cluster.
const (
	proxyNamespace = "kube-system"
	proxyName      = "kube-proxy"
	// proxySelector is a label that no node has.
	proxySelector = "cnibench.dev/kube-proxy-stopped"
)

// Learn returns the parameters of Options, and reads missing ones from the cluster: the nodes, the pods' range from the
// configuration of kubeadm or kube-proxy, and the address of the API server. What the cluster does not show stays unset.
func (i *Installer) Learn(ctx context.Context) (Params, error) {
	p := i.Params
	if len(p.Nodes) == 0 {
		nodes, err := i.client.Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return p, err
		}
		p.Nodes = append(p.Nodes, each.Of(nodes.Items, nodeParams)...)
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
	p.Cluster = p.WithDefaults().Cluster
	return p, err
}

// nodeParams returns the parameters of a node: its internal address and its podCIDR. It prefers IPv4.
func nodeParams(n corev1.Node) Node {
	out := Node{Name: n.Name}
	addresses := api.NodeAddresses(n)
	// An unknown address stays the zero value.
	out.Address, _ = netip.ParseAddr(api.PickFamily(addresses, api.UnderlayFamily(addresses)))
	for _, text := range append(slices.Clone(n.Spec.PodCIDRs), n.Spec.PodCIDR) {
		c, err := netip.ParsePrefix(text)
		if err == nil && (!out.PodCIDR.IsValid() || c.Addr().Is4() && !out.PodCIDR.Addr().Is4()) {
			out.PodCIDR = c
		}
	}
	return out
}

// podCIDR returns the IPv4 range of all pods from the configuration of kubeadm, else of kube-proxy. It returns the zero value
// if neither has it.
func (i *Installer) podCIDR(ctx context.Context) (netip.Prefix, error) {
	k, err := i.kubeadmConfig(ctx)
	if err != nil {
		return netip.Prefix{}, err
	}
	if c, ok := config.FirstIPv4(k.Networking.PodSubnet); ok {
		return c, nil
	}
	_, clusterCIDR, err := i.proxyConfig(ctx)
	if err != nil {
		return netip.Prefix{}, err
	}
	c, _ := config.FirstIPv4(clusterCIDR) // the zero value is unknown
	return c, nil
}

// proxyConfig returns the mode and the clusterCIDR in kube-proxy's ConfigMap. The defaults are "iptables" and "", also if the
// ConfigMap cannot be read because it is missing or forbidden.
func (i *Installer) proxyConfig(ctx context.Context) (mode, clusterCIDR string, err error) {
	m, err := i.readConfigMap(ctx, proxyNamespace, proxyName)
	if err != nil {
		return "", "", err
	}
	mode, clusterCIDR, _, err = config.ProxyConfig(m)
	if err != nil {
		return "", "", fmt.Errorf("ConfigMap %s/%s: %w", proxyNamespace, proxyName, err)
	}
	return cmp.Or(mode, "iptables"), clusterCIDR, nil
}

// readConfigMap returns the data of a ConfigMap. It returns nil if the ConfigMap is missing or the user may not read it.
func (i *Installer) readConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	m, err := i.client.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

// kubeadm has the fields of kubeadm's cluster configuration that cnibench reads.
type kubeadm struct {
	ControlPlaneEndpoint string
	Networking           struct{ PodSubnet string }
}

func (i *Installer) kubeadmConfig(ctx context.Context) (k kubeadm, err error) {
	data, err := i.readConfigMap(ctx, "kube-system", "kubeadm-config")
	if err != nil {
		return k, err
	}
	if err := yaml.Unmarshal([]byte(data["ClusterConfiguration"]), &k); err != nil {
		return k, fmt.Errorf("ConfigMap kube-system/kubeadm-config: %w", err)
	}
	return k, nil
}

// apiServer returns an address of the API server, HOST:PORT, that works without Services: kubeadm's controlPlaneEndpoint, else
// the first endpoint of the Service kubernetes, else "".
func (i *Installer) apiServer(ctx context.Context) (string, error) {
	k, err := i.kubeadmConfig(ctx)
	if err != nil {
		return "", err
	}
	if host, port, err := net.SplitHostPort(k.ControlPlaneEndpoint); err == nil && host != "" && port != "" {
		return k.ControlPlaneEndpoint, nil
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
