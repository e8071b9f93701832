package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/plan"
)

// kindTableFull is the failure of a trial in which a table had no room: its numbers would be those of lost and repeated
// packets, and say nothing about the speed of the dataplane.
const kindTableFull = "table full"

// full reads the tables of a profile, nil if the environment cannot.
func (c *conductor) full(profile plan.Variant) map[string]uint64 {
	if c.can.Full == nil {
		return nil
	}
	// A counter that cannot be read is one that cannot be held against the trial.
	tables, _ := c.can.Full(profile)
	return tables
}

// overflowed returns the failure of a trial at whose ends tables were read like this, and which ended with err (may be
// nil): err itself where every table had room.
func overflowed(before, after map[string]uint64, err error) error {
	var said []string
	for _, table := range slices.Sorted(maps.Keys(after)) {
		if grown := after[table] - before[table]; after[table] > before[table] {
			said = append(said, fmt.Sprintf("%s: %d", table, grown))
		}
	}
	if len(said) == 0 {
		return err
	}
	if err != nil {
		said = append(said, "it ended with "+err.Error())
	}
	return &control.Error{Kind: kindTableFull, Message: strings.Join(said, "; ")}
}
