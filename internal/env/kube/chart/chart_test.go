package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// small is a chart that uses what Helm adds to text/template.
var small = map[string]string{
	"Chart.yaml":             "{apiVersion: v2, name: small, version: 1.2.3, appVersion: v9, kubeVersion: '>= 1.25.0-0'}",
	"values.yaml":            "a: {b: 1, c: [x], d: text, none: null}\nport: 6443\nbig: 12345678\nextra: 'name: {{ .Release.Name }}'\nempty: {}\n",
	".helmignore":            "ignored/\n*.md\n",
	"README.md":              "not read",
	"ignored/data.json":      "{}",
	"files/one.json":         `{"one": 1}`,
	"files/deep/two.json":    "two",
	"templates/_helpers.tpl": `{{ define "small.name" }}{{ .Chart.Name }}-{{ .Release.Name | default "none" }}{{ end }}`,
	"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ include "small.name" . }}, labels: {managed: {{ .Release.Service }}, version: {{ .Chart.AppVersion | quote }}}}
spec:
{{ toYaml .Values.a | indent 2 }}
  port: {{ .Values.port }}
  big: {{ .Values.big | int }}
  unset: {{ .Values.empty.unset }}
  extra: {{ tpl .Values.extra . | quote }}
  json: {{ toJson .Values.a }}
  read: {{ (fromYaml "x: 2").x }} {{ index (fromJsonArray "[7]") 0 }}
  list: {{ fromYamlArray "[1, 2]" | len }} {{ (fromJson "[").Error | empty }}
  sum: {{ .Files.Get "files/one.json" | sha256sum }}
{{- if semverCompare ">=1.10" .Capabilities.KubeVersion.Version }}
  new: {{ .Capabilities.APIVersions.Has "apps/v1" }}
{{- end }}
  found: {{ (lookup "v1" "Secret" "n" "x") | empty }}
  template: {{ .Template.Name }} {{ .Template.BasePath }}
`,
	"templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: files}
data:
{{ (.Files.Glob "files/*.json").AsConfig | indent 2 }}
{{ (.Files.Glob "files/**.json").AsSecrets | indent 2 }}
{{- range .Files.Lines "files/one.json" }}
  line: {{ . | quote }}
{{- end }}
---
# alone
---
apiVersion: v1
kind: Namespace
metadata: {name: n}
`,
	"templates/hook.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: h, annotations: {helm.sh/hook: 'post-install, post-upgrade'}}\n",
	"templates/NOTES.txt": "Thank you.",
	"crds/d.yaml":         "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: d}\n",
}

