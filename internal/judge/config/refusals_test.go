package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// agentOf is the ConfigMap of an agent with native routing and no findings, in the words of its version.
func agentOf(minor int, options string) string {
	base := ""
	if minor <= 13 {
		base = "routing-mode= tunnel=disabled kube-proxy-replacement=strict "
	}
	if minor <= 10 {
		base += "ipv4-native-routing-cidr= native-routing-cidr=10.0.0.0/8 "
	}
	return agentConfig(base + options)
}

// TestRefusals: each combination is refused by the versions that have the check, and by no other.
func TestRefusals(t *testing.T) {
	const tunnel = "routing-mode=tunnel auto-direct-node-routes= "
	const oldTunnel = "tunnel=vxlan auto-direct-node-routes= "
	examples := []struct {
		rule, options string
		first, last   int
	}{
		{"agent-value", "kube-proxy-replacement=probe", 13, 20},
		{"agent-value", "kube-proxy-replacement=strict", 16, 20},
		{"agent-value", "kube-proxy-replacement=disabled enable-bpf-masquerade=", 16, 20},
		{"agent-value", "kube-proxy-replacement=true", 10, 13},
		{"agent-value", "routing-mode=direct", 14, 20},
		{"agent-value", "routing-mode=tunnel auto-direct-node-routes= tunnel-protocol=ipip", 14, 20},
		{"agent-value", "bpf-lb-algorithm=roundrobin", 10, 20},
		{"agent-value", "bpf-lb-mode=direct", 10, 20},
		{"agent-value", "bpf-lb-mode=DSR", 10, 20},
		{"agent-value", "bpf-lb-dsr-dispatch=vxlan", 10, 20},
		{"agent-value", "bpf-lb-mode=direct kube-proxy-replacement= enable-bpf-masquerade=", 19, 20},
		{"agent-value", "node-port-range=32000,30000", 10, 20},
		{"agent-value", "bpf-lb-algorithm=maglev bpf-lb-maglev-table-size=1000", 10, 20},
		{"agent-value", "bpf-lb-mode=hybrid bpf-lb-mode-annotation=true", 18, 20},
		{"agent-value", "datapath-mode=ipvlan", 16, 20},
		{"address-family", "enable-ipv4=false enable-bpf-masquerade=", 10, 20},
		{"address-family", "enable-nat46x64-gateway=true", 13, 20},
		{"masquerade-refused", "enable-masquerade-to-route-source=true", 15, 20},
		{"masquerade-refused", "enable-ipv6=true ipv6-native-routing-cidr=fd00::/48", 11, 13},
		{"masquerade-refused", "kube-proxy-replacement=false", 15, 18},
		{"masquerade-refused", "egress-masquerade-interfaces=eth0", 15, 20},
		{"masquerade-refused", "enable-ipv4-masquerade=false", 15, 20},
		{"masquerade-refused", "enable-ip-masq-agent=true enable-bpf-masquerade=", 10, 20},
		{"masquerade-refused", "enable-remote-node-masquerade=true enable-bpf-masquerade=", 19, 20},
		{"egress-gateway", "enable-egress-gateway=true enable-bpf-masquerade=", 10, 20},
		{"egress-gateway", "enable-egress-gateway=true enable-cilium-endpoint-slice=true", 15, 20},
		{"egress-gateway", "enable-egress-gateway=true identity-allocation-mode=kvstore", 13, 20},
		{"egress-gateway", tunnel + "enable-egress-gateway=true underlay-protocol=ipv6", 18, 20},
		{"encryption-refused", "enable-ipsec=true enable-wireguard=true", 10, 20},
		{"encryption-refused", "enable-ipsec=true", 10, 15},
		{"encryption-refused", "enable-wireguard=true enable-l7-proxy=true", 10, 13},
		{"encryption-refused", "enable-ipsec=true enable-host-firewall=true kube-proxy-replacement= enable-bpf-masquerade=", 10, 20},
		{"encryption-refused", "enable-ipsec=true local-router-ipv4=10.0.0.1 enable-endpoint-routes=true kube-proxy-replacement= enable-bpf-masquerade=", 10, 20},
		{"encryption-refused", "enable-ipsec=true enable-l7-proxy=true kube-proxy-replacement= enable-bpf-masquerade=", 13, 20},
		{"encryption-refused", "enable-ipsec=true enable-encryption-strict-mode-ingress=true kube-proxy-replacement= enable-bpf-masquerade=", 19, 20},
		{"encryption-refused", "enable-wireguard=true enable-encryption-strict-mode-egress=true", 15, 20},
		{"native-cidr", "ipv4-native-routing-cidr= native-routing-cidr=", 10, 20},
		{"native-cidr", "enable-ipv6=true", 12, 20},
		{"native-cidr", "ipv4-native-routing-cidr= native-routing-cidr= enable-ip-masq-agent=true", 10, 14},
		{"routing-refused", "direct-routing-skip-unreachable=true auto-direct-node-routes=false enable-endpoint-routes=true", 16, 20},
		{"routing-refused", tunnel + "local-router-ipv4=10.0.0.1 enable-endpoint-routes=true", 14, 20},
		{"routing-refused", "local-router-ipv4=10.0.0.1", 10, 18},
		{"routing-refused", "fib-table-id-annotation=true enable-host-legacy-routing=true", 20, 20},
		{"routing-refused", oldTunnel + "bpf-lb-acceleration=native", 10, 12},
		{"routing-refused", tunnel + "bpf-lb-acceleration=native underlay-protocol=ipv6", 18, 20},
		{"ipam-refused", tunnel + "ipam=eni", 16, 20},
		{"ipam-refused", tunnel + "ipam=multi-pool", 14, 17},
		{"ipam-refused", "ipam=multi-pool enable-ipsec=true", 13, 18},
		{"ipam-refused", "ipam=eni enable-ipv6=true ipv6-native-routing-cidr=fd00::/48", 16, 19},
		{"ipam-refused", "ipam=delegated-plugin", 13, 20},
		{"ipam-refused", "ipam=delegated-plugin local-router-ipv4=10.0.0.1 enable-endpoint-health-checking=true", 13, 20},
		{"iptables-rules", "install-iptables-rules=false enable-l7-proxy=true", 10, 20},
		{"iptables-rules", "install-iptables-rules=false", 20, 20},
		{"netkit", "datapath-mode=netkit enable-bpf-tproxy=true", 20, 20},
		{"masquerade-fallback", "egress-masquerade-interfaces=eth0", 10, 14},
		{"masquerade-fallback", "kube-proxy-replacement=disabled", 10, 14},
		{"dsr-fallback", oldTunnel + "bpf-lb-mode=dsr", 10, 12},
		{"dsr-refused", oldTunnel + "bpf-lb-mode=dsr", 13, 13},
		{"dsr-refused", tunnel + "bpf-lb-mode-annotation=true", 18, 20},
		{"no-conntrack-refused", "install-no-conntrack-iptables-rules=true enable-ipv4=false enable-ipv6=true ipv6-native-routing-cidr=fd00::/48", 10, 20},
		{"big-tcp", tunnel + "enable-ipv4-big-tcp=true", 14, 18},
		{"host-routing-legacy", "enable-ipsec=true", 10, 18},
		{"host-routing-legacy", "enable-wireguard=true", 10, 13},
		{"host-routing-legacy", "enable-endpoint-routes=true", 10, 13},
	}
	covered := map[string]bool{}
	for _, e := range examples {
		covered[e.rule] = true
		from := firstMinor
		if strings.Contains(e.options, "routing-mode=") {
			from = firstRouting
		}
		for minor := from; minor <= lastMinor; minor++ {
			found := rulesOf(t, minor, e.options)
			if want := minor >= e.first && minor <= e.last; slices.Contains(found, e.rule) != want {
				t.Errorf("1.%d with %s: found %v, want %s: %v", minor, e.options, found, e.rule, want)
			}
		}
	}
	for _, r := range refusals {
		if !covered[r.rule] {
			t.Errorf("%s has no example", r.rule)
		}
	}
}

