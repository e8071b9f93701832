package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Patterns that recognize the state that components print. It is not YAML.
var (
	ciliumStatus  = pattern.New(`(?m)^ *(?:KubeProxyReplacement|Cilium health daemon):\s`)
	ciliumSummary = pattern.New(`(?m)/¯¯\\.*Cilium:|^ *\\__/.*Operator:`)
	calicoStatus  = pattern.New(`(?m)^(?:Calico process is (?:not )?running|IPv[46] BGP status)`)
	statusLine    = pattern.New(`^ *([A-Z][A-Za-z0-9 ]*?): +(\S.*)$`)
	statusRouting = pattern.New(`^(?:Network: +)?(Native|Tunnel)(?: \[(\w+)\])?(?:.*Host: +(\w+))?`)
	statusVersion = pattern.New(`\b(1\.\d+)\.\d+`)
	optionLine    = pattern.New(`^([a-z][a-z0-9-]+) {2,}(\S.*)$`)
)

// readPrintedState reads a component's printed state or options. It returns false for any other text.
func readPrintedState(j *judge, in Input) bool {
	unread := func(kind, why string) bool {
		j.Documents = append(j.Documents, Document{File: in.Name, Kind: kind, NotJudged: why})
		return true
	}
	switch {
	case ciliumStatus.MatchString(in.Text):
		readCiliumStatus(j, in)
		return true
	case ciliumSummary.MatchString(in.Text):
		return unread("output of cilium status", "it says which components run, and not how: give that of cilium-dbg status, or ConfigMap cilium-config")
	case calicoStatus.MatchString(in.Text):
		return unread("output of calicoctl node status", "it says which BGP peers are up, and not the configuration: give Installation, FelixConfiguration and IPPools")
	}
	return readOptionTable(j, in)
}

// readOptionTable reads the table of options that cilium config view prints. It returns false for any other text.
func readOptionTable(j *judge, in Input) bool {
	var options []value
	known, number := 0, 0
	for line := range strings.Lines(in.Text) {
		number++
		m := optionLine.FindStringSubmatch(strings.TrimRight(line, " \r\n"))
		if m == nil {
			if strings.TrimSpace(line) != "" {
				return false
			}
			continue
		}
		if _, is := agentDefaults.defaults[m[1]]; is {
			known++
		}
		options = append(options, value{path: m[1], text: m[2], origin: Given, by: fmt.Sprintf("%s:%d", in.Name, number)})
	}
	if known < 2 {
		return false
	}
	if j.agent == nil {
		j.agent = agentDefaults.emptyCopy()
	}
	j.agent.leaves = append(j.agent.leaves, options...)
	j.agentFiles = append(j.agentFiles, len(j.Documents))
	j.Documents = append(j.Documents, Document{File: in.Name, Line: 1, Kind: "output of cilium config view"})
	return true
}

// readCiliumStatus reads the output of cilium-dbg status. Its options are in force already, so it adds no findings.
func readCiliumStatus(j *judge, in Input) {
	agent := agentDefaults.emptyCopy()
	version, number := "", 0
	for line := range strings.Lines(in.Text) {
		number++
		m := statusLine.FindStringSubmatch(strings.TrimRight(line, " \r\n"))
		if m == nil {
			continue
		}
		by := fmt.Sprintf("%s:%d", in.Name, number)
		if v := statusVersion.FindStringSubmatch(m[2]); m[1] == "Cilium" && v != nil {
			version = v[1]
		}
		for option, text := range stateOptions(m[1], m[2]) {
			agent.leaves = append(agent.leaves, value{path: option, text: text, origin: Given, by: by})
		}
	}
	doc := Document{File: in.Name, Line: 1, Kind: "output of cilium-dbg status"}
	of := singleMinor(lastMinor, "the newest")
	if n, ok := Minor(version); ok {
		of = singleMinor(n, "the output")
	}
	part := &judge{faults: j.faults, known: Known{Version: version}, objects: objects{agent: agent}}
	part.judgeCiliumVersion(of)
	j.showSetting(cilium, "version", of.rangeText(), Given, in.Name)
	for _, s := range part.Settings {
		if _, stated := agent.statedAt(s.Name); stated || slices.Contains([]string{"masquerading", "host routing"}, s.Name) {
			s.Origin, s.By = Given, in.Name
			if g, stated := agent.statedAt(s.Name); stated {
				s.By = g.by
			}
			j.Settings = append(j.Settings, s)
		}
	}
	j.Wire, j.Measured = append(j.Wire, part.Wire...), append(j.Measured, part.Measured...)
	j.Documents = append(j.Documents, doc)
}

// stateOptions returns the options in force that a line of cilium-dbg status shows.
func stateOptions(name, text string) map[string]string {
	word, _, _ := strings.Cut(text, " ")
	word = strings.ToLower(word)
	switch name {
	case "KubeProxyReplacement":
		return map[string]string{"kube-proxy-replacement": word}
	case "Routing", "Network":
		m := statusRouting.FindStringSubmatch(text)
		if m == nil {
			return nil
		}
		options := map[string]string{"routing-mode": strings.ToLower(m[1]), "enable-host-legacy-routing": fmt.Sprint(m[3] == "Legacy")}
		if m[2] != "" {
			options["tunnel-protocol"] = strings.ToLower(m[2])
		}
		return options
	case "Host Routing": // up to 1.13
		return map[string]string{"enable-host-legacy-routing": fmt.Sprint(word == "legacy")}
	case "Masquerading":
		on := fmt.Sprint(word != "disabled")
		return map[string]string{
			"enable-bpf-masquerade": fmt.Sprint(word == "bpf"), "enable-ipv4-masquerade": on,
			"enable-ipv6-masquerade": fmt.Sprint(strings.Contains(text, "IPv6: Enabled")),
		}
	case "Encryption":
		return map[string]string{"enable-wireguard": fmt.Sprint(word == "wireguard"), "enable-ipsec": fmt.Sprint(word == "ipsec")}
	case "CNI Chaining":
		return map[string]string{"cni-chaining-mode": word}
	case "Device Mode":
		return map[string]string{"datapath-mode": word}
	case "Mode":
		return map[string]string{"bpf-lb-mode": word}
	case "Backend Selection":
		return map[string]string{"bpf-lb-algorithm": word}
	case "XDP Acceleration":
		return map[string]string{"bpf-lb-acceleration": word}
	}
	return nil
}
