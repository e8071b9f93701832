package plan

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/plan/condition"
)

func TestParseWorkload(t *testing.T) {
	for _, tt := range []struct {
		in, want string // want is the canonical name
	}{
		{"rr", "rr"},
		{" stream ", "stream"},
		{"stream(tcp)", "stream"},
		{"stream(udp)", "stream(udp)"},
		{"stream(protocol=udp, rate=1G)", "stream(udp,rate=1G)"},
		{"stream(rate=1000M,udp)", "stream(udp,rate=1G)"},
		{"stream(udp,rate=0)", "stream(udp)"},
		{"stream(message=128Ki)", "stream"},
		{"stream(message=1024,reverse)", "stream(message=1024,reverse)"},
		{"stream(mode=trunc,congestion=bbr,flows=4)", "stream(flows=4,mode=trunc,congestion=bbr)"},
		{"rr(udp,request=1024,response=16)", "rr(udp,request=1024)"},
		{"crr(close=fin)", "crr(close=fin)"},
		{"ping(interval=10ms)", "ping(interval=10ms)"},
		{"ping(icmp)", "ping"},
		{"http(tcp,threads=2,connections=10,connection=keep-alive,backends=1)", "http"},
		{"http(backends=5,connection=close,connections=500,threads=4,response=4Ki)",
			"http(response=4096,threads=4,connections=500,connection=close,backends=5)"},
		{"rr(rate=5000,wait=sleep,burst=1)", "rr(rate=5K)"},
		{"rr(arrival=poisson,load=0.5)", "rr(load=50%)"},
		{"rr(udp,load=7.25%,arrival=constant,burst=4,wait=spin)", "rr(udp,arrival=constant,load=7.25%,burst=4,wait=spin)"},
		{"crr(arrival=saturate,flows=2)", "crr(flows=2,arrival=saturate)"},
		{"rr(under=stream)", "rr(under=stream)"},
		{"http(rate=1.5K)", "http(rate=1.5K)"},
		{"http(threads=16)", "http(threads=16,connections=16)"},
	} {
		w, err := ParseWorkload(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		if w.String() != tt.want {
			t.Errorf("%s: got %s, want %s", tt.in, w, tt.want)
		}
		if w != w.Normalize() {
			t.Errorf("%s: not normalized: %+v", tt.in, w)
		}
	}
}

func TestParseWorkloadRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                              `unknown workload ""`,
		"rrr":                           `did you mean "rr"?`,
		"rr(":                           "lacks its closing parenthesis",
		"rr()":                          `unknown option ""`,
		"rr(flows)":                     `"" is not a whole number`,
		"rr(flows=0)":                   "0 is out of range: want 1 to 1024",
		"rr(flows=1,flows=2)":           "flows is given twice",
		"rr(requst=1)":                  `unknown option "requst", did you mean "request"?`,
		"rr(message=10)":                "rr has no message",
		"rr(request=2Mi)":               "out of range",
		"rr(udp,request=1)":             "request 1 is out of range for udp: want 16 to 65507",
		"rr(udp,congestion=cubic)":      "congestion is for tcp, and this is udp",
		"rr(icmp)":                      "rr runs over tcp or udp, not icmp",
		"crr(udp)":                      "crr runs over tcp, not udp",
		"crr(close=maybe)":              `"maybe" is not one of rst, fin`,
		"ping(tcp)":                     "ping runs over icmp, not tcp",
		"ping(interval=2m)":             "want 0s to 1m0s",
		"stream(udp,mode=copy)":         "mode is for tcp, and this is udp",
		"stream(rate=1G)":               "rate is for udp, and this is tcp",
		"stream(udp,rate=2T)":           "out of range",
		"stream(load=50%)":              "stream has no load",
		"rr(rate=1G)":                   "rate 1G is out of range: want at most 100M requests per second",
		"rr(rate=1K,load=50%)":          "rate and load both say how much",
		"rr(arrival=constant)":          "arrival constant needs a rate or a load",
		"rr(arrival=saturate,rate=1K)":  "saturate takes no rate and no load",
		"rr(arrival=saturate,burst=2)":  "saturate takes no burst",
		"http(arrival=saturate)":        "http has no arrival saturate",
		"rr(arrival=poison,rate=1)":     `did you mean "poisson"?`,
		"rr(load=201%)":                 "want 0.1% to 200%",
		"rr(load=half)":                 `"half" is not a load`,
		"rr(wait=block)":                `"block" is not one of sleep, spin`,
		"rr(udp,under=stream)":          "under is for tcp, and this is udp",
		"crr(burst=2)":                  "crr has no burst",
		"http(wait=spin)":               "http has no wait",
		"stream(udp,rate=-1)":           "out of range",
		"stream(udp,rate=NaN)":          "out of range",
		"stream(udp,message=65508)":     "out of range for udp",
		"http(udp)":                     "http runs over tcp, not udp",
		"http(request=1)":               "http has no request",
		"http(backends=0)":              "0 is out of range: want 1 to 250",
		"http(backends=251)":            "out of range",
		"http(threads=4,connections=3)": "want one for each thread",
		"crr(backends=2)":               "crr has no backends",
		"stream(congestion=CUBIC!)":     "is not a congestion control",
		"stream(reverse=maybe)":         "is not true or false",
	} {
		_, err := ParseWorkload(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}

// TestWorkloadRoundTrip draws valid workloads and reads their names back.
func TestWorkloadRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	for range 5000 {
		w := draw(r, pick)
		w = w.Normalize()
		q, err := ParseWorkload(w.String())
		if err != nil || q != w {
			t.Fatalf("%s: got %+v (%v), want %+v", w, q, err, w)
		}
	}
}

