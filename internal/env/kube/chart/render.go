package chart

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// Release describes what a chart is rendered for. Templates read it as .Release and .Capabilities.
type Release struct {
	Name, Namespace string
	// Service is the value of the label managed-by; "" means Helm.
	Service string
	// KubeVersion is the version of the cluster, such as v1.37.2; "" means assumedKubeVersion.
	KubeVersion string
	// Serves reports whether the cluster serves a group version (apps/v1) or a kind in it (apps/v1/Deployment). If it is
	// nil, assumedVersions are served.
	Serves func(name string) bool
	// Strict makes rendering fail if a template reads a value that is not set.
	Strict bool
	// NoKeys makes the functions that generate keys and certificates return empty ones: each would take 100 ms.
	NoKeys bool
}

// Document is one object of a rendered chart.
type Document struct {
	// Template is the path of the file in the chart that contains the object.
	Template string
	Kind     string
	// Hooks are the events at which Helm applies the object, such as pre-install; nil if the object is not a hook.
	Hooks []string
	Text  string
}

const (
	assumedKubeVersion = "v1.37.0"
	// helmVersion is the version whose behavior this package follows.
	helmVersion = "v4.3.1"
	hookKey     = "helm.sh/hook"
	notes       = "NOTES.txt"
)

// assumedVersions are the group versions that every supported cluster serves.
var assumedVersions = []string{
	"v1", "apps/v1", "batch/v1", "policy/v1", "autoscaling/v2", "networking.k8s.io/v1", "discovery.k8s.io/v1", "coordination.k8s.io/v1",
	"rbac.authorization.k8s.io/v1", "storage.k8s.io/v1", "scheduling.k8s.io/v1", "node.k8s.io/v1", "certificates.k8s.io/v1",
	"apiextensions.k8s.io/v1", "admissionregistration.k8s.io/v1", "apiregistration.k8s.io/v1", "authentication.k8s.io/v1", "authorization.k8s.io/v1",
}

// versionSet is the type of .Capabilities.APIVersions in templates.
type versionSet struct{ serves func(string) bool }

// Has reports whether the cluster serves a version or kind.
func (v versionSet) Has(name string) bool { return v.serves(name) }

// kubeVersion is the type of .Capabilities.KubeVersion in templates.
type kubeVersion struct{ Version, GitVersion, Major, Minor string }

// String returns the version.
func (v kubeVersion) String() string { return v.Version }

// tree is the type of .Values in templates. Templates may call its methods, as in Helm.
type tree map[string]any

// AsMap returns the values as a plain map, the type that sprig's functions expect.
func (v tree) AsMap() map[string]any { return v }

// YAML returns the values as text.
func (v tree) YAML() (string, error) { return toYAML(v.AsMap()) }

// Render executes the chart's templates and returns the objects in the order of installation: those of the directory crds
// first, then by kind as Helm does. values override the chart's own values.
func (c *Chart) Render(values map[string]any, r Release) ([]Document, error) {
	texts, err := c.Execute(values, r)
	if err != nil {
		return nil, err
	}
	var list []Document
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if path.Base(name) != notes {
			list = append(list, splitDocuments(name, texts[name])...)
		}
	}
	slices.SortStableFunc(list, func(a, b Document) int {
		x, y := slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)
		if x < 0 && y < 0 {
			return cmp.Compare(a.Kind, b.Kind)
		}
		return cmp.Compare(uint(x), uint(y)) // kinds of others are last
	})
	return slices.Concat(c.definitions(), list), nil
}

// kinds are the kinds of objects in the order in which Helm installs them.
var kinds = []string{
	"PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy", "PodDisruptionBudget", "ServiceAccount",
	"Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole",
	"ClusterRoleList", "ClusterRoleBinding", "ClusterRoleBindingList", "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service",
	"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob",
	"IngressClass", "Ingress", "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
}

