package external

import (
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

// forEachReading calls do with the readings of all batches.
func forEachReading(batches []Batch, do func(*Reading)) {
	for _, b := range batches {
		for i := range b.Readings {
			do(&b.Readings[i])
		}
	}
}

// removeCopies keeps one reading of each run: iperf3 3.16 and 3.17 write a run twice, and the server's output may be imported,
// too. It prefers the reading with a time series, which is the client's. Readings without an id are of the same run if their
// start, case, conditions and numbers are equal.
func removeCopies(batches []Batch) {
	kept := map[string]*Reading{}
	forEachReading(batches, func(r *Reading) {
		if r.Run == "" && r.Repetition == 0 && !r.Started.IsZero() {
			r.Run = fmt.Sprint(r.Started, r.Profile, r.Path, r.Workload, r.Conditions, r.Metrics)
		}
	})
	forEachReading(batches, func(r *Reading) {
		if best := kept[r.Run]; r.Run != "" && (best == nil || best.Client == nil && r.Client != nil) {
			kept[r.Run] = r
		}
	})
	for i := range batches {
		b := &batches[i]
		var readings []Reading
		for j := range b.Readings {
			if r := &b.Readings[j]; r.Run == "" || kept[r.Run] == r {
				readings = append(readings, *r)
				continue
			}
			b.LeaveOut("what is there twice: a copy, or the other side, of a run that is counted once")
		}
		b.Readings = readings
	}
}

// unifyMessageSizes sets the message size of readings whose tool printed too few digits. It takes a size in their range from
// another reading of the case: preferably a printed size, else the size that an earlier reading got.
func unifyMessageSizes(batches []Batch) {
	known := map[plan.Case][]int{}
	caseOf := func(r *Reading) plan.Case {
		return plan.Case{Profile: plan.VariantOf(r.Profile), Path: r.Path, Workload: r.Workload.Without("message")}
	}
	open := false
	forEachReading(batches, func(r *Reading) { open = open || r.Sizes != (adapter.SizeRange{}) })
	if !open {
		return
	}
	forEachReading(batches, func(r *Reading) {
		if r.Workload.Spec != nil && r.Sizes == (adapter.SizeRange{}) {
			known[caseOf(r)] = append(known[caseOf(r)], r.Workload.Traits().Message)
		}
	})
	forEachReading(batches, func(r *Reading) {
		if r.Workload.Spec == nil || r.Sizes == (adapter.SizeRange{}) {
			return
		}
		c := caseOf(r)
		fits := func(size int) bool { return r.Sizes.Low <= size && size <= r.Sizes.High }
		i := slices.IndexFunc(known[c], fits)
		if i < 0 {
			known[c] = append(known[c], r.Workload.Traits().Message)
			return
		}
		if w, err := r.Workload.With("message", strconv.Itoa(known[c][i])); err == nil {
			r.Workload = w.Normalize()
		}
	})
}

// removeCoincidentalRates removes the assumed rate of a reading if another reading of its case has no rate limit and about the same sent
// rate: then the round rate was a coincidence.
func removeCoincidentalRates(batches []Batch) {
	const near = 0.02
	free := map[plan.Case][]float64{}
	caseOf := func(r *Reading) plan.Case {
		return plan.Case{Profile: plan.VariantOf(r.Profile), Path: r.Path, Workload: r.Workload.Without("rate", "message")}
	}
	assumed := false
	forEachReading(batches, func(r *Reading) { assumed = assumed || r.RateAssumed })
	if !assumed {
		return
	}
	forEachReading(batches, func(r *Reading) {
		if sent := r.Metrics[metric.OfferedLoad]; r.Workload.Spec != nil && r.Workload.Traits().Rate == 0 && sent > 0 {
			free[caseOf(r)] = append(free[caseOf(r)], sent)
		}
	})
	forEachReading(batches, func(r *Reading) {
		sent := r.Metrics[metric.OfferedLoad]
		if r.RateAssumed && slices.ContainsFunc(free[caseOf(r)], func(v float64) bool { return math.Abs(v/sent-1) < near }) {
			r.Unpaced()
		}
	})
}

// unlikeName matches characters that the name of a profile must not have, with the punctuation around them.
var unlikeName = pattern.New(`[^A-Za-z0-9._~]*[^A-Za-z0-9._~-][^A-Za-z0-9._~]*`)

// conditionFacts are facts of a whole input that change what is measured.
var conditionFacts = []string{"cluster.mtu", "socket_buffer"}

// recordFactConditions records each fact of conditionFacts as a condition of the readings, if its value differs between
// inputs.
func recordFactConditions(batches []Batch) {
	for _, name := range conditionFacts {
		values := map[string]bool{}
		for _, b := range batches {
			if v := b.Facts[name]; v != "" {
				values[v] = true
			}
		}
		if len(values) < 2 {
			continue
		}
		for _, b := range batches {
			for i := range b.Readings {
				if v := b.Facts[name]; v != "" {
					b.Readings[i].Condition(name + "=" + v)
				}
			}
		}
	}
}

// recordWindowConditions records the length of the runs of a case as a condition if the longest run is at least twice as long
// as the shortest: runs of 1 s and of 60 s are not repetitions. It ignores runs whose length is not near whole seconds: that
// length was not requested.
func recordWindowConditions(batches []Batch) {
	const near, twice = 0.05, 2
	windows := map[plan.Case][]*Reading{}
	forEachReading(batches, func(r *Reading) {
		whole := r.Window.Round(time.Second)
		if r.Workload.Spec == nil || r.Failure != nil || r.Repetition > 0 || whole == 0 || math.Abs(r.Window.Seconds()/whole.Seconds()-1) > near {
			return
		}
		k := readingCase(r)
		windows[k] = append(windows[k], r)
	})
	for _, runs := range windows {
		least, most := runs[0].Window, runs[0].Window
		for _, r := range runs {
			least, most = min(least, r.Window), max(most, r.Window)
		}
		if most.Round(time.Second) < twice*least.Round(time.Second) {
			continue
		}
		for _, r := range runs {
			r.Condition("window=" + r.Window.Round(time.Second).String())
		}
	}
}

// removeEqualWarmups removes the condition adapter.Omitted from readings, unless the readings of their case differ in it.
func removeEqualWarmups(batches []Batch) {
	omitted := map[plan.Case][]string{}
	isOmit := func(condition string) bool { return strings.HasPrefix(condition, adapter.Omitted) }
	forEachReading(batches, func(r *Reading) {
		if r.Workload.Spec == nil {
			return
		}
		k, what := readingCase(r), ""
		if i := slices.IndexFunc(r.Conditions, isOmit); i >= 0 {
			what = r.Conditions[i]
		}
		if !slices.Contains(omitted[k], what) {
			omitted[k] = append(omitted[k], what)
		}
	})
	forEachReading(batches, func(r *Reading) {
		if r.Workload.Spec == nil || len(omitted[readingCase(r)]) < 2 {
			r.Conditions = slices.DeleteFunc(slices.Clone(r.Conditions), isOmit)
		}
	})
}

// readingCase returns the case of a reading whose workload is known.
func readingCase(r *Reading) plan.Case {
	return plan.Case{Profile: plan.VariantOf(r.Profile), Path: r.Path, Workload: r.Workload.Normalize()}
}

// addConditionsToProfiles appends the conditions to the profile, as in canal+gso.1, if readings of one case differ in them. Such
// runs are not repetitions. Of a profile of more than longestProfile bytes it replaces the end by a checksum of the whole.
func addConditionsToProfiles(batches []Batch) {
	seen := map[plan.Case]map[string]bool{}
	forEachReading(batches, func(r *Reading) {
		if r.Workload.Spec == nil {
			return
		}
		c := readingCase(r)
		if seen[c] == nil {
			seen[c] = map[string]bool{}
		}
		seen[c][strings.Join(r.Conditions, "+")] = true
	})
	var renamed []*Reading
	forEachReading(batches, func(r *Reading) {
		if len(r.Conditions) > 0 && r.Workload.Spec != nil && len(seen[readingCase(r)]) > 1 {
			renamed = append(renamed, r)
		}
	})
	for _, r := range renamed {
		for _, condition := range r.Conditions {
			r.Profile += "+" + unlikeName.Regexp().ReplaceAllString(strings.ReplaceAll(condition, "=", "."), "-")
		}
		if len(r.Profile) > longestProfile {
			sum := fmt.Sprintf("~%08x", crc32.ChecksumIEEE([]byte(r.Profile)))
			r.Profile = r.Profile[:longestProfile-len(sum)] + sum
		}
	}
}

// longestProfile is the length of the longest adapter.PlainName, in bytes.
const longestProfile = 100
