package load

import (
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestBidirectional: both sides send and receive, what one sent the other got, and a rate is that of each direction.
func TestBidirectional(t *testing.T) {
	for _, w := range []plan.Workload{
		{Spec: plan.Stream{Bidirectional: true}},
		{Spec: plan.Stream{Bidirectional: true, Flows: 3, MessageSize: 4096}},
		{Spec: plan.Stream{Protocol: plan.UDP, Bidirectional: true, Rate: 40e6, Flows: 2}},
		{Spec: plan.Stream{Protocol: plan.UDP, Bidirectional: true, Rate: 40e6, Mode: plan.GSO}},
	} {
		t.Run(w.String(), func(t *testing.T) {
			client, server := trial(t, options(w))
			for _, o := range []*sample.Observation{client, server} {
				if o.BytesSent == 0 || o.BytesReceived == 0 || failures(o) > 0 {
					t.Errorf("%s: %d bytes sent, %d received, errors %v", o.Side, o.BytesSent, o.BytesReceived, o.Errors)
				}
				if w.Traits().Protocol != plan.UDP {
					continue
				}
				if d := o.Datagrams; d == nil || d.Received == 0 || d.Expected < d.Received {
					t.Errorf("%s: datagrams %+v", o.Side, d)
				}
				// A paced sender never sends more than it was asked for; what it caught up on is bounded.
				if most := w.Traits().Rate / 8 * 1.2 * float64(o.ElapsedNs) / 1e9; float64(o.BytesSent) > most {
					t.Errorf("%s sent %d bytes, more than %.0f", o.Side, o.BytesSent, most)
				}
			}
		})
	}
}

// TestCut lays out datagrams: as many as were asked for, of the right sizes, none across two buffers.
func TestCut(t *testing.T) {
	for _, w := range []plan.Stream{
		{MessageSize: 64}, {MessageSize: 1400, Mode: plan.GSO}, {MessageSize: 16, Mode: plan.GSO}, {MessageSize: 60_000, Mode: plan.GSO}, {Mix: plan.IMIX},
	} {
		c := cutOf(w)
		batch := newBatchFor(c)
		for _, n := range []int{1, 2, c.segments, batch.Cap() * c.segments} {
			buffers, bytes := c.fillBatch(batch, 5, n, 7)
			sent, sum := c.sumSent(5, n, buffers)
			if int(sent) != n || int(sum) != bytes || buffers > batch.Cap() {
				t.Errorf("%+v: %d datagrams are %d of %d bytes in %d buffers, summed to %d bytes", w, n, sent, bytes, buffers, sum)
			}
		}
		if half, _ := c.sumSent(5, 2*c.segments, 1); int(half) != c.segments {
			t.Errorf("%+v: one buffer has %d datagrams, want %d", w, half, c.segments)
		}
	}
	c := cutOf(plan.Stream{Mix: plan.IMIX})
	sizes := map[int]int{}
	for i := range uint64(12) {
		sizes[c.datagramSize(i)]++
	}
	if sizes[18] != 7 || sizes[524] != 4 || sizes[1472] != 1 {
		t.Errorf("IMIX has %v", sizes)
	}
	said := float64(plan.Workload{Spec: plan.Stream{Protocol: plan.UDP, Mix: plan.IMIX}}.Normalize().Traits().Message)
	if mean := c.meanSize(); mean > said || mean <= said-1 {
		t.Errorf("the mean is %g, and plan says %g", mean, said)
	}
}
