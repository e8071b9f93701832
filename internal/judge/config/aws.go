package config

import (
	"fmt"
	"strings"
)

const awsVPC = "aws-vpc"

// awsDialect reads the DaemonSet aws-node, its chart, and the EKS add-on, whose settings are the chart's.
var awsDialect = dialect{
	daemon: true,
	defaults: values{reader: "aws-node", defaults: map[string]string{
		"AWS_VPC_ENI_MTU": "9001", "POD_MTU": "", "AWS_VPC_K8S_CNI_EXTERNALSNAT": "false", "AWS_VPC_K8S_CNI_RANDOMIZESNAT": "prng",
		"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS": "", "AWS_VPC_CNI_NODE_PORT_SUPPORT": "true", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "false",
		"ENABLE_PREFIX_DELEGATION": "false", "WARM_ENI_TARGET": "1", "WARM_IP_TARGET": "0", "WARM_PREFIX_TARGET": "1", "MINIMUM_IP_TARGET": "0",
		"ENABLE_POD_ENI": "false", "POD_SECURITY_GROUP_ENFORCING_MODE": "strict", "DISABLE_TCP_EARLY_DEMUX": "false",
		"ENABLE_IPv4": "true", "ENABLE_IPv6": "false", "ENABLE_MULTI_NIC": "false", "AWS_EXTERNAL_SERVICE_CIDRS": "",
		"enable-network-policy": "false", "NETWORK_POLICY_ENFORCING_MODE": "standard", "conntrack-cache-table-size": "524288", "VPC_CNI_VERSION": "", "aws-node.image": "",
	}},
	shown: []string{"AWS_VPC_ENI_MTU", "AWS_VPC_K8S_CNI_EXTERNALSNAT", "AWS_VPC_K8S_CNI_RANDOMIZESNAT", "ENABLE_PREFIX_DELEGATION", "ENABLE_POD_ENI", "enable-network-policy"},
	other: map[string]string{"image.tag": "VPC_CNI_VERSION", "enableNetworkPolicy": "enable-network-policy", "nodeAgent.conntrackCacheTableSize": "conntrack-cache-table-size", "nodeAgent.env.NETWORK_POLICY_ENFORCING_MODE": "NETWORK_POLICY_ENFORCING_MODE"},
	judge: judgeAWS,
}

func judgeAWS(j *judge, v *values) {
	var but []string
	judgeAWSRefusals(j, v)
	judgeAWSMTU(j, v)
	j.addWire(awsVPC, "none", value{origin: Default, by: "aws-node: pods have addresses of the VPC"}, "none", value{origin: Default, by: "aws-node"})
	snat := v.at("AWS_VPC_K8S_CNI_EXTERNALSNAT")
	if snat.isOn() {
		j.addFinding("snat-elsewhere", snat, "%s: true", snat.path)
		reportUnused(j, v, "with AWS_VPC_K8S_CNI_EXTERNALSNAT: true", "AWS_VPC_K8S_CNI_RANDOMIZESNAT", "AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS")
		but = append(but, "the node does not translate pods' addresses, and does not mark their connections")
	} else {
		isOneOf(j, v, "AWS_VPC_K8S_CNI_RANDOMIZESNAT", "prng", "hashrandom", "none")
		judgeAWSMarks(j, v)
	}
	if g := v.at("ENABLE_PREFIX_DELEGATION"); g.isOn() {
		j.addFinding("addresses-only", g, "%s: true", g.path)
	} else {
		reportUnused(j, v, "without ENABLE_PREFIX_DELEGATION", "WARM_PREFIX_TARGET")
	}
	if g := v.at("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"); g.isOn() {
		j.addFinding("second-interface", g, "%s: true", g.path)
		but = append(but, "pods are on secondary interfaces")
	}
	but = append(but, judgeAWSBranches(j, v)...)
	if g := v.at("enable-network-policy"); g.isOn() {
		j.addFinding("policy-agent", g, "%s: true", g.path)
		but = append(but, "eBPF programs of the policy agent are on the devices of pods: in the lab "+awsVPC+"(policies-unselected=1)")
	} else {
		reportUnused(j, v, "without the network policy agent", "NETWORK_POLICY_ENFORCING_MODE", "conntrack-cache-table-size")
		j.ignored = append(j.ignored, "the AWS VPC CNI without its policy agent")
	}
	j.addFinding("pods-linear", value{}, "the AWS VPC CNI has one or two routing rules for each pod")
	j.judgeKubeProxyBeside(false, value{}, "the AWS VPC CNI")
	if v.at("ENABLE_IPv6").isOn() {
		j.addUnmatched("the AWS VPC CNI in IPv6: no profile describes it", but...)
		return
	}
	addProfile(j, awsVPC, "the AWS VPC CNI", but...)
}

