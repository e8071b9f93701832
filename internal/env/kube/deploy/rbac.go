package deploy

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/profile"
)

// grant is one rule of a role with the reason for it.
type grant struct {
	group     string
	resources []string
	// names restricts the rule to objects with these names. (optional)
	names []string
	verb  string
	why   string
}

// detection has the rights, in addition to kube.Rights, with which package detect reads the CNI's configuration.
var detection = []grant{
	{group: "apps", resources: []string{"daemonsets"}, verb: "list", why: "the CNI's daemon and kube-proxy, their images and arguments"},
	{resources: []string{"configmaps"}, names: configMapNames(), verb: "get", why: "how the CNI and kube-proxy are configured; these and no others"},
	{group: "operator.tigera.io", resources: []string{"installations"}, verb: "list", why: "how Calico was installed"},
	{group: "operator.openshift.io", resources: []string{"networks"}, verb: "list", why: "how OpenShift's network is configured"},
	{group: "crd.projectcalico.org", resources: []string{"felixconfigurations", "ippools"}, verb: "list", why: "Calico's dataplane, encapsulation and MTU"},
	{group: "projectcalico.org", resources: []string{"felixconfigurations", "ippools"}, verb: "list", why: "the same by way of Calico's API server"},
}

// configMapNames returns the names of the ConfigMaps of all CNIs and of kube-proxy.
func configMapNames() []string {
	var names []string
	for _, c := range profile.CNIs() {
		names = append(names, c.ConfigMaps...)
	}
	slices.Sort(names)
	return append(slices.Compact(names), "kube-proxy", "kube-proxy-config")
}

const rbacHead = `# What cnibench may do on a cluster. Everything here is made from the table of rights in the program: make generate.
#
#   kubectl apply -f deploy/rbac.yaml
#   kubectl create clusterrolebinding cnibench --clusterrole=cnibench --user=NAME
#   kubectl create clusterrolebinding cnibench-detect --clusterrole=cnibench-detect --user=NAME
#
# cnibench kube access says what is missing. The run makes its own namespaces, cnibench-<run> and, with PodSecurity
# "privileged", cnibench-<run>-host, so its rights inside them cannot wait there in a Role and hold for all namespaces.
# A user who may create namespaces and pods, and execute in pods, can become root on the nodes: bind these roles as you
# would bind cluster-admin.
---
`

const detectHead = `---
# Optional: how the CNI is configured. Without these rights the run continues, and more of its facts are unproven.
# Cilium's agents are asked by pods/exec, which is above.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: cnibench-detect
rules:
`

// rbacManifest returns deploy/rbac.yaml: the roles cnibench and cnibench-detect.
func rbacManifest() []byte {
	return bytes.Join([][]byte{[]byte(rbacHead), kube.Manifest(false), []byte(detectHead), indent(detectRules())}, nil)
}

// runRules returns the rules of the role cnibench as a YAML list.
func runRules() []byte {
	_, rules, _ := bytes.Cut(kube.Manifest(false), []byte("\nrules:"))
	return bytes.TrimPrefix(bytes.ReplaceAll(rules, []byte("\n  "), []byte("\n")), []byte("\n"))
}

// detectRules returns the rules of the role cnibench-detect as a YAML list.
func detectRules() []byte {
	var b bytes.Buffer
	for _, g := range detection {
		fmt.Fprintf(&b, "# %s: %s\n- apiGroups: [%q]\n  resources: [%s]\n", g.verb, g.why, g.group, quoted(g.resources))
		if g.names != nil {
			fmt.Fprintf(&b, "  resourceNames: [%s]\n", quoted(g.names))
		}
		fmt.Fprintf(&b, "  verbs: [%s]\n", g.verb)
	}
	return b.Bytes()
}

func quoted(list []string) string { return `"` + strings.Join(list, `", "`) + `"` }

// indent indents every line of b by two spaces.
func indent(b []byte) []byte {
	b = bytes.ReplaceAll(append([]byte("  "), b...), []byte("\n"), []byte("\n  "))
	return bytes.TrimSuffix(b, []byte("  "))
}
