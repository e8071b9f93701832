// Package conntrack reads and empties the connection tracking table of a network namespace.
//
// List dumps the table over netlink as values; Select and the methods of Entry work on such a list without the kernel.
// The table shows what a dataplane did with a packet. An entry means that the packet was tracked. A reply tuple that is
// not the mirror of the original means that it was translated. An entry without a reply means that the return traffic
// took another path or created another entry.
//
// A namespace without a rule that needs tracking has an empty table, which is not an error.
package conntrack
