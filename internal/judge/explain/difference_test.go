package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
)

// manyParts are functions of as many parts.
var manyParts = []string{
	"tcp_sendmsg", "ip_rcv", "fib_table_lookup", "nf_conntrack_in", "vxlan_xmit", "br_handle_frame", "veth_xmit", "__dev_queue_xmit",
	"kmem_cache_alloc", "schedule", "udp_rcv", "process_backlog", "nft_do_chain", "skb_copy_datagram_iter", "try_to_wake_up", "neigh_resolve_output",
}

// TestDiffuse: a cost that is spread over all parts stands as such. No part is stretched to make up for it, and the lines
// add up to the difference.
func TestDiffuse(t *testing.T) {
	const parts = 16
	of := map[plan.Variant]spends{plan.VariantOf("flannel-vxlan"): {}, plan.VariantOf("canal"): {}}
	for n := range parts {
		id := fmt.Sprintf("diffuse %d", n)
		stackOf[id] = []string{"node-1", "ret_from_fork_asm", manyParts[n]}
		defer delete(stackOf, id)
		of[plan.VariantOf("flannel-vxlan")][id], of[plan.VariantOf("canal")][id] = 1000, 1060
	}
	a, sides := judged(t, records(of, 12, 12))
	d, ok := Between(a, sides[0], sides[1])
	if !ok || d.Nothing {
		t.Fatalf("%+v", d)
	}
	sum := d.Rest.By.Value
	for _, c := range d.Changes {
		if measured := sides[1].Part(c.ID).Time.Value - sides[0].Part(c.ID).Time.Value; math.Abs(c.By.Value-measured) > 1e-6 {
			t.Errorf("%s changes by %.0f ns, measured are %.0f", c.ID, c.By.Value, measured)
		}
		if d.Named(c) {
			sum += c.By.Value
		}
	}
	if math.Abs(sum-d.Total.Value) > 1e-6 {
		t.Errorf("the lines add up to %.1f of %.1f ns", sum, d.Total.Value)
	}
	families, _ := d.largestFamilies()
	sum = d.Spread.By.Value
	for _, f := range families {
		sum += f.By.Value
	}
	for _, c := range d.Changes {
		if d.Named(c) && !slices.ContainsFunc(families, func(f Change) bool { return f.ID == c.Family }) {
			sum += c.By.Value
		}
	}
	if math.Abs(sum-d.Total.Value) > 1e-6 {
		t.Errorf("the families of the finding, its spread and the other lines add up to %.1f of %.1f ns", sum, d.Total.Value)
	}
	said := strings.Join(d.Findings(), " ")
	if !d.isSpreadOut() || d.Spread.Noise || d.Spread.By.Value < 0.25*d.Total.Value || !strings.Contains(said, "is spread over") {
		t.Errorf("%.0f of %.0f ns are of %d parts together (%+v): %s", d.Spread.By.Value, d.Total.Value, d.Spread.Parts, d.Spread.By, said)
	}
}
