// Package room runs programs of the user's in a network namespace without letting them touch the machine's files:
//
//	r, err := room.Open(ns, cpus)
//	cmd := r.Command(ctx, "/opt/cni/bin/bridge")    dies with this program, and its children with its process group
//	err = r.Do(cmd.Start)                           on the thread of the room
//	r.Close()                                       ends what still runs, and what was written
//
// A room is a thread in the network namespace, with a mount namespace of its own. /run is empty there; /var/lib and /etc
// are those of the machine with a layer of memory above them. So what programs write below these directories (addresses
// of IPAM, locks, sockets, subnet files) is seen by the programs of the same room alone, and ends with it, also by kill -9.
// Other directories are the machine's.
package room
