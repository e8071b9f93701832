package api

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnibench/cnibench/internal/plan/kubetext"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// PullSecret names an image pull Secret. Pods need it in their own namespace, so a run copies it into each of its namespaces,
// under the same name.
type PullSecret struct{ Namespace, Name string }

// PullSecrets parses references of the form "namespace/name", or "name" for a Secret in the namespace home. The references
// must be valid; see kubetext.SecretFaults.
func PullSecrets(refs []string, home string) []PullSecret {
	var all []PullSecret
	for _, ref := range refs {
		namespace, name, _ := kubetext.ParseSecret(ref)
		all = append(all, PullSecret{cmp.Or(namespace, home), name})
	}
	return all
}

// Pulling returns the names of secrets as the value of a pod's field imagePullSecrets.
func Pulling(secrets []PullSecret) []corev1.LocalObjectReference {
	return each.Of(secrets, func(s PullSecret) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: s.Name} })
}

// CopiesOf reads Secrets and returns copies of them with the namespace, labels and annotations of like. It does not create
// the copies in the cluster. It fails if a Secret cannot be read.
func CopiesOf(ctx context.Context, client *Client, secrets []PullSecret, like metav1.ObjectMeta) ([]*corev1.Secret, error) {
	var all []*corev1.Secret
	for _, s := range secrets {
		secret, err := client.Secrets(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
		if err != nil {
			return nil, withPullAdvice(fmt.Errorf("image pull Secret %s in namespace %s: %w", s.Name, s.Namespace, err), s)
		}
		all = append(all, &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: like.Namespace, Name: s.Name, Labels: like.Labels, Annotations: like.Annotations},
			Type:       secret.Type, Data: secret.Data,
		})
	}
	return all, nil
}

// CopySecrets creates copies of Secrets in the cluster, with the namespace, labels and annotations of like.
func CopySecrets(ctx context.Context, client *Client, secrets []PullSecret, like metav1.ObjectMeta) error {
	copies, err := CopiesOf(ctx, client, secrets, like)
	if err != nil {
		return err
	}
	for i, c := range copies {
		if _, err := client.Secrets(c.Namespace).Create(ctx, c, metav1.CreateOptions{}); err != nil {
			from := secrets[i]
			return withPullAdvice(fmt.Errorf("copy image pull Secret %s from namespace %s to namespace %s: %w", from.Name, from.Namespace, c.Namespace, err), from)
		}
	}
	return nil
}

// withPullAdvice adds advice to err if err means that a right is missing. The advice tells how to get the right to copy s.
// It returns other errors unchanged.
func withPullAdvice(err error, s PullSecret) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return advice.With(err, fmt.Sprintf("cnibench kube access --pull-secrets %s/%s says which rights that takes, and grants them with --manifest", s.Namespace, s.Name))
}
