package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/cnibench/cnibench/internal/env/image"
	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/chart"
	"github.com/cnibench/cnibench/internal/plan"
)

const root = "../../../../deploy"

var chartDir = filepath.Join(root, Chart)

// rendered are typed objects, decoded strictly: an unknown or a double field is an error.
func rendered(t *testing.T, values map[string]any) []runtime.Object {
	t.Helper()
	manifest, notes, err := Render(chartDir, chart.Release{Name: "bench", Namespace: "measure"}, values)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(notes, "measure") {
		t.Errorf("the notes do not name the namespace:\n%s", notes)
	}
	return decode(t, manifest)
}

func decode(t *testing.T, manifest string) []runtime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var list []runtime.Object
	for text := range strings.SplitSeq(manifest, "\n---\n") {
		b, err := yaml.YAMLToJSONStrict([]byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if bytes.Equal(b, []byte("null")) || bytes.Contains(b, []byte(`"monitoring.coreos.com/v1"`)) {
			continue // a comment, or an object that the scheme does not know
		}
		o, _, err := decoder.Decode(b, nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		list = append(list, o)
	}
	return list
}

// one is the object of a type with the end of its name; "" is the only one.
func one[T metav1.Object](t *testing.T, list []runtime.Object, end string) T {
	t.Helper()
	var found []T
	for _, o := range list {
		if v, ok := o.(T); ok && strings.HasSuffix(v.GetName(), end) {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of %T called ...%s", len(found), *new(T), end)
	}
	return found[0]
}

// The files under deploy/ are those that make generate would write.
func TestGenerated(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	changed, err := Write(dir)
	if err != nil || len(changed) > 0 {
		t.Errorf("behind: %q, %v: make generate", changed, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rbac.yaml"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if changed, err := Write(dir); err != nil || len(changed) != 1 {
		t.Errorf("an empty rbac.yaml is not noticed: %q, %v", changed, err)
	}
}

// settings are values that reach every branch of the templates.
var settings = map[string]map[string]any{
	"default": nil,
	"everything": {
		"image":            map[string]any{"repository": "registry.example:5000/net/cnibench", "tag": "v1", "pullPolicy": "Always"},
		"imagePullSecrets": []any{"one", "two"}, "schedule": "@weekly", "timeZone": "Europe/Berlin", "suspend": true, "keep": 3,
		"controller": map[string]any{
			"nodeSelector": map[string]any{"pool": "net"}, "tolerations": []any{map[string]any{"operator": "Exists"}},
			"affinity": map[string]any{"nodeAffinity": map[string]any{}},
		},
		"serviceAccount": map[string]any{"name": "bench-sa", "annotations": map[string]any{"a": "b"}},
		"persistence":    map[string]any{"storageClass": "fast", "accessMode": "ReadWriteMany", "size": "20Gi"},
		"format":         "none",
		"plan":           map[string]any{"name": "weekly", "kubernetes": map[string]any{"image": "other:v2", "clientNode": "n1"}},
	},
	"least": {
		"rbac": map[string]any{"create": false}, "serviceAccount": map[string]any{"create": false},
		"persistence": map[string]any{"existingClaim": "mine"},
	},
	"no detection": {"rbac": map[string]any{"detect": false}},
}

func TestLint(t *testing.T) {
	for name, values := range settings {
		l := lint.RunAll(chartDir, values, "measure")
		for _, m := range l.Messages {
			if m.Severity > 1 { // above information
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

// Every pod that the chart makes runs under PodSecurity "restricted".
func TestRestricted(t *testing.T) {
	for name, values := range settings {
		pods := 0
		for _, o := range rendered(t, values) {
			spec := podOf(o)
			if spec == nil {
				continue
			}
			pods++
			for _, why := range restricted(*spec) {
				t.Errorf("%s: %T: %s", name, o, why)
			}
			if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks || spec.AutomountServiceAccountToken == nil {
				t.Errorf("%s: %T: service links, or nothing said about the token", name, o)
			}
			for _, c := range spec.Containers {
				if _, limited := c.Resources.Limits[corev1.ResourceCPU]; limited || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
					t.Errorf("%s: %T: resources %+v", name, o, c.Resources)
				}
				if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
					t.Errorf("%s: %T: its root can be written to", name, o)
				}
			}
		}
		if pods != 1 {
			t.Errorf("%s: %d pods", name, pods)
		}
	}
	// The check itself must be able to complain.
	if n := len(restricted(corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{}}})); n < 5 {
		t.Errorf("a pod without any of it breaks %d rules", n)
	}
}

func podOf(o runtime.Object) *corev1.PodSpec {
	switch v := o.(type) {
	case *batchv1.CronJob:
		return &v.Spec.JobTemplate.Spec.Template.Spec
	}
	return nil
}

// restricted returns what in a pod is against the Pod Security Standard "restricted".
func restricted(spec corev1.PodSpec) []string {
	var bad []string
	broken := func(is bool, why string) {
		if is {
			bad = append(bad, why)
		}
	}
	broken(spec.HostNetwork || spec.HostPID || spec.HostIPC, "it shares a namespace of the node")
	s := spec.SecurityContext
	broken(s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0, "it may be root")
	broken(s == nil || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault, "no seccomp profile")
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		k := c.SecurityContext
		broken(k == nil || k.AllowPrivilegeEscalation == nil || *k.AllowPrivilegeEscalation, c.Name+" may gain rights")
		broken(k == nil || k.Capabilities == nil || !slices.Equal(k.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(k.Capabilities.Add) > 0, c.Name+" has capabilities")
		broken(k != nil && k.Privileged != nil && *k.Privileged, c.Name+" is privileged")
		for _, p := range c.Ports {
			broken(p.HostPort != 0, c.Name+" takes a port of the node")
		}
	}
	for _, v := range spec.Volumes {
		broken(v.ConfigMap == nil && v.PersistentVolumeClaim == nil && v.EmptyDir == nil && v.Secret == nil && v.Projected == nil, "volume "+v.Name)
	}
	return bad
}

// The role in the chart, the role that kube access prints and the table in the program are the same, verb by verb.
func TestRights(t *testing.T) {
	want := map[string]bool{}
	for _, r := range kube.Rights {
		resource := r.Resource
		if r.Subresource != "" {
			resource += "/" + r.Subresource
		}
		want[r.Group+" "+resource+" "+r.Verb] = true
	}
	plain := decode(t, string(rbacManifest()))
	for name, got := range map[string]*rbacv1.ClusterRole{
		"deploy/rbac.yaml": one[*rbacv1.ClusterRole](t, plain, "cnibench"),
		"chart":            one[*rbacv1.ClusterRole](t, rendered(t, settings["no detection"]), ""),
	} {
		if g := verbs(got.Rules); !reflect.DeepEqual(g, want) {
			t.Errorf("%s: %v, want %v", name, g, want)
		}
	}
	both := verbs(slices.Concat(one[*rbacv1.ClusterRole](t, plain, "cnibench").Rules, one[*rbacv1.ClusterRole](t, plain, "detect").Rules))
	if got := verbs(one[*rbacv1.ClusterRole](t, rendered(t, nil), "").Rules); !reflect.DeepEqual(got, both) {
		t.Errorf("the chart with detection: %v, want %v", got, both)
	}
	pull := rendered(t, settings["everything"])
	if !verbs(one[*rbacv1.ClusterRole](t, pull, "").Rules)[" secrets create"] || one[*rbacv1.Role](t, pull, "-pull").Rules[0].ResourceNames[1] != "two" {
		t.Error("image pull Secrets can neither be read nor copied")
	}
	for _, o := range rendered(t, settings["least"]) {
		switch o.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *corev1.ServiceAccount, *corev1.PersistentVolumeClaim, *corev1.Service:
			t.Errorf("there is a %T, and none was asked for", o)
		}
	}
}

// verbs are the rules one by one: group, resource, names and verb.
func verbs(rules []rbacv1.PolicyRule) map[string]bool {
	out := map[string]bool{}
	for _, r := range rules {
		for _, g := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, v := range r.Verbs {
					names := ""
					if len(r.ResourceNames) > 0 {
						names = " of " + strings.Join(r.ResourceNames, ",")
					}
					out[g+" "+resource+" "+v+names] = true
				}
			}
		}
	}
	return out
}

