// Package drive is what it takes to let a program of somebody else send a workload: its command line, what became of its
// output, and its version.
//
//	plan.Workload ──► Client, Server ──► argv ──► [the agent runs it] ──► Read ──► Outcome, or an *Error
//
// All of that but Version and Find is pure. What a tool prints is read by package foreign, as for import; what a tool
// cannot do is in package plan, which refuses it. What a tool does not say is absent from its Outcome, never 0.
package drive
