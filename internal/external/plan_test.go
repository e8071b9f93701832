package external

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/plan"
)

func TestPlanWords(t *testing.T) {
	for in, want := range map[string]string{
		"http(tool=wrk)":                            "http(tool=wrk)",
		"http(tool=own)":                            "http",
		"stream(reverse,tool=iperf3,flows=4)":       "stream(flows=4,tool=iperf3,reverse)",
		"stream(udp,rate=1G,tool=iperf3)":           "stream(udp,rate=1G,tool=iperf3)",
		"stream(congestion=bbr,tool=iperf3)":        "stream(congestion=bbr,tool=iperf3)",
		"rr(udp,tool=sockperf)":                     "rr(udp,tool=sockperf)",
		"rr(udp,request=1,response=1,tool=netperf)": "rr(udp,request=1,response=1,tool=netperf)",
		"rr(tool=netperf,request=10)":               "rr(request=10,tool=netperf)",
		"http(tool=hey,rate=100,arrival=constant)":  "http(arrival=constant,rate=100,tool=hey)",
		"crr(tool=neper,flows=3)":                   "crr(flows=3,tool=neper)",
		"ping(tool=ping,interval=10ms)":             "ping(interval=10ms,tool=ping)",
	} {
		w, err := plan.ParseWorkload(in)
		if err != nil || w.String() != want {
			t.Errorf("%s: got %s, %v, want %s", in, w, err, want)
		}
	}
	for in, want := range map[string]string{
		"http(tool=wrkk)":                      `did you mean "wrk"?`,
		"http(tool=)":                          "is not one of own, iperf3",
		"rr(tool=wrk)":                         "tool wrk: it sends no rr",
		"http(tool=wrk,rate=10)":               "tool wrk: it has no open loop",
		"http(tool=hey,rate=10)":               "say arrival=constant",
		"http(tool=hey,load=10%)":              "a load is a share of the capacity",
		"rr(tool=sockperf)":                    "say request=16,response=16",
		"rr(tool=sockperf,request=20)":         "as long as its requests",
		"rr(tool=netperf,flows=2)":             "it has one flow",
		"rr(tool=netperf,rate=2)":              "it has no open loop",
		"rr(tool=netperf,burst=2)":             "it sends no bursts",
		"rr(tool=netperf,wait=spin)":           "it waits in its own way",
		"rr(tool=netperf,under=stream)":        "nothing is sent beside it",
		"rr(tool=netperf,congestion=bbr)":      "the congestion control of the system",
		"stream(tool=iperf3,mode=trunc)":       "it copies",
		"stream(tool=iperf3,flows=200)":        "at most 128 flows",
		"stream(tool=iperf3,message=2Mi)":      "at most 1048576 bytes",
		"stream(tool=neper,reverse)":           "client to the server only",
		"stream(tool=neper,udp)":               "TCP workloads",
		"stream(tool=netperf,udp,rate=1M)":     "not at a rate",
		"stream(tool=netperf,udp,reverse)":     "client to the server only",
		"rr(tool=netperf,tool=neper)":          "tool is given twice",
		"rr(tool=sockperf,udp,request=65508)":  "out of range",
		"rr(udp,tool=neper)":                   "TCP workloads",
		"http(tool=wrk,congestion=reno)":       "the congestion control of the system",
		"ping(tool=ping,flows=2)":              "it has one flow",
		"stream(tool=iperf3,congestion=cubic)": "",
	} {
		_, err := plan.ParseWorkload(in)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", in, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", in, err, want)
		}
	}
}

// workloads reads them as the flag of that name does.
func workloads(text string) ([]plan.Workload, error) {
	var p plan.Plan
	s, _ := plan.SettingOf("workloads")
	err := s.Set(&p, text)
	return p.Workloads, err
}

