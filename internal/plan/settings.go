package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/plan/kubetext"
	"github.com/cnibench/cnibench/internal/plan/mesh"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// settings stores the result of Settings. It is made on first use, because an agent does not need it.
var settings struct {
	sync.Once
	all []Setting
}

// Settings returns all settings of a plan, in the order in which documents list them.
func Settings() []Setting {
	settings.Do(func() { settings.all = slices.Concat(measureSettings(), labSettings(), clusterSettings()) })
	return settings.all
}

// measureSettings returns the settings for what is measured, how long and how often.
func measureSettings() []Setting {
	return []Setting{
		newSetting(Setting{Key: "name", Where: everywhere, Help: "`text` for reports"}, textValues(nil), func(p *Plan) *string { return &p.Name }),
		newSetting(Setting{Key: "environment", Flag: "env", Where: everywhere, Common: true, Always: true, Help: "`environment`: lab, kubernetes or kind"},
			wordValues(environments...), func(p *Plan) *string { return &p.Environment }),
		newSetting(Setting{Key: "profiles", Flag: "profiles", Where: everywhere, Common: true, Always: true,
			Help: "`names` of profiles or variants, separated by commas (cnibench list profiles)"},
			listValues(ParseVariant, variantSchema(), (*decoder).profilesReader), func(p *Plan) *[]Variant { return &p.Profiles }),
		newSetting(Setting{Key: "sweep", Flag: "sweep", Where: inLab, Common: true,
			Help: "`values` of one condition, such as services=0,1K,10K: each profile is measured at each of them"},
			values[Sweep]{parse: ParseSweep, format: Sweep.String, schema: position.Text}, func(p *Plan) *Sweep { return &p.Sweep }),
		newSetting(Setting{Key: "paths", Flag: "paths", Where: everywhere, Common: true, Always: true,
			Help: "`names` of paths, separated by commas; all is every path but external-to-loadbalancer (cnibench list paths)"},
			pathListValues(), func(p *Plan) *[]Path { return &p.Paths }),
		newSetting(Setting{Key: "workloads", Flag: "workloads", Where: everywhere, Common: true, Always: true,
			Help: "`workloads`, separated by commas, such as rr,stream(udp,rate=1G) (cnibench list workloads)"},
			listValues(ParseWorkload, workloadSchema(), (*decoder).workloadsReader), func(p *Plan) *[]Workload { return &p.Workloads }),
		newSetting(Setting{Key: "flows", Flag: "flows", Where: inLab, PerVariant: true, Help: "`number` of flows of every workload; 0 is as each says"},
			wholeNumberValues(0, maxFlows), func(p *Plan) *int { return &p.Flows }),
		newSetting(Setting{Key: "message", Flag: "message", Where: inLab, PerVariant: true, Help: "`bytes` of every message, request and response; 0 is as each workload says"},
			wholeNumberValues(0, MaxRequest), func(p *Plan) *int { return &p.Message }),
		newSetting(Setting{Key: "pairs", Flag: "pairs", Where: everywhere, Common: true,
			Help: "`pairs` of nodes to measure each case between: all, ring, sample=N, or a file with two names a line"},
			textValues(mesh.Check), func(p *Plan) *string { return &p.Pairs.Which }),
		newSetting(Setting{Key: "concurrency", Flag: "concurrency", Where: everywhere, Help: "`number` of pairs measured at once, without a common node; 0 is 1: pairs share the network"},
			wholeNumberValues(0, maxAtOnce), func(p *Plan) *int { return &p.Pairs.Concurrency }),
		newSetting(Setting{Key: "repetitions", Flag: "repetitions", Where: everywhere, Common: true, Always: true, Help: "`number` of times that each case is measured at least"},
			wholeNumberValues(1, MaxRepetitionsLimit), func(p *Plan) *int { return &p.Repetitions }),
		newSetting(Setting{Key: "maxRepetitions", Flag: "max-repetitions", Where: everywhere, Help: "`number` of times at most, to reach the precision"},
			wholeNumberValues(0, MaxRepetitionsLimit), func(p *Plan) *int { return &p.MaxRepetitions }),
		newSetting(Setting{Key: "precision", Flag: "precision", Where: everywhere, Help: "measure on until decided or of this half-width, a `share` such as 0.05 or 5%"},
			precisions, func(p *Plan) *float64 { return &p.Precision }),
		newSetting(Setting{Key: "margin", Flag: "margin", Where: everywhere, Help: "`share` up to which a difference does not matter, such as 3%; 0 is 3%"},
			precisions, func(p *Plan) *float64 { return &p.Margin }),
		newSetting(Setting{Key: "duration", Flag: "duration", Where: everywhere, Common: true, Always: true, Help: "measurement `window` of each trial, such as 500ms"},
			windowValues(), func(p *Plan) *time.Duration { return &p.Duration }),
		newSetting(Setting{Key: "warmup", Flag: "warmup", Where: everywhere, Help: "`time` that is discarded before each window"},
			durationValues(0, maxWindow), func(p *Plan) *time.Duration { return &p.Warmup }),
		newSetting(Setting{Key: "budget", Flag: "budget", Where: everywhere, Common: true, Always: true, Help: "`time` that the whole run may take, 0 for any"},
			anySpan, func(p *Plan) *time.Duration { return &p.Budget }),
		newSetting(Setting{Key: "baseline", Flag: "baseline", Where: everywhere, Help: "`variant` that the others are compared with"},
			values[Variant]{parse: ParseVariant, format: func(v Variant) string { return v.String() }, schema: position.Text}, func(p *Plan) *Variant { return &p.Baseline }),
		newSetting(Setting{Key: "twin", Where: everywhere, Help: "measure the baseline twice: a pair of equals in every run"}, trueOrFalse, func(p *Plan) *bool { return &p.Twin }),
		newSetting(Setting{Key: "explain", Flag: "explain", Where: everywhere, Switch: true, Common: true, Help: "add a sampled trial after each trial: where the CPU time goes, in parts"},
			trueOrFalse, func(p *Plan) *bool { return &p.Explain }),
		newSetting(Setting{Key: "sequential", Flag: "sequential", Where: everywhere, Switch: true, Help: "measure one profile after the other as published comparisons do; nothing is shuffled"},
			trueOrFalse, func(p *Plan) *bool { return &p.Sequential }),
		newSetting(Setting{Key: "seed", Flag: "seed", Where: everywhere, Always: true, Help: "`number` that decides the order; chosen if not given"},
			seeds, func(p *Plan) *uint64 { return &p.Seed }),
	}
}

