// Package deploy generates the files under deploy/: the roles from the table of rights, and the plain manifests from
// the Helm chart with its default values. make generate writes them; a test fails when they are outdated. The product
// does not use it.
package deploy

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/env/kube/chart"
)

// order has the chart's templates in the order of their objects in the manifest: objects that others require come first.
var order = []string{"rbac.yaml", "configmap.yaml", "pvc.yaml", "cronjob.yaml"}

// Render renders the chart in the directory dir. It returns its objects as one manifest, and the text of NOTES.txt. values
// override the chart's own values. It fails if the chart's schema forbids values, or a template reads a missing value.
func Render(dir string, r chart.Release, values map[string]any) (manifest, notes string, err error) {
	c, err := chart.Load(dir)
	if err != nil {
		return "", "", err
	}
	r.Strict = true
	files, err := c.Execute(values, r)
	if err != nil {
		return "", "", fmt.Errorf("render chart %s: %w", dir, err)
	}
	var documents []string
	for name, text := range files {
		if path.Base(name) == "NOTES.txt" {
			notes = text
		} else if !slices.Contains(order, path.Base(name)) && strings.TrimSpace(text) != "" {
			return "", "", fmt.Errorf("chart %s: the template %s has no place in the order of the manifest", dir, name)
		}
	}
	for _, name := range order {
		text := strings.TrimSpace(files["templates/"+name])
		if text != "" {
			documents = append(documents, strings.TrimPrefix(text, "---\n")+"\n")
		}
	}
	return strings.Join(documents, "---\n"), notes, nil
}

const cronJobHead = `# Runs on a schedule, with their results on a volume: the Helm chart deploy/chart/cnibench with its default values, made by
# make generate. Write your image for cnibench.local/cnibench:..., or load that into the nodes.
#
#   kubectl apply -f deploy/cronjob.yaml
---
apiVersion: v1
kind: Namespace
metadata:
  name: cnibench
  labels:
    pod-security.kubernetes.io/enforce: restricted
---
`

// cronJob returns deploy/cronjob.yaml from the chart in the directory dir.
func cronJob(dir string) ([]byte, error) {
	manifest, _, err := Render(dir, chart.Release{Name: "cnibench", Namespace: "cnibench", Service: "kubectl"}, nil)
	if err != nil {
		return nil, err
	}
	return []byte(cronJobHead + manifest), nil
}

// Chart is the chart's path under the directory deploy.
const Chart = "chart/cnibench"

// Write writes the generated files below the directory deploy, if their contents differ. It returns the files that it wrote.
func Write(deploy string) (changed []string, err error) {
	put := func(name string, b []byte) error {
		name = filepath.Join(deploy, name)
		old, err := os.ReadFile(name)
		if err == nil && bytes.Equal(old, b) {
			return nil
		}
		changed = append(changed, name)
		return os.WriteFile(name, b, 0o666)
	}
	// The chart is rendered with the rules, so they come first.
	for _, f := range []struct {
		name string
		text []byte
	}{{"rbac.yaml", rbacManifest()}, {Chart + "/rules/run.yaml", runRules()}, {Chart + "/rules/detect.yaml", detectRules()}} {
		if err := put(f.name, f.text); err != nil {
			return changed, err
		}
	}
	b, err := cronJob(filepath.Join(deploy, Chart))
	if err != nil {
		return changed, err
	}
	return changed, put("cronjob.yaml", b)
}
