// Package proc reads the counters that Linux keeps under /proc, and CPU clocks, as typed values.
//
// The parsers are pure functions from bytes to values and compile anywhere; each is in the file named after what it
// parses. What opens files and asks clocks is in the _linux.go files. Read Snapshot first: it is what an agent takes at
// both edges of a window, and Delta what it reports.
//
// # Which namespace
//
// /proc/net is a link to /proc/self/net, which shows the network namespace of the process's main thread. An agent is
// born inside its namespace and no thread of it ever leaves, so that this is the right one. A program that enters
// namespaces thread by thread (package netns) must not use TakeSnapshot for one of them: a locked goroutine may have
// been given the main thread, or may not. Everything here reads /proc/thread-self/net, which is right in both.
//
// CPU lines, softnet_stat, memory and load are the machine's, whatever the namespace. What cannot be seen (kernel
// threads from inside a pid namespace) is absent from the result, never 0.
package proc
