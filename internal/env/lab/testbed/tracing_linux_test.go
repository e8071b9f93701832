package testbed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/engine/agent"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/judge/itinerary"
	"github.com/cnibench/cnibench/internal/measure/journey"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestMain lets this binary be an agent of the lab.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		os.Exit(m.Run())
	}
	var err error
	switch os.Args[1] {
	case lab.JanitorVerb:
		err = lab.Janitor(os.Args[2], os.Stdin)
	case lab.SocketsVerb:
		err = lab.ServeSockets(os.Stdin)
	case lab.WireGuardVerb:
		err = lab.ServeWireGuard(os.Args[2:], os.Stdin, os.Stdout)
	case "agent":
		err = agent.Serve(context.Background(), os.Stdin, os.Stdout, "test")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var crossNode = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}

func journeyOf(t *testing.T, l *lab.Lab, profile plan.Variant, path plan.Path, w plan.Workload) (itinerary.Itinerary, error) {
	t.Helper()
	got, err := followRoute(t.Context(), l, plan.Single(profile, path), journey.Options{
		Workload: w, Transactions: 100, Warmup: 20 * time.Millisecond, Window: 400 * time.Millisecond,
	})
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("probes cannot be loaded here: %v", err)
	}
	if err != nil {
		return itinerary.Itinerary{}, err
	}
	if got.Lost > 0 || len(got.Rounds) != rounds {
		t.Errorf("%s: %d events lost, %d rounds", profile, got.Lost, len(got.Rounds))
	}
	for _, r := range got.Rounds {
		for _, w := range []journey.Window{r.Plain, r.Ends, r.All} {
			if w.RTT != nil && (w.Rate <= 0 || w.RTT.Count() == 0 || w.From >= w.To || w.Passed > 0) {
				t.Errorf("%s: a window of %+v", profile, w)
			}
		}
	}
	i, err := itinerary.Of(got)
	if err == nil {
		lessProbes(t, got, i)
	}
	return i, err
}

// lessProbes: steps and total are less the probes, and whether they meet the round trip without probes is said as it is. How
// long anything takes is not asserted: other programs use the machine.
func lessProbes(t *testing.T, x journey.Trace, i itinerary.Itinerary) {
	t.Helper()
	p := i.Probes
	if p.Unknown != "" {
		t.Logf("%s: the cost of probes is not known: %s", i.Profile, p.Unknown)
		if len(x.Ends) > 0 && !strings.Contains(p.Unknown, "too few") {
			t.Errorf("%s: the cost of probes is not known, and was measured: %s", i.Profile, p.Unknown)
		}
		return
	}
	t.Logf("%s: %.0f ns with probes, %.0f ns without them by their own clock; the client's round trip is %+.0f ns of that (%+.0f to %+.0f)",
		i.Profile, i.Probed, p.Total.Value, p.Off.Value, p.Off.Low, p.Off.High)
	if p.Rounds != rounds || p.Meets != (p.Off.Low <= 0 && p.Off.High >= 0) || p.Off.High <= p.Off.Low {
		t.Errorf("%s: %+v", i.Profile, p)
	}
	if sum := p.Total.Value + p.Sum.Value; math.Abs(sum-i.Probed) > 1 {
		t.Errorf("%s: the journey and its probes are %.1f ns, and %.1f with probes", i.Profile, sum, i.Probed)
	}
	last := 0.0
	for n, s := range i.Steps {
		if n > 0 && s.Probe <= 0 || s.At < last {
			t.Errorf("%s: step %d: %+v", i.Profile, n, s)
		}
		last = s.At
	}
}

// sequence is where the request is transmitted, received and judged by netfilter, without what may be missing on other
// kernels. Names of pods' devices are replaced by their kind.
func sequence(i itinerary.Itinerary) string {
	var names []string
	for _, s := range i.Steps[:i.Delivered()+1] {
		device := s.Device
		if strings.HasPrefix(device, "veth") || strings.HasPrefix(device, "lxc") || strings.HasPrefix(device, "cali") {
			device = "pod's"
		}
		switch s.Point {
		case journey.Transmit:
			names = append(names, s.Host+" "+device+">")
		case journey.Receive:
			names = append(names, s.Host+" >"+device)
		case journey.HookEnd:
			names = append(names, s.Host+" "+s.Hook)
		case journey.Deliver:
			names = append(names, s.Host+" application")
		}
	}
	return strings.Join(names, ", ")
}