// The binding, the pod and the claim refer to one another by name.
func TestTied(t *testing.T) {
	for name, values := range settings {
		list := rendered(t, values)
		job := one[*batchv1.CronJob](t, list, "")
		spec := job.Spec.JobTemplate.Spec.Template.Spec
		if name != "least" {
			role, binding := one[*rbacv1.ClusterRole](t, list, ""), one[*rbacv1.ClusterRoleBinding](t, list, "")
			account := one[*corev1.ServiceAccount](t, list, "")
			if binding.RoleRef.Name != role.Name || binding.Subjects[0].Name != account.Name || binding.Subjects[0].Namespace != "measure" || spec.ServiceAccountName != account.Name {
				t.Errorf("%s: role %s, account %s of the pod %s, binding %+v", name, role.Name, account.Name, spec.ServiceAccountName, binding)
			}
			claim := one[*corev1.PersistentVolumeClaim](t, list, "")
			if v := spec.Volumes[len(spec.Volumes)-1]; v.PersistentVolumeClaim.ClaimName != claim.Name {
				t.Errorf("%s: volume %+v, claim %s", name, v, claim.Name)
			}
		}
		config := one[*corev1.ConfigMap](t, list, "-plan")
		if v := spec.Volumes[0]; v.ConfigMap.Name != config.Name {
			t.Errorf("%s: plan %+v", name, v)
		}
		if name == "least" && spec.Volumes[1].PersistentVolumeClaim.ClaimName != "mine" {
			t.Errorf("the claim is %+v", spec.Volumes[1])
		}
		if _, err := plan.Parse(name, strings.NewReader(config.Data["plan.yaml"])); err != nil && name != "everything" {
			t.Errorf("%s: the plan: %v", name, err)
		}
	}
}

