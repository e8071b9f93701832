package main

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"text/template"
	"time"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.ParseFS(templateFiles, "templates/*"))

// values are the variables of the templates.
type values struct {
	constants
	Cluster, Server, User   string
	CA, Cert, Key           string
	Proxy                   string
	Namespace, ReservedCPUs string
	// Routes makes kube-router connect pods as well.
	Routes bool
}

// constants are the same for every template and every cluster.
type constants struct {
	DNS, APIService, PodRanges, ServiceRanges                                string
	PauseImage, KubeProxyImage, BusyboxImage, KubeRouterImage, ResolverImage string
}

func render(name string, v values) ([]byte, error) {
	v.constants = constants{
		dnsService, apiService, podRanges, serviceRanges,
		pauseImage, kubeProxyImage, busyboxImage, kubeRouterImage, resolverImage,
	}
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, name, v)
	return b.Bytes(), err
}

// files are contents by name, below a node's /etc/kubernetes.
type files map[string][]byte

func (f files) pair(name string, p keyPair) { f[name+".crt"], f[name+".key"] = p.Cert, p.Key }

// machineFacts are the facts of the machine that a configuration depends on.
type machineFacts struct {
	// HostServer is the address at which the machine itself reaches the API server.
	HostServer string
	// ReservedCPUs are the CPUs that pods do not use, "" for none.
	ReservedCPUs string
	Now          time.Time
}

// clusterFiles returns the configuration files of every node, by its name, and the administrator's kubeconfig for this
// machine.
func clusterFiles(r request, m machineFacts) (map[string]files, []byte, error) {
	ca, err := newAuthority(m.Now)
	if err != nil {
		return nil, nil, err
	}
	nodes := r.nodes()
	server := netip.AddrPortFrom(nodes[0].Addr4, apiPort).String()
	all := map[string]files{}
	for _, n := range nodes {
		f, err := nodeFiles(ca, n, values{Server: server, ReservedCPUs: m.ReservedCPUs})
		if err != nil {
			return nil, nil, fmt.Errorf("configure %s: %w", n.Name, err)
		}
		if n.ControlPlane {
			err = controlPlaneFiles(ca, n, server, f)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("configure the control plane: %w", err)
		}
		all[n.Name] = f
	}
	admin, err := kubeconfig(ca, m.HostServer, "kubernetes-admin", "system:masters")
	return all, admin, err
}

