package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// appendix is what follows the tables.
func (b *builder) appendix(r Run) []Section {
	return listsOf(
		Section{Heading: besideHeading, Items: b.beside()},
		Section{Heading: "Where datagrams were lost", Items: b.losses()},
		Section{Heading: "Profiles left out", Items: b.leftOut()},
		Section{Heading: "Paths not served", Items: b.notServed()},
		Section{Heading: "Imitated by the lab", Items: b.standIns()},
		Section{Heading: "Run", Items: b.runItems(r)},
		Section{Heading: "Conditions", Items: b.conditions()},
	)
}

// listsOf drops the sections that have no item.
func listsOf(all ...Section) []Section {
	return slices.DeleteFunc(all, func(s Section) bool { return len(s.Items) == 0 })
}

func (b *builder) leftOut() []Item {
	var items []Item
	for _, p := range b.header.Profiles {
		if p.Skipped != "" {
			items = append(items, Item{Name: number.Clean(p.Name), Text: number.Clean(p.Skipped)})
		}
	}
	return items
}

// notServed groups the paths of a profile by the reason why it has none.
func (b *builder) notServed() []Item {
	var items []Item
	for _, p := range b.header.Profiles {
		if p.Name.IsTwin() || p.Skipped != "" {
			continue
		}
		paths := map[string][]string{}
		var reasons []string
		for _, path := range b.analysis.Paths {
			reason := p.NotServed[path.String()]
			if reason == "" {
				continue
			}
			if paths[reason] == nil {
				reasons = append(reasons, reason)
			}
			paths[reason] = append(paths[reason], path.String())
		}
		for _, reason := range reasons {
			items = append(items, Item{Name: number.Clean(p.Name), Text: strings.Join(paths[reason], ", ") + ": " + number.Clean(reason)})
		}
	}
	return items
}

func (b *builder) standIns() []Item {
	var items []Item
	for _, p := range b.header.Profiles {
		if len(p.StandIn) > 0 && !p.Name.IsTwin() {
			items = append(items, Item{Name: number.Clean(p.Name), Text: number.Clean(strings.Join(p.StandIn, "; "))})
		}
	}
	return items
}

var reasons = map[string]string{
	"complete":    "the plan is complete",
	"precision":   "ended at the wanted precision",
	"repetitions": "ended at the most repetitions; some interval is wider than wanted",
	"budget":      "ended when its time was up",
	"interrupted": "interrupted",
	unfinished:    "unfinished: killed, or still running",
}

func (b *builder) runItems(r Run) []Item {
	ended, ok := reasons[r.Reason]
	if !ok {
		ended = r.Reason
	}
	items := []Item{{Name: "trials", Text: fmt.Sprintf("%d, of which %d failed; %s", r.Trials, r.Failed, number.Clean(ended))}}
	if r.Wall > 0 {
		items = append(items, Item{Name: "time", Text: fmt.Sprintf("%s, of which %s (%s) in measurement windows", number.Duration(r.Wall), number.Duration(r.Windows), number.Percent(r.Share()))})
	}
	if len(b.analysis.Unknown) > 0 {
		items = append(items, Item{Name: "left out", Text: number.Clean("metrics unknown to this version: " + strings.Join(b.analysis.Unknown, ", "))})
	}
	items = append(items, Item{Name: "seed", Text: fmt.Sprint(r.Plan.Seed)})
	if r.Command != "" {
		items = append(items, Item{Name: "repeat", Text: number.Clean(r.Command), Code: true})
	}
	return items
}

func (b *builder) conditions() []Item {
	var items []Item
	for _, n := range b.header.Facts.Names() {
		items = append(items, Item{Name: number.Clean(n), Text: number.Clean(b.header.Facts[n])})
	}
	return items
}

// unfinished is the Reason of a run whose file has no end.
const unfinished = "unfinished"