func write(t *testing.T, list map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range list {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// with returns small with files changed; "" removes one.
func with(t *testing.T, changes map[string]string) *Chart {
	t.Helper()
	list := map[string]string{}
	for name, text := range small {
		list[name] = text
	}
	for name, text := range changes {
		list[name] = text
	}
	c, err := Load(write(t, list))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// likeHelm fails unless the chart in a directory renders as Helm's engine renders it.
func likeHelm(t *testing.T, dir string, values map[string]any) {
	t.Helper()
	theirs, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = common.KubeVersion{Version: "v1.37.0", Major: "1", Minor: "37"}
	all, err := util.ToRenderValues(theirs, values, common.ReleaseOptions{Name: "r", Namespace: "n", Revision: 1, IsInstall: true}, capabilities)
	if err != nil {
		t.Fatal(err)
	}
	want, err := engine.Render(theirs, all)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Execute(values, Release{Name: "r", Namespace: "n", Serves: capabilities.APIVersions.Has})
	if err != nil {
		t.Fatal(err)
	}
	rooted := map[string]string{}
	for name, text := range got {
		rooted[c.Metadata.Name+"/"+name] = text
	}
	if diff := cmp.Diff(want, rooted); diff != "" {
		t.Error(diff)
	}
}

// TestLikeHelm: text is what Helm's engine makes, to the byte.
func TestLikeHelm(t *testing.T) {
	for name, values := range map[string]string{
		"defaults": "", "changed": "{a: {b: 2, c: [y, z], new: {k: v}}, port: 1}", "removed": "{a: {d: null}, big: null}", "added": "{more: null, empty: {unset: 3}}",
	} {
		t.Run(name, func(t *testing.T) {
			given := map[string]any{}
			if err := yaml.Unmarshal([]byte(values), &given); err != nil {
				t.Fatal(err)
			}
			likeHelm(t, write(t, small), given)
		})
	}
	likeHelm(t, "../../../../deploy/chart/cnibench", map[string]any{})
}

// TestRender: objects are in the order of installation, hooks are named, what has no object is left out.
func TestRender(t *testing.T) {
	list, err := with(t, nil).Render(nil, Release{Name: "r"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range list {
		got = append(got, strings.TrimSpace(d.Kind+" "+strings.Join(d.Hooks, ",")))
	}
	if want := []string{"CustomResourceDefinition", "Namespace", "ConfigMap", "Deployment", "Job post-install,post-upgrade"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNoKeys: every function of sprig that generates a certificate or a key returns an empty one, of the same shape.
func TestNoKeys(t *testing.T) {
	c := with(t, map[string]string{"templates/keys.yaml": `{{ $ca := genCA "ca" 9 }}{{ $of := genCAWithKey "ca" 9 (genPrivateKey "rsa") }}kind: Secret
data:
  a: {{ (genSignedCert "a" nil (list "a") 9 $ca).Cert | b64enc | quote }}
  b: {{ (genSignedCertWithKey "a" nil (list "a") 9 $of "").Key | b64enc | quote }}
  c: {{ (genSelfSignedCert "a" nil nil 9).Cert | quote }}
  d: {{ (genSelfSignedCertWithKey "a" nil nil 9 "").Cert | quote }}
  e: {{ (buildCustomCert "" "").Cert | quote }}`})
	made, err := c.Execute(nil, Release{Name: "r", NoKeys: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := made["templates/keys.yaml"]; strings.Count(got, `""`) != 5 {
		t.Errorf("made %s", got)
	}
	for name := range sprig.TxtFuncMap() {
		if made := strings.HasPrefix(name, "gen") || strings.Contains(name, "Cert"); made && keylessFuncs()[name] == nil {
			t.Errorf("%s makes keys", name)
		}
	}
}

// TestRefused: an error says which chart refuses what, without the trace of its templates.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		values map[string]any
		r      Release
		want   string
	}{
		"fail":     {files: map[string]string{"templates/f.yaml": `{{ fail "a and b exclude each other" }}`}, want: "chart small 1.2.3: a and b exclude each other"},
		"required": {files: map[string]string{"templates/f.yaml": `{{ required "x is required" .Values.x }}`}, want: "chart small 1.2.3: x is required"},
		"included": {files: map[string]string{"templates/f.yaml": `{{ define "f" }}{{ fail "deep" }}{{ end }}{{ include "f" . }}`}, want: "chart small 1.2.3: deep"},
		"version":  {r: Release{KubeVersion: "v1.24.9-eks"}, want: "chart small 1.2.3 requires Kubernetes >= 1.25.0-0: the cluster has v1.24.9"},
		"schema": {
			files:  map[string]string{"values.schema.json": `{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"port": {"type": "integer"}}}`},
			values: map[string]any{"port": "x"}, want: "the schema of chart small forbids value port: type: x has type",
		},
		"strict": {r: Release{Strict: true}, want: "unset"},
		"syntax": {files: map[string]string{"templates/f.yaml": "{{"}, want: "f.yaml:1"},
		"loop":   {files: map[string]string{"templates/f.yaml": `{{ define "f" }}{{ include "f" . }}{{ end }}{{ include "f" . }}`}, want: "includes itself"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := with(t, c.files).Render(c.values, c.r)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestArchive: an archive is the same chart, and what is not one is an error.
func TestArchive(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range small {
		if err := w.WriteHeader(&tar.Header{Name: "small/" + name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if w.Close() != nil || z.Close() != nil {
		t.Fatal("the archive is not whole")
	}
	name := filepath.Join(t.TempDir(), "small.tgz")
	if err := os.WriteFile(name, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	c, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Read(&b); err != nil || again.Metadata.Version != c.Metadata.Version || c.Metadata.Name != "small" {
		t.Errorf("%v %+v", err, c.Metadata)
	}
	for _, c := range []map[string]string{
		{"values.yaml": ""}, {"Chart.yaml": "{name: a}"}, {"Chart.yaml": "{name: a, version: '1'}", "charts/b/Chart.yaml": "{}"}, {"Chart.yaml": "{"},
	} {
		if _, err := Load(write(t, c)); err == nil {
			t.Errorf("%v is a chart", c)
		}
	}
}
