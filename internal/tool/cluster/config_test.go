package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

var testTime = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// documents parses every document of a YAML text.
func documents(t *testing.T, text []byte) []map[string]any {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	var all []map[string]any
	for {
		var doc map[string]any
		if err := d.Decode(&doc); err != nil {
			if len(all) == 0 || err.Error() != "EOF" {
				t.Fatalf("%v in:\n%s", err, text)
			}
			return all
		}
		all = append(all, doc)
	}
}

func TestTemplatesAreWholeYAML(t *testing.T) {
	for name, want := range map[string]int{"kubelet.yaml": 1, "kube-proxy.yaml": 4, "kube-router.yaml": 4, "resolver.yaml": 2, "probe.yaml": 3, "kubeconfig": 1} {
		text, err := render(name, values{Cluster: "c", Server: "10.0.0.1:1", User: "u", Proxy: "nftables", Namespace: "ns"})
		if err != nil {
			t.Fatal(err)
		}
		if got := documents(t, text); len(got) != want {
			t.Errorf("%s has %d documents, want %d", name, len(got), want)
		}
		if strings.Contains(string(text), "{{") || strings.Contains(string(text), "no value") {
			t.Errorf("%s is not filled in:\n%s", name, text)
		}
	}
}

// TestKubeRouter: beside a CNI nothing of it runs that connects pods, it never balances Services, and its image is ours.
func TestKubeRouter(t *testing.T) {
	for routes, wants := range map[bool][]string{
		false: {"--run-router=false", "--enable-cni=false"},
		true:  {"--run-router=true", "--enable-cni=true", "--enable-overlay=true", "--bgp-graceful-restart=true"},
	} {
		text, err := render("kube-router.yaml", values{Routes: routes})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range append(wants, "--run-firewall=true", "--run-service-proxy=false", "image: "+kubeRouterImage,
			"--service-cluster-ip-range="+serviceRanges) {
			if !strings.Contains(string(text), want) {
				t.Errorf("%v: %q is not in\n%s", routes, want, text)
			}
		}
	}
}

func TestReservedCPUs(t *testing.T) {
	for _, c := range []struct{ online, pods, want string }{
		{"0-3", "", ""}, {"0-3", "1,3", "0,2"}, {"0-1", "1", "0"}, {"0-7", "0-2,6", "3,4,5,7"},
	} {
		got, err := reservedCPUs(c.online, c.pods)
		if err != nil || got != c.want {
			t.Errorf("reservedCPUs(%q, %q) = %q, %v, want %q", c.online, c.pods, got, err, c.want)
		}
	}
	for _, bad := range [][2]string{{"0-1", "2"}, {"0-1", "0-1"}, {"0-1", "1-0"}, {"zero", "0"}, {"0-1", "0-99999999999999999999"}, {"0-1", "0-4000000000"}} {
		if got, err := reservedCPUs(bad[0], bad[1]); err == nil {
			t.Errorf("reservedCPUs(%q, %q) = %q, want an error", bad[0], bad[1], got)
		}
	}
	text, err := render("kubelet.yaml", values{ReservedCPUs: "0"})
	if err != nil {
		t.Fatal(err)
	}
	if got := documents(t, text)[0]["reservedSystemCPUs"]; got != "0" {
		t.Errorf("reservedSystemCPUs is %v", got)
	}
}

// TestFilesAreThere holds that every file that a command line names below /etc/kubernetes is written for that node.
func TestFilesAreThere(t *testing.T) {
	r := request{Nodes: 2}
	all, _, err := clusterFiles(r, machineFacts{HostServer: "127.0.0.1:1", Now: testTime})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`/etc/kubernetes/([a-z.-]+)`)
	for _, n := range r.nodes() {
		text := string(all[n.Name]["kubelet.yaml"])
		for _, d := range daemons(n) {
			text += " " + strings.Join(d.Args, " ")
		}
		found := named.FindAllStringSubmatch(text, -1)
		if len(found) < 4 {
			t.Errorf("%s: only %d files are named", n.Name, len(found))
		}
		for _, f := range found {
			if len(all[n.Name][f[1]]) == 0 {
				t.Errorf("%s: %s is not written", n.Name, f[0])
			}
		}
	}
	if _, ok := all["n2"]["ca.key"]; ok {
		t.Error("n2 has the key of the authority; only the control plane needs it")
	}
}

