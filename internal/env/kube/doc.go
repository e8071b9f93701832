// Package kube is a Kubernetes cluster as a place to measure in: a namespace for each run, pods and Services for the
// paths of its plan, and agents in them over the API server's exec stream. It does not know how a run is conducted, nor
// which CNI the cluster has: package detect finds that out.
//
//	controller ══ exec stream (or port-forward) ══ API server ══ kubelet ══ stdin, stdout of an agent
//
//	                client's node              server's node        a third node
//	namespace       client  peer  backend-1    server  backend-2
//	namespace-host  host-client                host-server          external      (in the node's own network)
//
// No control traffic crosses the network under test. Under the profile "host" a path leads between the host-network
// pods, which is the bare node of this cluster. Under every other profile it leads through the cluster's CNI.
//
// Read Options, Connect, then Cluster.Up. Objects are computed first, without the cluster (topology.go, objects.go),
// then created and awaited (up.go); diagnose.go explains in the cluster's words why an object does not become ready.
// Every object has the run's id and the time at which it may be removed (connect.go, clean.go). access.go has the
// rights that all this needs, with the reason for each.
package kube