// TestNothingRefused: usual configurations have no findings in any version.
func TestNothingRefused(t *testing.T) {
	for minor := firstMinor; minor <= lastMinor; minor++ {
		for _, options := range []string{
			"", "enable-l7-proxy=true", "enable-egress-gateway=true identity-allocation-mode=crd", "install-iptables-rules=true",
			"ipam=cluster-pool", "enable-ip-masq-agent=true", "bpf-lb-acceleration=disabled", "underlay-protocol=ipv4",
		} {
			if found := rulesOf(t, minor, options); len(found) > 0 {
				t.Errorf("1.%d with %s: %v", minor, options, found)
			}
		}
	}
}

func rulesOf(t *testing.T, minor int, options string) []string {
	t.Helper()
	r, err := Check([]Input{{Name: "in", Text: agentOf(minor, options)}}, Known{Version: fmt.Sprint("1.", minor)})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range r.Findings {
		found = append(found, f.ID)
	}
	return found
}

// TestMinors: the version is that of the flag, the chart, the image, or what the options show.
func TestMinors(t *testing.T) {
	image := "\n---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: cilium}\nspec: {template: {spec: {containers: [{name: cilium-agent, image: 'registry:5000/cilium/cilium:v1.16.5@sha256:0'}]}}}\n"
	for _, c := range []struct {
		yaml  string
		known Known
		want  string
	}{
		{agentConfig(""), Known{}, "1.14 or later, judged as 1.20"},
		{agentConfig("") + image, Known{}, "1.16"},
		{agentConfig("enable-tcx=true"), Known{}, "1.16 or later, judged as 1.20"},
		{agentConfig("kube-proxy-replacement=strict"), Known{}, "1.14 to 1.15, judged as 1.15"},
		{agentConfig("routing-mode= tunnel=disabled kube-proxy-replacement=strict"), Known{}, "1.13 or older, judged as 1.13"},
		{agentConfig("routing-mode= tunnel=disabled kube-proxy-replacement=probe"), Known{}, "1.12 or older, judged as 1.12"},
		{agentConfig("tunnel=disabled enable-datapath-plugins=true"), Known{}, "1.20"},
	} {
		r, err := Check([]Input{{Name: "in", Text: c.yaml}}, c.known)
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(r.Settings, func(s Setting) bool { return s.Name == "version" }); i < 0 || r.Settings[i].Value != c.want {
			t.Errorf("%s\n%+v, want %s", c.yaml, r.Settings[:1], c.want)
		}
	}
	for text, want := range map[string]int{"1.16": 16, "v1.9.3": 9, "1.20.0-rc.1": 20, "2.0": -1, "": -1, "1.": -1, "1.x": -1} {
		if n, ok := Minor(text); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %v", text, n, ok)
		}
	}
	r, err := Check([]Input{{Name: "in", Text: agentConfig("")}}, Known{Chart: &Chart{Name: "cilium", Version: "1.22.0", AppVersion: "1.22.0"}})
	if err != nil || !strings.Contains(fmt.Sprint(r.Settings[0]), "1.22, judged as 1.20") {
		t.Errorf("newer than all known: %v %+v", err, r.Settings)
	}
}

// TestRouteMTU: what the tunnel and the encryption of each version leave of the underlay.
func TestRouteMTU(t *testing.T) {
	for _, c := range []struct {
		minor   int
		options string
		want    string
	}{
		{20, "mtu=1450", ""},
		{20, "mtu=1450 enable-wireguard=true", "1355"},
		{19, "mtu=1450 enable-wireguard=true", "1370"},
		{18, "mtu=1450 enable-wireguard=true routing-mode=tunnel tunnel-protocol=geneve", "1320"},
		{13, "mtu=1450 enable-wireguard=true tunnel=geneve", "1370"},
		{20, "mtu=1500 routing-mode=tunnel", "1450"},
		{20, "mtu=1500 routing-mode=tunnel underlay-protocol=ipv6", "1430"},
		{20, "mtu=1500 enable-ipsec=true", "1423"},
	} {
		r, err := Check([]Input{{Name: "in", Text: agentOf(c.minor, c.options)}}, Known{Version: fmt.Sprint("1.", c.minor)})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range r.Settings {
			if s.Name == RouteMTU {
				got = s.Value
			}
		}
		if got != c.want {
			t.Errorf("1.%d with %s: %q, want %q", c.minor, c.options, got, c.want)
		}
	}
}
