package cilium

import (
	"net/netip"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestIdentitiesAreThoseOfACluster: the pods of the greatest lab have identities of their own, in the range that Cilium
// has for a cluster.
func TestIdentitiesAreThoseOfACluster(t *testing.T) {
	seen := map[int]netip.Addr{}
	for number := 1; number <= plan.MaxNodes; number++ {
		n := dataplane.Node{Name: "node", Addr: netip.MustParsePrefix("172.18.0.13/16"), MTU: 1500, Cluster: netip.MustParsePrefix("10.244.0.0/16")}
		ciliumPlane{}.Arrange(&n, number, plan.MaxPodsPerNode)
		for _, p := range n.Pods {
			id := podIdentity(p.Addr.Addr())
			if other, taken := seen[id]; taken || id < 256 || id > 65535 {
				t.Fatalf("%v has identity %d, as has %v", p.Addr, id, other)
			}
			seen[id] = p.Addr.Addr()
		}
	}
}