// ParsePaths parses names of paths separated by commas. "all" is every path except those to load balancers, whose
// addresses may be public. The error lists every wrong name.
func ParsePaths(s string) ([]Path, error) {
	if s == "all" {
		return each.Where(Paths, func(q Path) bool { return q.To != LoadBalancer }), nil
	}
	return parseList(s, ParsePath)
}

// labSettings returns the settings for the conditions of the lab.
func labSettings() []Setting {
	return []Setting{
		newSetting(Setting{Key: "lab.nodes", Flag: "nodes", Where: inLab, PerVariant: true, Help: "`number` of nodes of each profile"},
			wholeNumberValues(2, MaxNodes), func(p *Plan) *int { return &p.Lab.Nodes }),
		newSetting(Setting{Key: "lab.podsPerNode", Flag: "pods-per-node", Where: inLab, PerVariant: true, Help: "`number` of pods on each node"},
			wholeNumberValues(2, MaxPodsPerNode), func(p *Plan) *int { return &p.Lab.PodsPerNode }),
		newSetting(Setting{Key: "lab.nic", Flag: "nic", Where: inLab, PerVariant: true, Help: "NIC `model`: ideal (super-packets cross) or wire (segmentation off)"},
			wordValues(NICIdeal, NICWire), func(p *Plan) *NIC { return &p.Lab.NIC }),
		newSetting(Setting{Key: "lab.gro", Flag: "gro", Where: inLab, PerVariant: true, Help: "`merging` of received frames at NICs and tunnels: off, on, or udp for forwarded UDP, too"},
			wordValues(condition.GROOff, condition.GROOn, condition.GROUDP), func(p *Plan) *condition.GRO { return &p.Lab.GRO }),
		newSetting(Setting{Key: "lab.bigTCP", Flag: "big-tcp", Where: inLab, PerVariant: true, Help: "super-packets `limit`: off is 64 KiB, on 192 KiB (BIG TCP), with nic ideal"},
			wordValues(condition.BigTCPOff, condition.BigTCPOn), func(p *Plan) *condition.BigTCP { return &p.Lab.BigTCP }),
		newSetting(Setting{Key: "lab.cpu", Flag: "cpu", Where: everywhere, Help: "CPU `placement` of nodes of one machine: one CPU, split between nodes, or auto"},
			wordValues(condition.PlacementAuto, condition.PlacementOne, condition.PlacementSplit), func(p *Plan) *condition.Placement { return &p.Lab.CPU }),
		newSetting(Setting{Key: "lab.rps", Flag: "rps", Where: inLab, PerVariant: true, Help: "receive packet `steering` to each node's CPUs, on or off; auto is on with cpu split"},
			wordValues(condition.RPSAuto, condition.RPSOn, condition.RPSOff), func(p *Plan) *condition.RPS { return &p.Lab.RPS }),
		newSetting(Setting{Key: "lab.mtu", Flag: "mtu", Where: inLab, PerVariant: true, Help: "MTU of the switch and the node NICs in `bytes`"},
			wholeNumberValues(1280, 9000), func(p *Plan) *int { return &p.Lab.MTU }),
		newSetting(Setting{Key: "lab.podMTU", Flag: "pod-mtu", Where: inLab, PerVariant: true, Help: "MTU of pods in `bytes`; 0 is what the profile leaves of --mtu"},
			podMTUValues(), func(p *Plan) *int { return &p.Lab.PodMTU }),
		newSetting(Setting{Key: "lab.delay", Flag: "delay", Where: inLab, PerVariant: true, Help: "`time` that each wire delays, to test the measurement"},
			durationValues(0, maxDelay), func(p *Plan) *time.Duration { return &p.Lab.Delay }),
		newSetting(Setting{Key: "lab.loss", Flag: "loss", Where: inLab, PerVariant: true, Help: "`share` that each wire loses, such as 1%, to test the measurement"},
			losses, func(p *Plan) *float64 { return &p.Lab.Loss }),
		newSetting(Setting{Key: "lab.plants", Flag: "plant", Where: inLab, Help: "`faults` of nodes and links, such as node-3=delay:2ms,node-5/node-9=loss:1%,node-7=rate:100M"},
			plantValues(), func(p *Plan) *[]mesh.Plant { return &p.Lab.Plants }),
		newSetting(Setting{Key: "lab.lineRate", Flag: "line-rate", Where: inLab, Help: "`rate` of each node NIC, such as 1G; 0 is unshaped"},
			lineRateValues(), func(p *Plan) *float64 { return &p.Lab.LineRate }),
		newSetting(Setting{Key: "lab.services", Flag: "services", Where: inLab, PerVariant: true, Help: "`number` of Services besides the measured ones"},
			wholeNumberValues(0, MaxServices), func(p *Plan) *int { return &p.Lab.Services }),
		newSetting(Setting{Key: "lab.endpoints", Flag: "endpoints", Where: inLab, PerVariant: true, Help: "`number` of endpoints of each of these Services"},
			wholeNumberValues(1, maxEndpoints), func(p *Plan) *int { return &p.Lab.Endpoints }),
		newSetting(Setting{Key: "lab.position", Flag: "position", Where: inLab, PerVariant: true, Help: "`place` of the measured Services among them: first, middle or last"},
			wordValues(condition.PositionFirst, condition.PositionMiddle, condition.PositionLast), func(p *Plan) *condition.Position { return &p.Lab.Position }),
		newSetting(Setting{Key: "lab.serviceProxy", Flag: "service-proxy", Where: inLab, PerVariant: true, Help: "kube-proxy `mode`: iptables, nftables or ipvs"},
			wordValues(condition.ProxyIptables, condition.ProxyNftables, condition.ProxyIPVS), func(p *Plan) *condition.ProxyMode { return &p.Lab.ServiceProxy }),
		newSetting(Setting{Key: "lab.family", Flag: "family", Where: everywhere, Help: "`version` of IP: 4 or 6"},
			families, func(p *Plan) *int { return &p.Lab.Family }),
		newSetting(Setting{Key: "lab.trafficPolicy", Flag: "traffic-policy", Where: everywhere, PerVariant: true, Help: "`externalTrafficPolicy` of the measured Services: Cluster or Local"},
			wordValues(condition.TrafficCluster, condition.TrafficLocal), func(p *Plan) *condition.TrafficPolicy { return &p.Lab.TrafficPolicy }),
		newSetting(Setting{Key: "lab.policies", Flag: "policies", Where: inLab, PerVariant: true, Help: "`number` of NetworkPolicies that select every pod"},
			wholeNumberValues(0, maxPolicies), func(p *Plan) *int { return &p.Lab.Policies }),
		newSetting(Setting{Key: "lab.policiesUnselected", Flag: "policies-unselected", Where: inLab, PerVariant: true, Help: "`number` of NetworkPolicies that select no pod"},
			wholeNumberValues(0, maxPolicies), func(p *Plan) *int { return &p.Lab.PoliciesUnselected }),
		newSetting(Setting{Key: "lab.connections", Flag: "connections", Where: inLab, PerVariant: true, Help: "`number` of other connections that each node tracks meanwhile"},
			wholeNumberValues(0, maxStanding), func(p *Plan) *int { return &p.Lab.Connections }),
		newSetting(Setting{Key: "lab.churn", Flag: "churn", Where: inLab, PerVariant: true, Help: "`changes` during the trials: endpoints=10/s, services=10/s or policies=10/s"},
			churns, func(p *Plan) *churn { return &p.Lab.Churn }),
		newSetting(Setting{Key: "lab.conntrack", Flag: "conntrack", Where: inLab, PerVariant: true, Help: "`tracking` of connections between pods: on, or off by notrack rules, without Services"},
			wordValues(condition.ConntrackOn, condition.ConntrackOff), func(p *Plan) *condition.Conntrack { return &p.Lab.Conntrack }),
		newSetting(Setting{Key: "lab.flowtable", Flag: "flowtable", Where: inLab, PerVariant: true, Help: "`packets` after which a connection passes the rules by a flowtable; 0 is never; kindnet, and 1 in calico-nftables"},
			wholeNumberValues(0, profile.MaxFlowtable), func(p *Plan) *int { return &p.Lab.Flowtable }),
		newSetting(Setting{Key: "lab.bridgeNetfilter", Flag: "bridge-netfilter", Where: inLab, PerVariant: true, Help: "`netfilter` of bridged packets: on, as Kubernetes requires, or off"},
			wordValues(condition.BridgeNetfilterOn, condition.BridgeNetfilterOff), func(p *Plan) *condition.BridgeNetfilter { return &p.Lab.BridgeNetfilter }),
		newSetting(Setting{Key: "lab.encryption", Flag: "encryption", Where: inLab, PerVariant: true, Help: "`encryption` of packets between nodes: off; wireguard in profiles of Calico and Cilium; ipsec in cilium-native"},
			wordValues(condition.EncryptionOff, condition.EncryptionWireGuard, condition.EncryptionIPsec), func(p *Plan) *condition.Encryption { return &p.Lab.Encryption }),
		newSetting(Setting{Key: "lab.iptables", Flag: "iptables", Where: inLab, Help: "iptables `backend`: nft, legacy or auto"},
			wordValues(condition.IptablesAuto, condition.IptablesNFT, condition.IptablesLegacy), func(p *Plan) *condition.IptablesBackend { return &p.Lab.Iptables }),
	}
}

