// Package lab raises Kubernetes dataplanes on one Linux machine: for each profile a switch, nodes, pods and an external
// client. Each is a network namespace that only this program uses.
//
//	       172.18.0.1
//	        switch ───────────── external 172.18.0.250
//	      ┌────┴────┐
//	    eth0       eth0
//	   node-1     node-2        172.18.0.11, .12; routes, tunnel, netfilter rules as the CNI has them
//	   ┌─┴─┐      ┌─┴─┐
//	pod-1 pod-2 pod-1 pod-2     10.244.1.0/24, 10.244.2.0/24
//
// NewSpec describes an instance of a profile, without side effects. Up makes the instances of several profiles, isolated
// from each other and with the same addresses. Endpoints maps a path of the plan to the two hosts where agents run.
// Package dataplane connects the pods of a profile; packages service and policy write the rules of its nodes.
//
// Descriptors hold the namespaces, which have no names. They end with the program, and with them every device, route
// and rule. The lab never changes the host's own namespace. The cgroup tree has a name: Close removes it, Janitor
// removes it when the program is killed, and the next Up removes what is left.
//
// Read NewSpec, then Up, Instance and Host. MTUs are in bytes, rates in bit/s.
package lab
