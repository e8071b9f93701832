package plan

import "github.com/cnibench/cnibench/internal/plan/position"

// Fault is one mistake in a plan, and Faults are all of them. Field is the key of the plan file.
type (
	Fault  = position.Fault
	Faults = position.Faults
)

// faults collects what is wrong with a plan.
type faults struct{ Faults }
