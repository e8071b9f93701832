package recipe

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/profile"
)

// actionKind is the kind of an action.
type actionKind string

// Kinds of actions.
const (
	// installChart installs a Helm chart with Text as its values.
	installChart actionKind = "chart"
	// applyManifest applies the objects of a manifest, patched by Text.
	applyManifest actionKind = "manifest"
	// applyObjects applies the objects in Text.
	applyObjects actionKind = "objects"
	// writeFile means that the user must write Text into the file Name on the servers.
	writeFile actionKind = "file"
	// MakeKind creates a kind cluster with the configuration Text.
	MakeKind actionKind = "kind"
	// plantConflist writes Text into the file Name in the CNI's directory of Node.
	plantConflist actionKind = "conflist"
)

// Action is a rendered step.
type Action struct {
	Kind     actionKind
	Chart    Chart
	Manifest Manifest
	// Name is the name of the file to write, Where describes its place, Node is its node. They are "" without a file.
	Name, Where, Node string
	// Routes is true if each node requires routes to the pods of all other nodes.
	Routes bool
	// Text is YAML with comments, or JSON.
	Text string
}

// Rendered is a variant of a recipe, rendered for one cluster.
type Rendered struct {
	Recipe  Recipe
	Variant Variant
	Params  Params
	Actions []Action
}

// Render renders a variant of a recipe for a cluster; "" is the first variant. sets are --set expressions for its chart.
// It fails with a *MissingError if parameters are missing.
func Render(r Recipe, variant string, p Params, sets []string) (Rendered, error) {
	v, err := r.Variant(variant)
	if err != nil {
		return Rendered{}, err
	}
	if err := p.Check(); err != nil {
		return Rendered{}, err
	}
	w := &writer{recipe: r, variant: v, params: p}
	for _, s := range v.Steps {
		w.addStep(s)
	}
	if len(w.missing) > 0 {
		return Rendered{}, &MissingError{
			Profile: r.Profile, Variant: v.Name, Flags: flagDescriptions(w.missing), Learnable: slices.Contains(w.missing, "api-host"),
		}
	}
	if len(w.errs) > 0 {
		return Rendered{}, errors.Join(w.errs...)
	}
	out := Rendered{Recipe: r, Variant: v, Params: p, Actions: w.actions}
	return out, out.mergeSets(sets)
}

// flagDescriptions returns the descriptions of the flags that set the parameters in names, each once.
func flagDescriptions(names []string) []string {
	var list []string
	for _, n := range names {
		said := cmp.Or(flags[n], "the recipe's own "+n)
		if !slices.Contains(list, said) {
			list = append(list, said)
		}
	}
	return list
}

// writer collects the actions of a variant's steps, and the faults and missing parameters.
type writer struct {
	recipe  Recipe
	variant Variant
	params  Params
	actions []Action
	missing []string
	errs    []error
}

// addStep adds the actions of s: one for each node if s differs between nodes, otherwise one.
func (w *writer) addStep(s Step) {
	if s.Conflist == "" && !s.PerNode {
		w.addAction(s, nil)
		return
	}
	for i := range w.params.nodesOrAny() {
		w.addAction(s, w.params.nodeValues(i))
	}
}

// addAction adds the action of s. It looks up references in node, then in the variant, the parameters and the recipe's
// parts. node has the parameters of the action's node; it is nil if the action is not for a single node.
func (w *writer) addAction(s Step, node map[string]string) {
	q, _ := profile.Lookup(w.recipe.Profile) // a test checks that each recipe has its profile
	given := w.params.values(q)
	x := expander{lookup: func(name string) (string, bool) {
		for _, m := range []map[string]string{node, w.variant.Set, given, w.recipe.Parts} {
			if text, ok := m[name]; ok {
				return text, true
			}
		}
		return w.derivedText(name)
	}}
	line := func(text string) string { return strings.TrimSpace(x.expand(text)) }
	a := Action{Where: line(s.Where), Node: node["node"], Routes: line(s.Routes) == "true", Text: strings.TrimRight(x.expand(s.Text), "\n") + "\n"}
	if strings.TrimSpace(a.Text) == "" {
		a.Text = ""
	}
	found := true
	switch {
	case s.Chart != "":
		a.Kind = installChart
		a.Chart, found = w.recipe.charts[s.Chart]
	case s.Manifest != "":
		a.Kind = applyManifest
		a.Manifest, found = w.recipe.manifests[line(s.Manifest)]
	case s.Objects:
		a.Kind = applyObjects
	case s.File != "":
		a.Kind, a.Name = writeFile, s.File
	case s.Kind:
		a.Kind = MakeKind
	case s.Conflist != "":
		a.Kind, a.Name = plantConflist, line(s.Conflist)
	default:
		found = false
	}
	if !found {
		w.errs = append(w.errs, fmt.Errorf("%s for %s: a step names an unknown chart or manifest", w.recipe.Profile, w.variant.Name))
	}
	w.missing = append(w.missing, x.missing...)
	w.actions = append(w.actions, a)
}