// Execute executes the chart's templates and returns the output of each by its path. It omits files whose names begin with
// "_", which only define templates for others. values override the chart's own values.
func (c *Chart) Execute(values map[string]any, r Release) (map[string]string, error) {
	all, err := c.Values(values)
	if err != nil {
		return nil, err
	}
	about, err := c.templateData(r)
	if err != nil {
		return nil, err
	}
	about["Values"] = tree(all)
	missing := "missingkey=zero"
	if r.Strict {
		missing = "missingkey=error"
	}
	t := template.New(c.Metadata.Name).Option(missing)
	t.Funcs(templateFuncs()).Funcs(recursiveFuncs(t, missing))
	if r.NoKeys {
		t.Funcs(keylessFuncs())
	}
	root := c.Metadata.Name + "/"
	// As in Helm: of equal definitions the one in the most deeply nested file comes first.
	order := slices.SortedFunc(maps.Keys(c.templates), func(a, b string) int {
		return -cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
	})
	for _, name := range order {
		if _, err := t.New(root + name).Parse(c.templates[name]); err != nil {
			return nil, err
		}
	}
	made := map[string]string{}
	for _, name := range order {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		about["Template"] = map[string]any{"Name": root + name, "BasePath": root + "templates"}
		var b strings.Builder
		if err := t.ExecuteTemplate(&b, root+name, about); err != nil {
			return nil, c.templateError(err)
		}
		made[name] = strings.ReplaceAll(b.String(), noValue, "")
	}
	return made, nil
}

// noValue is what text/template writes for a value that is not set.
const noValue = "<no value>"

// templateError shortens the error of a template to the chart's own message, if the template called fail or required. It
// returns other errors unchanged.
func (c *Chart) templateError(err error) error {
	var f failure
	if errors.As(err, &f) {
		return fmt.Errorf("chart %s %s: %w", c.Metadata.Name, c.Metadata.Version, f)
	}
	return err
}

// templateData returns the objects that templates read in addition to .Values. It fails if the chart does not support the
// cluster's version.
func (c *Chart) templateData(r Release) (map[string]any, error) {
	version, err := semver.NewVersion(cmp.Or(r.KubeVersion, assumedKubeVersion))
	if err != nil {
		return nil, fmt.Errorf("version of the cluster %q: %w", r.KubeVersion, err)
	}
	if want := c.Metadata.KubeVersion; want != "" {
		constraint, err := semver.NewConstraint(want)
		if err != nil {
			return nil, fmt.Errorf("kubeVersion %q of chart %s: %w", want, c.Metadata.Name, err)
		}
		// A vendor's suffix (v1.33.4-gke.1) is not a pre-release.
		if plain := semver.New(version.Major(), version.Minor(), version.Patch(), "", ""); !constraint.Check(plain) {
			return nil, fmt.Errorf("chart %s %s requires Kubernetes %s: the cluster has v%s", c.Metadata.Name, c.Metadata.Version, want, plain)
		}
	}
	serves := r.Serves
	if serves == nil {
		serves = func(name string) bool { return slices.Contains(assumedVersions, name) }
	}
	full := "v" + strings.TrimPrefix(version.Original(), "v")
	return map[string]any{
		"Chart": c.Metadata,
		"Files": c.files,
		"Release": map[string]any{
			"Name": r.Name, "Namespace": r.Namespace, "Service": cmp.Or(r.Service, "Helm"), "Revision": 1, "IsInstall": true, "IsUpgrade": false,
		},
		"Capabilities": map[string]any{
			"KubeVersion": kubeVersion{full, full, fmt.Sprint(version.Major()), fmt.Sprint(version.Minor())},
			"APIVersions": versionSet{serves},
			"HelmVersion": map[string]any{"Version": helmVersion},
		},
		"Subcharts": map[string]any{},
	}, nil
}

var separator = pattern.New(`(?:^|\s*\n)---\s*`)

// splitDocuments splits the YAML text of the file called name into its objects. It omits YAML documents without a kind.
func splitDocuments(name, text string) []Document {
	var list []Document
	for _, part := range separator.Regexp().Split(strings.TrimSpace(text), -1) {
		var head struct {
			Kind     string
			Metadata struct{ Annotations map[string]any }
		}
		d := Document{Template: name, Text: part + "\n"}
		// A document that is not YAML is reported when it is decoded.
		if err := yaml.Unmarshal([]byte(part), &head); err == nil && head.Kind == "" {
			continue
		}
		d.Kind = head.Kind
		if hooks, ok := head.Metadata.Annotations[hookKey].(string); ok {
			for hook := range strings.SplitSeq(hooks, ",") {
				d.Hooks = append(d.Hooks, strings.TrimSpace(hook))
			}
		}
		list = append(list, d)
	}
	return list
}
