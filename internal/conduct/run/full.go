package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/conduct/control"
	"github.com/cnibench/cnibench/internal/plan"
)

// FullReader is an Environment that can say whether tables of a dataplane had no room: for connections, or ports to
// translate to. It is asked before and after a trial, outside its window.
type FullReader interface {
	// Full returns how often that happened since the environment stands, by the name of the table. What could be read is
	// there beside an error too.
	Full(profile plan.Variant) (map[string]uint64, error)
}

// kindTableFull is the failure of a trial in which a table had no room: its numbers would be those of lost and repeated
// packets, and say nothing about the speed of the dataplane.
const kindTableFull = "table full"

// full reads the tables of a profile, nil if the environment cannot.
func (c *conductor) full(profile plan.Variant) map[string]uint64 {
	reader, ok := c.env.(FullReader)
	if !ok {
		return nil
	}
	// A counter that cannot be read is one that cannot be held against the trial.
	tables, _ := reader.Full(profile)
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