// What the chart calls the image is what cnibench image makes, and what was asked for reaches the command.
func TestValues(t *testing.T) {
	container := func(values map[string]any) corev1.Container {
		return one[*batchv1.CronJob](t, rendered(t, values), "").Spec.JobTemplate.Spec.Template.Spec.Containers[0]
	}
	c := container(nil)
	if !strings.HasPrefix(c.Image, image.Repository+":") || !slices.Contains(c.Args, "--image="+c.Image) {
		t.Errorf("image %s, arguments %q", c.Image, c.Args)
	}
	c = container(settings["everything"])
	if c.Image != "registry.example:5000/net/cnibench:v1" || c.ImagePullPolicy != corev1.PullAlways ||
		!slices.Contains(c.Args, "--pull-secrets=measure/one,measure/two") || !slices.Contains(c.Args, "--keep=3") || !slices.Contains(c.Args, "--format=none") {
		t.Errorf("%+v", c)
	}
	if slices.ContainsFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "--image=") }) {
		t.Errorf("the image of the plan is overruled: %q", c.Args)
	}
}

// Values that mean nothing are refused before anything is rendered, each by its name.
func TestSchema(t *testing.T) {
	for key, values := range map[string]map[string]any{
		"value schedule":                {"schedule": "nightly"},
		"value keep":                    {"keep": 0},
		"value image.tag":               {"image": map[string]any{"tag": "latest"}},
		"value image.repository":        {"image": map[string]any{"repository": "Bad Name"}},
		"value image.pullPolicy":        {"image": map[string]any{"pullPolicy": "always"}},
		"shedule":                       {"shedule": "@daily"},
		"value format":                  {"format": "pdf"},
		"value persistence.accessMode":  {"persistence": map[string]any{"accessMode": "ReadOnlyMany"}},
		"value persistence.size":        {"persistence": map[string]any{"size": "much"}},
		"value plan":                    {"plan": "rr"},
		"value deadlineSeconds":         {"deadlineSeconds": 5},
		"value controller":              {"controller": map[string]any{"replicas": 2}},
		"value imagePullSecrets[]":      {"imagePullSecrets": []any{"a,b"}},
		"value serviceAccount.name":     {"serviceAccount": map[string]any{"name": "x: y"}},
		"value persistence.existingCla": {"persistence": map[string]any{"existingClaim": "a\nb"}},
	} {
		_, _, err := Render(chartDir, chart.Release{Name: "b", Namespace: "n"}, values)
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v: %v, want a word about %s", values, err, key)
		}
	}
}

// kubectl, where there is one, reads the manifests. What an API server says of them is asked under e2e/.
func TestKubectl(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is missing (Debian: kubernetes-client)")
	}
	for _, name := range []string{"rbac.yaml", "cronjob.yaml"} {
		out, err := exec.Command(kubectl, "label", "--local", "--dry-run=client", "-o", "name", "-f", filepath.Join(root, name), "read=yes").CombinedOutput()
		if err != nil || strings.Count(string(out), "\n") < 2 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
