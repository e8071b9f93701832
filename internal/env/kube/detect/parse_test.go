package detect

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestImageVersion(t *testing.T) {
	for image, want := range map[string]string{
		"quay.io/cilium/cilium:v1.19.5@sha256:00ff":      "v1.19.5",
		"registry.local:5000/flannel/flannel":            "",
		"registry.local:5000/flannel/flannel:v0.28.4":    "v0.28.4",
		"quay.io/cilium/cilium@sha256:00ff":              "",
		"rancher/hardened-flannel:v0.28.4-build20260801": "v0.28.4-build20260801",
		"": "",
	} {
		if got := imageVersion(image); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}

func TestParseConflist(t *testing.T) {
	c, err := parseConflist(`{"cniVersion":"0.4.0","name":"x","type":"ipvlan","mode":"l3","master":"eth1","mtu":1400}`)
	if err != nil || c.main().Type != "ipvlan" || c.main().Mode != "l3" || c.main().MTU != 1400 {
		t.Errorf("a .conf: %+v, %v", c, err)
	}
	c, err = parseConflist(`{"name":"k8s-pod-network","plugins":[{"type":"calico","mtu":0},{"type":"portmap"},{"type":"bandwidth"}]}`)
	if err != nil || c.owner() != calico || c.pluginTypes() != "calico, portmap, bandwidth" {
		t.Errorf("calico: %+v, %v", c, err)
	}
	c.File = "10-canal.conflist"
	if c.owner() != canal {
		t.Errorf("canal's file is %s's", c.owner())
	}
	for text, want := range map[string]string{"{}": "no plugins", "[]": "CNI configuration", `{"name":"n","plugins":[{"name":"x"}]}`: "plugin 1 has no type", `{"plugins":[1]}`: "CNI configuration"} {
		if _, err := parseConflist(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
}

func TestParseCiliumStatus(t *testing.T) {
	s, err := parseCiliumStatus("Routing:   Network: Tunnel [geneve]   Host: BPF\nDevice Mode:   netkit-l2\nKubeProxyReplacement Details:\n  Status:  True\n  Mode:   Hybrid\n  XDP Acceleration:    Best-Effort\nMode: nonsense\n")
	if err != nil {
		t.Fatal(err)
	}
	if s["Network"] != "Tunnel [geneve]" || s["Host"] != "BPF" || s["Device Mode"] != "netkit-l2" || s["Details/Mode"] != "Hybrid" || s["Details/XDP Acceleration"] != "Best-Effort" || s.encapsulation() != "geneve" {
		t.Errorf("%+v", s)
	}
	o, _ := s.options()
	if o["routing-mode"] != "tunnel" || o["tunnel-protocol"] != "geneve" || o["enable-host-legacy-routing"] != "false" || o["bpf-lb-mode"] != "hybrid" {
		t.Errorf("%v", o)
	}
	if _, said := o["kube-proxy-replacement"]; said {
		t.Error("what the status does not say is an option")
	}
	if _, err := parseCiliumStatus("Error: unable to open socket"); !errors.Is(err, errNoStatus) {
		t.Errorf("no status: %v", err)
	}
}

// TestReadFails: a cluster that cannot be asked is an error, a right that is missing is not.
func TestReadFails(t *testing.T) {
	c := load(t, "testdata/clusters/flannel-vxlan.txtar").clients
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
	for _, line := range []string{"list nodes", "list daemonsets", "get configmaps", "list pods"} {
		c := load(t, "testdata/clusters/flannel-vxlan.txtar")
		c.clients = refused(t, line)
		s, err := Read(t.Context(), c.clients)
		if err != nil {
			t.Errorf("without %s: %v", line, err)
		}
		verb, resource, _ := strings.Cut(line, " ")
		said := strings.Contains(strings.Join(s.Unproven, "\n"), strings.TrimSuffix(resource, "s"))
		if used := line != "list pods"; said != used { // pods are asked for only where kube-proxy has no DaemonSet
			t.Errorf("without %s %s unproven is %q", verb, resource, s.Unproven)
		}
	}
}

func refused(t *testing.T, line string) Clients {
	t.Helper()
	return loadWith(t, "testdata/clusters/flannel-vxlan.txtar", line).clients
}

func FuzzParseConflist(f *testing.F) {
	f.Add(`{"name":"x","plugins":[{"type":"multus","delegates":[{"plugins":[{"type":"macvlan"}]}]},{"type":"portmap"}]}`)
	f.Add(`{"type":"bridge"}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseConflist(text)
		if err == nil && (c.main().Type == "" || c.owner() == "" || c.pluginTypes() == "") {
			t.Errorf("%+v names no plugin", c)
		}
	})
}

func FuzzParseCiliumStatus(f *testing.F) {
	f.Add("Routing:  Network: Native   Host: BPF\nKubeProxyReplacement:  True\nKubeProxyReplacement Details:\n  Mode: DSR\n")
	f.Add("Host Routing: Legacy")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseCiliumStatus(text)
		if err != nil {
			return
		}
		v := Detect(Snapshot{Workloads: []workloadSpec{{Kind: daemonSetKind, Namespace: "kube-system", Name: "cilium", Desired: 1, Ready: 1}}, CiliumStatus: map[string]string{"n": text}})
		if v.Profile != "" && s["Host"] == "" && s["Network"] == "" && s["KubeProxyReplacement"] == "" {
			t.Errorf("a profile from nothing: %+v", v)
		}
	})
}
