package outcome

import (
	"fmt"
	"strconv"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/vocab/metric"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// deriveSteps derives the metrics of a job from the observation that sample.Gather makes of its members.
func deriveSteps(t *trial) {
	c := t.client
	if c == nil || c.Job == nil {
		return
	}
	account, shape := c.Job, t.is.Job
	if loss := account.Loss; loss != nil {
		deriveLoss(t, loss)
		return
	}
	t.metrics[metric.StepRate] = c.perSecond(float64(c.Operations))
	t.deriveDistribution(metric.StepTime, account.Step)
	t.deriveDistribution(metric.ExchangeTime, account.Exchange)
	for i, h := range account.Hops {
		t.derivePercentiles(metric.HopTime+"."+strconv.Itoa(i+1), h)
	}
	if mean := t.metrics[metric.ExchangeTime+".mean"]; mean > 0 && shape.Data() > 0 {
		algorithm := 8 * shape.Data() / (mean / 1e9)
		factor, ok := shape.BusFactor()
		t.metrics[metric.AlgorithmBandwidth] = algorithm
		t.putMetric(metric.BusBandwidth, factor*algorithm, ok)
	}
	_, share := mostAwaited(t)
	t.putMetric(metric.WaitedShare, share, account.ChoiceNs > 0)
	deriveJobDemand(t)
}

// deriveLoss derives the metrics of a job that lost a member: of the steps before and of the smaller group's steps
// after. They have separate names, so that no summary of whole trials includes them.
func deriveLoss(t *trial, loss *sample.Loss) {
	t.metrics[metric.RegroupTime] = float64(loss.RegroupNs)
	for family, h := range map[string]*sample.Histogram{metric.StepTimeBefore: loss.Before, metric.StepTimeAfter: t.client.Job.Step} {
		if h != nil && h.Count() > 0 {
			t.metrics[family+".mean"] = h.Mean()
			median, ok := h.Percentile(0.5)
			t.putMetric(family+".p50", float64(median), ok)
		}
	}
}

// describeLostMember describes which member was lost and when; "" if no member was lost.
func describeLostMember(t *trial) string {
	if t.client == nil || t.client.Job == nil || t.client.Job.Loss == nil {
		return ""
	}
	loss, account := t.client.Job.Loss, t.client.Job
	at := "in the warm-up"
	if loss.AfterNs > 0 {
		at = number.WithUnit("ns", float64(loss.AfterNs)) + " into the window"
	}
	return fmt.Sprintf("%s was lost in step %d, %s: %d steps of %d members before it and %d of %d after it are apart", loss.Name, loss.Step, at,
		loss.Before.Count(), loss.Members, account.Step.Count(), len(account.Members))
}

// mostAwaited returns the member of a job that others waited for longest. share is this wait as a share of the exchange
// times of all members that wait for several others.
func mostAwaited(t *trial) (m sample.Member, share float64) {
	account := t.client.Job
	for _, other := range account.Members {
		if other.LateNs > m.LateNs || m.Name == "" {
			m = other
		}
	}
	if account.ChoiceNs > 0 {
		share = float64(m.LateNs) / float64(account.ChoiceNs)
	}
	return m, share
}

// deriveJobDemand derives the CPU time of all members, and of the kernels between them, per GB that they send. CPUs of two
// machines have the same numbers, so the kernel's part is derived for each machine.
func deriveJobDemand(t *trial) {
	c := t.client
	if !(c.units() > 0) {
		return
	}
	threads := float64(c.CPU.ThreadsNs) / c.units()
	kernel, known := t.sideKernelDemand(c, nil)
	for _, h := range c.Job.Elsewhere {
		o := *c.Observation
		o.Host = h
		more, ok := t.sideKernelDemand(newSide(t.is, &o), nil)
		kernel, known = kernel+more, known && ok
	}
	t.putMetric(metric.KernelCPU, kernel, known)
	t.putMetric(metric.ServiceDemand, threads+kernel, known || !t.c.IRQApart)
}

// mostLate is the share of their exchange time that members may spend waiting for one member without a warning.
const mostLate = 0.5

// describeStraggler describes the member that the others mostly wait for; "" if there is no such member.
func describeStraggler(t *trial) string {
	if t.client == nil || t.client.Job == nil || len(t.client.Job.Members) < 3 {
		return ""
	}
	m, share := mostAwaited(t)
	return evidenceIf(share > mostLate && m.Waits >= fewest, "members that wait for several spend %s of their time waiting for %s alone", number.Percent(share), m.Name)
}

// describeUnequalBytes describes a difference between the bytes that all members sent and received; "" without one.
func describeUnequalBytes(t *trial) string {
	c := t.client
	return evidenceIf(c.BytesSent != c.BytesReceived, "the members of the job sent %d bytes and received %d", c.BytesSent, c.BytesReceived)
}
