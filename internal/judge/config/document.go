package config

import (
	"fmt"
	"io"
	"strings"
)

// page is docs/config.md before its list of rules.
const page = `# cnibench check --config: what is in force?

<!-- written by internal/judge/config (go test ./internal/judge/config -update); edit there -->

` + "`cnibench check --config FILE...`" + ` reads the configuration of one cluster's network and answers three questions: which settings
are in force and where each comes from (given, a chart's default, forced by another), which of those given do nothing or
something else than they say, and which dataplane profile of ours this amounts to. What is compared with one CNI's name over it is
often another of its modes.

` + "```" + `
cnibench check --config /etc/rancher/rke2/config.yaml rke2-cilium-config.yaml
cnibench check --config --as cilium values.yaml --set bpf.masquerade=true
kubectl -n kube-system get configmap cilium-config -o yaml | cnibench check --config -
` + "```" + `

| severity | meaning | exit code |
|---|---|---|
| refused | the chart, the operator or the agent ends with an error, or nothing works | 3 |
| otherwise | in force in another form than was asked for | 3 |
| no effect | given, and nothing reads it | 3 |
| note | worth knowing, no defect by itself | 0 |

A file that cannot be read is exit code 2: all its faults are listed, with their lines. ` + "`-f json`" + ` is for programs
(` + "`" + Schema + "`" + `), ` + "`-f markdown`" + ` for pages; ` + "`--list`" + ` names the rules.

**What is configured is not yet what is in force.** check reads files and asks no cluster: what depends on the nodes' kernels and
NICs it cannot know, and says so. Confirm with the agent's own status (` + "`cilium-dbg status --verbose`" + `) and on the wire.

**Versions.** Each rule names what it was read from. Keys are those of cilium's chart while 1.19 was made, of Calico's objects
after 3.32 (the development branch of August 2026), of flannel's chart 0.28, of kube-proxy's v1alpha1, and of RKE2's charts for
cilium 1.18, canal 3.30 and flannel 0.26. An older version may read a key that is called unknown here, and a newer one has new ones.
Groups of keys that do not decide about the dataplane (hubble, operator, tls and others) are not looked into.

## What is read

Several documents may stand in one file, and all files together configure one cluster. Objects that have nothing to do with the
network are passed over, so that a whole manifest can be given.

| document | told by |
|---|---|
| HelmChartConfig, HelmChart of rke2-cilium, rke2-calico, rke2-canal, rke2-flannel | its kind and name; the values are those in valuesContent |
| Helm values of cilium, calico (tigera-operator), flannel and RKE2's charts | their keys, or ` + "`--as`" + `: RKE2's charts have other defaults, so say ` + "`--as rke2-cilium`" + ` where nothing else of RKE2 is given |
| Installation (operator.tigera.io), FelixConfiguration, IPPool | kind |
| ConfigMap cilium-config | name; it is what the chart made of the values, and has the last word over them |
| ConfigMap of flannel and canal, net-conf.json itself | its key net-conf.json, or Network and Backend |
| DaemonSet calico-node | name; its environment says pools and Felix settings where Calico comes from manifests |
| KubeProxyConfiguration, alone or in kubeadm's ConfigMap | kind |
| config.yaml of RKE2 and K3s | cni (RKE2), flannel-backend (K3s); what both have is told by anything of RKE2's beside it, or ` + "`--as`" + ` |
| Cluster (kind.x-k8s.io) | kind |
| Pods and what makes them, with limits of CPU | kind |

` + "`--set key=value`" + ` means what it means to Helm, for the values of the one chart that ` + "`--as`" + ` names. A file has at most 1 MiB and,
aliases followed, 100,000 values; a key that is given twice is a fault.

## The report for programs

` + "`-f json`" + ` writes one object: ` + "`schema`" + ` is ` + "`" + Schema + "`" + `; ` + "`documents`" + ` have ` + "`file`, `line`, `kind`" + `; ` + "`settings`" + ` have ` + "`component`, `name`, `value`," + `
` + "`origin`" + ` (given, default, forced) and ` + "`by`" + ` (file:line, whose default, what forces it); ` + "`findings`" + ` have ` + "`rule`, `severity`, `where`" + `
(absent where nothing given is at fault), ` + "`saw`, `why`, `do`, `source`; `measured`" + ` has ` + "`profile`" + ` (absent where none of ours fits),
` + "`title`" + ` and ` + "`but`" + `, in what the configuration differs from that profile.

## Rules
`

// WriteRules writes docs/config.md.
func WriteRules(w io.Writer) error {
	var b strings.Builder
	b.WriteString(page)
	for _, r := range rules {
		fmt.Fprintf(&b, "\n### %s\n\n%s (%s).\n\n- Why: %s.\n- Do: %s.\n- See: %s.\n", r.ID, sentence(r.Title), r.Severity, r.Why, r.Do, r.Source)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
