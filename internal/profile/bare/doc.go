// Package bare has the two profiles without a CNI: two empty namespaces, and a bare node of Kubernetes.
package bare
