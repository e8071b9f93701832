package api_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8stesting "k8s.io/client-go/testing"

	"github.com/cnibench/cnibench/internal/env/kube/api"
	"github.com/cnibench/cnibench/internal/env/kube/api/apitest"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// registry is a cluster with a Secret of a team.
func registry() *apitest.Clientset {
	return apitest.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "registry", Labels: map[string]string{"app": "theirs"}, ResourceVersion: "7"},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{".dockerconfigjson": []byte("{}")},
	})
}

func TestPullSecrets(t *testing.T) {
	all := api.PullSecrets([]string{"registry", "vault/mirror"}, "team")
	if want := []api.PullSecret{{"team", "registry"}, {"vault", "mirror"}}; !slices.Equal(all, want) {
		t.Errorf("%v", all)
	}
	if refs := api.Pulling(all); len(refs) != 2 || refs[0].Name != "registry" || refs[1].Name != "mirror" {
		t.Errorf("%v", refs)
	}
	if len(api.PullSecrets(nil, "team")) > 0 || len(api.Pulling(nil)) > 0 {
		t.Error("something of nothing")
	}
}

// TestCopySecrets: a copy has what is in the Secret, and is ours by everything else.
func TestCopySecrets(t *testing.T) {
	client := registry()
	like := metav1.ObjectMeta{Namespace: "cnibench-r1", Name: "a pod's", Labels: api.Labels("r1"), Annotations: map[string]string{api.AnnotationExpires: "soon"}}
	if err := api.CopySecrets(t.Context(), client.Client, api.PullSecrets([]string{"registry"}, "team"), like); err != nil {
		t.Fatal(err)
	}
	twin, err := client.CoreV1().Secrets("cnibench-r1").Get(t.Context(), "registry", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if twin.Type != corev1.SecretTypeDockerConfigJson || string(twin.Data[".dockerconfigjson"]) != "{}" || twin.ResourceVersion == "7" {
		t.Errorf("%+v", twin)
	}
	if twin.Labels[api.LabelRun] != "r1" || twin.Labels["app"] != "" || twin.Annotations[api.AnnotationExpires] != "soon" {
		t.Errorf("%+v", twin.ObjectMeta)
	}
}

// TestCopySecretsFails: which Secret and where, and how to get a right that is missing.
func TestCopySecretsFails(t *testing.T) {
	like := metav1.ObjectMeta{Namespace: "cnibench-r1"}
	err := api.CopySecrets(t.Context(), registry().Client, []api.PullSecret{{"elsewhere", "registry"}}, like)
	if err == nil || !strings.Contains(err.Error(), "image pull Secret registry in namespace elsewhere") || advice.Of(err) != "" {
		t.Errorf("%v (%s)", err, advice.Of(err))
	}
	for verb, words := range map[string]string{
		"get":    "image pull Secret registry in namespace team: ",
		"create": "copy image pull Secret registry from namespace team to namespace cnibench-r1: ",
	} {
		client := registry()
		client.PrependReactor(verb, "secrets", func(k8stesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "registry", errors.New("no"))
		})
		err := api.CopySecrets(t.Context(), client.Client, []api.PullSecret{{"team", "registry"}}, like)
		if err == nil || !strings.Contains(err.Error(), words) || !strings.Contains(advice.Of(err), "kube access --pull-secrets team/registry") {
			t.Errorf("%s: %v (%s)", verb, err, advice.Of(err))
		}
	}
}
