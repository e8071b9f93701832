package sample

// Churn has the changes of objects that were due within the window of a trial.
type Churn struct {
	// Due is how many changes were scheduled, Made how many began within the window. Each begins when the previous one
	// is done.
	Due  uint64 `json:"due"`
	Made uint64 `json:"made"`
	// Enforced is the distribution of the times from the request of a change to the first packet that follows it.
	Enforced *Histogram `json:"enforced,omitempty"`
	// AppliedNs is the total time in which the nodes applied the changes: for each change the slowest node's.
	AppliedNs int64 `json:"applied_ns"`
	// CPUNs is the CPU time of applying them: of the threads, and of the programs that they run.
	CPUNs int64 `json:"cpu_ns"`
	// Probes counts the connections that looked for the changes.
	Probes uint64 `json:"probes"`
}
