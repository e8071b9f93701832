package recipe

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/env/kube/detect"
)

// planterNamespace returns the name of the namespace of the DaemonSet that writes a profile's conflists.
func planterNamespace(profile string) string { return detect.PlanterSpace + profile }

// applyPlanter applies a DaemonSet whose pods write the conflist of their node, for a plugin without a daemon. The pods use
// the host's network, because there is no CNI yet, and remove the conflist when they end. actions has the conflists.
// applyPlanter fails if Image is not set.
func (i *Installer) applyPlanter(ctx context.Context, inv *inventory, actions []Action, nodes []Node) error {
	if i.Image == "" && i.DryRun == "" {
		return errors.New("writing files on nodes requires an image of this program: give --image (see cnibench image)")
	}
	specs := map[string]string{}
	for _, a := range actions {
		s := PlantSpec{File: a.Name, Text: a.Text}
		if a.Routes {
			s.Routes = nodeRoutes(a.Node, nodes)
		}
		text, err := json.Marshal(s)
		if err != nil {
			return err
		}
		specs[a.Node] = string(text)
	}
	parts := planterObjects(planterNamespace(inv.Profile), i.imageOrDefault(), specs)
	last := len(parts) - 1 // the DaemonSet comes after the copies of its pull secrets
	daemons := parts[last].(*appsv1.DaemonSet)
	daemons.Spec.Template.Spec.ImagePullSecrets = api.Pulling(i.PullSecrets)
	if i.DryRun == "" { // a dry run does not print Secrets
		copies, err := api.CopiesOf(ctx, i.client, i.PullSecrets, daemons.ObjectMeta)
		if err != nil {
			return err
		}
		for _, c := range copies {
			parts = slices.Insert(parts, last, runtime.Object(c))
		}
	}
	var objects []object
	for _, o := range parts {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		unstructured.RemoveNestedField(fields, "status")
		objects = append(objects, &unstructured.Unstructured{Object: fields})
	}
	inv.Wait = append(slices.Clone(inv.Wait), "DaemonSet "+planterNamespace(inv.Profile)+"/"+detect.PlanterName)
	return i.apply(ctx, inv, objects)
}

// nodeRoutes returns the routes from one node to the pods of all other nodes.
func nodeRoutes(node string, nodes []Node) []PlantRoute {
	var list []PlantRoute
	for _, n := range nodes {
		if n.Name != node && n.PodCIDR.IsValid() && n.Address.IsValid() {
			list = append(list, PlantRoute{To: n.PodCIDR, Via: n.Address})
		}
	}
	return list
}

// planterObjects returns a namespace called name, a ConfigMap with specs, and the DaemonSet of planters, in this order. specs
// has a PlantSpec in JSON for each node.
func planterObjects(name, image string, specs map[string]string) []runtime.Object {
	labels := map[string]string{"app": "cnibench-planter", api.LabelManagedBy: api.ManagedBy}
	return []runtime.Object{
		&corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}},
		},
		&corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: "specs", Namespace: name, Labels: labels}, Data: specs,
		},
		&appsv1.DaemonSet{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
			ObjectMeta: metav1.ObjectMeta{Name: detect.PlanterName, Namespace: name, Labels: labels},
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cnibench-planter"}},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: planterPod(image)},
			},
		},
	}
}

// planterPod returns a pod that writes the node's conflist and adds routes, and has only the rights for that. The pod becomes
// ready when it has done both.
func planterPod(image string) corev1.PodSpec {
	return corev1.PodSpec{
		HostNetwork: true, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, PriorityClassName: "system-node-critical",
		NodeSelector:                 map[string]string{corev1.LabelOSStable: "linux"},
		AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
		Volumes: []corev1.Volume{
			{Name: "cni", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/cni/net.d", Type: new(corev1.HostPathDirectoryOrCreate)}}},
			{Name: "specs", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "specs"}}}},
			{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
		Containers: []corev1.Container{{
			Name: "planter", Image: image, Command: []string{"/cnibench", PlantVerb, "$(NODE)"},
			Env: []corev1.EnvVar{{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}},
			SecurityContext: &corev1.SecurityContext{
				RunAsUser: new(int64(0)), ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN"}},
			},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/cnibench", PlantVerb, "--check"}}},
				PeriodSeconds: 1,
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "cni", MountPath: PlantDir}, {Name: "specs", MountPath: PlantSpecs, ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"}},
		}},
	}
}
