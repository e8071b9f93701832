package detect

import (
	"errors"
	"strings"
)

// ciliumStatus has the values of a Cilium agent's status, by the names of the lines. A value is the first word after the
// name. The values of Network and Attach Mode are the whole text instead. The line Routing has two values, Network and Host.
// The names of lines about the replacement of kube-proxy have the prefix "Details/".
type ciliumStatus map[string]string

// errNoStatus means that a text is not an agent's status.
var errNoStatus = errors.New("not the output of cilium-dbg status --verbose: it has neither Routing nor KubeProxyReplacement")

// parseCiliumStatus parses the output of `cilium-dbg status --verbose`, or of `cilium status --verbose` before 1.15.
func parseCiliumStatus(text string) (ciliumStatus, error) {
	s := ciliumStatus{}
	section := ""
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		indented := strings.HasPrefix(line, " ")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case indented && section == "KubeProxyReplacement Details":
			s["Details/"+key] = firstWord(value)
			continue
		case indented:
			continue
		}
		section = key
		switch key {
		case "Routing": // Network: Tunnel [vxlan]   Host: Legacy
			network, host, _ := strings.Cut(value, "Host:")
			s["Network"], s["Host"] = strings.TrimSpace(strings.TrimPrefix(network, "Network:")), firstWord(host)
		case "Host Routing": // before 1.16
			s["Host"] = firstWord(value)
		case "Attach Mode": // of two words
			s[key] = value
		default:
			s[key] = firstWord(value)
		}
	}
	if s["Host"] == "" && s["Network"] == "" && s["KubeProxyReplacement"] == "" {
		return nil, errNoStatus
	}
	return s, nil
}

func firstWord(text string) string {
	if f := strings.Fields(text); len(f) > 0 {
		return strings.TrimSuffix(f[0], ",")
	}
	return ""
}

// statusLines maps the lines of a status to settings.
var statusLines = []struct {
	line string
	// mode is the line's name in texts that compare the nodes; "" means that nodes may differ in the line.
	mode string
	// setting is the setting of package config that the line shows.
	setting string
	// means maps the line's value, in lower case, to options of the agent with their values. If means is nil, the option
	// has the name of the setting and the line's value.
	means map[string]string
}{
	{"Network", "routing", "routing-mode", map[string]string{
		"native": "routing-mode=native", "tunnel [vxlan]": "routing-mode=tunnel tunnel-protocol=vxlan",
		"tunnel [geneve]": "routing-mode=tunnel tunnel-protocol=geneve",
	}},
	{"Host", "host routing", "host routing", map[string]string{
		"bpf": "enable-host-legacy-routing=false", "legacy": "enable-host-legacy-routing=true",
	}},
	{"KubeProxyReplacement", "kube-proxy replacement", "kube-proxy-replacement", map[string]string{
		"true": "kube-proxy-replacement=true", "strict": "kube-proxy-replacement=true", "false": "kube-proxy-replacement=false",
		"disabled": "kube-proxy-replacement=false", "partial": "kube-proxy-replacement=false", "probe": "kube-proxy-replacement=false",
	}},
	{"Device Mode", "devices", "datapath-mode", nil},
	{"Masquerading", "masquerading", "masquerading", map[string]string{
		"bpf":      "enable-ipv4-masquerade=true enable-bpf-masquerade=true",
		"iptables": "enable-ipv4-masquerade=true enable-bpf-masquerade=false",
		"disabled": "enable-ipv4-masquerade=false",
	}},
	{"Details/Mode", "NodePort", "bpf-lb-mode", nil},
	{"Encryption", "encryption", "encryption", map[string]string{
		"disabled":  "enable-wireguard=false enable-ipsec=false",
		"wireguard": "enable-wireguard=true enable-ipsec=false",
		"ipsec":     "enable-wireguard=false enable-ipsec=true",
	}},
	{"Details/Backend Selection", "", "bpf-lb-algorithm", nil},
	{"Details/XDP Acceleration", "", "bpf-lb-acceleration", nil},
	{"CNI Chaining", "", "cni-chaining-mode", nil},
}

// modeText returns a text with the values that must be equal on all nodes.
func (s ciliumStatus) modeText() string {
	var parts []string
	for _, l := range statusLines {
		if value := s[l.line]; l.mode != "" && value != "" {
			parts = append(parts, l.mode+" "+value)
		}
	}
	return strings.Join(parts, ", ")
}

// options returns the status as options of Cilium's ConfigMap, in the form that package config judges. shown is true for each
// option and setting that the status shows.
func (s ciliumStatus) options() (options map[string]string, shown map[string]bool) {
	options, shown = map[string]string{}, map[string]bool{}
	for _, l := range statusLines {
		value := strings.ToLower(s[l.line])
		means := l.means[value]
		if l.means == nil && value != "" {
			means = l.setting + "=" + value
		}
		for option := range strings.FieldsSeq(means) {
			name, value, _ := strings.Cut(option, "=")
			options[name] = value
			shown[name], shown[l.setting] = true, true
		}
	}
	return options, shown
}

// encapsulation returns "vxlan", "geneve", or "none" for native routing; "" if the status does not show it.
func (s ciliumStatus) encapsulation() string {
	if options, _ := s.options(); options["routing-mode"] != "native" {
		return options["tunnel-protocol"]
	}
	return "none"
}