// draw draws a valid workload.
func draw(r *rand.Rand, pick func(...string) string) Workload {
	flows, size := 1+r.IntN(maxFlows), func() int { return MinDatagram + r.IntN(60_000) }
	congestion, protocol := pick("cubic", "reno", "bbr"), Protocol(pick("tcp", "udp"))
	rate, load, arrival := drawArrival(r)
	http := HTTP{Rate: rate, Load: load, Arrival: arrival, ResponseSize: size(), Connection: pick("keep-alive", "close"), Congestion: congestion}
	if arrival == Saturate {
		http.Arrival = ""
	}
	rr := RR{Protocol: protocol, Flows: flows, Rate: rate, Load: load, Arrival: arrival, RequestSize: size(), ResponseSize: size(),
		Congestion: congestion, Burst: r.IntN(maxBurst + 1), Wait: pick("", "spin"), Under: pick("", "stream")}
	if arrival == Saturate {
		rr.Burst = 0
	}
	specs := []Spec{
		Stream{Protocol: protocol, Flows: flows, MessageSize: size(), Rate: float64(r.Int64N(MaxRate)), Reverse: r.IntN(2) == 0, Congestion: congestion}, rr,
		CRR{Flows: flows, Rate: rate, Load: load, Arrival: arrival, RequestSize: size(), ResponseSize: size(), Close: pick("rst", "fin"), Congestion: congestion},
		Ping{Flows: flows, MessageSize: size(), Interval: time.Duration(r.Int64N(int64(time.Minute)))}, http,
		Throughput{Flows: flows, MessageSize: size(), Rate: float64(r.Int64N(MaxRate)), Loss: float64(r.IntN(1000)) / 1e6},
	}
	return Workload{Spec: specs[r.IntN(len(specs))]}
}

// drawArrival draws when requests are scheduled.
func drawArrival(r *rand.Rand) (rate, load float64, arrival string) {
	switch r.IntN(4) {
	case 0:
		return float64(1+r.Int64N(maxRequestRate*1000)) / 1000, 0, []string{"", Constant, Poisson}[r.IntN(3)]
	case 1:
		return 0, float64(10+r.IntN(19_990)) / 1e4, []string{"", Constant, Poisson}[r.IntN(3)]
	case 2:
		return 0, 0, Saturate
	}
	return 0, 0, ""
}

