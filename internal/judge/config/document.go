package config

import (
	"io"

	"github.com/cnibench/cnibench/internal/vocab/finding"
)

// page is docs/config.md before its list of rules.
const page = `# cnibench check --config: what is in force?

<!-- written by internal/judge/config (go test ./internal/judge/config -update); edit there -->

` + "`cnibench check --config FILE...`" + ` reads the configuration of one cluster's network. It shows the settings in force and where
each comes from, which settings have no effect or another effect, and which dataplane profile the configuration is.

` + "```" + `
cnibench check --config --chart cilium-1.20.2.tgz values.yaml --set bpf.masquerade=true
cnibench check --config --chart cilium values.yaml
kubectl -n kube-system get configmap cilium-config -o yaml | cnibench check --config -
` + "```" + `

| severity | meaning | exit code |
|---|---|---|
| refused | the chart, the operator or the agent ends with an error, or nothing works | 3 |
| otherwise | in force in another form than was asked for | 3 |
| no effect | given, and not read | 3 |
| note | worth knowing, not a defect | 0 |

The exit code is 4 if a document could not be judged, and 2 if a file cannot be read; all its faults are then listed with their
lines. ` + "`-f`" + ` is text, markdown, html or json; ` + "`--list`" + ` names the rules.

**Values need their chart.** A chart decides what its values do. ` + "`--chart`" + ` names the chart: a directory, an archive (.tgz), or one
of those that ` + "`cni install`" + ` uses (cilium, flannel, tigera-operator), which is downloaded in the recipe's version. The chart is
rendered as Helm renders it. Its own validation speaks first; then the objects that it makes are judged. It is rendered
once more without each value, which shows what each value decides and which ones decide nothing. Values without
a chart are listed as not judged.

**What is configured is not yet in force.** check reads files and contacts no cluster. What depends on the nodes' kernels and NICs
it cannot know. ` + "`cnibench cni detect`" + ` reads the objects of a cluster in the same way, and proves what is in force.

## What is read

Several documents may be in one file, and all files together configure one cluster. Other objects are ignored, so that whole
manifests can be given.

| document | recognised by |
|---|---|
| values of the chart that ` + "`--chart`" + ` names | no kind, no keys of the documents below |
| HelmChartConfig, HelmChart | kind; the values are those in valuesContent, for the chart of its name |
| ConfigMap cilium-config, DaemonSet cilium | kind and name |
| Installation (operator.tigera.io), FelixConfiguration, IPPool | kind; the operator's defaults by cloud are applied |
| DaemonSet calico-node, ConfigMap kubernetes-services-endpoint | kind and name |
| ConfigMap of flannel and canal, net-conf.json itself | key net-conf.json; Network and Backend |
| KubeProxyConfiguration, alone or in a ConfigMap | kind |
| CNI configuration list, NetworkAttachmentDefinition | cniVersion; kind |
| config.yaml of RKE2 and K3s | cni, disable-kube-proxy, cluster-cidr (RKE2); flannel-backend (K3s) |
| Cluster (kind.x-k8s.io) | kind |
| workloads with limits of CPU | kind |

A file has at most 1 MiB and, aliases followed, 100,000 values. A key that is given twice is a fault.

## The report for programs

` + "`-f json`" + ` writes one object: ` + "`schema`" + ` is ` + "`" + Schema + "`" + `; ` + "`documents`" + ` have ` + "`file`, `line`, `kind`" + ` and ` + "`notJudged`" + ` with the reason;
` + "`settings`" + ` have ` + "`component`, `name`, `value`, `origin`" + ` (given, default, forced) and ` + "`by`" + ` (file:line, whose default, what forces it);
` + "`findings`" + ` have ` + "`rule`, `severity`, `where`, `saw`, `why`, `do`, `source`; `measured`" + ` has ` + "`profile`" + ` (absent where none fits), ` + "`title`" + ` and
` + "`but`" + `, the differences from that profile; ` + "`wire`" + ` has encapsulation, encryption and pod MTU as settings.

## Rules
`

// Schema names the JSON format of a Report.
const Schema = "cnibench.config/v2"

// WriteRules writes docs/config.md.
func WriteRules(w io.Writer) error {
	_, err := io.WriteString(w, page+finding.Manual(rules))
	return err
}
