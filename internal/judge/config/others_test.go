package config

import (
	"strings"
	"testing"
)

// TestFilesOfOthers: what clouds and distributions print of a cluster is called what it is, and a CNI that is not given is not
// passed over.
func TestFilesOfOthers(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"az aks show", `{"name": "c", "networkProfile": {"networkDataplane": "cilium", "networkPlugin": "azure", "podCidr": "10.244.0.0/16"}}`, "it is a file of AKS (az aks show)"},
		{"aws eks describe-addon", `{"addon": {"addonName": "vpc-cni", "configurationValues": "{}"}}`, "it is a file of EKS"},
		{"gcloud", `{"networkConfig": {"datapathProvider": "ADVANCED_DATAPATH"}}`, "it is a file of GKE"},
		{"cilium-dbg status -o json", `{"kube-proxy-replacement": {"mode": "True"}, "routing": {}}`, "it is a file of Cilium"},
		{"K3s without a CNI", "flannel-backend: none\ndisable-kube-proxy: true\n", "it installs no CNI"},
		{"kind without a CNI", "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {disableDefaultCNI: true}\n", "it installs no CNI"},
		{"values of AKS", "aksbyocni: {enabled: true}\nnodeinit: {enabled: true}\n", "chart cilium decides"},
		{"CiliumNodeConfig", "apiVersion: cilium.io/v2\nkind: CiliumNodeConfig\nmetadata: {name: n}\nspec: {defaults: {routing-mode: tunnel}}\n", "options of the agents on some nodes"},
	} {
		r, err := Check([]Input{{Name: "f", Text: c.text}}, Known{})
		if err != nil || !r.Inconclusive() || !strings.Contains(r.Documents[0].NotJudged, c.want) {
			t.Errorf("%s: want %q: %v %+v", c.name, c.want, err, r.Documents)
		}
	}
	r, err := Check([]Input{{Name: "f", Text: "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnetworking: {kubeProxyMode: nftables}\n"}}, Known{})
	if err != nil || len(r.Measured) != 1 || r.Measured[0].Profile != "kindnetd" {
		t.Errorf("kind's own: %v %+v", err, r.Measured)
	}
}
