package config

import (
	"slices"
	"strings"
)

const flannel = "flannel"

// newFlannel returns the values of chart flannel or rke2-flannel.
func newFlannel(chart string) *values {
	v := newValues("chart "+chart, map[string]string{"flannel.backend": "vxlan", "flannel.enableNFTables": "false"})
	if chart == "rke2-flannel" {
		v.defaults["flannel.backendPort"], v.defaults["flannel.vni"] = "4789", "4096"
	}
	return v
}

func newNetconf() *values { return newValues("flannel", map[string]string{"Backend.Type": "vxlan"}) }

// newCanal returns the values of chart rke2-canal.
func newCanal() *values {
	return newValues("chart rke2-canal", map[string]string{"flannel.backend": "vxlan", "calico.vethuMTU": "1450"})
}

var flannelSchema = schema{
	of: "the chart (flannel 0.28)",
	below: map[string]string{
		"": "flannel global netpol podCidr podCidrv6",
		"flannel": `GBP args backend backendPort backendPortv6 cniBinDir cniConf cniConfDir directRouting enableNFTables flannel_cni healthz
image image_cni keepaliveInterval macPrefix mtu nodeSelector psk resources skipCNIConfigInstallation tolerations tunnelMode vni`,
	},
	moved: []moved{
		{"flannel.backendType", "moved-key", "is not read: flannel.backend is"},
		{"backend", "moved-key", "is not read: flannel.backend is"},
	},
}

var netconfSchema = schema{
	of: "net-conf.json (flannel 0.28)",
	below: map[string]string{
		"": `Backend EnableIPv4 EnableIPv6 EnableNFTables IPv6Network IPv6SubnetLen IPv6SubnetMax IPv6SubnetMin Network SubnetLen SubnetMax
SubnetMin`,
		"Backend": "DirectRouting GBP KeepaliveInterval Learning ListenPort ListenPortV6 MTU MacPrefix Mode PSK PersistentKeepaliveInterval Port Type VNI Name",
	},
}

var canalSchema = schema{
	of: "the chart (rke2-canal)",
	below: map[string]string{
		"":        "calico calico_init flannel flexvol global podCidr podCidrv6",
		"flannel": "GBP args backend backendPort backendPortv6 directRouting iface image keepaliveInterval macPrefix mtu psk regexIface resources tunnelMode vni",
		"calico": `calicoKubeControllers clusterType cniImage datastoreType disableFileLogging felixConfiguration
felixDefaultEndpointToHostAction felixFailsafeInboundHostPorts felixFailsafeOutboundHostPorts felixHealthEnabled felixIptablesBackend
felixIptablesMarkMask felixIptablesRefreshInterval felixIpv6Support felixLogSeverityScreen felixPrometheusMetricsEnabled
felixXDPEnabled flexVolumePluginDir flexvolImage ip6AutoDetectionMethod ipAutoDetectionMethod kubeControllerImage livenessProbe
masquerade networkingBackend nodeImage readinessProbe resources typhaServiceName usePodCIDR vethuMTU waitForDatastore`,
	},
	moved: []moved{
		{"calico.vethMTU", "moved-key", "is not read: calico.vethuMTU is, with a u"},
		{"calico.mtu", "moved-key", "is not read: calico.vethuMTU is"},
	},
}

// backends are flannel's, with the profile of ours and the pod MTU that each leaves of 1500 bytes, which canal must be told.
var backends = map[string]struct {
	profile string
	mtu     int
}{
	"vxlan": {"flannel-vxlan", 1450}, "host-gw": {"flannel-host-gw", 1500}, "wireguard": {"flannel-wireguard", 1420},
	"wireguard-native": {"flannel-wireguard", 1420}, "ipip": {"", 1480}, "udp": {"", 1472}, "alloc": {"", 0}, "extension": {"", 0},
	"ipsec": {"", 0}, "tencent-vpc": {"", 0},
}

// names of the same settings in net-conf.json, in the charts, and in K3s.
type flannelNames struct{ backend, direct, port, vni, mtu string }

