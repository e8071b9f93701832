//go:build e2e

package e2e

import (
	"k8s.io/client-go/kubernetes"

	"github.com/cnibench/cnibench/internal/env/kube"
)

// clientset returns client-go's own clients for a cluster: tests make what the product never does.
func clientset(c *kube.Cluster) kubernetes.Interface {
	return kubernetes.NewForConfigOrDie(c.Config())
}
