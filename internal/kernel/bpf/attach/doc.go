// Package attach attaches loaded programs to their hooks: the two sides of a device, the two ends of a netkit pair, and
// the socket calls of a cgroup.
//
// Everything is attached by a link, and nothing is pinned, so the end of the process detaches the programs. If the
// kernel has no tcx (before 6.6), a device gets a classic filter on a clsact qdisc instead, which outlives the process,
// but not the device's namespace. Filter always adds such a filter.
//
// Load turns a collection into programs in the kernel, and keeps the verifier's whole log in the error.
package attach