// command writes the command line that repeats a plan: what a run always has, then whatever is not the default.
func command(p plan.Plan) string {
	if len(p.Profiles) == 0 || len(p.Paths) == 0 || len(p.Workloads) == 0 {
		return ""
	}
	if p.OnCluster() {
		p, _ = p.WithoutLab() // files of older versions have what the cluster was not given
	}
	var paths, workloads []string
	for _, x := range p.Paths {
		paths = append(paths, x.String())
	}
	for _, w := range p.Workloads {
		workloads = append(workloads, w.String())
	}
	line := "cnibench run"
	add := func(said bool, flag, value string) {
		if said {
			line += " --" + flag + " " + quote(value)
		}
	}
	d := plan.Default()
	add(true, "env", p.Environment)
	add(true, "profiles", plan.JoinVariants(p.Profiles, ","))
	add(true, "paths", strings.Join(paths, ","))
	add(true, "workloads", strings.Join(workloads, ","))
	add(true, "repetitions", fmt.Sprint(p.Repetitions))
	add(p.MaxRepetitions != 0, "max-repetitions", fmt.Sprint(p.MaxRepetitions))
	add(p.Precision != 0, "precision", fmt.Sprint(p.Precision))
	add(true, "duration", p.Duration.String())
	add(p.Warmup != d.Warmup || p.OnCluster(), "warmup", p.Warmup.String())
	// The preset that a run starts from has a budget, so that there was none must be said.
	add(true, "budget", p.Budget.String())
	add(p.Baseline != d.Baseline, "baseline", string(p.Baseline))
	add(p.Lab.Nodes != d.Lab.Nodes, "nodes", fmt.Sprint(p.Lab.Nodes))
	add(p.Lab.NIC != d.Lab.NIC, "nic", p.Lab.NIC)
	add(p.Lab.CPU != d.Lab.CPU, "cpu", p.Lab.CPU)
	add(p.Lab.MTU != d.Lab.MTU, "mtu", fmt.Sprint(p.Lab.MTU))
	add(p.Lab.Delay != 0, "delay", p.Lab.Delay.String())
	add(p.Lab.Loss != 0, "loss", plan.FormatLoss(p.Lab.Loss))
	add(p.Lab.LineRate != 0, "line-rate", strconv.FormatFloat(p.Lab.LineRate, 'f', -1, 64))
	add(p.Lab.Services != 0, "services", fmt.Sprint(p.Lab.Services))
	add(p.Lab.Iptables != d.Lab.Iptables, "iptables", p.Lab.Iptables)
	add(p.Lab.ServiceProxy != "" && p.Lab.ServiceProxy != "iptables", "service-proxy", p.Lab.ServiceProxy)
	add(p.Lab.Family != 0 && p.Lab.Family != d.Lab.Family, "family", fmt.Sprint(p.Lab.Family))
	add(p.Lab.TrafficPolicy != "" && p.Lab.TrafficPolicy != d.Lab.TrafficPolicy, "traffic-policy", p.Lab.TrafficPolicy)
	add(p.Lab.Policies != 0, "policies", fmt.Sprint(p.Lab.Policies))
	add(p.Lab.PoliciesUnselected != 0, "policies-unselected", fmt.Sprint(p.Lab.PoliciesUnselected))
	if p.OnCluster() {
		onCluster(p.Cluster, add)
	}
	add(true, "seed", fmt.Sprint(p.Seed))
	for _, s := range []struct {
		said bool
		flag string
	}{
		{!p.Twin, "no-twin"}, {p.Cluster.SessionAffinity, "session-affinity"}, {p.Cluster.Inspect, "inspect"}, {p.Cluster.Install, "install"},
	} {
		if s.said {
			line += " --" + s.flag
		}
	}
	return line
}

// onCluster adds what a plan says of the clusters that it is for.
func onCluster(c plan.Cluster, add func(said bool, flag, value string)) {
	list := func(flag string, values []string) { add(len(values) > 0, flag, strings.Join(values, ",")) }
	list("context", c.Contexts)
	add(c.ClientNode != "", "client-node", c.ClientNode)
	add(c.ServerNode != "", "server-node", c.ServerNode)
	var labels, cpus []string
	for _, name := range slices.Sorted(maps.Keys(c.NodeSelector)) {
		labels = append(labels, name+"="+c.NodeSelector[name])
	}
	for _, n := range c.CPUs {
		cpus = append(cpus, fmt.Sprint(n))
	}
	list("node-selector", labels)
	list("tolerations", c.Tolerations)
	add(c.Image != "", "image", c.Image)
	list("pull-secrets", c.PullSecrets)
	add(c.CPURequest != "", "cpu-request", c.CPURequest)
	add(c.MemoryRequest != "", "memory-request", c.MemoryRequest)
	add(c.CPULimit != "", "cpu-limit", c.CPULimit)
	list("load-cpus", cpus)
	var annotations []string
	for _, name := range slices.Sorted(maps.Keys(c.ServiceAnnotations)) {
		annotations = append(annotations, name+"="+c.ServiceAnnotations[name])
	}
	add(c.LoadBalancerClass != "", "load-balancer-class", c.LoadBalancerClass)
	list("service-annotations", annotations)
	add(c.LoadBalancerTimeout != 0, "load-balancer-timeout", c.LoadBalancerTimeout.String())
	add(c.TTL != 0, "ttl", c.TTL.String())
}

// quote makes s one word of a shell command.
func quote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,:=~@%+"
	if s != "" && strings.Trim(s, plain) == "" && s[0] != '~' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
