package external

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// FactLeftOut is the name of the fact that lists what was not imported into a result. Its items are separated by "; ".
const FactLeftOut = "import.left_out"

// Contents joins batches into one result. Readings without a repetition get the next number of their case, in order. It
// fails if there is no trial, or if a reading lacks its profile, path or workload: a Label can add them.
func Contents(batches ...Batch) (result.Contents, error) {
	var c result.Contents
	var err error
	batches = slices.Clone(batches)
	recordFactConditions(batches)
	removeCopies(batches)
	removeCoincidentalRates(batches)
	unifyMessageSizes(batches)
	recordWindowConditions(batches)
	removeEqualWarmups(batches)
	addConditionsToProfiles(batches)
	if c.Records, err = trialRecords(batches); err != nil {
		return result.Contents{}, err
	}
	h := &c.Header
	h.Schema, h.Facts = result.Schema, facts.Facts{}
	var all adapter.Batch
	for _, b := range batches {
		all.Join(b)
	}
	for _, r := range all.Readings {
		for _, condition := range r.Conditions {
			all.LeaveOut("%s, which the imported workload does not express", condition)
		}
	}
	adapter.MergeFacts(h.Facts, all.Facts)
	for tool := range strings.SplitSeq(all.Tool, ", ") {
		if _, version, ok := strings.Cut(tool, " "); ok && strings.ContainsAny(version, "0123456789") {
			adapter.MergeFacts(h.Facts, facts.Facts{facts.ToolVersion: version})
		}
	}
	h.Origin, h.Created = all.Tool, all.Created
	h.Plan.Name, h.Plan.Warmup, h.Plan.Environment, h.Plan.Baseline = all.Title, all.Warmup, all.Environment, plan.VariantOf(all.Baseline)
	if len(all.LeftOut) > 0 {
		h.Facts[FactLeftOut] = strings.Join(all.LeftOut, "; ")
	}
	fillHeader(h, c.Records)
	c.Records = append(c.Records, endRecord(c.Records))
	return c, nil
}

// ShareWorkload sets the workload of failed trials whose output does not name it, if all other trials have the same
// workload. It adds a warning to these trials.
func ShareWorkload(batches []Batch) {
	known := map[plan.Workload]bool{}
	for _, b := range batches {
		for _, r := range b.Readings {
			known[r.Workload] = true
		}
	}
	delete(known, plan.Workload{})
	shared := slices.Collect(maps.Keys(known))
	if len(shared) != 1 {
		return
	}
	for _, b := range batches {
		for i := range b.Readings {
			if r := &b.Readings[i]; r.Workload.Spec == nil && r.Failure != nil {
				r.Workload = shared[0]
				r.Warn(adapter.Assumed, "the trial failed before it named its workload; assumed: that of the other trials")
			}
		}
	}
}

// fillHeader fills in the header from the trials: the profiles, the plan, and the time of creation if it is unknown.
func fillHeader(h *result.Header, recs []result.Record) {
	p := &h.Plan
	measuredAt := time.Time{}
	seen := map[any]bool{}
	fresh := func(key any) bool {
		was := seen[key]
		seen[key] = true
		return !was
	}
	for _, r := range recs {
		if fresh(r.Profile) && !r.Profile.IsTwin() {
			p.Profiles = append(p.Profiles, r.Profile)
			h.Profiles = append(h.Profiles, result.Profile{Name: r.Profile})
		}
		if fresh(r.Path) {
			p.Paths = append(p.Paths, r.Path)
		}
		if fresh(r.Workload) {
			p.Workloads = append(p.Workloads, r.Workload)
		}
		p.Twin = p.Twin || r.Profile == p.Baseline.Twin()
		p.Repetitions = max(p.Repetitions, r.Repetition)
		p.Duration = max(p.Duration, time.Duration(r.WindowNs))
		measuredAt = earlierTime(measuredAt, r.Started)
	}
	if h.Created.IsZero() {
		h.Created = measuredAt
	}
}

// trialRecords converts the readings of all batches into trials. A reading without a repetition, or with one that is taken,
// gets the next free number of its case. It fails if a reading is incomplete, or if there is no reading.
func trialRecords(batches []Batch) ([]result.Record, error) {
	taken := map[plan.Trial]bool{}
	next := map[plan.Case]int{}
	var recs []result.Record
	for _, b := range batches {
		for _, r := range b.Readings {
			if len(r.Conditions) > 0 {
				r.Warn(adapter.Conditional, "the test also had %s, which the imported workload does not express", strings.Join(r.Conditions, ", "))
			}
			if err := checkComplete(r); err != nil {
				return nil, err
			}
			t := plan.Trial{Case: plan.Case{Profile: plan.VariantOf(r.Profile), Path: r.Path, Workload: r.Workload.Normalize()}, Repetition: r.Repetition}
			if t.Repetition == 0 || taken[t] {
				for t.Repetition = next[t.Case] + 1; taken[t]; t.Repetition++ {
				}
				next[t.Case] = t.Repetition
			}
			taken[t] = true
			recs = append(recs, newTrialRecord(r, t))
		}
	}
	if len(recs) == 0 {
		return nil, errors.New("it contains no trial")
	}
	return recs, nil
}

// checkComplete fails if a reading lacks its profile, path or workload, or if the profile is invalid. Its error lists the
// missing parts.
func checkComplete(r Reading) error {
	var missing []string
	if r.Profile == "" {
		missing = append(missing, "profile")
	}
	if r.Path == (plan.Path{}) {
		missing = append(missing, "path")
	}
	if r.Workload.Spec == nil {
		missing = append(missing, "workload")
	}
	switch {
	case len(missing) == 0:
		return adapter.CheckProfile(r.Profile)
	case len(missing) == 1 && r.Workload.Spec == nil && r.Failure != nil:
		return advice.With(fmt.Errorf("the run failed before it named its workload: %s", r.Failure.Message), "measure again, or count a failed trial: --workload stream, or what was asked for")
	}
	return advice.With(fmt.Errorf("the output does not name the %s", strings.Join(missing, " or the ")),
		"cnibench import --profile P --path PATH [--workload W] FILE; for several files, P:PATH=FILE each")
}

func newTrialRecord(r Reading, t plan.Trial) result.Record {
	out := result.Record{
		Type: result.TypeTrial, Trial: t, Status: result.OK, Started: r.Started, Metrics: r.Metrics, Warnings: r.Warnings, Client: r.Client,
		WallNs: int64(r.Window), WindowNs: int64(r.Window),
	}
	if r.Failure != nil {
		out.Status, out.Error = result.Failed, r.Failure
		out.Metrics, out.Client, out.WindowNs = nil, nil, 0
	}
	return out
}

// endRecord returns the record that ends an imported result with these trials.
func endRecord(recs []result.Record) result.Record {
	e := result.End{Reason: "complete", Trials: len(recs)}
	for _, r := range recs {
		e.WallNs += r.WallNs
		e.WindowNs += r.WindowNs
		if r.Status == result.Failed {
			e.Failed++
		}
	}
	return result.Record{Type: result.TypeEnd, End: &e}
}

func earlierTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
