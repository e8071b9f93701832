package sample

// Churn has the changes of objects that were due within the window of a trial.
type Churn struct {
	// Due is how many changes were scheduled, Made how many began within the window. Each begins when the previous one
	// is done.
	Due  uint64 `json:"due"`
	Made uint64 `json:"made"`
	// Enforced is the distribution of the times from the request of a change to the first packet that the changed
	// rules handle.
	Enforced *Histogram `json:"enforced,omitempty"`
	// AppliedNs is the total time that it took to apply the changes, for each change on its slowest node.
	AppliedNs int64 `json:"applied_ns"`
	// CPUNs is the CPU time of applying them: of the threads, and of the programs that they run.
	CPUNs int64 `json:"cpu_ns"`
	// Probes counts the connections that tested whether a change is in force.
	Probes uint64 `json:"probes"`
}
