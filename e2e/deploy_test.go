//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/env/kube"
	"github.com/cnibench/cnibench/internal/env/kube/chart"
	"github.com/cnibench/cnibench/internal/env/kube/deploy"
)

const deployDir = "../deploy"

// kubectl runs kubectl with stdin on the cluster under test, and returns what it prints, stderr included.
func kubectl(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must is kubectl where an error is a failure of the test.
func must(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := kubectl(t, stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// restricted makes the namespace name, under PodSecurity "restricted". It is gone before what was registered before it.
func restricted(t *testing.T, name string) {
	t.Helper()
	if os.Getenv("KUBECONFIG") == "" {
		t.Fatal("KUBECONFIG says which cluster: set it")
	}
	must(t, "", "create", "namespace", name)
	t.Cleanup(func() { must(t, "", "delete", "namespace", name, "--timeout=2m") })
	for _, mode := range []string{"enforce", "warn"} {
		must(t, "", "label", "namespace", name, "pod-security.kubernetes.io/"+mode+"=restricted")
	}
}

// The API server takes what lies under deploy/, to the last field, and has no warning about its pods.
func TestDeployDryRun(t *testing.T) {
	name := "deploy-" + kube.RunID()
	restricted(t, name)
	roles, err := os.ReadFile(filepath.Join(deployDir, "rbac.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	manifests := map[string]string{"rbac.yaml": string(roles)}
	for what, values := range map[string]map[string]any{
		"chart":        nil,
		"without RBAC": {"rbac": map[string]any{"create": false}},
		"shared volume": {
			"persistence": map[string]any{"accessMode": "ReadWriteMany"}, "imagePullSecrets": []any{"one"}, "timeZone": "Europe/Berlin", "schedule": "@weekly",
		},
	} {
		if manifests[what], _, err = deploy.Render(filepath.Join(deployDir, deploy.Chart), chart.Release{Name: "bench", Namespace: name}, values); err != nil {
			t.Fatal(err)
		}
	}
	for what, manifest := range manifests {
		out := must(t, manifest, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
		if strings.Contains(out, "Warning") || strings.Count(out, "server dry run") < 2 {
			t.Errorf("%s:\n%s", what, out)
		}
	}
}

// pods describes the pods of a namespace.
func pods(t *testing.T, namespace string) string {
	t.Helper()
	out, _ := kubectl(t, "", "-n", namespace, "describe", "pods") // for a failure that has its own words
	return out
}

// volume is a volume on one node that uid 65532 may write to, and a claim that is bound to it.
const volume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: NAME}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: NAME
  local: {path: /var/lib/NAME}
  nodeAffinity:
    required:
      # The scheduler holds labels against a volume, and no fields.
      nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [NODE]}]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: results, namespace: NAME}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: NAME
  volumeName: NAME
  resources: {requests: {storage: 1Gi}}
`

// maker makes the directory of the volume on its node, which takes more rights than the chart has.
const maker = `
apiVersion: v1
kind: Pod
metadata: {name: NAME-dir, namespace: default}
spec:
  restartPolicy: Never
  nodeName: NODE
  containers:
    - name: sh
      image: cnibench.local/busybox:1
      command: [sh, -c, "VERB"]
      volumeMounts: [{name: lib, mountPath: /host}]
  volumes: [{name: lib, hostPath: {path: /var/lib}}]
`

// onNode runs a shell command on node, where /var/lib is /host.
func onNode(t *testing.T, name, node, command string) {
	t.Helper()
	must(t, strings.NewReplacer("NAME", name, "NODE", node, "VERB", command).Replace(maker), "apply", "-f", "-")
	must(t, "", "-n", "default", "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/"+name+"-dir", "--timeout=2m")
	must(t, "", "-n", "default", "delete", "pod", name+"-dir", "--timeout=2m")
}

// TestDeployRun installs the chart, has its CronJob measure the cluster with the chart's rights alone, and reads the report
// in its log.
func TestDeployRun(t *testing.T) {
	reference := os.Getenv("CNIBENCH_IMAGE")
	if reference == "" {
		t.Fatal("CNIBENCH_IMAGE names an image on the nodes: set it")
	}
	name := "deploy-" + kube.RunID()
	node := strings.TrimSpace(must(t, "", "get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"))
	onNode(t, name, node, "mkdir /host/"+name)
	t.Cleanup(func() { onNode(t, name, node, "rm -rf /host/"+name) })
	t.Cleanup(func() { must(t, "", "delete", "pv", name, "--ignore-not-found", "--timeout=2m") })
	t.Cleanup(func() {
		must(t, "", "delete", "clusterrole,clusterrolebinding", name+"-cnibench", "--ignore-not-found")
	})
	restricted(t, name)
	must(t, strings.NewReplacer("NAME", name, "NODE", node).Replace(volume), "apply", "-f", "-")

	repository, tag, _ := strings.Cut(reference, ":")
	manifest, _, err := deploy.Render(filepath.Join(deployDir, deploy.Chart), chart.Release{Name: "cnibench", Namespace: name}, map[string]any{
		"image":       map[string]any{"repository": repository, "tag": tag, "pullPolicy": "Never"},
		"persistence": map[string]any{"existingClaim": "results"},
		"suspend":     true,
		"keep":        2,
		"plan": map[string]any{
			"name": "e2e", "paths": []any{"pod-to-pod/cross-node"}, "workloads": []any{"rr"}, "repetitions": 5, "duration": "200ms",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	must(t, manifest, "apply", "-f", "-")
	before := must(t, "", "get", "namespaces", "-l", "app.kubernetes.io/managed-by=cnibench", "-o", "name")
	for range 3 {
		must(t, "", "-n", name, "create", "job", "--from=cronjob/cnibench", "now")
		if out, err := kubectl(t, "", "-n", name, "wait", "--for=condition=complete", "job/now", "--timeout=3m"); err != nil {
			log, _ := kubectl(t, "", "-n", name, "logs", "job/now")
			t.Fatalf("%v\n%s\n%s\n%s", err, out, log, pods(t, name))
		}
		if log := must(t, "", "-n", name, "logs", "job/now"); !strings.Contains(log, "pod-to-pod/cross-node") {
			t.Errorf("the log has no report:\n%.4000s", log)
		}
		must(t, "", "-n", name, "delete", "job", "now")
	}
	onNode(t, name, node, fmt.Sprintf("test $(ls /host/%s/*.jsonl | wc -l) = 2", name)) // keep
	if after := must(t, "", "get", "namespaces", "-l", "app.kubernetes.io/managed-by=cnibench", "-o", "name"); len(after) > len(before) {
		t.Errorf("namespaces were left: %s", after)
	}
}