// raised is a lab that ends with the test.
func raised(t *testing.T, conditions plan.Lab, profiles ...plan.Variant) *lab.Lab {
	t.Helper()
	l, err := lab.Up(t.Context(), profiles, lab.Options{Lab: conditions, Program: []string{"/proc/self/exe", "agent"}})
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no namespaces here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// TestIPv6: probes find the flow and the hooks of the other version, where conntrack confirms at another priority; and an
// echo, which the server's kernel answers without a socket.
func TestIPv6(t *testing.T) {
	l := raised(t, plan.Lab{Family: 6}, plan.VariantOf("flannel-vxlan"))
	if err := l.Instance(plan.VariantOf("flannel-vxlan")).Err; err != nil {
		t.Skipf("not in this lab: %v", err)
	}
	i, err := journeyOf(t, l, plan.VariantOf("flannel-vxlan"), crossNode, plan.Workload{Spec: plan.Ping{}}.Normalize())
	if err != nil {
		t.Fatal(err)
	}
	if len(i.Missing) > 0 {
		t.Skipf("not all points can be seen: %q", i.Missing)
	}
	got := sequence(i)
	for _, want := range []string{"node-1 FORWARD", "node-1 flannel-v6.1>", "node-2 INPUT", "node-2/pod-1 >eth0"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q on the way of the echo: %s", want, got)
		}
	}
}

// TestSequences follows transactions of a bridge, of BPF redirects and of macvlan on real packets: their devices come in
// the order in which the dataplane is built.
func TestSequences(t *testing.T) {
	l := raised(t, plan.Lab{}, plan.VariantOf("flannel-vxlan"), plan.VariantOf("cilium-native"), plan.VariantOf("macvlan"))
	rr := plan.Workload{Spec: plan.RR{}}.Normalize()
	for _, c := range []struct {
		profile plan.Variant
		path    plan.Path
		want    string
	}{
		{plan.VariantOf("flannel-vxlan"), crossNode, "node-1/pod-1 eth0>, node-1 >pod's, node-1 PREROUTING, node-1 >cni0, node-1 FORWARD, node-1 POSTROUTING, node-1 flannel.1>, node-1 OUTPUT, node-1 POSTROUTING, node-1 eth0>, " +
			"switch >node-1, switch node-2>, node-2 >eth0, node-2 PREROUTING, node-2 INPUT, node-2 >flannel.1, node-2 PREROUTING, node-2 FORWARD, node-2 POSTROUTING, node-2 cni0>, node-2 pod's>, " +
			"node-2/pod-1 >eth0, node-2/pod-1 application"},
		{plan.VariantOf("flannel-vxlan"), plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.SameNode}, "node-1/pod-1 eth0>, node-1 >pod's, node-1 PREROUTING, node-1 FORWARD, node-1 POSTROUTING, node-1 pod's>, node-1/pod-2 >eth0, node-1/pod-2 application"},
		{plan.VariantOf("cilium-native"), crossNode, "node-1/pod-1 eth0>, node-1 >pod's, node-1 eth0>, switch >node-1, switch node-2>, node-2 >eth0, node-2/pod-1 application"},
		{plan.VariantOf("macvlan"), crossNode, "node-1/pod-1 eth0>, node-1 eth0>, switch >node-1, switch node-2>, node-2 >eth0, node-2/pod-1 application"},
	} {
		inst := l.Instance(c.profile)
		if errors.Is(inst.Err, errors.ErrUnsupported) || errors.Is(inst.Err, os.ErrPermission) {
			t.Logf("%s is not in this lab: %v", c.profile, inst.Err)
			continue
		}
		i, err := journeyOf(t, l, c.profile, c.path, rr)
		if err != nil {
			t.Errorf("%s, %s: %v", c.profile, c.path, err)
			continue
		}
		if len(i.Missing) > 0 {
			t.Logf("%s: not all points can be seen: %q", c.profile, i.Missing)
			continue
		}
		if got := sequence(i); got != c.want {
			t.Errorf("%s, %s: the request passes\n%s\nwant\n%s", c.profile, c.path, got, c.want)
		}
		if back := i.Steps[i.Delivered()+1:]; back[0].Host != i.Server || back[len(back)-1].Host != i.Client || slices.ContainsFunc(back, func(s itinerary.Step) bool { return s.Direction != journey.Response }) {
			t.Errorf("%s, %s: the way back is %+v", c.profile, c.path, back)
		}
	}
	t.Run("not served", func(t *testing.T) {
		_, err := journeyOf(t, l, plan.VariantOf("macvlan"), plan.Path{From: plan.Pod, To: plan.Service, Locality: plan.Remote}, rr)
		var not *control.NotServedError
		if !errors.As(err, &not) {
			t.Errorf("a path that is not served: %v", err)
		}
	})
}
