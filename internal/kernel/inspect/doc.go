// Package inspect sees what there is of the network at the place where it runs, and tries what gets through from there.
//
// It is what `cnibench look` does in a pod: Gather takes no more rights than the pod has, and lists what they did not
// reach. Nothing is changed. Echo, PathMTU, Send and Watch work together from two or three places: one end answers
// datagrams that carry the mark of a run, another finds by them how large a packet comes through whole, and a third,
// on the node, sees in what they are wrapped on the wire.
package inspect
