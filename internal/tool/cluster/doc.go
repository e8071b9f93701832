// Command cluster raises a real Kubernetes of several nodes on one machine, for tests, and takes it down. A node is a set
// of namespaces (net, mnt, pid, uts, ipc, cgroup) with a root file system in memory, its own containerd and its own
// kubelet; there is no container engine and no container registry. Everything is built from the Go module proxy and
// Debian's packages, once, into a cache.
//
//	go run ./internal/tool/cluster build            every program and image, into the cache
//	go run ./internal/tool/cluster up               three nodes, flannel (vxlan), kube-proxy (iptables)
//	go run ./internal/tool/cluster exec n2 -- ip route
//	go run ./internal/tool/cluster down
//
// The only processes on the machine that do not live inside a node are one per cluster that is the switch between the
// nodes. They are found by their names, cnib-e2e-<cluster>-<node>, and so are the cgroups: a cluster whose tool was killed
// is taken down like any other. Run from the module's directory; docs/how-to/run-a-test-cluster.md has the whole story.
package main
