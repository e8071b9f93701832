// Package bare is the two profiles without a CNI: two empty namespaces, and a bare node of Kubernetes.
package bare
