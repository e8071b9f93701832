package recipe

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/cnibench/cnibench/internal/profile"
)

// Recipe describes how to install the dataplane of a profile on a cluster.
type Recipe struct {
	// Profile is the name of the profile, Family the name of its folder in package profile.
	Profile string `yaml:"-"`
	Family  string `yaml:"-"`
	// KubeProxy is the required state of kube-proxy: "any", "none", the name of a mode, or "managed" if the CNI itself
	// stops kube-proxy's DaemonSet.
	KubeProxy string `yaml:"kubeProxy"`
	// Kernel is the oldest supported version of the nodes' kernel, such as "5.10".
	Kernel string `yaml:"kernel"`
	// NodeCIDRs requires that every node has its podCIDR.
	NodeCIDRs bool `yaml:"nodeCIDRs"`
	// Needs describes conditions that the API server cannot check.
	Needs []string `yaml:"needs"`
	// Parts are texts that the steps refer to by name.
	Parts map[string]string `yaml:"parts"`

	// Title is the CNI's name; Secondary is true if it runs in addition to another CNI.
	Title     string    `yaml:"-"`
	Secondary bool      `yaml:"-"`
	Variants  []Variant `yaml:"-"`

	charts    map[string]Chart
	manifests map[string]Manifest
}

// Names of variants.
const (
	Helm     = "helm"
	Operator = "operator"
	ByFile   = "manifest"
	RKE2     = "rke2"
	Kind     = "kind"
	Conflist = "conflist"
)

// Variant is one way to install a recipe.
type Variant struct {
	Name  string `yaml:"name"`
	Title string `yaml:"title"`
	// Profiles are the profiles that this variant can install. An empty list means all profiles of the family.
	Profiles []string `yaml:"profiles"`
	// Set has parameters and parts of this variant.
	Set map[string]string `yaml:"set"`
	// Needs are conditions of this variant, in addition to the recipe's.
	Needs []string `yaml:"needs"`
	// Wait are the workloads that must have rolled out: "DaemonSet namespace/name".
	Wait  []string `yaml:"wait"`
	Steps []Step   `yaml:"steps"`
}

// Step is one step of an installation. Exactly one of its first six fields is set, and determines the kind of the step. Text
// is the chart's values, patches of the manifest, the objects, or the file's contents.
type Step struct {
	Chart    string `yaml:"chart"`
	Manifest string `yaml:"manifest"`
	Objects  bool   `yaml:"objects"`
	File     string `yaml:"file"`
	Kind     bool   `yaml:"kind"`
	Conflist string `yaml:"conflist"`
	// Where describes a file's place. Routes is "true" if each node requires routes to the pods of all other nodes.
	Where  string `yaml:"where"`
	Routes string `yaml:"routes"`
	// PerNode is true if the text differs between nodes. The text of a conflist always does.
	PerNode bool   `yaml:"perNode"`
	Text    string `yaml:"text"`
}

// Chart is a Helm chart of one version.
type Chart struct {
	Chart     string `yaml:"chart"`
	Repo      string `yaml:"repo"`
	Version   string `yaml:"version"`
	Release   string `yaml:"release"`
	Namespace string `yaml:"namespace"`
}

// Manifest is a file of objects of one version.
type Manifest struct {
	URL     string `yaml:"url"`
	Version string `yaml:"version"`
}

// family has the data that the recipes of one CNI share. Steps refer to charts and manifests by name.
type family struct {
	Title     string              `yaml:"title"`
	Secondary bool                `yaml:"secondary"`
	NodeCIDRs bool                `yaml:"nodeCIDRs"`
	Charts    map[string]Chart    `yaml:"charts"`
	Manifests map[string]Manifest `yaml:"manifests"`
	Parts     map[string]string   `yaml:"parts"`
	Variants  []Variant           `yaml:"variants"`
}

// embeddedRecipes returns the recipes that are embedded in the binary, in the order of the profiles. It reads them once.
var embeddedRecipes = sync.OnceValues(func() ([]Recipe, error) { return readRecipes(profile.Files) })