// judgeAWSRefusals applies the checks that aws-node makes at its start.
func judgeAWSRefusals(j *judge, v *values) {
	four, six := v.at("ENABLE_IPv4"), v.at("ENABLE_IPv6")
	switch {
	case six.isOn() && four.isOn() && four.isGiven():
		addRefusal(j, six, "with ENABLE_IPv4: true")
	case !six.isOn() && !four.isOn():
		addRefusal(j, four, "with ENABLE_IPv6: false")
	case six.isOn() && v.at("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG").isOn():
		addRefusal(j, six, "with AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG: true")
	case six.isOn() && !v.at("ENABLE_PREFIX_DELEGATION").isOn():
		addRefusal(j, six, "without ENABLE_PREFIX_DELEGATION: true")
	}
	warm := v.at("WARM_PREFIX_TARGET")
	if v.at("ENABLE_PREFIX_DELEGATION").isOn() && warm.is("0") && v.at("WARM_IP_TARGET").number() == 0 && v.at("MINIMUM_IP_TARGET").number() == 0 {
		addRefusal(j, warm, "with prefix delegation, and without WARM_IP_TARGET or MINIMUM_IP_TARGET")
	}
}

// judgeAWSMTU judges the MTU of interfaces and pods.
func judgeAWSMTU(j *judge, v *values) {
	nic, pod := v.at("AWS_VPC_ENI_MTU"), v.at("POD_MTU")
	least := 576
	if v.at("ENABLE_IPv6").isOn() {
		least = 1280
	}
	for _, g := range []value{nic, pod} {
		if n := g.number(); g.text != "" && (n < least || n > 9001) {
			addRefusal(j, g, fmt.Sprintf("is not from %d to 9001", least))
			return
		}
	}
	if pod.text == "" {
		pod = nic
	}
	switch {
	case pod.number() > nic.number():
		j.addFinding("mtu-too-large", pod, "POD_MTU: %s, and AWS_VPC_ENI_MTU is %s (%s)", pod.text, nic.text, nic.sourceText())
	case pod.number() > usualMTU:
		j.addFinding("jumbo", pod, "%s: %s (%s)", pod.path, pod.text, pod.sourceText())
	}
	j.Wire = append(j.Wire, Setting{awsVPC, MTU, pod.text, pod.origin, pod.by})
}

// judgeAWSBranches judges security groups for pods. It returns how the cluster then differs from the profile.
func judgeAWSBranches(j *judge, v *values) []string {
	on, mode := v.at("ENABLE_POD_ENI"), v.at("POD_SECURITY_GROUP_ENFORCING_MODE")
	if !on.isOn() {
		reportUnused(j, v, "without ENABLE_POD_ENI", "POD_SECURITY_GROUP_ENFORCING_MODE")
		return nil
	}
	if !mode.is("strict") {
		return []string{"pods with security groups have interfaces of their own (VLANs of the trunk), as in aws-vpc-branch-standard"}
	}
	j.addFinding("branch-strict", on, "ENABLE_POD_ENI: true, and POD_SECURITY_GROUP_ENFORCING_MODE is strict (%s)", mode.sourceText())
	if j.proxyState().mode == "ipvs" {
		j.addFinding("branch-ipvs", mode, "POD_SECURITY_GROUP_ENFORCING_MODE is strict (%s), and kube-proxy runs in mode ipvs", mode.sourceText())
	}
	if demux := v.at("DISABLE_TCP_EARLY_DEMUX"); !demux.isOn() {
		j.addFinding("branch-probes", demux, "DISABLE_TCP_EARLY_DEMUX is %s (%s), and POD_SECURITY_GROUP_ENFORCING_MODE is strict", demux.text, demux.sourceText())
	}
	return []string{"pods with security groups reach each other through the VPC only, on one node, too, as in aws-vpc-branch"}
}

// firstMarkMinor is the first minor version of aws-node that marks connections after kube-proxy's nftables rules.
const firstMarkMinor = 23

// judgeAWSMarks reports a version of aws-node that marks connections before kube-proxy's nftables rules translate them.
func judgeAWSMarks(j *judge, v *values) {
	version := v.at("aws-node.image")
	if version.text = imageTag(version.text); version.text == "" {
		version = v.at("VPC_CNI_VERSION")
	}
	minor, ok := Minor(version.text)
	if ok && minor < firstMarkMinor && strings.EqualFold(j.proxyState().mode, "nftables") {
		j.addFinding("mark-before-service", version, "aws-node is %s, kube-proxy runs in mode nftables, and AWS_VPC_K8S_CNI_EXTERNALSNAT is not true", version.text)
	}
}
