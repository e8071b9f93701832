package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Versions that were tested together. To use a newer one, change it here: the cache's key follows.
const (
	kubernetesVersion = "1.36.3"
	flannelVersion    = "0.28.4"
	// flannelPluginImage is the tag in flannel's manifest.
	flannelPluginImage  = "v1.9.1-flannel1"
	flannelManifestFile = "kube-flannel.yml"
	kubeRouterVersion   = "2.2.1"
	ciliumVersion       = "1.20.2"
)

// Images that the tool makes. Those of upstream manifests have the names in the manifests.
const (
	pauseImage     = "cnibench.local/pause:1"
	busyboxImage   = "cnibench.local/busybox:1"
	resolverImage  = "cnibench.local/resolver:1"
	kubeProxyImage = "registry.k8s.io/kube-proxy:v" + kubernetesVersion
	flannelImage   = "ghcr.io/flannel-io/flannel:v" + flannelVersion
	pluginImage    = "ghcr.io/flannel-io/flannel-cni-plugin:" + flannelPluginImage
	// kubeRouterImage has its name in its own manifests.
	kubeRouterImage = "docker.io/cloudnativelabs/kube-router:v" + kubeRouterVersion
	// The images of Cilium have their names in its chart.
	ciliumImage   = "quay.io/cilium/cilium:v" + ciliumVersion
	operatorImage = "quay.io/cilium/operator-generic:v" + ciliumVersion
)

// The parts that only some clusters have, with what is built only for them.
const (
	flannel    = "flannel"
	cilium     = "cilium"
	kubeProxy  = "kube-proxy"
	kubeRouter = "kube-router"
	resolver   = "resolver"
)

// clang is the compiler of Cilium's own image.
const clang = "clang-19"

// component is one of our own Go modules that builds upstream programs. It requires the upstream module. It requires
// other modules only if a version that the upstream module requires is not available.
type component struct {
	name string
	// module and version are required. replace lists other modules that are replaced by the given versions.
	module, version string
	replace         []string
	replaceVersion  string
	// also are further requirements, as "module version".
	also []string
	// standIn replaces a module by a package of ours.
	standIn standIn
	// fork replaces module, at the same version.
	fork string
	// packages are built into programs named after their last element, or into NAME if they are "NAME=path".
	packages []string
	// ldflags are added to -s -w; tags are the build tags.
	ldflags, tags string
	// main is a file of the upstream module that becomes our own main package, without the imports named in without.
	main    string
	without []string
	// keep are files and directories of the upstream module that are copied into the cache, under their last element.
	keep []string
	// only is the part that makes a cluster need the component; "" is every cluster.
	only string
}

// standIn is a module of one file.
type standIn struct{ module, text string }

// staging are the modules inside Kubernetes' own tree, which its go.mod replaces by relative paths.
var staging = strings.Fields(`api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider
	cluster-bootstrap code-generator component-base component-helpers controller-manager cri-api cri-client cri-streaming
	csi-translation-lib dynamic-resource-allocation endpointslice externaljwt kms kube-aggregator kube-controller-manager
	kube-proxy kube-scheduler kubectl kubelet metrics mount-utils pod-security-admission sample-apiserver
	sample-cli-plugin sample-controller streaming`)

// imageRevision counts changes of the contents of images; the rest of the cache remains valid.
const imageRevision = 5