// clusterSettings returns the settings of runs on Kubernetes.
func clusterSettings() []Setting {
	all := []Setting{
		newSetting(Setting{Key: "kubernetes.contexts", Flag: "context", Common: true, Help: "`contexts` of the kubeconfig, separated by commas; several are measured interleaved"},
			texts, func(p *Plan) *[]string { return &p.Cluster.Contexts }),
		newSetting(Setting{Key: "kubernetes.clientNode", Flag: "client-node", Help: "`node` of the client; chosen if not given"},
			textValues(nodeNameFault), func(p *Plan) *string { return &p.Cluster.ClientNode }),
		newSetting(Setting{Key: "kubernetes.serverNode", Flag: "server-node", Help: "`node` of the server; chosen if not given"},
			textValues(nodeNameFault), func(p *Plan) *string { return &p.Cluster.ServerNode }),
		newSetting(Setting{Key: "kubernetes.nodeSelector", Flag: "node-selector", Help: "`labels` of the nodes to choose from, such as pool=net"},
			labelValues(kubetext.ParseLabels), func(p *Plan) *map[string]string { return &p.Cluster.NodeSelector }),
		newSetting(Setting{Key: "kubernetes.tolerations", Flag: "tolerations", Help: "`taints` that are tolerated, such as dedicated=net:NoSchedule, separated by commas; * is all"},
			texts, func(p *Plan) *[]string { return &p.Cluster.Tolerations }),
		newSetting(Setting{Key: "kubernetes.image", Flag: "image", Help: "`image` of the agents (cnibench image makes one of this version)"},
			textValues(func(s string) string {
				if kubetext.ImageReference.MatchString(s) {
					return ""
				}
				return fmt.Sprintf("%q is not an image reference: want REGISTRY/PATH:TAG, the path in small letters, no spaces and no https://", s)
			}), func(p *Plan) *string { return &p.Cluster.Image }),
		newSetting(Setting{Key: "kubernetes.pullSecrets", Flag: "pull-secrets", Help: "`names` of Secrets to pull the image with, separated by commas"},
			texts, func(p *Plan) *[]string { return &p.Cluster.PullSecrets }),
		newSetting(Setting{Key: "kubernetes.cpuRequest", Flag: "cpu-request", Help: "`quantity` of CPU that each agent's pod requests"},
			quantities, func(p *Plan) *string { return &p.Cluster.CPURequest }),
		newSetting(Setting{Key: "kubernetes.memoryRequest", Flag: "memory-request", Help: "`quantity` of memory that each agent's pod requests"},
			quantities, func(p *Plan) *string { return &p.Cluster.MemoryRequest }),
		newSetting(Setting{Key: "kubernetes.cpuLimit", Flag: "cpu-limit", Help: "`quantity` of CPU that each agent's pod may use; throttled trials say so"},
			quantities, func(p *Plan) *string { return &p.Cluster.CPULimit }),
		newSetting(Setting{Key: "kubernetes.memoryLimit", Flag: "memory-limit", Help: "`quantity` of memory that each agent's pod may use"},
			quantities, func(p *Plan) *string { return &p.Cluster.MemoryLimit }),
		newSetting(Setting{Key: "kubernetes.backendCPULimit", Flag: "backend-cpu-limit", Help: "`quantity` of CPU that each backend of a workload with several may use"},
			quantities, func(p *Plan) *string { return &p.Cluster.BackendCPULimit }),
		newSetting(Setting{Key: "kubernetes.cpus", Flag: "load-cpus", Help: "`CPUs` of the nodes that load runs on, such as 1 or 2-3"},
			values[[]int]{parse: number.ParseCPUs, format: func(v []int) string { return strings.Join(each.Of(v, strconv.Itoa), ",") }, schema: position.Text, wrong: func(v []int) string {
				for _, cpu := range v {
					if cpu < 0 || cpu > 4095 {
						return fmt.Sprintf("%d is not a CPU number", cpu)
					}
				}
				return ""
			}}, func(p *Plan) *[]int { return &p.Cluster.CPUs }),
		newSetting(Setting{Key: "kubernetes.loadBalancerClass", Flag: "load-balancer-class", Help: "`class` of the load balancer of external-to-loadbalancer; the cluster's own if not given"},
			textValues(nil), func(p *Plan) *string { return &p.Cluster.LoadBalancerClass }),
		newSetting(Setting{Key: "kubernetes.serviceAnnotations", Flag: "service-annotations", Help: "`annotations` of its Services, [prefix/]name=value separated by commas: clouds choose a balancer by them"},
			labelValues(kubetext.ParseAnnotations), func(p *Plan) *map[string]string { return &p.Cluster.ServiceAnnotations }),
		newSetting(Setting{Key: "kubernetes.loadBalancerTimeout", Flag: "load-balancer-timeout", Help: "`time` to wait for its address, 0 for two minutes; without an address the path is not served"},
			withZero(durationValues(time.Second, time.Hour), ""), func(p *Plan) *time.Duration { return &p.Cluster.LoadBalancerTimeout }),
		newSetting(Setting{Key: "kubernetes.ttl", Flag: "ttl", Help: "`time` after which what a killed run left may be removed; default twice the run"},
			anySpan, func(p *Plan) *time.Duration { return &p.Cluster.TTL }),
		newSetting(Setting{Key: "kubernetes.sessionAffinity", Flag: "session-affinity", Switch: true, Help: "the measured Services keep a client with one backend"},
			trueOrFalse, func(p *Plan) *bool { return &p.Cluster.SessionAffinity }),
		newSetting(Setting{Key: "kubernetes.inspect", Flag: "inspect", Switch: true, Help: "prove what runs on both nodes by a privileged pod on each"},
			trueOrFalse, func(p *Plan) *bool { return &p.Cluster.Inspect }),
		newSetting(Setting{Key: "kubernetes.install", Flag: "install", Switch: true, Help: "install each profile in turn, measure it and remove it again"},
			trueOrFalse, func(p *Plan) *bool { return &p.Cluster.Install }),
	}
	for i := range all {
		all[i].Where = onClusters
	}
	return all
}

