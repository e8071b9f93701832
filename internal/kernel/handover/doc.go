// Package handover connects sockets in one process and uses them in another.
//
// A socket belongs for life to the cgroup of the process that made it. BPF programs of that cgroup see the socket's
// connect() and sendmsg() from every process. So a process outside a node's cgroup can communicate as if inside,
// through a socket that a process of the node made:
//
//	here, outside                               there: a process in the node's namespace and cgroup
//	near, far, err := handover.Pair()           far is its descriptor 3, or its stdin
//	client := handover.NewClient(near)          handover.Serve(far)
//	conn, err := client.Dial(ctx, "tcp4", addr) dials, sends the socket and forgets it
//
// Every request has a socket for its answer attached.
package handover