// All returns every recipe in the order of the profiles.
func All() ([]Recipe, error) {
	list, err := embeddedRecipes()
	return slices.Clone(list), err
}

// Lookup returns the recipe of a profile. The error names the profiles that have one.
func Lookup(name string) (Recipe, error) {
	list, err := embeddedRecipes()
	if err != nil {
		return Recipe{}, err
	}
	var names []string
	for _, r := range list {
		if r.Profile == name {
			return r, nil
		}
		names = append(names, r.Profile)
	}
	why := "no such profile"
	if p, known := profile.Lookup(name); known {
		why = cmp.Or(p.Provided, "not a CNI, nothing to install")
	}
	return Recipe{}, fmt.Errorf("no recipe for %q (%s): want one of %s", name, why, strings.Join(names, ", "))
}

// Variant returns the variant called name. "" is the first variant. It fails if there is no such variant.
func (r Recipe) Variant(name string) (Variant, error) {
	if name == "" {
		return r.Variants[0], nil
	}
	var names []string
	for _, v := range r.Variants {
		if v.Name == name {
			return v, nil
		}
		names = append(names, v.Name)
	}
	return Variant{}, fmt.Errorf("%s has no variant %q: want %s", r.Profile, name, strings.Join(names, ", "))
}

// At returns r with all charts and manifests in another version. For "" it returns r unchanged.
func (r Recipe) At(version string) Recipe {
	if version == "" {
		return r
	}
	charts, manifests := map[string]Chart{}, map[string]Manifest{}
	for name, c := range r.charts {
		c.Version = version
		charts[name] = c
	}
	for name, m := range r.manifests {
		m.URL, m.Version = strings.ReplaceAll(m.URL, m.Version, version), version
		manifests[name] = m
	}
	r.charts, r.manifests = charts, manifests
	return r
}

// Versions returns the charts and manifests of a variant, as "name version", in the order of its steps.
func (r Recipe) Versions(v Variant) []string {
	var list []string
	add := func(name, version string) {
		if said := name + " " + version; version != "" && !slices.Contains(list, said) {
			list = append(list, said)
		}
	}
	for _, s := range v.Steps {
		x := expander{lookup: func(name string) (string, bool) { text, ok := r.Parts[name]; return text, ok }}
		manifest := strings.TrimSpace(x.expand(s.Manifest))
		add(s.Chart, r.charts[s.Chart].Version)
		add(manifest, r.manifests[manifest].Version)
	}
	return list
}

// readRecipes returns all recipes in files. The error lists every fault of every file.
func readRecipes(files fs.FS) ([]Recipe, error) {
	var list []Recipe
	var errs []error
	for _, p := range profile.All() {
		r := Recipe{Profile: p.Name, Family: p.Family}
		err := decodeDocument(files, p.Family+"/"+p.Name+".yaml", 2, &r)
		if errors.Is(err, io.EOF) {
			continue // the file ends with the record of the profile
		}
		var f family
		errs = append(errs, err, decodeDocument(files, p.Family+"/"+profile.FamilyFile, 1, &f))
		r.inherit(f)
		list = append(list, r)
	}
	return list, errors.Join(errs...)
}

// inherit adds the family's data. The recipe's own parts override those of the family.
func (r *Recipe) inherit(f family) {
	parts := map[string]string{}
	maps.Copy(parts, f.Parts)
	maps.Copy(parts, r.Parts)
	r.Parts, r.Title, r.Secondary = parts, f.Title, f.Secondary
	r.charts, r.manifests = f.Charts, f.Manifests
	r.NodeCIDRs = r.NodeCIDRs || f.NodeCIDRs
	for _, v := range f.Variants {
		if len(v.Profiles) == 0 || slices.Contains(v.Profiles, r.Profile) {
			r.Variants = append(r.Variants, v)
		}
	}
}

// decodeDocument decodes the n-th YAML document of a file, counted from 1, into the value that into points to. It fails for
// an unknown key. The error wraps io.EOF if the file has fewer documents.
func decodeDocument(files fs.FS, file string, n int, into any) error {
	f, err := files.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	for range n - 1 {
		var skipped yaml.Node
		if err := d.Decode(&skipped); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