// pathListValues returns the values of a setting that is a list of paths or the word "all".
func pathListValues() values[[]Path] {
	v := listValues(ParsePath, position.Enum(Texts(Paths)...), nil)
	v.parse = ParsePaths
	return v
}

// windowValues returns the values of the setting duration. A plan may have the value 0, which leaves the choice to Fit.
// A file or a flag cannot give 0.
func windowValues() values[time.Duration] {
	v := durationValues(minWindow, maxWindow)
	given := v
	v.wrong = func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return given.wrong(d)
	}
	v.parse = given.parseValid
	return v
}

func nodeNameFault(name string) string {
	if kubetext.IsSubdomain(name) {
		return ""
	}
	return fmt.Sprintf("%q is not the name of a node: want small letters, digits, - and . (kubectl get nodes)", name)
}

// settingKeys returns the keys of the settings directly below prefix, each with the function that reads its value into
// p. The keys are without prefix.
func (d *decoder) settingKeys(p *Plan, prefix string) position.Keys {
	known := position.Keys{}
	for _, s := range Settings() {
		if key, ok := strings.CutPrefix(s.Key, prefix); ok && !strings.Contains(key, ".") {
			known[key] = s.read(d, p)
		}
	}
	return known
}

// planKeys returns the keys of a plan file, each with the function that reads its value into p.
func (d *decoder) planKeys(p *Plan) position.Keys {
	known := position.Keys{
		"apiVersion": d.Constant(APIVersion),
		"kind":       d.Constant("Plan"),
		"lab":        d.Within(d.settingKeys(p, "lab.")),
		"kubernetes": d.Within(d.settingKeys(p, "kubernetes.")),
	}
	maps.Copy(known, d.settingKeys(p, ""))
	return known
}
