package plan

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestParseLoads(t *testing.T) {
	for in, want := range map[string][]float64{
		"50%":            {0.5},
		"0.5":            {0.5},
		"10%..95%":       {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95},
		"80%, 20%..40%":  {0.2, 0.3, 0.4, 0.8},
		"10%..10%":       {0.1},
		"30%..50%,40%":   {0.3, 0.4, 0.5},
		"95%..130%":      {0.95, 1.05, 1.15, 1.25, 1.3},
		"0.1%..0.1,200%": {0.001, 0.1, 2},
	} {
		if got, err := parseLoads(in); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, %v, want %v", in, got, err, want)
		}
	}
	for _, bad := range []string{"", "x", "50%..", "..50%", "90%..10%", "0", "201%", "NaN", "0x1p-1", "50%%", "50%,"} {
		if got, err := parseLoads(bad); err == nil {
			t.Errorf("%q is read as %v", bad, got)
		}
	}
}

func FuzzParseLoads(f *testing.F) {
	for _, s := range []string{"10%..95%", "0.5,1", "7.25%", "1e-1..2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		loads, err := parseLoads(s)
		if err != nil {
			return
		}
		for i, load := range loads {
			if load < minLoad || load > maxLoad || i > 0 && load <= loads[i-1] {
				t.Fatalf("%q gives %v", s, loads)
			}
			if again, err := parseShare(FormatShare(load), "load", minLoad, maxLoad); err != nil || again != load {
				t.Fatalf("%v is written %s and read %v, %v", load, FormatShare(load), again, err)
			}
		}
	})
}

// parse reads workloads or fails the test.
func parse(t *testing.T, s string) []Workload {
	t.Helper()
	list, err := parseList(s, ParseWorkload)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func named(list []Workload) string {
	var all []string
	for _, w := range list {
		all = append(all, w.String())
	}
	return strings.Join(all, " ")
}

func TestWithLoads(t *testing.T) {
	got, err := WithLoads(parse(t, "stream,rr(flows=2),crr(rate=5),http,rr(arrival=saturate)"), "10%,95%")
	want := "stream rr(flows=2,load=10%) rr(flows=2,load=95%) crr(rate=5) http(load=10%) http(load=95%) rr(arrival=saturate)"
	if err != nil || named(got) != want {
		t.Errorf("got %s, %v\nwant %s", named(got), err, want)
	}
	if _, err := WithLoads(parse(t, "stream,ping,rr(load=10%)"), "50%"); err == nil {
		t.Error("nothing takes the load, and that is fine")
	}
}

// TestCapacityIsMeasured: what loads are shares of is part of the plan, once, and one that is missing is a fault.
func TestCapacityIsMeasured(t *testing.T) {
	p := Default()
	p.Workloads = parse(t, "rr(udp,load=10%,burst=4,wait=spin),rr(udp,load=50%,wait=spin),rr(load=50%,under=stream),http(load=5%),http,crr(load=1%,close=fin)")
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "rr(udp,arrival=saturate,wait=spin) measures, which is missing") {
		t.Errorf("a plan without capacities: %v", err)
	}
	q := p.Settle()
	want := "rr(udp,arrival=saturate,wait=spin) rr(udp,load=10%,burst=4,wait=spin) rr(udp,load=50%,wait=spin) " +
		"rr(arrival=saturate,under=stream) rr(load=50%,under=stream) http(load=5%) http crr(arrival=saturate,close=fin) crr(load=1%,close=fin)"
	if got := named(q.Workloads); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if err := q.Validate(); err != nil {
		t.Error(err)
	}
	if !slices.Equal(q.Settle().Workloads, q.Workloads) {
		t.Error("settling twice changes the plan")
	}
}

func TestLoadsInAPlanFile(t *testing.T) {
	p, err := Parse("p.yaml", strings.NewReader("apiVersion: cnibench/v1\nkind: Plan\nworkloads:\n- rr: {load: 10%..30%}\n- crr: {load: [5%, 50%], arrival: constant}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := "rr(arrival=saturate) rr(load=10%) rr(load=20%) rr(load=30%) crr(arrival=saturate) crr(arrival=constant,load=5%) crr(arrival=constant,load=50%)"
	if got := named(p.Workloads); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	_, err = Parse("p.yaml", strings.NewReader("apiVersion: cnibench/v1\nkind: Plan\nworkloads:\n- rr: {load: 90%..30%}\n"))
	if err == nil || !strings.Contains(err.Error(), "p.yaml:4: workloads.rr.load: range") {
		t.Errorf("%v", err)
	}
}
