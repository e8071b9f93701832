package lab

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cnibench/cnibench/internal/kernel/ipt"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan"
)

// marks ties a device of an own namespace to the first node of each instance: it goes when the node's namespace does.
// Inode numbers would not tell, since the kernel gives them to new namespaces.
func marks(t *testing.T, instances []*Instance) (left func() []string) {
	t.Helper()
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	own, err := link.Open(ns)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.Close)
	for _, i := range instances {
		node, err := link.Open(i.Nodes[0].NS)
		if err == nil {
			err = own.Add(link.Veth{Name: i.Name.String(), Peer: "mark", PeerIn: node})
			node.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return func() (names []string) {
		all, err := own.Devices()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range all {
			if d.Name != "lo" {
				names = append(names, d.Name)
			}
		}
		slices.Sort(names)
		return names
	}
}

// TestRenew raises two of three profiles anew: other namespaces stand in their place, nothing is left of the old ones,
// paths and cgroups work, and the third is what it was.
func TestRenew(t *testing.T) {
	l := up(t, plan.Lab{}, "raw", "canal", "cilium-native")
	left := marks(t, standing(t, l))
	var agents []int
	for _, name := range plan.Variants("canal", "raw") {
		host := &l.Instance(name).Nodes[0].Host
		a, err := l.startAgent(t.Context(), name.String()+"/node-1", host)
		if err != nil {
			t.Fatal(err)
		}
		agents = append(agents, a.(*agent).cmd.Process.Pid)
	}
	for name, err := range l.Renew(t.Context(), plan.Variants("cilium-native", "canal")) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if running(agents[:1]) != "" || running(agents[1:]) == "" {
		t.Errorf("of the agents %v there are left: %s", agents, running(agents))
	}
	if left := left(); !slices.Equal(left, []string{"raw"}) {
		t.Errorf("of the first instances there are left: %v", left)
	}
	for _, i := range standing(t, l) {
		if group := i.Nodes[0].CgroupPath(); group != "" && existing(group) == "" {
			t.Errorf("%s: cgroup %s is gone", i.Name, group)
		}
		e, err := i.Spec.Ends(plan.Path{From: plan.Host, To: plan.Host, Locality: plan.CrossNode})
		if err == nil {
			err = connect(i, e)
		}
		if err != nil {
			t.Errorf("%s: %v", i.Name, err)
		}
	}
	if l.Renew(t.Context(), plan.Variants("macvlan"))[plan.VariantOf("macvlan")] == nil {
		t.Error("a profile that is not in the lab is raised anew")
	}
}

// TestRenewFails: what cannot be raised anew says why and leaves nothing, the others stand, and the next time it may
// stand again.
func TestRenewFails(t *testing.T) {
	l := up(t, plan.Lab{}, "raw", "canal")
	left := marks(t, standing(t, l))
	killed, find := errors.New("iptables was killed"), l.tools.iptables
	l.tools.iptables = func() (*ipt.Tool, error) { return nil, killed }
	names := plan.Variants("canal", "raw")
	got := l.Renew(t.Context(), names)
	if !errors.Is(got[plan.VariantOf("canal")], killed) || got[plan.VariantOf("raw")] != nil || !errors.Is(l.Instance(plan.VariantOf("canal")).Err, killed) {
		t.Errorf("got %v", got)
	}
	if left := left(); len(left) > 0 {
		t.Errorf("of the first instances there are left: %v", left)
	}
	l.tools.iptables = find
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if got := l.Renew(stopped, names); got[plan.VariantOf("canal")] == nil || got[plan.VariantOf("raw")] == nil {
		t.Errorf("interrupted: got %v", got)
	}
	for name, err := range l.Renew(t.Context(), names) {
		if err != nil || l.Instance(name).Err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
