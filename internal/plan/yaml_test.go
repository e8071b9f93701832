package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/plan/condition"
	"github.com/cnibench/cnibench/internal/plan/position"
)

const head = "apiVersion: cnibench/v1\nkind: Plan\n"

func TestParseFull(t *testing.T) {
	p, err := Parse("p.yaml", strings.NewReader(head+`
name: everything
environment: lab
profiles: [canal, host]
paths:
  - pod-to-pod/cross-node
  - pod-to-service/local
workloads:
  - rr
  - rr: {requestSize: [1024, 16Ki], flows: [2, 8]}
  - stream(udp,rate=1G)
  - stream:
      messageSize: 1024
      reverse: true
  - ping:
repetitions: 3
maxRepetitions: 9
precision: 0.05
budget: 10m
duration: 2s
warmup: 100ms
seed: 18446744073709551615
baseline: host
twin: false
lab: {nodes: 3, podsPerNode: 4, nic: ideal, cpu: split, mtu: 9000, lineRate: 1G, services: 100, iptables: nft, serviceProxy: nftables}
`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range p.Workloads {
		names = append(names, w.String())
	}
	want := "rr rr(flows=2,request=1024) rr(flows=2,request=16384) rr(flows=8,request=1024) rr(flows=8,request=16384) " +
		"stream(udp,rate=1G) stream(message=1024,reverse) ping"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("workloads: got %s\nwant %s", got, want)
	}
	p.Profiles, p.Paths, p.Workloads = nil, nil, nil
	got := fmt.Sprintf("%+v", p)
	wantPlan := fmt.Sprintf("%+v", Plan{Name: "everything", Environment: "lab", Baseline: VariantOf("host"), Repetitions: 3, MaxRepetitions: 9,
		Precision: 0.05, Budget: 10 * time.Minute, Duration: 2 * time.Second, Warmup: 100 * time.Millisecond, Seed: 1<<64 - 1,
		Lab: Lab{Nodes: 3, PodsPerNode: 4, NIC: "ideal", GRO: condition.GROOff, BigTCP: condition.BigTCPOff, CPU: "split", RPS: condition.RPSAuto, MTU: 9000, LineRate: 1e9, Services: 100, Endpoints: 2, Position: condition.PositionMiddle, Iptables: "nft", ServiceProxy: "nftables",
			Family: 4, TrafficPolicy: "Cluster", tracking: tracking{Conntrack: condition.ConntrackOn}, BridgeNetfilter: condition.BridgeNetfilterOn, wires: wires{Encryption: condition.EncryptionOff}}})
	if got != wantPlan {
		t.Errorf("got  %s\nwant %s", got, wantPlan)
	}
}

func TestParseDefaults(t *testing.T) {
	p, err := Parse("p.yaml", strings.NewReader(head))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%+v", p), fmt.Sprintf("%+v", Default()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestParseFaults has plans with several mistakes; every one is reported, at its line, in one go.
func TestParseFaults(t *testing.T) {
	for _, tt := range []struct{ name, src, want string }{
		{"empty", "", "p: is empty"},
		{"comment", "# nothing\n", "p: is empty"},
		{"syntax", head + "paths: [a\nx: }", "p:3: is not YAML:"},
		{"list", "- a", "p:1: is not a mapping"},
		{"null", "null", "p:1: is not a mapping"},
		{"two documents", head + "---\nkind: Plan", "p:4: has more than one document"},
		{"missing head", "profiles: [host]", "p:1: apiVersion: is missing\np:1: kind: is missing"},
		{"version", "apiVersion: cnibench/v2\nkind: Plan", `p:1: apiVersion: "cnibench/v2" is not "cnibench/v1", which is all that this version reads`},
		{"unknown keys", head + "profile: [host]\npath: []\nlab:\n  mtuu: 1500", `p:3: unknown key "profile", did you mean "profiles"?` + "\n" +
			`p:4: unknown key "path", did you mean "paths"?` + "\n" + `p:6: unknown key "lab.mtuu", did you mean "mtu"?`},
		{"merge", head + "<<: {seed: x}", `p:3: seed: "x" is not a whole number`},
		{"twice", head + "seed: 1\nseed: 2", "p:4: seed: is given twice"},
		{"all at once", head + "profiles: [host, bogus]\npaths:\n  - pod-to-pod\nworkloads:\n  - rr: {flows: 0}\nduration: 0s\nrepetitions: many",
			"p:3: profiles: unknown profile \"bogus\" (names: cnibench list profiles)\n" +
				"p:5: paths: path \"pod-to-pod\" has several forms: pod-to-pod/same-node, pod-to-pod/cross-node\n" +
				"p:7: workloads.rr.flows: 0 is out of range: want 1 to 1024\n" +
				"p:8: duration: 0s is out of range: want 1ms to 1h0m0s\n" +
				"p:9: repetitions: \"many\" is not a whole number"},
		{"late fault has its line", head + "\n\nrepetitions: 5000", "p:5: repetitions: 5000 is out of range: want 1 to 1000"},
		{"lab late", head + "lab:\n  nodes: 1\n  mtu: 1", "p:4: lab.nodes: 1 is out of range: want 2 to 16\np:5: lab.mtu: 1 is out of range: want 1280 to 9000"},
		{"combination", head + "workloads:\n  - stream: {protocol: [tcp, udp], rate: 1G}", "p:4: workloads.stream: rate is for udp, and this is tcp"},
		{"combination 2", head + "workloads:\n  - crr: {protocol: udp}", "p:4: workloads.crr.protocol: crr runs over tcp, not udp"},
		{"combination 3", head + "workloads:\n  - stream: {protocol: udp, mode: copy}", "p:4: workloads.stream: mode is for tcp, and this is udp"},
		{"workload key", head + "workloads:\n  - rr: {requestsize: 1}", `p:4: unknown key "workloads.rr.requestsize", did you mean "requestSize"?`},
		{"workload word", head + "workloads:\n  - rr(bogus=1)", `p:4: workloads: workload "rr(bogus=1)": unknown option "bogus"`},
		{"workload kind", head + "workloads: [{steam: {}}]", `p:3: workloads: unknown workload "steam", did you mean "stream"?`},
		{"two in one", head + "workloads: [{rr: {}, crr: {}}]", "p:3: workloads: want one workload for each item"},
		{"same twice", head + "workloads: [rr, {rr: {flows: 1}}]", "p:3: workloads: rr is given twice"},
		{"axis twice", head + "workloads: [{rr: {flows: [2, 2]}}]", "p:3: workloads: rr(flows=2) is given twice"},
		{"empty axis", head + "workloads: [{rr: {flows: []}}]", "p:3: workloads.rr.flows: the list is empty"},
		{"empty list", head + "paths: []", "p:3: paths: none is given"},
		{"scalar for list", head + "paths: pod-to-self", "p:3: paths: want a list, such as [a, b]"},
		{"list for scalar", head + "seed: [1]", "p:3: seed: want one value"},
		{"null scalar", head + "seed:", "p:3: seed: want one value"},
		{"deep alias", head + "profiles: &a [host, *a]", "p:3: expands to more than 100000 values or is nested deeper than 64"},
		{"budgets", head + "budget: 1ms\nduration: 1s", "p:3: budget: 1ms is less than one trial takes"},
		{"duration unit", head + "duration: 10", `p:3: duration: "10" is not a duration: want a number with a unit`},
		{"product", head + "workloads: [{rr: {flows: [" + many(40) + "], requestSize: [" + many(40) + "]}}]", "p:3: workloads.rr: expands to more than 1000 workloads"},
	} {
		_, err := Parse("p", strings.NewReader(tt.src))
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: got\n%v\nwant\n%s", tt.name, err, tt.want)
			continue
		}
		if got, want := strings.Count(err.Error(), "\n"), strings.Count(tt.want, "\n"); got != want {
			t.Errorf("%s: got %d faults, want %d:\n%v", tt.name, got+1, want+1, err)
		}
		var fs position.Faults
		if !errors.As(err, &fs) {
			t.Errorf("%s: %T is not Faults", tt.name, err)
		}
	}
}

func many(n int) string {
	s := make([]string, n)
	for i := range s {
		s[i] = fmt.Sprint(i + 1)
	}
	return strings.Join(s, ",")
}

func TestParseAnchors(t *testing.T) {
	p, err := Parse("p", strings.NewReader(head+"lab: {mtu: &m 9000, services: *m}"))
	if err != nil || p.Lab.Services != 9000 {
		t.Errorf("got %d, %v", p.Lab.Services, err)
	}
}

// TestPrecisionLetsRepetitionsGoOn: a precision that only the first repetitions may reach would be none.
func TestPrecisionLetsRepetitionsGoOn(t *testing.T) {
	for src, want := range map[string]int{
		"precision: 0.05\nrepetitions: 7":                     70,
		"precision: 0.05\nrepetitions: 500":                   1000,
		"precision: 0.05\nrepetitions: 7\nmaxRepetitions: 12": 12,
		"repetitions: 7":                                      0,
	} {
		p, err := Parse("p", strings.NewReader(head+src))
		if err != nil || p.MaxRepetitions != want {
			t.Errorf("%q: got %d, %v, want %d", src, p.MaxRepetitions, err, want)
		}
	}
}

func TestParseTooLarge(t *testing.T) {
	_, err := Parse("p", strings.NewReader(head+strings.Repeat("# padding\n", 200_000)))
	if err == nil || !strings.Contains(err.Error(), "is larger than") {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(head)
	f.Add(head + "workloads: [rr, {stream: {flows: [1, 2], protocol: udp, rate: 1M}}]\nlab: {mtu: 9000}\nprofiles: [host]")
	f.Add(head + "a: &a [*a]\n<<: *a")
	f.Add("{")
	f.Fuzz(func(t *testing.T, src string) {
		p, err := Parse("p", strings.NewReader(src))
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("parsed and not valid: %v", err)
		}
		if len(p.Order(1)) != len(p.Cases()) {
			t.Fatal("the order loses cases")
		}
	})
}
