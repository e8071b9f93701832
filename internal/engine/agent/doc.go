// Package agent is the process at an endpoint: it reads what the controller asks from its standard input, runs one side
// of a trial, and writes what it saw to its standard output.
//
//	stdin ──► reader ──► Serve's loop ──► trial (load + snapshots) ──► stdout
//	                        │ one trial at a time; a heartbeat each second while it lasts
//
// The loop never waits for the load, so that cancel and the end of input are obeyed at any moment. The end of input
// ends everything: Serve returns and the process with it. Read serve_linux.go, then trial_linux.go.
//
// An agent must live wholly inside one network namespace, from its first thread on: start its process there. Except for
// the load's own threads it keeps off the CPUs that the load runs on, if it may use any other.
//
// A trial outlives its own answer, because the two windows do not end at the same instant. After "done" a side stops
// sending but keeps its sockets, and a server serves on, until cancel, the next prepare or the end of input.
package agent
