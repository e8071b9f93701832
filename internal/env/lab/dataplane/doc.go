// Package dataplane is the frame in which a profile's folder imitates what CNI plugins put on a node to connect pods.
//
// A dataplane works in two steps. Arrange is pure: it decides addresses, names and the tunnel of a node. The other
// verbs turn that into devices, routes and neighbours in existing namespaces: Prepare makes what a node has once,
// AttachPod connects one pod (what a CNI plugin does on ADD; PlugPod where pods are connected to the switch), JoinNodes
// teaches one node the way to another (what a daemon does when a node joins). Rules says which netfilter rules the
// product's daemons keep on the node, in the words of package policy; kube-proxy's are not among them.
//
// Read Dataplane, then Node and Pod, then a folder of package profile. Package lab makes the namespaces and the switch
// between them; packages policy and service write the rules.
package dataplane
