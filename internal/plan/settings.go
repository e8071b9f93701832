package plan

import "time"

// settings are all of them, in the order of the documents.
var settings []Setting

// init breaks the circle that a list of variants is a setting, and has settings.
func init() { settings = labSettings }

// labSettings are the conditions of the lab.
var labSettings = []Setting{
	setting(Setting{Key: "lab.nodes", Flag: "nodes", Where: InLab, Help: "`number` of nodes of each profile"},
		whole(2, MaxNodes), func(p *Plan) *int { return &p.Lab.Nodes }),
	setting(Setting{Key: "lab.podsPerNode", Flag: "pods-per-node", Where: InLab, PerVariant: true, Help: "`number` of pods on each node"},
		whole(2, MaxPodsPerNode), func(p *Plan) *int { return &p.Lab.PodsPerNode }),
	setting(Setting{Key: "lab.nic", Flag: "nic", Where: InLab, PerVariant: true, Help: "NIC `model`: wire (segmentation off) or ideal (super-packets cross)"},
		oneOf("wire", "ideal"), func(p *Plan) *string { return &p.Lab.NIC }),
	setting(Setting{Key: "lab.cpu", Flag: "cpu", Where: InLab, Help: "CPU `placement`: one CPU, split between nodes, or auto"},
		oneOf("auto", "one", "split"), func(p *Plan) *string { return &p.Lab.CPU }),
	setting(Setting{Key: "lab.mtu", Flag: "mtu", Where: InLab, PerVariant: true, Help: "MTU of the switch and the node NICs in `bytes`"},
		whole(1280, 9000), func(p *Plan) *int { return &p.Lab.MTU }),
	setting(Setting{Key: "lab.lineRate", Flag: "line-rate", Where: InLab, Help: "`rate` of each node NIC, such as 1G; 0 is unshaped"},
		lineRates, func(p *Plan) *float64 { return &p.Lab.LineRate }),
	setting(Setting{Key: "lab.delay", Flag: "delay", Where: InLab, PerVariant: true, Help: "`time` that each wire delays, to test the measurement"},
		spans(0, MaxDelay), func(p *Plan) *time.Duration { return &p.Lab.Delay }),
	setting(Setting{Key: "lab.loss", Flag: "loss", Where: InLab, PerVariant: true, Help: "`share` that each wire loses, such as 1%, to test the measurement"},
		lossShares(), func(p *Plan) *float64 { return &p.Lab.Loss }),
	setting(Setting{Key: "lab.services", Flag: "services", Where: InLab, PerVariant: true, Help: "`number` of Services besides the measured ones"},
		whole(0, MaxServices), func(p *Plan) *int { return &p.Lab.Services }),
	setting(Setting{Key: "lab.iptables", Flag: "iptables", Where: InLab, Help: "iptables `backend`: nft, legacy or auto"},
		oneOf("auto", "nft", "legacy"), func(p *Plan) *string { return &p.Lab.Iptables }),
	setting(Setting{Key: "lab.serviceProxy", Flag: "service-proxy", Where: InLab, PerVariant: true, Help: "kube-proxy `mode`: iptables, nftables or ipvs"},
		oneOf("iptables", "nftables", "ipvs"), func(p *Plan) *string { return &p.Lab.ServiceProxy }),
	setting(Setting{Key: "lab.family", Flag: "family", Where: Everywhere, Help: "`version` of IP: 4 or 6"},
		families, func(p *Plan) *int { return &p.Lab.Family }),
	setting(Setting{Key: "lab.trafficPolicy", Flag: "traffic-policy", Where: Everywhere, PerVariant: true, Help: "`externalTrafficPolicy` of the measured Services: Cluster or Local"},
		oneOf("Cluster", "Local"), func(p *Plan) *string { return &p.Lab.TrafficPolicy }),
	setting(Setting{Key: "lab.policies", Flag: "policies", Where: InLab, PerVariant: true, Help: "`number` of NetworkPolicies that select every pod"},
		whole(0, MaxPolicies), func(p *Plan) *int { return &p.Lab.Policies }),
	setting(Setting{Key: "lab.policiesUnselected", Flag: "policies-unselected", Where: InLab, PerVariant: true, Help: "`number` of NetworkPolicies that select no pod"},
		whole(0, MaxPolicies), func(p *Plan) *int { return &p.Lab.PoliciesUnselected }),
}
