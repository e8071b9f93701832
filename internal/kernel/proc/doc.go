// Package proc reads the counters that Linux keeps under /proc, and CPU clocks, as typed values.
//
// The parsers are pure functions from bytes to values and compile anywhere; each is in the file named after what it
// parses. What opens files and asks clocks is in the _linux.go files. Read Snapshot first: an agent takes one at both
// edges of a window, and reports their Delta.
//
// # Which namespace
//
// /proc/net is a link to /proc/self/net, which shows the network namespace of the process's main thread. An agent
// starts inside its namespace and no thread of it ever leaves, so this is the right one. In a program that enters
// namespaces thread by thread (package netns), the main thread may be in any of them. Everything here reads
// /proc/thread-self/net, which is right in both cases.
//
// CPU lines, softnet_stat, memory and load are the machine's, whatever the namespace. What cannot be seen (kernel
// threads from inside a pid namespace) is absent from the result, never 0.
package proc
