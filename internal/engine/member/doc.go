// Package member is one member of a job: it plays the transfers of package plan/job that it sends, and takes those that it
// receives, step by step.
//
//	first member            every other
//	  go      ─────────►      begins the step: a pause, if members compute, then its transfers as they become possible
//	          ◄─────────      done: how long its exchange took, and whom it waited for
//
// Members talk over the connections that carry the data, one between each two, so a step has the cost of a real job's barrier.
// The first member decides by its clock which steps are warm-up and when the window opens and closes. At both edges all
// members read their counters between two steps, so the windows are the same steps everywhere and no clocks are compared.
//
// A member is one thread, pinned, that waits for all its sockets at once. Connections carry no headers: what comes next over
// each follows from the transfers. Data of a step that come before its own start are taken.
//
// Read member_linux.go, then step_linux.go.
package member
