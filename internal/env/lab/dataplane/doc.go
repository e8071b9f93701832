// Package dataplane imitates what CNI plugins put on a node to connect pods: one file per dataplane, each of which
// begins with the way that a packet takes.
//
// A dataplane works in two steps. Arrange is pure: it decides addresses, names and the tunnel of a node. The other
// verbs turn that into devices, routes and neighbours in namespaces that exist already: Prepare makes what a node has
// once, AttachPod connects one pod (what a CNI plugin does on ADD; PlugPod where pods hang on the switch), JoinNodes
// teaches one node the way to another (what a daemon does when a node joins). Rules says which netfilter rules the
// product's daemons keep on the node, in the words of package policy; kube-proxy's are not among them.
//
// Read Dataplane, then Node and Pod, then All: the slice is the list.
//
// What is not here: who makes the namespaces and the switch between them (package lab), the texts of the rules
// (packages policy and service).
package dataplane