// TestCertificatesAreTrusted checks the API server's certificate as its clients do, at every address that they use.
func TestCertificatesAreTrusted(t *testing.T) {
	all, admin, err := clusterFiles(request{Nodes: 3}, machineFacts{HostServer: "127.0.0.1:4321", Now: testTime})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(all["n1"]["ca.crt"])
	check := func(cert, key []byte, name string, use x509.ExtKeyUsage) *x509.Certificate {
		t.Helper()
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: testTime, KeyUsages: []x509.ExtKeyUsage{use}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return pair.Leaf
	}
	for _, name := range []string{"127.0.0.1", "10.70.0.11", "fd00:10:70::b", apiService, "kubernetes.default.svc"} {
		check(all["n1"]["apiserver.crt"], all["n1"]["apiserver.key"], name, x509.ExtKeyUsageServerAuth)
	}
	check(all["n3"]["kubelet.crt"], all["n3"]["kubelet.key"], "10.70.0.13", x509.ExtKeyUsageServerAuth)

	conf := documents(t, admin)[0]
	user := conf["users"].([]any)[0].(map[string]any)["user"].(map[string]any)
	decode := func(key string) []byte {
		text, err := base64.StdEncoding.DecodeString(user[key].(string))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	leaf := check(decode("client-certificate-data"), decode("client-key-data"), "", x509.ExtKeyUsageClientAuth)
	if !slices.Equal(leaf.Subject.Organization, []string{"system:masters"}) {
		t.Errorf("the administrator is in %q", leaf.Subject.Organization)
	}
	if !strings.Contains(string(admin), "https://127.0.0.1:4321") {
		t.Errorf("the kubeconfig does not lead to the forwarded port:\n%s", admin)
	}
}

func TestConflist(t *testing.T) {
	cidrs := []netip.Prefix{netip.MustParsePrefix("10.244.1.0/24"), netip.MustParsePrefix("fd00:10:244:1::/64")}
	for cni, want := range map[string][]string{
		"bridge": {`"isDefaultGateway": true`, `"bridge": "cni0"`, `"subnet": "10.244.1.0/24"`, `"subnet": "fd00:10:244:1::/64"`},
		"ptp":    {`"dst": "0.0.0.0/0"`, `"dst": "::/0"`, `"type": "portmap"`},
	} {
		got, err := conflist(cni, cidrs)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(got), w) {
				t.Errorf("%s lacks %s:\n%s", cni, w, got)
			}
		}
	}
	if got, _ := conflist(kubeRouter, cidrs); !strings.Contains(string(got), `"type": "bridge"`) || !strings.Contains(string(got), `"bridge": "kube-bridge"`) {
		t.Errorf("kube-router's bridge: %s", got)
	}
	if got, _ := conflist("bridge", cidrs); strings.Contains(string(got), "routes") {
		t.Errorf("bridge has routes beside isDefaultGateway, which the plugin refuses:\n%s", got)
	}
	if _, err := conflist("flannel-vxlan", cidrs); err == nil {
		t.Error("flannel brings its own configuration, and a conflist is made nevertheless")
	}
}

func TestFlannelManifest(t *testing.T) {
	const upstream = `net-conf.json: |
    {
      "Network": "10.244.0.0/16",
      "EnableNFTables": false,
      "Backend": {
        "Type": "vxlan"
      }
    }`
	got, err := flannelManifest(upstream, "host-gw")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"Type": "host-gw"`, `"IPv6Network": "fd00:10:244::/56"`, `"EnableIPv6": true`} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %s:\n%s", want, got)
		}
	}
	if _, err := flannelManifest(strings.ReplaceAll(upstream, "vxlan", "udp"), "host-gw"); err == nil {
		t.Error("a manifest of another kind is taken")
	}
}

func TestParsePodCIDRs(t *testing.T) {
	got, err := parsePodCIDRs([]byte(`{"items": [
		{"metadata": {"name": "n1"}, "spec": {"podCIDRs": ["10.244.1.0/24", "fd00:10:244:1::/64"]}},
		{"metadata": {"name": "n2"}, "spec": {}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || len(got["n1"]) != 2 || got["n1"][0] != netip.MustParsePrefix("10.244.1.0/24") {
		t.Errorf("got %v", got)
	}
	if _, err := parsePodCIDRs([]byte("Unable to connect")); err == nil {
		t.Error("what is no JSON is taken")
	}
}
