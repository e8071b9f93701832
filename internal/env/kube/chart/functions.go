package chart

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/gobwas/glob"
	goyaml "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// failure is the message of an error that a template raises itself, by the function fail or required.
type failure string

// Error returns the message that the chart gave.
func (f failure) Error() string { return string(f) }

// templateFuncs returns the functions for templates: those of sprig that do not read this machine, and Helm's own.
func templateFuncs() template.FuncMap {
	f := sprig.TxtFuncMap()
	delete(f, "env")
	delete(f, "expandenv")
	f["getHostByName"] = func(string) string { return "" }
	f["lookup"] = func(_, _, _, _ string) map[string]any { return map[string]any{} }
	f["fail"] = func(text string) (string, error) { return "", failure(text) }
	f["required"] = func(text string, value any) (any, error) {
		if value == nil || value == "" {
			return value, failure(text)
		}
		return value, nil
	}
	f["toYaml"] = func(v any) string { text, _ := toYAML(v); return text }
	f["mustToYaml"] = toYAML
	f["toYamlPretty"] = func(v any) string {
		var b bytes.Buffer
		e := goyaml.NewEncoder(&b)
		e.SetIndent(2)
		_ = e.Encode(v) // as in Helm, a value that cannot be encoded yields nothing
		return strings.TrimSuffix(b.String(), "\n")
	}
	f["toJson"] = func(v any) string { text, _ := json.Marshal(v); return string(text) }
	f["mustToJson"] = func(v any) (string, error) { text, err := json.Marshal(v); return string(text), err }
	f["fromYaml"] = func(text string) map[string]any { return decodedMap(text, yaml.Unmarshal) }
	f["fromJson"] = func(text string) map[string]any { return decodedMap(text, unmarshalJSON) }
	f["fromYamlArray"] = func(text string) []any { return decodedArray(text, yaml.Unmarshal) }
	f["fromJsonArray"] = func(text string) []any { return decodedArray(text, unmarshalJSON) }
	return f
}

// certificate has the fields that templates read of a generated certificate.
type certificate struct{ Cert, Key string }

// keylessFuncs are the functions that generate keys and certificates, returning empty ones.
func keylessFuncs() template.FuncMap {
	f := template.FuncMap{"genPrivateKey": func(...any) string { return "" }}
	for _, name := range []string{
		"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "buildCustomCert",
	} {
		f[name] = func(...any) certificate { return certificate{} }
	}
	return f
}

func toYAML(v any) (string, error) {
	text, err := yaml.Marshal(v)
	return strings.TrimSuffix(string(text), "\n"), err
}

func unmarshalJSON(text []byte, into any, _ ...yaml.JSONOpt) error { return json.Unmarshal(text, into) }

// decodedMap returns the mapping that a text encodes. As in Helm, it stores an error under the key Error.
func decodedMap(text string, unmarshal func([]byte, any, ...yaml.JSONOpt) error) map[string]any {
	m := map[string]any{}
	if err := unmarshal([]byte(text), &m); err != nil {
		m["Error"] = err.Error()
	}
	return m
}

// decodedArray returns the list that a text encodes. As in Helm, it returns an error as the only element.
func decodedArray(text string, unmarshal func([]byte, any, ...yaml.JSONOpt) error) []any {
	list := []any{}
	if err := unmarshal([]byte(text), &list); err != nil {
		return []any{err.Error()}
	}
	return list
}

// includeLimit is how deep a template may include itself.
const includeLimit = 1000

// recursiveFuncs returns Helm's functions include and tpl, which execute further templates. include executes a template of
// t. tpl executes a text. missing is the option of text/template for values that are not set.
func recursiveFuncs(t *template.Template, missing string) template.FuncMap {
	depth := map[string]int{}
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			if depth[name] > includeLimit {
				return "", fmt.Errorf("template %s includes itself", name)
			}
			depth[name]++
			defer func() { depth[name]-- }()
			var b strings.Builder
			err := t.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
		"tpl": func(text string, data any) (string, error) {
			inner, err := t.Clone()
			if err != nil {
				return "", err
			}
			// Clone loses the option; inner definitions are visible to include.
			inner.Option(missing).Funcs(recursiveFuncs(inner, missing))
			if inner, err = inner.New(t.Name()).Parse(text); err != nil {
				return "", fmt.Errorf("tpl: %w", err)
			}
			var b strings.Builder
			err = inner.Execute(&b, data)
			return strings.ReplaceAll(b.String(), noValue, ""), err
		},
	}
}

// files are a chart's files that are not templates, by path. Templates read them as .Files.
type files map[string][]byte

// GetBytes returns a file, nil if the chart lacks it.
func (f files) GetBytes(name string) []byte { return f[name] }

// Get returns a file as text.
func (f files) Get(name string) string { return string(f[name]) }

// Lines returns the lines of a file.
func (f files) Lines(name string) []string {
	if len(f[name]) == 0 {
		return []string{}
	}
	return strings.Split(strings.TrimSuffix(string(f[name]), "\n"), "\n")
}

// Glob returns the files whose paths match a pattern. In the pattern, ** also matches slashes. It fails if the pattern is
// invalid.
func (f files) Glob(pattern string) (files, error) {
	g, err := glob.Compile(pattern, '/')
	if err != nil {
		return nil, err
	}
	found := files{}
	for name, text := range f {
		if g.Match(name) {
			found[name] = text
		}
	}
	return found, nil
}

// AsConfig returns the files as the data of a ConfigMap, in YAML. The keys are the file names without directories.
func (f files) AsConfig() (string, error) {
	return f.encodedYAML(func(text []byte) string { return string(text) })
}

// AsSecrets returns the files as the data of a Secret, in base64 and YAML. The keys are the file names without directories.
func (f files) AsSecrets() (string, error) { return f.encodedYAML(base64.StdEncoding.EncodeToString) }

func (f files) encodedYAML(encode func([]byte) string) (string, error) {
	m := map[string]string{}
	for name, text := range f {
		m[path.Base(name)] = encode(text)
	}
	return toYAML(m)
}
