package report

import (
	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
)

// Loads returns the curves of times over load of what was collected.
func (c *Collector) Loads(h result.Header) ([]LoadCurve, error) {
	a, err := c.judged.Analyse(h, compare.Options{})
	if err != nil {
		return nil, err
	}
	return newBuilder(h, a, c, nil).loadCurves(), nil
}

// Gathered returns the distributions of records, and how many trials were left out.
func Gathered(records ...result.Record) (curves []Curve, omitted int) {
	var g curveCollector
	for i := range records {
		g.add(&records[i])
	}
	return g.collectedCurves(), g.omitted
}