func TestWithTools(t *testing.T) {
	list, err := workloads("http,stream(flows=4),rr")
	if err != nil {
		t.Fatal(err)
	}
	all, left, err := plan.WithTools(list, []string{"wrk", "own", "iperf3"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range all {
		names = append(names, w.String())
	}
	if got, want := strings.Join(names, " "), "http http(tool=wrk) stream(flows=4) stream(flows=4,tool=iperf3) rr"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if want := []string{
		"rr is sent by our engine alone: wrk, iperf3 send no rr",
	}; !slices.Equal(left, want) {
		t.Errorf("left %q", left)
	}
	if _, left, err := plan.WithTools(list, []string{"netperf"}); err != nil || !slices.Equal(left, []string{
		"http is sent by our engine alone: netperf sends no http", "stream(flows=4) is not sent by netperf: it has one flow",
	}) {
		t.Errorf("left %q, %v", left, err)
	}
	again, _, err := plan.WithTools(all, []string{"wrk"})
	if err != nil || !slices.Equal(again, all) {
		t.Errorf("the second time makes %v of it, %v", again, err)
	}
	for names, want := range map[string]string{
		"sockperf":    "sockperf can send none of the workloads: http: it sends no http; stream(flows=4): it sends no stream; rr: its messages ",
		"wrk,iperf":   `unknown tool "iperf"`,
		"":            "unknown tool",
		"wrk,sockprf": `did you mean "sockperf"?`,
	} {
		if _, _, err := plan.WithTools(list, strings.Split(names, ",")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", names, err, want)
		}
	}
}

func TestPlanWindows(t *testing.T) {
	ms := time.Millisecond
	for _, tt := range []struct {
		tool                                 string
		window, warmup, wantWindow, wantWarm time.Duration
	}{
		{"", 300 * ms, 20 * ms, 300 * ms, 20 * ms},
		{"iperf3", 300 * ms, 20 * ms, time.Second, time.Second},
		{"iperf3", 2 * time.Second, 0, 2 * time.Second, 0},
		{"wrk", 1001 * ms, 20 * ms, 2 * time.Second, 0},
		{"hey", 300 * ms, 20 * ms, 300 * ms, 0},
		{"sockperf", time.Second, 0, 1550 * ms, 400 * ms},
		{"sockperf", 500 * ms, 0, 550 * ms, 400 * ms},
	} {
		w, u := plan.Workload{Tool: tt.tool}.Measured(tt.window, tt.warmup)
		if w != tt.wantWindow || u != tt.wantWarm {
			t.Errorf("%s of %s after %s: got %s after %s", tt.tool, tt.window, tt.warmup, w, u)
		}
	}
}

// TestPlanOfTools shows what tools make of a plan: its window, its notes and its paths.
func TestPlanOfTools(t *testing.T) {
	p := plan.Default()
	p.Workloads, _ = workloads("rr,rr(tool=netperf),stream(tool=iperf3)")
	p.Paths = []plan.Path{{From: plan.Host, To: plan.Host, Locality: plan.CrossNode}, {From: plan.Pod, To: plan.Service, Locality: plan.Local}}
	p.Duration, p.Budget = 0, 0
	if got := p.Fit(10).Duration; got != time.Second {
		t.Errorf("a window beside tools is %s", got)
	}
	p.Budget = time.Minute
	if got := p.Fit(1000).Duration; got != time.Second {
		t.Errorf("a window beside tools is %s however little time there is", got)
	}
	p.Duration = 300 * time.Millisecond
	notes := strings.Join(p.Notes(10), "\n")
	for _, want := range []string{
		"netperf, iperf3: window of 1s instead of 300ms, in whole seconds",
		"rr(tool=netperf) is not measured on pod-to-service/local: netperf connects to 2 ports of its server; a Service has one",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	for _, w := range p.Workloads {
		if w.Tool == "iperf3" && w.Barred(p.Paths[1]) != "" {
			t.Error("iperf3 is barred from a Service")
		}
	}
}