func nodeFiles(ca *authority, n node, v values) (files, error) {
	f := files{"ca.crt": ca.Cert}
	serving, err := ca.issue("system:node:"+n.Name, "system:nodes", n.Name, n.Addr4.String(), n.Addr6.String(), "127.0.0.1")
	if err != nil {
		return nil, err
	}
	f.pair("kubelet", serving)
	if f["kubelet.conf"], err = kubeconfig(ca, v.Server, "system:node:"+n.Name, "system:nodes"); err != nil {
		return nil, err
	}
	for _, name := range []string{"kubelet.yaml", "containerd.toml"} {
		if f[name], err = render(name, v); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func controlPlaneFiles(ca *authority, n node, server string, f files) error {
	f["ca.key"] = ca.Key
	pairs := []struct {
		file, user, group string
		hosts             []string
	}{
		{"apiserver", "kube-apiserver", "", []string{"127.0.0.1", "localhost", n.Addr4.String(), n.Addr6.String(), apiService,
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}},
		{"apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters", nil},
		{"service-account", "service-accounts", "", nil},
	}
	for _, p := range pairs {
		pair, err := ca.issue(p.user, p.group, p.hosts...)
		if err != nil {
			return err
		}
		f.pair(p.file, pair)
	}
	var err1, err2 error
	f["controller-manager.conf"], err1 = kubeconfig(ca, server, "system:kube-controller-manager", "")
	f["scheduler.conf"], err2 = kubeconfig(ca, server, "system:kube-scheduler", "")
	return errors.Join(err1, err2)
}

func kubeconfig(ca *authority, server, user, group string) ([]byte, error) {
	p, err := ca.issue(user, group)
	if err != nil {
		return nil, err
	}
	b64 := base64.StdEncoding.EncodeToString
	return render("kubeconfig", values{
		Cluster: "cnibench-e2e", Server: server, User: user, CA: b64(ca.Cert), Cert: b64(p.Cert), Key: b64(p.Key),
	})
}

// daemon is a program that a node keeps running.
type daemon struct {
	Name string
	Args []string
}

// daemons returns the daemons of a node in the order in which they start. The kubelet's command line has the node's
// identity.
func daemons(n node) []daemon {
	var d []daemon
	if n.ControlPlane {
		d = controlPlane(n)
	}
	return append(d,
		daemon{"containerd", []string{"--config=/etc/kubernetes/containerd.toml", "--log-level=warn"}},
		daemon{"kubelet", []string{
			"--config=/etc/kubernetes/kubelet.yaml", "--kubeconfig=/etc/kubernetes/kubelet.conf",
			"--hostname-override=" + n.Name, "--node-ip=" + n.Addr4.String() + "," + n.Addr6.String(),
			"--node-labels=topology.kubernetes.io/zone=" + n.Zone,
		}})
}

// controlPlane returns daemons that react quickly, so that tests of faults do not wait for minutes: a silent node is
// not ready after 10 s, and its pods are evicted 5 s later.
func controlPlane(n node) []daemon {
	const etc = "/etc/kubernetes/"
	return []daemon{
		{"etcd", []string{"--name=n1", "--data-dir=/var/lib/etcd", "--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
			"--initial-cluster=n1=http://127.0.0.1:2380"}},
		{"kube-apiserver", []string{
			"--etcd-servers=http://127.0.0.1:2379", "--advertise-address=" + n.Addr4.String(), fmt.Sprintf("--secure-port=%d", apiPort),
			"--service-cluster-ip-range=" + serviceRanges, "--authorization-mode=Node,RBAC", "--allow-privileged=true",
			"--enable-admission-plugins=NodeRestriction", "--client-ca-file=" + etc + "ca.crt",
			"--tls-cert-file=" + etc + "apiserver.crt", "--tls-private-key-file=" + etc + "apiserver.key",
			"--kubelet-certificate-authority=" + etc + "ca.crt", "--kubelet-client-certificate=" + etc + "apiserver-kubelet-client.crt",
			"--kubelet-client-key=" + etc + "apiserver-kubelet-client.key", "--kubelet-preferred-address-types=InternalIP",
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			"--service-account-key-file=" + etc + "service-account.crt", "--service-account-signing-key-file=" + etc + "service-account.key",
			"--default-not-ready-toleration-seconds=5", "--default-unreachable-toleration-seconds=5"}},
		{"kube-controller-manager", []string{
			"--kubeconfig=" + etc + "controller-manager.conf", "--leader-elect=false", "--use-service-account-credentials",
			"--allocate-node-cidrs", "--cluster-cidr=" + podRanges, "--service-cluster-ip-range=" + serviceRanges,
			"--root-ca-file=" + etc + "ca.crt", "--service-account-private-key-file=" + etc + "service-account.key",
			"--cluster-signing-cert-file=" + etc + "ca.crt", "--cluster-signing-key-file=" + etc + "ca.key",
			"--node-monitor-period=1s", "--node-monitor-grace-period=10s"}},
		{"kube-scheduler", []string{"--kubeconfig=" + etc + "scheduler.conf", "--leader-elect=false"}},
	}
}

// conflist returns the CNI configuration of a node for the plugins without a daemon, and for the bridge of kube-router.
func conflist(cni string, podCIDRs []netip.Prefix) ([]byte, error) {
	var ranges [][]map[string]string
	var routes []map[string]string
	for _, p := range podCIDRs {
		ranges = append(ranges, []map[string]string{{"subnet": p.String()}})
		everywhere := netip.PrefixFrom(p.Addr(), 0).Masked()
		routes = append(routes, map[string]string{"dst": everywhere.String()})
	}
	ipam := map[string]any{"type": "host-local", "ranges": ranges}
	plugin := map[string]any{"type": cni, "ipam": ipam}
	bridge := "cni0"
	switch cni {
	case kubeRouter:
		plugin["type"], bridge = "bridge", "kube-bridge"
		fallthrough
	case "bridge":
		plugin["bridge"], plugin["isDefaultGateway"], plugin["hairpinMode"] = bridge, true, true // isDefaultGateway also makes its default routes
	case "ptp":
		ipam["routes"] = routes
	default:
		return nil, fmt.Errorf("no CNI configuration for %q", cni)
	}
	return json.MarshalIndent(map[string]any{
		"cniVersion": "1.0.0", "name": "cnibench-e2e",
		"plugins": []any{plugin, map[string]any{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}}},
	}, "", "  ")
}

// flannelManifest returns flannel's own manifest with the backend and both address families of this cluster.
func flannelManifest(upstream, backend string) (string, error) {
	const network, vxlan = `"Network": "` + podRange4 + `",`, `"Type": "vxlan"`
	if strings.Count(upstream, network) != 1 || strings.Count(upstream, vxlan) != 1 {
		return "", fmt.Errorf("flannel %s: the manifest is not as expected: want one %s and one %s", flannelVersion, network, vxlan)
	}
	return strings.NewReplacer(
		network, network+"\n      \"EnableIPv6\": true,\n      \"IPv6Network\": \""+podRange6+"\",",
		vxlan, `"Type": "`+backend+`"`,
	).Replace(upstream), nil
}

// parsePodCIDRs parses the answer of `kubectl get nodes -o json`. It omits nodes without ranges.
func parsePodCIDRs(text []byte) (map[string][]netip.Prefix, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ PodCIDRs []netip.Prefix }
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("list of nodes: %w", err)
	}
	ranges := map[string][]netip.Prefix{}
	for _, n := range list.Items {
		if len(n.Spec.PodCIDRs) > 0 {
			ranges[n.Metadata.Name] = n.Spec.PodCIDRs
		}
	}
	return ranges, nil
}