// components in the order in which they are built: the quick ones first.
var components = []component{
	{
		name: "CNI plugins", module: "github.com/containernetworking/plugins", version: "1.9.1",
		packages: below("github.com/containernetworking/plugins/plugins", "main/bridge", "main/ptp", "main/loopback", "ipam/host-local", "meta/portmap"),
	},
	{
		name: "flannel's CNI plugin", module: "github.com/containernetworking/plugins", version: "0.9.1", // the last version that has it
		packages: below("github.com/containernetworking/plugins/plugins", "meta/flannel"),
	},
	{
		name: "containerd", module: "github.com/containerd/containerd/v2", version: "2.4.2",
		packages: below("github.com/containerd/containerd/v2/cmd", "containerd", "containerd-shim-runc-v2", "ctr"),
	},
	{
		name: "etcd", module: "go.etcd.io/etcd/server/v3", version: "3.6.16",
		packages: []string{"etcd=go.etcd.io/etcd/server/v3"},
	},
	{
		name: "kubernetes", module: "k8s.io/kubernetes", version: kubernetesVersion,
		replace: below("k8s.io", staging...), replaceVersion: strings.Replace(kubernetesVersion, "1.", "0.", 1),
		packages: below("k8s.io/kubernetes/cmd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"),
		ldflags: "-X k8s.io/component-base/version.gitVersion=v" + kubernetesVersion +
			" -X k8s.io/client-go/pkg/version.gitVersion=v" + kubernetesVersion,
	},
	{
		// Two backends of flannel are omitted: the module of tencentvpc is not always available, and udp needs cgo.
		name: "flannel", only: flannel, module: "github.com/flannel-io/flannel", version: flannelVersion,
		packages: []string{"flanneld=."}, main: "main.go", without: []string{"pkg/backend/tencentvpc", "pkg/backend/udp"},
		keep:    []string{"Documentation/" + flannelManifestFile},
		ldflags: "-X github.com/flannel-io/flannel/pkg/version.Version=v" + flannelVersion,
	},
	{
		// The fork of K3s: the checksum database has no available version of the upstream module.
		name: kubeRouter, module: "github.com/cloudnativelabs/kube-router/v2", version: kubeRouterVersion,
		fork:     "github.com/k3s-io/kube-router/v2",
		packages: []string{"github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"},
		ldflags:  "-X github.com/cloudnativelabs/kube-router/v2/pkg/version.Version=v" + kubeRouterVersion,
		only:     kubeRouter,
	},
	{
		// The version of gobgp is the release after the commit that Cilium requires. The operator needs only one name
		// of the module of multi-cluster Services, which is not always available; the stand-in has it.
		name: "cilium", module: "github.com/cilium/cilium", version: ciliumVersion,
		also: []string{"github.com/osrg/gobgp/v4 v4.7.0"},
		standIn: standIn{"sigs.k8s.io/mcs-api/controllers", "package controllers\n\n" +
			"const DerivedServiceAnnotation = \"multicluster.kubernetes.io/derived-service\"\n"},
		packages: []string{
			"github.com/cilium/cilium/plugins/cilium-cni", "cilium-agent=github.com/cilium/cilium/daemon",
			"cilium-health-responder=github.com/cilium/cilium/cilium-health/responder", "cilium-mount=github.com/cilium/cilium/tools/mount",
			"cilium-sysctlfix=github.com/cilium/cilium/tools/sysctlfix", "github.com/cilium/cilium/cilium-dbg",
			"cilium-operator-generic=github.com/cilium/cilium/operator",
		},
		tags: "ipam_provider_operator",
		// Version, commit and date; a module has the first.
		ldflags: "-X 'github.com/cilium/cilium/pkg/version.ciliumVersion=" + ciliumVersion + " module v" + ciliumVersion + "'",
		keep: []string{"bpf", "install/kubernetes/cilium", "images/cilium/init-container.sh",
			"plugins/cilium-cni/install-plugin.sh", "plugins/cilium-cni/cni-uninstall.sh"},
		only: cilium,
	},
}

// cniPlugins are copied into the node, to a directory where DaemonSets of CNIs may add others.
var cniPlugins = []string{"bridge", "ptp", "loopback", "host-local", "portmap", "flannel"}

// debianPackages have the programs that need C to build; they are used as Debian ships them.
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
	names := make([]string, len(c.packages))
	for i, p := range c.packages {
		names[i], _ = program(p)
	}
	return names
}

// program splits an entry of component.packages.
func program(entry string) (name, pkg string) {
	if name, pkg, ok := strings.Cut(entry, "="); ok {
		return name, pkg
	}
	return path.Base(entry), entry
}

// goMod returns the go.mod of the module that builds the component. Checksums come from the Go checksum database.
func (c component) goMod() string {
	var b strings.Builder
	fmt.Fprintf(&b, "module e2e/build\n\ngo 1.26.0\n\nrequire %s v%s\n", c.module, c.version)
	for _, r := range c.also {
		fmt.Fprintf(&b, "require %s\n", r)
	}
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
	if c.standIn.module != "" {
		fmt.Fprintf(&b, "\nreplace %s => ./%s\n", c.standIn.module, standInDir)
	}
	return b.String()
}

// standInDir is the directory of the stand-in within the module that builds a component.
const standInDir = "standin"

// key returns the name of the directory of a component's results on an architecture. It changes with the component's
// own definition, and not with that of another.
func (c component) key(arch string) string {
	return strings.NewReplacer(" ", "-", "'", "").Replace(c.name) + "-" + c.version + "-" +
		digest(c.goMod(), c.standIn, c.packages, c.ldflags, c.tags, c.main, c.without, c.keep, arch)
}

// cacheKey returns the name of the directory of everything built from these versions on this architecture.
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

// withoutImports removes the lines that import a package whose path ends in one of the names.
func withoutImports(text string, names []string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(strings.TrimSpace(line), "/"+n+`"`) }) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
