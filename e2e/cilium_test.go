//go:build e2e

package e2e

import (
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestCheckLiveConfig: the ConfigMap that Cilium's agents read is judged to be the profile that the cluster was raised with.
func TestCheckLiveConfig(t *testing.T) {
	want, _ := expected()
	if !strings.HasPrefix(want, "cilium") {
		t.Skipf("the cluster runs %s", want)
	}
	live, err := clientset(admin(t)).CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cilium-config", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	live.Kind, live.APIVersion = "ConfigMap", "v1"
	text, err := yaml.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary(t), "check", "--config", "-")
	cmd.Stdin = strings.NewReader(string(text))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v:\n%s", err, out)
	}
	t.Logf("%s", out)
}
