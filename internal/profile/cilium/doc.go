// Package cilium is Cilium in place of kube-proxy, with its modes of routing and its devices.
package cilium
