// Package lab raises Kubernetes dataplanes on one Linux machine: for each profile a switch, nodes, pods and a client
// outside the cluster, all of them network namespaces that belong to this program and to nothing else.
//
//	       172.18.0.1
//	        switch ───────────── external 172.18.0.250
//	      ┌────┴────┐
//	    eth0       eth0
//	   node-1     node-2        172.18.0.11, .12; routes, tunnel, netfilter rules as the CNI has them
//	   ┌─┴─┐      ┌─┴─┐
//	pod-1 pod-2 pod-1 pod-2     10.244.1.0/24, 10.244.2.0/24
//
// Spec says purely what an instance of a profile consists of; Up makes it true for several profiles at once, each apart
// from the others and with the same addresses. Endpoints maps a path of the plan to the two places where agents run.
// Package dataplane knows how the pods of a profile are connected, packages service and policy which rules its nodes
// have.
//
// Namespaces are held by descriptors and nowhere named, so they end with the program however it ends, and with them
// every device, route and rule; the host's own namespace is never touched. What does have a name is a tree of cgroups.
// Close removes it; when the program is killed, a small process that waits for nothing else does (Janitor), and what
// even that one leaves is swept by the next Up.
//
// Read Spec, then Up, Instance and Host. Addresses are IPv4, MTUs bytes, rates bit/s.
package lab
