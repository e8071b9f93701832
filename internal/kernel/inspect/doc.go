// Package inspect lists the devices, routes and rules of the network at the place where it runs, and tests what passes
// from there.
//
// It is what `cnibench look` does in a pod: Gather uses only the rights of the pod, and lists what they do not permit.
// Nothing is changed. Echo, PathMTU, Send and Watch work together from two or three places: one end answers datagrams
// with the mark of a run, another finds the largest packet that passes unfragmented, and a third, on the node, captures
// their encapsulation on the wire.
package inspect