func TestParseWorkloads(t *testing.T) {
	got, err := parseList("stream,rr(flows=2,request=3), crr", ParseWorkload)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range got {
		names = append(names, w.String())
	}
	if s := strings.Join(names, " "); s != "stream rr(flows=2,request=3) crr" {
		t.Errorf("got %s", s)
	}
	for _, bad := range []string{"", "rr,", "rr,,crr", "rr(flows=2"} {
		if _, err := parseList(bad, ParseWorkload); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestParseRate(t *testing.T) {
	for in, want := range map[string]float64{"1500": 1500, "1k": 1e3, "2.5M": 2.5e6, "10G": 1e10, "1T": 1e12, "0": 0} {
		if got, err := parseBitRate(in); err != nil || got != want {
			t.Errorf("%s: got %v, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "G", "1GB", "0x10", "1_000", "Inf", "-1"} {
		if v, err := parseBitRate(bad); err == nil {
			t.Errorf("%q is read as %v", bad, v)
		}
	}
}

func FuzzParseWorkload(f *testing.F) {
	for _, s := range []string{"rr", "stream(udp,rate=1G,flows=4)", "crr(close=fin)", "ping(interval=1s)", "rr(", "stream(message=1Mi)", "stream(udp,rate=1.0000001K)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w, err := ParseWorkload(s)
		if err != nil {
			return
		}
		q, err := ParseWorkload(w.String())
		if err != nil || q != w {
			t.Fatalf("%q gives %s, which gives %+v, %v", s, w, q, err)
		}
		if err := w.Validate(); err != nil {
			t.Fatalf("%q is read and not valid: %v", s, err)
		}
	})
}

func TestPingGoesOverNoService(t *testing.T) {
	p := Default()
	p.Paths = []Path{{Pod, Pod, CrossNode}, {Pod, Service, Local}}
	p.Workloads = []Workload{Workload{Spec: Ping{}}.Normalize(), Workload{Spec: RR{}}.Normalize()}
	for _, c := range p.Cases() {
		if c.Workload.Traits().Kernel() && c.Path.To == Service {
			t.Errorf("%s is a case", c.Key())
		}
	}
	if notes := strings.Join(p.Notes(10), "\n"); !strings.Contains(notes, "ping is not measured on pod-to-service/local") {
		t.Errorf("the notes do not say what is left out: %s", notes)
	}
	p.Paths = p.Paths[1:]
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "ping can go over none of the paths") {
		t.Errorf("a plan that ping cannot serve gives %v", err)
	}
}

// TestServers: several backends stand behind a Service, and nowhere else.
func TestServers(t *testing.T) {
	w := Workload{Spec: HTTP{Backends: 5}}.Normalize()
	for _, p := range Paths {
		service := slices.Contains([]Role{Service, NodePort, LoadBalancer}, p.To)
		if (w.Servers(p) == 5) != service || w.Servers(p) != 5 && w.Servers(p) != 1 || (w.Barred(p) == "") != service {
			t.Errorf("%s: %d servers, barred %q", p, w.Servers(p), w.Barred(p))
		}
		if n := (Workload{Spec: RR{}}).Normalize().Servers(p); n != 1 {
			t.Errorf("rr over %s: %d servers", p, n)
		}
	}
	if n := w.Traits().Concurrency(); n != DefaultConnections {
		t.Errorf("%d exchanges at a time", n)
	}
	if n := (Workload{Spec: RR{Flows: 3}}).Normalize().Traits().Concurrency(); n != 3 {
		t.Errorf("%d exchanges at a time of 3 flows", n)
	}
}

// TestSeveralBackendsHaveAZero: raw shows the load of a workload that only a Service can have, too, whether its path is
// one of the plan or not.
func TestSeveralBackendsHaveAZero(t *testing.T) {
	w := Workload{Spec: HTTP{Backends: 5}}.Normalize()
	for _, paths := range [][]Path{{{Pod, Service, Local}}, {ZeroPath, {Pod, Service, Local}}} {
		p := Default()
		p.Profiles, p.Paths, p.Workloads, p.Twin = Variants("canal"), paths, []Workload{Workload{Spec: RR{}}.Normalize(), w}, false
		for _, list := range [][]Case{p.Cases(), p.Order(1)} {
			seen := map[Case]int{}
			for _, c := range list {
				seen[c]++
			}
			for _, c := range []Case{{p.Baseline, ZeroPath, w}, {p.Baseline, ZeroPath, p.Workloads[0]}, {VariantOf("canal"), Path{Pod, Service, Local}, w}} {
				if seen[c] != 1 {
					t.Errorf("%v: %s is there %d times", paths, c.Key(), seen[c])
				}
			}
			if c := (Case{VariantOf("canal"), ZeroPath, w}); seen[c] != 0 {
				t.Errorf("%s is there", c.Key())
			}
		}
	}
}

// Bulk data has a NIC model of its own only where NICs are on the path, and only in the lab.
func TestNICOfAStream(t *testing.T) {
	w, err := ParseWorkload("stream(nic=wire)")
	if err != nil || w.String() != "stream(nic=wire)" || w.nicModel() != NICWire {
		t.Fatalf("%v, %s", err, w)
	}
	for _, p := range Paths {
		if within := w.Barred(p) != ""; within == p.Crosses() {
			t.Errorf("%s: barred %t", p, within)
		}
		if !p.Crosses() && (p.Locality == CrossNode || p.Locality == Remote || p.From == External || p.To == External) {
			t.Errorf("%s is said to be within a node", p)
		}
	}
	cross := Path{Pod, Pod, CrossNode}
	for _, c := range []struct {
		profile  Variant
		workload string
		run      NIC
		want     NIC
	}{
		{VariantOf("canal"), "stream", NICIdeal, NICIdeal}, {VariantOf("canal"), "stream(nic=wire)", NICIdeal, NICWire}, {VariantOf("canal(nic=wire)"), "stream", NICIdeal, NICWire},
		{VariantOf("canal(nic=wire)"), "stream(nic=ideal)", NICWire, NICIdeal}, {VariantOf("canal"), "stream", "", ""}, {VariantOf("canal@east"), "stream", NICIdeal, ""},
	} {
		w, err := ParseWorkload(c.workload)
		if got := (Case{c.profile, cross, w}).NIC(c.run); err != nil || got != c.want {
			t.Errorf("%s %s in a run under %q: %q, want %q (%v)", c.profile, c.workload, c.run, got, c.want, err)
		}
	}
	p := Preset("standard")
	p.Lab.NIC, p.Lab.GRO = NICWire, condition.GROOn
	p.Workloads[3], _ = ParseWorkload("stream(nic=ideal)")
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "stream(nic=ideal) under raw: nothing cuts super-packets") {
		t.Errorf("frames that were never cut are merged: %v", err)
	}
	for name, change := range map[string]func(*Plan){
		"all bulk is without": func(p *Plan) { p.Lab.NIC = NICWire }, "nothing is cut": func(p *Plan) { p.Profiles, p.Lab.BigTCP = Variants("ptp"), condition.BigTCPOn },
		"variants say it": func(p *Plan) { p.Profiles = Variants("canal", "canal(nic=wire)") },
	} {
		q := Preset("standard")
		change(&q)
		if q = q.Settle(); len(q.Workloads) != 3 || q.Validate() != nil {
			t.Errorf("%s: %v, %v", name, q.Workloads, q.Validate())
		}
	}
	p = Preset("standard")
	p.Environment = EnvKubernetes
	if q := p.Settle(); len(q.Workloads) != 3 || q.Validate() != nil {
		t.Errorf("on a cluster: %v, %v", q.Workloads, q.Validate())
	}
	for name, count := range map[string]int{"loads": 7, "tools": 4} { // loads need both capacities
		q := p
		if name == "loads" {
			q.Workloads, _ = WithLoads(p.Workloads, "50%,80%")
		} else {
			q.Workloads, _, _ = WithTools(p.Workloads, []string{"iperf3"})
		}
		if q = q.Settle(); len(q.Workloads) != count || q.Validate() != nil {
			t.Errorf("on a cluster with %s: %v, %v", name, q.Workloads, q.Validate())
		}
	}
	p.Workloads = []Workload{withoutOffload}
	if err := p.Settle().Validate(); err == nil || !strings.Contains(err.Error(), "nic is for the lab") {
		t.Errorf("a cluster's NICs are given a model: %v", err)
	}
}

// Wires with delay or loss carry frames of the MTU only, whether the run has them or a variant.
func TestImpairedWiresCarryFrames(t *testing.T) {
	p := Default()
	if l := VariantOf("canal").Lab(p.Lab); l.NIC != NICIdeal {
		t.Errorf("perfect wires: %s", l.NIC)
	}
	for _, v := range Variants("canal(delay=5ms)", "canal(loss=1%)") {
		if l := v.Lab(p.Lab); l.NIC != NICWire {
			t.Errorf("%s: %s", v, l.NIC)
		}
	}
	p.Lab.Delay = time.Millisecond
	p.Profiles, p.Workloads = Variants("canal"), append(p.Workloads, withoutOffload)
	if p = p.Settle(); p.Lab.NIC != NICWire || len(p.Workloads) != len(Default().Workloads) {
		t.Errorf("%s, %v", p.Lab.NIC, p.Workloads)
	}
}
