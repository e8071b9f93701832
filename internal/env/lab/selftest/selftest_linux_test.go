package selftest

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/conntrack"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/kernel/probe"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// up raises profiles under the given conditions.
func up(t *testing.T, l plan.Lab, profiles ...string) *lab.Lab {
	t.Helper()
	return upWith(t, lab.Options{Lab: l}, profiles...)
}

// upWith is up with more to say.
func upWith(t *testing.T, o lab.Options, profiles ...string) *lab.Lab {
	t.Helper()
	ns, err := netns.New()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no right to make a network namespace: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ns.Close()
	o.Program = program
	all, err := lab.Up(context.Background(), plan.Variants(profiles...), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := all.Close(ctx); err != nil {
			t.Errorf("close the lab: %v", err)
		}
	})
	return all
}

// raised raises one profile; it skips the test when the profile needs what this machine lacks.
func raised(t *testing.T, l plan.Lab, name string) *lab.Instance {
	t.Helper()
	return raisedWith(t, lab.Options{Lab: l}, name)
}

func raisedWith(t *testing.T, o lab.Options, name string) *lab.Instance {
	t.Helper()
	inst := upWith(t, o, name).Instances()[0]
	if inst.Err != nil {
		if missing := lacking(t, inst.Spec.Needs()); missing != "" {
			t.Skipf("%v; lacking %s", inst.Err, missing)
		}
		t.Fatal(inst.Err)
	}
	return inst
}

// lacking names what of needs this machine does not have; "" when it is all there.
func lacking(t *testing.T, needs []string) string {
	t.Helper()
	findings, err := probe.Check(t.Context(), needs...)
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, f := range findings {
		if f.Outcome == probe.No {
			missing = append(missing, f.Feature+": "+f.Missing+" ("+f.WayOut+")")
		}
	}
	return strings.Join(missing, "; ")
}

// TestEveryProfileIsWhatItClaims is the point of the package: every profile, under both models of the NIC, and in a lab
// that differs from the default in everything that an expectation could have taken for granted.
func TestEveryProfileIsWhatItClaims(t *testing.T) {
	t.Parallel()
	for name, conditions := range map[string]plan.Lab{
		"wire":  {NIC: "wire"},
		"ideal": {NIC: "ideal"},
		"proxy": {NIC: "wire", Services: 6, ServiceProxy: "nftables"},
		"other": {NIC: "wire", Nodes: 3, PodsPerNode: 3, MTU: 4000, Services: 20, CPU: "split"},
		"local": {TrafficPolicy: "Local", Policies: 3, PoliciesUnselected: 2},
		"IPv6":  {Family: lab.IPv6, NIC: "wire"},
		"other in IPv6": {
			Family: lab.IPv6, NIC: "ideal", Nodes: 3, PodsPerNode: 3, MTU: 4000, Services: 6, CPU: "split", ServiceProxy: "nftables",
			TrafficPolicy: "Local", Policies: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // while one is raised, which is work, another waits
			o := lab.Options{Lab: conditions, TestServices: conditions.NIC == "wire" && conditions.Nodes == 0}
			profiles := profile.Names()
			if name == "proxy" { // to profiles without kube-proxy this is as "wire"
				profiles = slices.DeleteFunc(profiles, func(name string) bool { return table(name).Programs != nil })
			}
			instances := testable(t, upWith(t, o, profiles...))
			results := make([][]Assertion, len(instances))
			took := make([]time.Duration, len(instances))
			var wg sync.WaitGroup
			few := make(chan struct{}, runtime.NumCPU()) // as lab test has it: all at once would wait for one another, some for too long
			for i, inst := range instances {
				wg.Go(func() {
					few <- struct{}{}
					defer func() { <-few }()
					began := time.Now()
					results[i] = Run(context.Background(), inst)
					took[i] = time.Since(began)
				})
			}
			wg.Wait()
			for i, all := range results {
				for _, a := range Failed(all) {
					t.Error(a)
				}
				t.Logf("%s: %d assertions in %s", instances[i].Name, len(all), took[i].Round(time.Millisecond))
				wantUntracked(t, instances[i])
			}
		})
	}
}

