// Package member is one member of a job: step by step it sends its transfers of package plan/job, and receives its
// transfers from others.
//
//	first member            every other
//	  go      ─────────►      begins the step: a pause, if members compute, then its transfers as they become possible
//	          ◄─────────      done: how long its exchange took, and whom it waited for
//
// Members talk over the connections that carry the data, one between each two, so a step has the cost of a real job's
// barrier. The first member decides by its clock which steps are warm-up and when the window opens and closes. At both
// edges all members read their counters between two steps, so the windows are the same steps everywhere and no clocks
// are compared.
//
// A member is one thread, pinned, that waits for all its sockets at once. Connections carry no headers: the transfers
// determine what comes next on each. Data of a step may arrive before the member has begun it.
//
// Read member_linux.go, then step_linux.go.
package member
