// Package dataplane is the interface between the lab and the folders of profiles, which imitate CNI plugins.
//
// A Dataplane only describes a network. Arrange chooses addresses, names and the tunnel of a node. The other methods
// return the devices, routes and neighbours that the lab adds: Prepare the node's own devices; AttachPod the connection
// of one pod, like a CNI plugin on ADD (PlugPod if pods are connected to the switch); JoinNodes the routes to another
// node, like a daemon when a node joins. Rules returns the netfilter rules of the product's daemons without
// kube-proxy's.
//
// An Expectation describes what an observer must find in the lab; package selftest checks that. The profile's file has the
// encapsulation, the tunnel's device, and the engines of Services and policy.
//
// Read Dataplane, then Node and Pod, then a folder of package profile. Package lab makes the namespaces and the switch
// between them; packages policy and service write the rules.
package dataplane