// derivedText returns the text for the reference "kind": the configuration of a kind cluster. For any other name it returns
// false.
func (w *writer) derivedText(name string) (string, bool) {
	if name != "kind" {
		return "", false
	}
	mode := w.recipe.Parts["kind-proxy"]
	why := "# kube-proxy serves the Services"
	switch {
	case w.recipe.KubeProxy == "none":
		mode, why = "none", "# the CNI serves the Services; kube-proxy's rules would stay in the path"
	case mode == "":
		mode = "iptables"
	}
	return `apiVersion: kind.x-k8s.io/v1alpha4
kind: Cluster
name: ${cluster}
# two workers: same-node and cross-node paths, with nothing of the control plane on them
nodes:
  - role: control-plane
  - role: worker
  - role: worker
networking:
  # kind's own CNI would be there beside the one that is measured
  disableDefaultCNI: true
  ` + why + `
  kubeProxyMode: ` + mode + `
  podSubnet: ${pod-cidr}`, true
}

// Write prints the actions as one YAML stream. YAML comments describe how each document is applied.
func (r Rendered) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# profile %s, %s\n", r.Recipe.Profile, r.Variant.Title)
	b.WriteString("# needs:\n")
	for _, need := range append(r.Recipe.Conditions(), r.Variant.Needs...) {
		fmt.Fprintf(&b, "#   - %s\n", need)
	}
	for i, a := range r.Actions {
		if i > 0 {
			b.WriteString("---\n")
		}
		fmt.Fprintf(&b, "# %d. %s\n", i+1, strings.Join(append(a.Story(), a.placeholderNotes()...), "\n#    "))
		b.WriteString(a.Text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Conditions returns texts that describe what an installation requires, such as "Linux 5.10 or later".
func (r Recipe) Conditions() []string {
	list := []string{"Linux " + r.Kernel + " or later"}
	switch r.KubeProxy {
	case "none":
		list = append(list, "no kube-proxy")
	case "any", "managed":
	default:
		list = append(list, "kube-proxy in mode "+r.KubeProxy)
	}
	if r.NodeCIDRs {
		list = append(list, "a podCIDR for every node")
	}
	return append(list, r.Needs...)
}

// Story returns lines that describe the action. For most kinds one of them is a command with the same effect.
func (a Action) Story() []string {
	switch a.Kind {
	case installChart:
		c := a.Chart
		story := []string{fmt.Sprintf("chart %s %s as release %s in namespace %s", c.Chart, c.Version, c.Release, c.Namespace)}
		if a.Text == "" { // a chart with only definitions, which are too large for the Secret of a release
			return append(story, fmt.Sprintf("helm template %s %s --repo %s --version %s | kubectl apply --server-side -f -", c.Release, c.Chart, c.Repo, c.Version))
		}
		return append(story, fmt.Sprintf("helm install %s %s --repo %s --version %s --namespace %s --create-namespace --values THIS", c.Release, c.Chart, c.Repo, c.Version, c.Namespace))
	case applyManifest:
		story := []string{"manifest " + a.Manifest.Version, "kubectl apply --server-side -f " + a.Manifest.URL}
		if a.Text != "" {
			story[0] += ", with this laid over the object of the same name"
		}
		return story
	case applyObjects:
		return []string{"objects", "kubectl apply --server-side -f THIS"}
	case writeFile:
		return []string{"file " + a.Name, a.Where}
	case MakeKind:
		return []string{"kind cluster", "kind create cluster --config THIS"}
	case plantConflist:
		story := []string{"file /etc/cni/net.d/" + a.Name, a.Where}
		if a.Routes {
			story = append(story, "and a route on each node to every other one's podCIDR by way of that node's address")
		}
		return story
	}
	return nil
}

// placeholderNotes returns lines that tell how to replace the placeholders of unknown nodes in Text, nil if it has none.
func (a Action) placeholderNotes() []string {
	var story []string
	if strings.Contains(a.Text, podCIDROfNode) {
		story = append(story, "differs for each node: replace "+podCIDROfNode+" by its podCIDR")
	}
	if strings.Contains(a.Text, firstOfNode) {
		story = append(story, "differs for each node: replace "+firstOfNode+" and "+lastOfNode+" by the ends of its own share of --pod-range;",
			"the shares of nodes must not overlap")
	}
	if len(story) > 0 {
		story = append(story, "(--context or --kubeconfig prints the file of each node)")
	}
	return story
}

// ByHandError means that a variant requires files on the servers, which the API server cannot write.
type ByHandError struct {
	Profile, Variant string
	// Others are variants that the API server can install.
	Others []string
}

func (e *ByHandError) Error() string {
	return fmt.Sprintf("%s for %s requires files on the servers: write them as cnibench cni show prints, or choose another --for (%s)",
		e.Profile, e.Variant, strings.Join(e.Others, ", "))
}

// Installable returns a *ByHandError if an action writes a file on the servers, which the API server cannot do.
func (r Rendered) Installable() error {
	if !r.Variant.hasStep(writeFile) {
		return nil
	}
	return &ByHandError{r.Recipe.Profile, r.Variant.Name, r.Recipe.variantNames(func(v Variant) bool { return !v.hasStep(writeFile) && !v.hasStep(MakeKind) })}
}

// hasStep reports whether the variant has a step of a kind: writeFile, MakeKind, or installChart for a chart with values.
// For other kinds it returns false.
func (v Variant) hasStep(kind actionKind) bool {
	return slices.ContainsFunc(v.Steps, func(s Step) bool {
		return kind == writeFile && s.File != "" || kind == MakeKind && s.Kind || kind == installChart && s.Chart != "" && s.Text != ""
	})
}

// variantNames returns the names of the variants for which keep is true.
func (r Recipe) variantNames(keep func(Variant) bool) []string {
	var list []string
	for _, v := range r.Variants {
		if keep(v) {
			list = append(list, v.Name)
		}
	}
	return list
}
