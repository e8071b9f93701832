package sample

// NewPods returns an observation that counts new pods; AddPod and FailPod count them.
func NewPods(side string) Observation {
	return Observation{Side: side, Errors: map[string]uint64{}, Schedule: &Schedule{Lag: NewHistogram()},
		Pods: &Pods{First: NewHistogram(), Waits: map[string]int64{}}}
}

// AddPod counts a new pod whose first response came after whole ns, of which parts are what it waited for.
func (o *Observation) AddPod(whole int64, parts map[string]int64) {
	if whole > o.Pods.First.Max() || o.Operations == 0 {
		o.Pods.Slowest = parts
	}
	o.Operations++
	o.Pods.First.Record(whole)
	for part, ns := range parts {
		o.Pods.Waits[part] += ns
	}
}

// FailPod counts a new pod without a response, and keeps the first reason.
func (o *Observation) FailPod(kind, why string) {
	o.Errors[kind]++
	if o.Pods.Failure == "" {
		o.Pods.Failure = why
	}
}

// CommonError returns the most frequent kind of error, the first by name of several; other without any.
func (o *Observation) CommonError(other string) string {
	kind, most := other, uint64(0)
	for k, n := range o.Errors {
		if n > most || n == most && k < kind {
			kind, most = k, n
		}
	}
	return kind
}
