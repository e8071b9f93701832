// Package kube is a Kubernetes cluster as a place to measure in: a namespace for each run, pods and Services for the
// paths of its plan, and agents in them over the API server's exec stream. It knows neither how a run is conducted nor
// which CNI it has before it: package detect finds that out.
//
//	controller ══ exec stream (or port-forward) ══ API server ══ kubelet ══ stdin, stdout of an agent
//
//	                client's node              server's node        a third node
//	namespace       client  peer  backend-1    server  backend-2
//	namespace-host  host-client                host-server          external      (in the node's own network)
//
// No control traffic crosses the network under test. Under the profile "host" a path leads between the host-network pods:
// that is the bare node of this cluster; under every other name it leads as it says, through the cluster's CNI.
//
// Read Options, Connect, then Cluster.Up. What is made is computed first and by itself (topology.go, objects.go), then
// created and waited for (up.go); diagnose.go says in the cluster's words why something does not come. Every object
// bears the run's id and the time at which it may be swept (connect.go, clean.go). access.go has the rights that all this
// needs, with the reason for each.
package kube
