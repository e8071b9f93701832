// Package handover connects sockets in one process and uses them in another.
//
// A socket belongs for life to the cgroup of the process that made it, and BPF programs on a cgroup see the connect() and
// sendmsg() of the sockets that belong to it, whoever calls. So a process that is not in the cgroup of a node can still
// talk as if it were, by a socket that a process of the node has made:
//
//	here, outside                               there: a process in the node's namespace and cgroup
//	near, far, err := handover.Pair()           far is its descriptor 3, or its stdin
//	client := handover.NewClient(near)          handover.Serve(far)
//	conn, err := client.Dial(ctx, "tcp4", addr) dials, sends the socket and forgets it
package handover
