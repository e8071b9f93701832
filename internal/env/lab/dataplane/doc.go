// Package dataplane is the interface between the lab and the folders of profiles, which imitate CNI plugins.
//
// A dataplane works in two steps. Arrange is pure: it chooses addresses, names and the tunnel of a node. The other
// methods make devices, routes and neighbours in existing namespaces. Prepare makes the node's own devices. AttachPod
// connects one pod, like a CNI plugin on ADD (PlugPod if pods are connected to the switch). JoinNodes adds the routes to
// another node, like a daemon when a node joins. Rules returns the netfilter rules of the product's daemons without
// kube-proxy's.
//
// Read Dataplane, then Node and Pod, then a folder of package profile. Package lab makes the namespaces and the switch
// between them; packages policy and service write the rules.
package dataplane