func (j *judge) judgeFlannel() {
	switch {
	case j.netconf != nil:
		j.unknownKeys(j.netconf, netconfSchema)
		j.flannelBackend(flannel, j.netconf, flannelNames{"Backend.Type", "Backend.DirectRouting", "Backend.Port", "Backend.VNI", "Backend.MTU"})
	case j.flannel != nil:
		j.unknownKeys(j.flannel, flannelSchema)
		j.flannelBackend(flannel, j.flannel, flannelNames{"flannel.backend", "flannel.directRouting", "flannel.backendPort", "flannel.vni", "flannel.mtu"})
	case j.k3s != nil && !j.k3s.at("flannel-backend").is("none") && j.cilium == nil && j.agent == nil && j.installation == nil:
		j.flannelBackend("k3s", j.k3s, flannelNames{backend: "flannel-backend"})
	}
}

// flannelBackend judges one configuration of flannel, whose settings have these names.
func (j *judge) flannelBackend(component string, v *values, names flannelNames) {
	backend := v.at(names.backend)
	b, ok := backends[strings.ToLower(backend.text)]
	if component != "k3s" {
		j.showGiven(component, v, names.backend)
	}
	if !ok {
		j.find("flannel-backend", backend, "%s: %s", names.backend, backend.text)
		j.Measured = append(j.Measured, Measured{Title: "nothing: flannel has no backend " + backend.text})
		return
	}
	for _, p := range []string{names.direct, names.port, names.vni, names.mtu} {
		if p != "" && v.at(p).text != "" {
			j.showGiven(component, v, p)
		}
	}
	j.backendOptions(backend, v, names)
	// Its MTU is the underlay's: flannel takes the encapsulation off by itself (pkg/backend/vxlan and wireguard, device.go).
	var but []string
	if port := v.at(names.port); names.port != "" && port.text == "4789" && backend.is("vxlan") {
		j.find("tunnel-number", port, "UDP port %s, VNI %s, %s", port.text, or(v.at(names.vni).text, "1"), byWhom(port, v.defaultOf))
		but = append(but, "UDP port 4789 and VNI "+or(v.at(names.vni).text, "1"))
	}
	if g := v.at(names.direct); names.direct != "" && g.on() && (backend.is("vxlan") || backend.is("ipip")) {
		j.find("cross-subnet", g, "%s: true", names.direct)
		but = append(but, "between nodes of one subnet it is flannel-host-gw")
	}
	if j.proxyState().runs == no {
		j.find("no-service-engine", j.proxyState().at, "kube-proxy does not run (%s), and flannel serves no Services", j.proxyState().why)
	}
	if b.profile == "" {
		j.Measured = append(j.Measured, Measured{Title: "flannel with backend " + backend.text + ": not among our profiles", But: but})
		return
	}
	if b.profile == "flannel-wireguard" {
		j.find("encrypted", backend, "%s: %s", names.backend, backend.text)
	}
	j.Measured = append(j.Measured, known(b.profile, but))
}

// backendOptions finds options that the backend does not read.
func (j *judge) backendOptions(backend value, v *values, names flannelNames) {
	reads := map[string][]string{
		"vxlan": {names.direct, names.port, names.vni, names.mtu}, "ipip": {names.direct}, "wireguard": {names.mtu, names.port}, "udp": {names.port},
	}[strings.ToLower(backend.text)]
	for _, p := range []string{names.direct, names.port, names.vni, names.mtu} {
		if g := v.at(p); p != "" && g.given() && !empty(g.text) && !slices.Contains(reads, p) {
			j.find("backend-unused", g, "%s: %s with backend %s", p, g.text, backend.text)
		}
	}
}

// judgeCanal judges RKE2's default: Calico's policy over flannel.
func (j *judge) judgeCanal() {
	v := j.canal
	j.unknownKeys(v, canalSchema)
	j.showAll("canal", v, "flannel.backend", "calico.vethuMTU")
	backend := v.at("flannel.backend")
	b, ok := backends[strings.ToLower(backend.text)]
	if !ok {
		j.find("flannel-backend", backend, "flannel.backend: %s", backend.text)
	}
	if mtu := v.at("calico.vethuMTU"); mtu.given() {
		j.room(mtu, backend.text, b.mtu)
	}
	if proxy := j.proxyState(); proxy.runs == no {
		j.find("no-service-engine", proxy.at, "kube-proxy does not run (%s), and canal serves no Services", proxy.why)
	}
	var but []string
	if !backend.is("vxlan") {
		but = append(but, "flannel's backend is "+backend.text+" in place of vxlan")
	}
	j.Measured = append(j.Measured, known("canal", but))
}
