// Package conntrack reads and empties the connection tracking table of a network namespace.
//
// List dumps the table over netlink as values; Select and the methods of Entry answer questions about such a list and
// touch no kernel. The table is the witness for what a dataplane did with a packet: that an entry exists says that the
// packet was tracked, that its reply tuple is not the mirror of the original says that it was translated, and that it
// was never replied to says that the return traffic took another way or made an entry of its own.
//
// A namespace without a rule that needs tracking has an empty table, which is not an error.
package conntrack
