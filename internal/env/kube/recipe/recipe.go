package recipe

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/cnibench/cnibench/internal/vocab/profile"
)

// Recipe says how the dataplane of a profile comes onto a cluster.
type Recipe struct {
	// Profile is the name of a profile of package profile, Family that of the CNI.
	Profile string `yaml:"profile"`
	Family  string `yaml:"family"`
	// KubeProxy is what it wants of kube-proxy: any, none, the name of a mode, or managed: it stops a DaemonSet itself.
	KubeProxy string `yaml:"kubeProxy"`
	// Kernel is the oldest version of the nodes' kernel, as "5.10".
	Kernel string `yaml:"kernel"`
	// NodeCIDRs says that every node must have its podCIDR.
	NodeCIDRs bool `yaml:"nodeCIDRs"`
	// Needs are conditions in words that the API server cannot tell of.
	Needs []string `yaml:"needs"`
	// Parts are texts that the steps refer to by name.
	Parts map[string]string `yaml:"parts"`

	// Title is the CNI's name; Secondary says that it stands beside another CNI.
	Title     string    `yaml:"-"`
	Secondary bool      `yaml:"-"`
	Variants  []Variant `yaml:"-"`
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
	// Profiles are those that can be installed so; none means all of the family.
	Profiles []string `yaml:"profiles"`
	// Set decides parameters and parts that the way of installing decides.
	Set map[string]string `yaml:"set"`
	// Needs are conditions of this way, beside those of the recipe.
	Needs []string `yaml:"needs"`
	// Wait are the workloads that must have rolled out: "DaemonSet namespace/name".
	Wait  []string `yaml:"wait"`
	Steps []Step   `yaml:"steps"`
}

// Step is one thing to apply; exactly one of its first six fields says which. Text belongs to it: values of the chart,
// objects laid over the manifest's, the objects themselves, contents of the file.
type Step struct {
	Chart    string `yaml:"chart"`
	Manifest string `yaml:"manifest"`
	Objects  bool   `yaml:"objects"`
	File     string `yaml:"file"`
	Kind     bool   `yaml:"kind"`
	Conflist string `yaml:"conflist"`
	// Where says where a file belongs; Routes is "true" if the nodes need routes to one another's pods.
	Where  string `yaml:"where"`
	Routes string `yaml:"routes"`
	// PerNode says that the text is another one for each node, as that of a conflist always is.
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
	// Apply says that its objects are applied by the server, without a release.
	Apply bool `yaml:"apply"`
}

// Manifest is a file of objects of one version.
type Manifest struct {
	URL     string `yaml:"url"`
	Version string `yaml:"version"`
}

// sources are what recipes install, by the names in their steps.
type sources struct {
	Charts    map[string]Chart    `yaml:"charts"`
	Manifests map[string]Manifest `yaml:"manifests"`
}

// family is what the recipes of one CNI have in common.
type family struct {
	Family    string            `yaml:"family"`
	Title     string            `yaml:"title"`
	Secondary bool              `yaml:"secondary"`
	NodeCIDRs bool              `yaml:"nodeCIDRs"`
	Parts     map[string]string `yaml:"parts"`
	Variants  []Variant         `yaml:"variants"`
}

// book is all that is known.
type book struct {
	sources sources
	recipes []Recipe
}

//go:embed data
var data embed.FS

// opened reads the embedded data once. That it can be read is tested.
var opened = sync.OnceValues(func() (book, error) { return read(data) })

// All returns every recipe in the order of the profiles.
func All() ([]Recipe, error) {
	b, err := opened()
	return slices.Clone(b.recipes), err
}

// Lookup returns the recipe of a profile. The error names the profiles that have one.
func Lookup(name string) (Recipe, error) {
	b, err := opened()
	if err != nil {
		return Recipe{}, err
	}
	var names []string
	for _, r := range b.recipes {
		if r.Profile == name {
			return r, nil
		}
		names = append(names, r.Profile)
	}
	why := "no such profile"
	if _, known := profile.Lookup(name); known {
		why = "it is no CNI: there is nothing to install"
	}
	return Recipe{}, fmt.Errorf("no recipe for %q (%s): want one of %s", name, why, strings.Join(names, ", "))
}

// Variant returns the way of installing called name, the recipe's first one for "".
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
	return Variant{}, fmt.Errorf("%s cannot be installed for %q: want %s", r.Profile, name, strings.Join(names, ", "))
}

// Versions returns what a variant installs, as "name version", in the order of its steps.
func (r Recipe) Versions(v Variant) []string {
	b, err := opened()
	if err != nil {
		return nil
	}
	var list []string
	add := func(name, version string) {
		if said := name + " " + version; version != "" && !slices.Contains(list, said) {
			list = append(list, said)
		}
	}
	for _, s := range v.Steps {
		x := expander{lookup: func(name string) (string, bool) { text, ok := r.Parts[name]; return text, ok }}
		manifest := strings.TrimSpace(x.expand(s.Manifest))
		add(s.Chart, b.sources.Charts[s.Chart].Version)
		add(manifest, b.sources.Manifests[manifest].Version)
	}
	return list
}

// read reads all files of data and reports every fault of every one.
func read(data fs.FS) (book, error) {
	var b book
	var errs []error
	families := map[string]family{}
	errs = append(errs, decode(data, "data/sources.yaml", &b.sources))
	errs = append(errs, each(data, "data/families", func(file string) error {
		var f family
		err := decode(data, file, &f)
		families[f.Family] = f
		return err
	}))
	byName := map[string]Recipe{}
	errs = append(errs, each(data, "data/profiles", func(file string) error {
		var r Recipe
		if err := decode(data, file, &r); err != nil {
			return err
		}
		if want := strings.TrimSuffix(path.Base(file), ".yaml"); r.Profile != want {
			return fmt.Errorf("%s: profile is %q, want %q", file, r.Profile, want)
		}
		f, ok := families[r.Family]
		if !ok {
			return fmt.Errorf("%s: no family %q", file, r.Family)
		}
		r.inherit(f)
		byName[r.Profile] = r
		return nil
	}))
	for _, p := range profile.All() {
		if r, ok := byName[p.Name]; ok {
			b.recipes = append(b.recipes, r)
			delete(byName, p.Name)
		}
	}
	for name := range byName {
		errs = append(errs, fmt.Errorf("data/profiles/%s.yaml: no profile of this name", name))
	}
	return b, errors.Join(errs...)
}

// inherit takes over what the family says.
func (r *Recipe) inherit(f family) {
	parts := map[string]string{}
	for name, text := range f.Parts {
		parts[name] = text
	}
	for name, text := range r.Parts {
		parts[name] = text
	}
	r.Parts, r.Title, r.Secondary = parts, f.Title, f.Secondary
	r.NodeCIDRs = r.NodeCIDRs || f.NodeCIDRs
	for _, v := range f.Variants {
		if len(v.Profiles) == 0 || slices.Contains(v.Profiles, r.Profile) {
			r.Variants = append(r.Variants, v)
		}
	}
}

func each(data fs.FS, dir string, do func(file string) error) error {
	files, err := fs.Glob(data, dir+"/*.yaml")
	for _, file := range files {
		err = errors.Join(err, do(file))
	}
	return err
}

// decode reads one document; unknown keys are faults.
func decode(data fs.FS, file string, into any) error {
	f, err := data.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
