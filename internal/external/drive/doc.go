// Package drive lets another program send a workload: its command line, its output as an outcome, and its version.
//
//	plan.Workload ──► Client, Server ──► argv ──► [the agent runs it] ──► Read ──► Outcome, or an *Error
//
// All but Version and Find is pure. Package external reads the output of a tool, as for import. Package plan refuses what a
// tool does not support. A number that a tool does not print is absent from its Outcome, never 0.
package drive
