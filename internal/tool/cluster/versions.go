package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Versions that were seen to work together. To take a newer one, change it here: the cache's key follows.
const (
	kubernetesVersion = "1.36.3"
	flannelVersion    = "0.28.4"
	// flannelPluginImage is the tag that flannel's manifest asks for.
	flannelPluginImage  = "v1.9.1-flannel1"
	flannelManifestFile = "kube-flannel.yml"
	kubeRouterVersion   = "2.2.1"
)

// Images that the tool makes. Those of upstream manifests bear the names that the manifests ask for.
const (
	pauseImage     = "cnibench.local/pause:1"
	busyboxImage   = "cnibench.local/busybox:1"
	kubeProxyImage = "registry.k8s.io/kube-proxy:v" + kubernetesVersion
	flannelImage   = "ghcr.io/flannel-io/flannel:v" + flannelVersion
	pluginImage    = "ghcr.io/flannel-io/flannel-cni-plugin:" + flannelPluginImage
	// kubeRouterImage is that of the policy controller, as its own manifests name it.
	kubeRouterImage = "docker.io/cloudnativelabs/kube-router:v" + kubeRouterVersion
)

// component is what one Go module of our own builds: it requires the upstream module and nothing else.
type component struct {
	name string
	// module and version are required; replace lists further modules that are replaced by the version given.
	module, version string
	replace         []string
	replaceVersion  string
	// fork replaces module, at the same version.
	fork string
	// packages are built into programs named after their last element, or into as when there is only one.
	packages []string
	as       string
	// ldflags are added to -s -w.
	ldflags string
	// main is a file of the upstream module that becomes our own main package, without the imports named in without.
	main    string
	without []string
	// keep are files of the upstream module that are copied into the cache, under their last element.
	keep []string
	// policies says that only clusters that enforce NetworkPolicies need it.
	policies bool
}

// staging are the modules that live inside Kubernetes' own tree, where its go.mod points by relative path.
var staging = strings.Fields(`api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider
	cluster-bootstrap code-generator component-base component-helpers controller-manager cri-api cri-client cri-streaming
	csi-translation-lib dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator kube-controller-manager
	kube-proxy kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission sample-apiserver
	sample-cli-plugin sample-controller streaming`)

// imageRevision counts changes of what is put into images; the rest of the cache stays as it is.
const imageRevision = 2

// components in the order in which they are built: the quick ones first.
var components = []component{
	{
		name: "CNI plugins", module: "github.com/containernetworking/plugins", version: "1.9.1",
		packages: below("github.com/containernetworking/plugins/plugins", "main/bridge", "main/ptp", "main/loopback", "ipam/host-local", "meta/portmap"),
	},
	{
		name: "flannel's CNI plugin", module: "github.com/containernetworking/plugins", version: "0.9.1", // the last that had it
		packages: below("github.com/containernetworking/plugins/plugins", "meta/flannel"),
	},
	{
		name: "containerd", module: "github.com/containerd/containerd/v2", version: "2.4.2",
		packages: below("github.com/containerd/containerd/v2/cmd", "containerd", "containerd-shim-runc-v2", "ctr"),
	},
	{
		name: "etcd", module: "go.etcd.io/etcd/server/v3", version: "3.6.16",
		packages: []string{"go.etcd.io/etcd/server/v3"}, as: "etcd",
	},
	{
		name: "kubernetes", module: "k8s.io/kubernetes", version: kubernetesVersion,
		replace: below("k8s.io", staging...), replaceVersion: strings.Replace(kubernetesVersion, "1.", "0.", 1),
		packages: below("k8s.io/kubernetes/cmd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"),
		ldflags: "-X k8s.io/component-base/version.gitVersion=v" + kubernetesVersion +
			" -X k8s.io/client-go/pkg/version.gitVersion=v" + kubernetesVersion,
	},
	{
		// Two backends of flannel are left out: the module of tencentvpc is not always available, and udp needs cgo.
		name: "flannel", module: "github.com/flannel-io/flannel", version: flannelVersion,
		main: "main.go", without: []string{"pkg/backend/tencentvpc", "pkg/backend/udp"}, as: "flanneld",
		keep:    []string{"Documentation/" + flannelManifestFile},
		ldflags: "-X github.com/flannel-io/flannel/pkg/version.Version=v" + flannelVersion,
	},
	{
		// The fork of K3s: the checksum database has no available version of the upstream module.
		name: "kube-router", module: "github.com/cloudnativelabs/kube-router/v2", version: kubeRouterVersion,
		fork:     "github.com/k3s-io/kube-router/v2",
		packages: []string{"github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"},
		ldflags:  "-X github.com/cloudnativelabs/kube-router/v2/pkg/version.Version=v" + kubeRouterVersion,
		policies: true,
	},
}

// cniPlugins are copied into the node, where DaemonSets of CNIs may add to them.
var cniPlugins = []string{"bridge", "ptp", "loopback", "host-local", "portmap", "flannel"}

// debianPackages are taken as Debian ships them: what needs C to build.
var debianPackages = []string{"runc", "busybox-static"}

func below(parent string, names ...string) []string {
	paths := make([]string, len(names))
	for i, n := range names {
		paths[i] = parent + "/" + n
	}
	return paths
}

// programs are the files that a component leaves in the cache.
func (c component) programs() []string {
	if c.as != "" {
		return []string{c.as}
	}
	names := make([]string, len(c.packages))
	for i, p := range c.packages {
		names[i] = path.Base(p)
	}
	return names
}

// goMod is the text of the module that builds the component. Checksums come from the Go checksum database.
func (c component) goMod() string {
	var b strings.Builder
	fmt.Fprintf(&b, "module e2e/build\n\ngo 1.26.0\n\nrequire %s v%s\n", c.module, c.version)
	if len(c.replace) > 0 {
		b.WriteString("\nreplace (\n")
		for _, m := range c.replace {
			fmt.Fprintf(&b, "\t%s => %s v%s\n", m, m, c.replaceVersion)
		}
		b.WriteString(")\n")
	}
	if c.fork != "" {
		fmt.Fprintf(&b, "\nreplace %s => %s v%s\n", c.module, c.fork, c.version)
	}
	return b.String()
}

// key names the directory of what the component leaves on an architecture: it is built anew when its own definition
// changes, and not when that of another does.
func (c component) key(arch string) string {
	return strings.NewReplacer(" ", "-", "'", "").Replace(c.name) + "-" + c.version + "-" +
		digest(c.goMod(), c.packages, c.as, c.ldflags, c.main, c.without, c.keep, arch)
}

// cacheKey names the directory of everything built from these versions on this architecture.
func cacheKey(arch string) string {
	var keys []any
	for _, c := range components {
		keys = append(keys, c.key(arch))
	}
	return digest(append(keys, debianPackages, flannelPluginImage, arch)...)
}

func digest(parts ...any) string {
	h := sha256.New()
	fmt.Fprintln(h, parts...)
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// withoutImports drops the lines that import packages whose path ends in one of the names.
func withoutImports(text string, names []string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(strings.TrimSpace(line), "/"+n+`"`) }) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
