package outcome

import (
	"fmt"

	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// deriveChurn derives the metrics of the changes during the trial. Their CPU time is not part of the service demand.
func (t *trial) deriveChurn() {
	c := t.c.Churn
	if c == nil || t.client == nil {
		return
	}
	t.metrics[metric.ChangeRate] = t.client.perSecond(float64(c.Made))
	if c.Made == 0 {
		return
	}
	t.metrics[metric.ChangeTime] = float64(c.AppliedNs) / float64(c.Made)
	t.metrics[metric.ChangeCPU] = float64(c.CPUNs) / float64(c.Made)
	h := c.Enforced
	if h == nil || h.Count() == 0 {
		return
	}
	t.metrics[metric.Enforcement+".mean"] = h.Mean()
	t.metrics[metric.Enforcement+".max"] = float64(h.Max())
	t.derivePercentiles(metric.Enforcement, h)
}

// describeSlowChurn describes changes that took longer than their rate allows.
func (t *trial) describeSlowChurn() string {
	c := t.c.Churn
	if c == nil || c.Made+1 >= c.Due || float64(c.Made) >= (1-shortfall)*float64(c.Due) {
		return ""
	}
	return fmt.Sprintf("%d of %d changes began within the window: each takes longer than the rate allows", c.Made, c.Due)
}
