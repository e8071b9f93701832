package cli

import (
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/report"
)

// TestRepeat: the command that a report says its run can be repeated by is read by a shell and by our flags as the same
// plan, whatever condition the plan sets.
func TestRepeat(t *testing.T) {
	standard := plan.Preset("standard")
	var other plan.Plan
	s, _ := plan.SettingOf("workloads")
	err := s.Set(&other, "rr(request=10,response=20),stream(udp,rate=1G),http(tool=wrk),throughput")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(p *plan.Plan){
		"standard":  func(*plan.Plan) {},
		"precision": func(p *plan.Plan) { p.Precision, p.MaxRepetitions, p.Repetitions = 0.025, 30, 7 },
		"times": func(p *plan.Plan) {
			p.Duration, p.Warmup, p.Budget = 700*time.Millisecond, 0, 0
		},
		"no twin":   func(p *plan.Plan) { p.Twin = false },
		"baseline":  func(p *plan.Plan) { p.Baseline = plan.VariantOf("canal") },
		"workloads": func(p *plan.Plan) { p.Workloads = other.Workloads },
		"wire": func(p *plan.Plan) {
			p.Lab.NIC, p.Lab.MTU, p.Lab.LineRate, p.Lab.Delay, p.Lab.Loss = "ideal", 9000, 1e9, 5*time.Millisecond, 0.01
		},
		"node":     func(p *plan.Plan) { p.Lab.Nodes, p.Lab.CPU, p.Lab.Iptables, p.Lab.Family = 3, "one", "legacy", 6 },
		"services": func(p *plan.Plan) { p.Lab.Services, p.Lab.ServiceProxy, p.Lab.TrafficPolicy = 100, "nftables", "Local" },
		"cluster": func(p *plan.Plan) {
			p.Environment, p.Profiles = plan.EnvKubernetes, plan.Variants("canal@old one", "host@new")
			p.Cluster = plan.Cluster{
				Contexts: []string{"old one", "new"}, ClientNode: "n1", ServerNode: "n2", NodeSelector: map[string]string{"pool": "net", "a": ""},
				Tolerations: []string{"dedicated=net:NoSchedule", "*"}, Image: "example.com/cnibench:1", PullSecrets: []string{"ns/pull"},
				CPURequest: "500m", MemoryRequest: "64Mi", CPULimit: "2", CPUs: []int{1, 4}, SessionAffinity: true,
				Inspect: true, TTL: 2 * time.Hour, LoadBalancerClass: "example.com/internal", LoadBalancerTimeout: time.Minute,
				ServiceAnnotations: map[string]string{"a.io/subnets": "x, y", "b.io/internal": "true"},
			}
		},
		"in turn": func(p *plan.Plan) {
			p.Environment, p.Profiles, p.Cluster.Install = plan.EnvKubernetes, plan.Variants("flannel-vxlan", "calico-ebpf"), true
		},
		"older file": func(p *plan.Plan) {
			p.Environment, p.Lab.Services, p.Lab.Delay = plan.EnvKubernetes, 100, time.Millisecond
		},
		"kind": func(p *plan.Plan) { p.Environment, p.Profiles = plan.EnvKind, plan.Variants("canal") },
		"ideal": func(p *plan.Plan) {
			p.Profiles = plan.Variants("ptp")
			p.Lab.NIC, p.Lab.BigTCP = plan.NICIdeal, condition.BigTCPOn
		},
		"policies": func(p *plan.Plan) {
			p.Lab.CPU, p.Lab.RPS, p.Lab.NIC, p.Lab.GRO = condition.PlacementSplit, condition.RPSOff, plan.NICWire, condition.GROOn
			p.Lab.Policies, p.Lab.PoliciesUnselected, p.Lab.Conntrack, p.Lab.BridgeNetfilter = 3, 40, condition.ConntrackOff, condition.BridgeNetfilterOff
		},
	} {
		want := standard
		want.Seed, want.Duration = 7, 300*time.Millisecond
		change(&want)
		want = want.Settle()
		if err := want.Validate(); err != nil {
			t.Errorf("%s: the test's own plan: %v", name, err)
			continue
		}
		d, err := new(report.Collector).Build(result.Header{Schema: result.Schema, Plan: want}, report.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := typed(t, d.Run.Command)
		if want.OnCluster() {
			want, _ = want.WithoutLab()
		}
		got.Name, want.Name = "", ""
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s\ngot  %+v\nwant %+v", name, d.Run.Command, got, want)
		}
	}
}

// typed is the plan of a command line as a shell splits it.
func typed(t *testing.T, line string) plan.Plan {
	t.Helper()
	out, err := exec.Command("sh", "-c", "set -- "+line+"; printf '%s\\n' \"$@\"").Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	words := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	var a planArgs
	cmd := &cobra.Command{Use: "run"}
	a.declareFlags(cmd)
	if err := cmd.ParseFlags(words[2:]); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	p, err := a.buildPlan(cmd)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return p
}