// testable returns the instances that are up, and skips by name those that need what this machine lacks.
func testable(t *testing.T, l *lab.Lab) []*lab.Instance {
	t.Helper()
	var list []*lab.Instance
	for _, inst := range l.Instances() {
		missing := ""
		if inst.Err != nil && !errors.Is(inst.Err, lab.ErrNoIPv6) {
			if missing = lacking(t, inst.Spec.Needs()); missing == "" {
				t.Errorf("%s: %v", inst.Name, inst.Err)
			}
		}
		if inst.Err != nil {
			t.Run(inst.Name.String(), func(t *testing.T) { t.Skipf("%v; lacking %s", inst.Err, missing) })
			continue
		}
		list = append(list, inst)
	}
	return list
}

// wantUntracked fails if the self-test left a connection in conntrack. A bridge may speak IGMP, and WireGuard to its peers,
// at any time. It first asks for the number of entries, because the kernel walks the table of the whole machine to list
// those of a namespace.
func wantUntracked(t *testing.T, inst *lab.Instance) {
	t.Helper()
	for _, n := range inst.Nodes {
		if count, err := netns.GetSysctl(n.NS, "net/netfilter/nf_conntrack_count"); err == nil && count == "0" {
			continue
		}
		entries, err := conntrack.List(n.NS)
		for _, protocol := range []uint8{conntrack.TCP, conntrack.UDP} {
			left := conntrack.Select(entries, conntrack.Tuple{Protocol: protocol})
			if tunnel := inst.Spec.Profile.Tunnel; tunnel != nil && tunnel.Kind == "wireguard" { // it sends by itself
				left = slices.DeleteFunc(left, func(e conntrack.Entry) bool { return e.Original.SourcePort == e.Original.DestinationPort })
			}
			if err != nil || len(left) > 0 {
				t.Errorf("%s: left in conntrack of %s: %v %v", inst.Name, n.Name, left, err)
			}
		}
	}
}

// TestNothingStaysOpen: a self-test gives every descriptor back, also of a profile that fails.
func TestNothingStaysOpen(t *testing.T) {
	instances := up(t, plan.Lab{}, "calico-vxlan", "raw").Instances()
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	Run(context.Background(), instances[0]) // whatever the runtime opens once is open now
	before := count()
	Run(context.Background(), instances[0])
	testInstance(context.Background(), instances[1], table("host"))
	if after := count(); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// TestManyServices has so many Services that the lab takes iptables-legacy. The self-test must read the counters there.
func TestManyServices(t *testing.T) {
	inst := raised(t, plan.Lab{Services: 2001}, "canal")
	for _, a := range Failed(Run(t.Context(), inst)) {
		t.Errorf("%s: want %s, got %s", a.ID, a.Want, a.Got)
	}
}

// TestACancelledRunSaysSo: nothing passes for having been looked at.
func TestACancelledRunSaysSo(t *testing.T) {
	inst := up(t, plan.Lab{}, "raw").Instances()[0]
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	all := Run(ctx, inst)
	if len(all) == 0 || len(Failed(all)) != len(all) {
		t.Errorf("of %d assertions %d failed", len(all), len(Failed(all)))
	}
}

// TestAProfileThatDoesNotStandFails: so does one without a table.
func TestAProfileThatDoesNotStandFails(t *testing.T) {
	for _, inst := range []*lab.Instance{
		{Name: plan.VariantOf("raw"), Err: errors.New("no switch")},
		{Name: plan.VariantOf("no-such"), Profile: profile.Profile{Name: "no-such"}},
		{Name: plan.VariantOf("raw"), Profile: profile.Profile{Name: "raw"}},
	} {
		if all := Run(context.Background(), inst); len(all) != 1 || all[0].OK || all[0].Got == "" {
			t.Errorf("%s: %v", inst.Name, all)
		}
	}
}
