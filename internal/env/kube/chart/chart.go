// Package chart renders Helm charts as `helm template` does, and contacts no cluster.
//
// It reads a chart without subcharts from a directory or an archive, merges values, checks them against the chart's schema,
// and executes the templates. Helm's own engine is not used because it links every API type of Kubernetes, 17 MB of the
// binary. A test compares the output of both on the charts that recipes install.
package chart

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/ignore"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Chart is a loaded chart.
type Chart struct {
	Metadata metadata
	// values are the chart's own values.
	values map[string]any
	// schema returns the JSON schema for the values. The function is nil if the chart has no schema.
	schema func() (*jsonschema.Resolved, error)
	// templates has the texts of the templates, by path.
	templates map[string]string
	// files has all other files of the chart, by path.
	files files
	// definitions returns the objects in the directory crds, in the order of their files. They do not depend on values.
	definitions func() []Document
}

// metadata has the contents of Chart.yaml. Templates read it as .Chart.
type metadata struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	AppVersion   string            `json:"appVersion"`
	APIVersion   string            `json:"apiVersion"`
	KubeVersion  string            `json:"kubeVersion"`
	Type         string            `json:"type"`
	Description  string            `json:"description"`
	Home         string            `json:"home"`
	Icon         string            `json:"icon"`
	Keywords     []string          `json:"keywords"`
	Sources      []string          `json:"sources"`
	Annotations  map[string]string `json:"annotations"`
	Dependencies []any             `json:"dependencies"`
	IsRoot       bool              `json:"-"`
}

// Load reads the chart in a directory or in an archive (.tgz).
func Load(name string) (*Chart, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	read := readArchive
	if info.IsDir() {
		read = readDir
	}
	list, err := read(name)
	if err == nil {
		var c *Chart
		if c, err = parse(list); err == nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("chart %s: %w", name, err)
}

// Read reads a chart from an archive.
func Read(r io.Reader) (*Chart, error) {
	list, err := unpack(r)
	if err != nil {
		return nil, err
	}
	return parse(list)
}

func readArchive(name string) (map[string][]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := archive.EnsureArchive(name, f); err != nil {
		return nil, err
	}
	return unpack(f)
}

func unpack(r io.Reader) (map[string][]byte, error) {
	found, err := archive.LoadArchiveFiles(r)
	if err != nil {
		return nil, err
	}
	list := map[string][]byte{}
	for _, f := range found {
		list[f.Name] = f.Data
	}
	return list, nil
}

// readDir reads the files of a directory that .helmignore does not exclude.
func readDir(dir string) (map[string][]byte, error) {
	rules, err := ignore.ParseFile(filepath.Join(dir, ignore.HelmIgnore))
	if errors.Is(err, fs.ErrNotExist) {
		rules, err = ignore.Empty(), nil
	}
	if err != nil {
		return nil, err
	}
	rules.AddDefaults()
	list := map[string][]byte{}
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		info, err := os.Stat(name) // charts link to files of others
		if err != nil {
			return err
		}
		switch {
		case rules.Ignore(filepath.ToSlash(relative), info) && entry.IsDir():
			return fs.SkipDir
		case rules.Ignore(filepath.ToSlash(relative), info) || entry.IsDir():
			return nil
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file", relative)
		}
		list[filepath.ToSlash(relative)], err = os.ReadFile(name)
		return err
	})
	return list, err
}

// parse returns the chart that consists of the files in list. The keys of list are the files' paths. It fails if a file is
// invalid, if Chart.yaml is missing, or if the chart has subcharts.
func parse(list map[string][]byte) (*Chart, error) {
	c := &Chart{values: map[string]any{}, templates: map[string]string{}, files: files{}}
	if list["Chart.yaml"] == nil {
		return nil, errors.New("no Chart.yaml: not a chart")
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		var err error
		text := list[name]
		switch {
		case name == "Chart.yaml":
			err = yaml.Unmarshal(text, &c.Metadata)
		case name == "values.yaml":
			err = yaml.Unmarshal(text, &c.values)
		case name == "values.schema.json":
			c.schema = sync.OnceValues(func() (*jsonschema.Resolved, error) { return resolveSchema(text) })
		case strings.HasPrefix(name, "templates/"):
			c.templates[name] = string(text)
		case strings.HasPrefix(name, "charts/"):
			err = errors.New("charts with subcharts are not supported")
		default:
			c.files[name] = text
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if c.Metadata.Name == "" || c.Metadata.Version == "" {
		return nil, errors.New("no name or version in Chart.yaml")
	}
	c.Metadata.IsRoot = true
	c.definitions = sync.OnceValue(c.readDefinitions)
	return c, nil
}

func (c *Chart) readDefinitions() []Document {
	var list []Document
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		if ext := path.Ext(name); strings.HasPrefix(name, "crds/") && (ext == ".yaml" || ext == ".yml" || ext == ".json") {
			list = append(list, splitDocuments(name, string(c.files[name]))...)
		}
	}
	return list
}

// Values returns the chart's values overridden by given. Mappings merge, a null removes a key, and any other value replaces
// the chart's. It fails if the chart's schema does not allow the result.
func (c *Chart) Values(given map[string]any) (map[string]any, error) {
	all := mergedValues(c.values, given)
	if c.schema == nil {
		return all, nil
	}
	resolved, err := c.schema()
	if err != nil {
		return nil, fmt.Errorf("values.schema.json of chart %s: %w", c.Metadata.Name, err)
	}
	if err := resolved.Validate(all); err != nil {
		return nil, fmt.Errorf("the schema of chart %s forbids %s", c.Metadata.Name, schemaErrorText(err))
	}
	return all, nil
}

func resolveSchema(text []byte) (*jsonschema.Resolved, error) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, err
	}
	return schema.Resolve(nil)
}

// schemaPath matches "validating PATH: " in an error of the validator. PATH is a path in the schema.
var schemaPath = pattern.New(`validating (\S+): `)

// schemaErrorText rewrites the validator's error so that it begins with the faulty value: "value serve.port: minimum: ...".
func schemaErrorText(err error) string {
	text, name := err.Error(), ""
	for _, m := range schemaPath.FindAllStringSubmatch(text, -1) {
		if path, ok := strings.CutPrefix(m[1], "/properties/"); ok {
			name = strings.NewReplacer("/properties/", ".", "/items", "[]").Replace(path)
		}
	}
	text = text[strings.LastIndex(text, "validating ")+len("validating "):]
	_, text, _ = strings.Cut(text, ": ")
	return strings.TrimSpace("value "+name) + ": " + text
}

// Defaults returns the chart's own values.
func (c *Chart) Defaults() map[string]any { return c.values }

// Without returns a copy of the chart without some templates. It omits a template if its path has the value true in
// templates.
func (c *Chart) Without(templates map[string]bool) *Chart {
	other := *c
	other.templates = maps.Clone(c.templates)
	maps.DeleteFunc(other.templates, func(name, _ string) bool { return templates[name] })
	return &other
}

// mergedValues returns a copy of defaults, overridden by given.
func mergedValues(defaults, given map[string]any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, given)
	for key, value := range defaults {
		over, set := given[key]
		inner, nested := value.(map[string]any)
		overMap, both := over.(map[string]any)
		switch {
		case set && over == nil:
			delete(all, key)
		case nested && (both || !set):
			all[key] = mergedValues(inner, overMap)
		case !set && value != nil:
			all[key] = value
		}
	}
	return all
}
