// Command cluster starts a real Kubernetes of several nodes on one machine, for tests, and removes it. A node is a set
// of namespaces (net, mnt, pid, uts, ipc, cgroup) with a root file system in memory, its own containerd and its own
// kubelet; there is no container engine and no container registry. Everything is built from the Go module proxy and
// Debian's packages, once, into a cache.
//
//	go run ./internal/tool/cluster build            every program and image, into the cache
//	go run ./internal/tool/cluster up               three nodes, flannel (vxlan), kube-proxy (iptables)
//	go run ./internal/tool/cluster exec n2 -- ip route
//	go run ./internal/tool/cluster down
//
// Only one process of each cluster runs outside the nodes: the switch between them. Processes and cgroups are found by
// their names, cnib-e2e-<cluster>-<node>: a cluster whose tool was killed is removed like any other. Run from the
// module's directory; docs/how-to/run-a-test-cluster.md describes it.
package main
