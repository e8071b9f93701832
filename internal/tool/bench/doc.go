// Package bench compares the load engine with the tools that people use: bulk transfer with iperf3, request-response
// and connections with netperf where it is installed and with a plain C program always, datagrams with iperf3, and HTTP
// with wrk, whose server is ours.
//
// The world is two network namespaces joined by a veth pair. Repetitions interleave all tools; the load of every run,
// both ends and the softirq work that veth does on their back, is on one CPU. Our side is the program as it is: two
// agents driven over stdin and stdout. What is compared:
//
//   - the rate (goodput, transactions, datagrams delivered, per second)
//   - the CPU time per unit of work, both ends together: of a peer the whole process from start to end (wait4), of ours
//     the whole process within the window, control threads included
//   - the system calls per transaction, counted by strace in a short pass of its own
//
// A comparison is the ratio of the two runs of each repetition, with the interval that package stat gives.
//
// Read Run, then tool (one kind of tool per file: ours_linux.go, peer_linux.go, wrk_linux.go) and table.go, which
// makes the page. What parses the tools' output is pure.
package bench
