package detect

import (
	"bufio"
	"errors"
	"strings"
)

// CiliumStatus is the status of a Cilium agent, as far as it concerns the dataplane. A missing line is "".
type CiliumStatus struct {
	// Version is the agent's, "1.19.5"; Replacement "True" or "False"; Chaining "none" or the mode.
	Version, Replacement, Chaining string
	// Network is "Native" or "Tunnel [vxlan]"; Host "BPF" or "Legacy".
	Network, Host string
	// DeviceMode is "veth", "netkit" or "netkit-l2"; AttachMode "TCX" or "Legacy TC".
	DeviceMode, AttachMode string
	// Masquerading is "Disabled", "IPTables" or "BPF".
	Masquerading string
	// SocketLB is "Enabled" or "Disabled"; Coverage "Full" or "Hostns-only".
	SocketLB, Coverage string
	// Mode is "SNAT", "DSR" or "Hybrid"; Dispatch DSR's; Selection "Random" or "Maglev"; Acceleration XDP's.
	Mode, Dispatch, Selection, Acceleration string
	// Encryption is "Disabled", "Wireguard" or "IPsec"; Bandwidth what the bandwidth manager does.
	Encryption, Bandwidth string
}

// errNoStatus means that a text is not an agent's status.
var errNoStatus = errors.New("not the output of cilium-dbg status --verbose: it has neither Routing nor KubeProxyReplacement")

// ParseCiliumStatus parses the output of `cilium-dbg status --verbose`, or of `cilium status --verbose` before 1.15.
func ParseCiliumStatus(text string) (CiliumStatus, error) {
	var s CiliumStatus
	section := ""
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		indented := strings.HasPrefix(line, " ")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !indented {
			section = key
		}
		switch {
		case section == "KubeProxyReplacement Details" && indented:
			s.detail(key, value)
		case !indented:
			s.line(key, value)
		}
	}
	if err := lines.Err(); err != nil {
		return CiliumStatus{}, err
	}
	if s.Host == "" && s.Network == "" && s.Replacement == "" {
		return CiliumStatus{}, errNoStatus
	}
	return s, nil
}

// line reads one line of the first part.
func (s *CiliumStatus) line(key, value string) {
	word := first(value)
	switch key {
	case "KubeProxyReplacement":
		s.Replacement = word
	case "CNI Chaining":
		s.Chaining = word
	case "Cilium":
		if f := strings.Fields(value); len(f) > 1 && f[0] == "Ok" {
			s.Version = f[1]
		}
	case "Host Routing": // before 1.16
		s.Host = word
	case "Routing":
		s.Network, s.Host = routing(value)
	case "Device Mode":
		s.DeviceMode = word
	case "Attach Mode":
		s.AttachMode = value
	case "Masquerading":
		s.Masquerading = word
	case "Encryption":
		s.Encryption = word
	case "BandwidthManager":
		s.Bandwidth = value
	}
}

// detail reads one line about the replacement of kube-proxy.
func (s *CiliumStatus) detail(key, value string) {
	switch key {
	case "Socket LB":
		s.SocketLB = value
	case "Socket LB Coverage":
		s.Coverage = value
	case "Mode":
		s.Mode = first(value)
	case "DSR Dispatch Mode":
		s.Dispatch = value
	case "Backend Selection":
		s.Selection = first(value)
	case "XDP Acceleration":
		s.Acceleration = first(value)
	}
}

// routing splits "Network: Tunnel [vxlan]   Host: Legacy".
func routing(value string) (network, host string) {
	network, host, _ = strings.Cut(value, "Host:")
	_, network, ok := strings.Cut(network, "Network:")
	if !ok {
		return "", first(host)
	}
	return strings.TrimSpace(network), first(host)
}

func first(text string) string {
	if f := strings.Fields(text); len(f) > 0 {
		return strings.TrimSuffix(f[0], ",")
	}
	return ""
}

// mode describes what must be equal on all nodes.
func (s CiliumStatus) mode() string {
	var parts []string
	for _, p := range []struct{ name, value string }{
		{"routing", s.Network}, {"host routing", s.Host}, {"kube-proxy replacement", s.Replacement}, {"devices", s.DeviceMode},
		{"masquerading", s.Masquerading}, {"NodePort", s.Mode}, {"encryption", s.Encryption},
	} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	return strings.Join(parts, ", ")
}

// replaces reports whether kube-proxy is replaced; said is false if the status does not say.
func (s CiliumStatus) replaces() (yes, said bool) {
	switch strings.ToLower(s.Replacement) {
	case "true", "strict":
		return true, true
	case "false", "disabled", "partial", "probe":
		return false, true
	}
	return false, false
}

// encapsulation is "none" or the tunnel's protocol, "" if the status does not say.
func (s CiliumStatus) encapsulation() string {
	lower := strings.ToLower(s.Network)
	switch {
	case strings.HasPrefix(lower, "native"):
		return "none"
	case strings.Contains(lower, "geneve"):
		return "geneve"
	case strings.Contains(lower, "vxlan"):
		return "vxlan"
	}
	return ""
}

func (s CiliumStatus) encryption() string {
	switch lower := strings.ToLower(s.Encryption); lower {
	case "disabled":
		return "none"
	default:
		return lower
	}
}

// options returns the status as options of the ConfigMap, so that package config judges it too.
func (s CiliumStatus) options() map[string]string {
	o := map[string]string{}
	if yes, said := s.replaces(); said {
		o["kube-proxy-replacement"] = boolean(yes)
	}
	switch s.encapsulation() {
	case "none":
		o["routing-mode"] = "native"
	case "vxlan", "geneve":
		o["routing-mode"], o["tunnel-protocol"] = "tunnel", s.encapsulation()
	}
	switch s.Host {
	case "BPF":
		o["enable-host-legacy-routing"] = "false"
	case "Legacy":
		o["enable-host-legacy-routing"] = "true"
	}
	switch s.Masquerading {
	case "BPF":
		o["enable-ipv4-masquerade"], o["enable-bpf-masquerade"] = "true", "true"
	case "IPTables":
		o["enable-ipv4-masquerade"], o["enable-bpf-masquerade"] = "true", "false"
	case "Disabled":
		o["enable-ipv4-masquerade"] = "false"
	}
	for option, value := range map[string]string{
		"datapath-mode": s.DeviceMode, "bpf-lb-mode": s.Mode, "bpf-lb-algorithm": s.Selection, "bpf-lb-acceleration": s.Acceleration,
		"cni-chaining-mode": s.Chaining,
	} {
		if value != "" {
			o[option] = strings.ToLower(value)
		}
	}
	if s.Encryption != "" {
		o["enable-wireguard"] = boolean(s.encryption() == "wireguard")
		o["enable-ipsec"] = boolean(s.encryption() == "ipsec")
	}
	return o
}

// settings are the settings of package config that the status shows.
func (s CiliumStatus) settings() map[string]bool {
	_, replaces := s.replaces()
	return map[string]bool{
		"routing-mode": s.encapsulation() != "", "tunnel-protocol": s.encapsulation() != "" && s.encapsulation() != "none",
		"kube-proxy-replacement": replaces, "cni-chaining-mode": s.Chaining != "", "datapath-mode": s.DeviceMode != "",
		"masquerading": s.Masquerading != "", "host routing": s.Host != "", "bpf-lb-mode": s.Mode != "",
		"bpf-lb-algorithm": s.Selection != "", "bpf-lb-acceleration": s.Acceleration != "", "encryption": s.Encryption != "",
	}
}

func boolean(yes bool) string {
	if yes {
		return "true"
	}
	return "false"
}
