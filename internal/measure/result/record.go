// Package result reads and writes result files. A file is JSON Lines: a header, then one record per trial. Each
// record is synced before the next trial starts, so a killed run loses no finished trial.
// docs/reference/result-file.md specifies it field by field.
package result

import (
	"time"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/mesh"
)

// Schema names this version of the format.
const Schema = "cnibench.result/v1"

// Header is the first line of a result file.
type Header struct {
	Schema  string      `json:"schema"`
	Created time.Time   `json:"created"`
	Plan    plan.Plan   `json:"plan"`
	Facts   facts.Facts `json:"facts"`
	// Nodes are the nodes between which pairs are measured, if the plan has pairs.
	Nodes []mesh.Node `json:"nodes,omitempty"`
	// Profiles has the state of each profile of the plan.
	Profiles []Profile `json:"profiles"`
	// Origin is empty for our own measurements and names the tool for imported ones.
	Origin string `json:"origin,omitempty"`
}

// Profile is the state of one profile in the run.
type Profile struct {
	Name plan.Variant `json:"name"`
	// Skipped is the reason why the profile was not raised or not measured; "" if it was measured.
	Skipped string `json:"skipped,omitempty"`
	// StandIn describes what the lab only imitates, for example "IPIP by BPF instead of ipip.ko".
	StandIn []string `json:"stand_in,omitempty"`
	// Assertions and Failed count the assertions of its self-test.
	Assertions int `json:"assertions,omitempty"`
	Failed     int `json:"failed,omitempty"`
	// NotServed maps a path of the plan to the reason why this profile has no such path.
	NotServed map[string]string `json:"not_served,omitempty"`
}

// Statuses of a record.
const (
	OK     = "ok"
	Failed = "failed"
)

// Types of a record.
const (
	TypeTrial = "trial"
	TypeEnd   = "end"
	// TypeSampled is a trial whose CPUs were sampled. It explains where the time of the case is spent. Sampling disturbs
	// its rates and times, so no summary uses them, except for the processor's counters (metric.Counted).
	TypeSampled = "sampled"
	// TypeCounted is a trial in which the kernel counted the runs of BPF programs. No summary uses its rates and times either.
	TypeCounted = "counted"
	// TypeRaised is the cost of raising an instance.
	TypeRaised = "raised"
)

// Record is one line after the header: a trial, finished or failed, the cost of an instance, or the end of an
// invocation.
type Record struct {
	// Type is "trial", "sampled", "counted", "raised" or "end". Each invocation that ends in order writes an "end", so
	// a resumed file may have several: the last one's reason counts, and their times add up.
	Type string `json:"type"`
	plan.Trial
	// Instance is the number of the profile's instance, from 1: it grows each time that the profile is raised for the
	// trials of the file. 0 if unknown, and for a profile that is not up.
	Instance int       `json:"instance,omitempty"`
	Status   string    `json:"status"`
	Started  time.Time `json:"started"`
	// WallNs is the whole time of the trial, WindowNs the part in which it measured.
	WallNs   int64 `json:"wall_ns"`
	WindowNs int64 `json:"window_ns"`
	// Error is why a failed trial failed.
	Error *Failure `json:"error,omitempty"`
	// Metrics has the derived numbers in base units by metric name. Numbers that were not measured are absent.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Warnings are ids of validity checks that this trial did not pass, with the evidence.
	Warnings []sample.Warning `json:"warnings,omitempty"`
	// Client and Server are the observations of the two sides.
	Client *sample.Observation `json:"client,omitempty"`
	Server *sample.Observation `json:"server,omitempty"`
	// Drops are the drops at the hosts' devices within the window of a datagram stream, if the environment can read
	// them.
	Drops []sample.Drop `json:"drops,omitempty"`
	// Churn has the changes of objects during the trial, absent without any.
	Churn *sample.Churn `json:"churn,omitempty"`
	// Probes are the short streams of a throughput search, in order. Client, Server and Drops are from the last one
	// that confirmed the result, WindowNs is the sum of all.
	Probes []Probe `json:"probes,omitempty"`
	// Stacks are what the CPUs of the path executed, if Type is "sampled".
	Stacks *sample.Stacks `json:"stacks,omitempty"`
	// Programs are the runs of BPF programs, if Type is "counted".
	Programs *sample.Programs `json:"programs,omitempty"`
	// End is set if Type is "end".
	End *End `json:"end,omitempty"`
	// Raised is set if Type is "raised".
	Raised *Raised `json:"raised,omitempty"`
}

// Raised is the cost of an instance's state: rules, programs, Services and policies.
type Raised struct {
	Profile plan.Variant `json:"profile"`
	// Instance is the number of the instance, as in the records of its trials.
	Instance int `json:"instance"`
	// Metrics are numbers in base units by metric name.
	Metrics map[string]float64 `json:"metrics"`
}

// RaisedLine is the line of an instance. It is read as a Record.
type RaisedLine struct {
	Type   string `json:"type"`
	Raised Raised `json:"raised"`
}

// Probe is one short stream of a throughput search. Rates are of payload in bit/s.
type Probe struct {
	// Rate was intended, 0 for as fast as possible; Offered was sent, Delivered arrived.
	Rate      float64 `json:"rate"`
	Offered   float64 `json:"offered"`
	Delivered float64 `json:"delivered"`
	// Lost of Expected datagrams did not arrive. At has their number by place.
	Lost     uint64            `json:"lost"`
	Expected uint64            `json:"expected"`
	At       map[string]uint64 `json:"at,omitempty"`
	// Where describes At, with the largest counters.
	Where string `json:"where,omitempty"`
	// Held is true if the loss is acceptable, Confirming if the probe repeats the result of the search.
	Held       bool `json:"held"`
	Confirming bool `json:"confirming,omitempty"`
}

// Carried returns the rate that the path has carried, the lower of Offered and Delivered: bytes in buffers were
// offered but have not arrived.
func (p Probe) Carried() float64 { return min(p.Offered, p.Delivered) }

// Failure is the reason why a trial failed.
type Failure struct {
	// Side is "client", "server" or "" (neither: the controller or the environment).
	Side    string `json:"side,omitempty"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// EndLine is the line that closes an invocation. It is read as a Record.
type EndLine struct {
	Type string `json:"type"`
	End  End    `json:"end"`
}

// Reasons why a run ended.
const (
	// Complete means that every repetition of the plan was measured.
	Complete = "complete"
	// Precise means that every comparison is decided, or its cell measured to the plan's precision.
	Precise = "precision"
	// Exhausted means that the maximum number of repetitions was measured without reaching Precise.
	Exhausted = "repetitions"
	// Away means that pairs of nodes were not measured because a node was away.
	Away = "nodes"
	// OverBudget means that the time budget was used up before the plan was complete.
	OverBudget = "budget"
	// Interrupted means that the caller stopped the run.
	Interrupted = "interrupted"
	// Killed means that an invocation could not write its end; the one that resumes the file writes this.
	Killed = "killed"
)

// End is the end of an invocation: its reason, its times and its numbers of trials.
type End struct {
	// Reason is one of the constants above.
	Reason string `json:"reason"`
	// WallNs is the wall time of this invocation, WindowNs the sum of its measurement windows.
	WallNs   int64 `json:"wall_ns"`
	WindowNs int64 `json:"window_ns"`
	// Trials and Failed count the trials of this invocation.
	Trials int `json:"trials"`
	Failed int `json:"failed"`
}
