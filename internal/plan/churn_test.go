package plan

import (
	"strings"
	"testing"
)

func TestParseChurn(t *testing.T) {
	for text, want := range map[string]string{
		"endpoints=10/s": "endpoints=10/s", "10/s": "endpoints=10/s", "services = 2.5": "services=2.5/s", "policies=0.1/s": "policies=0.1/s",
		"none": "none", "": "none",
	} {
		c, err := parseChurn(text)
		if err != nil || c.String() != want {
			t.Errorf("%q: %q, %v; want %q", text, c, err, want)
		}
		var again churn
		if b, err := c.MarshalText(); err != nil || again.UnmarshalText(b) != nil || again != c {
			t.Errorf("%q is read again as %q (%v)", b, again, err)
		}
	}
	for text, want := range map[string][]string{
		"service=10/s":  {`did you mean "services"`},
		"services=0/s":  {"0/s is out of range"},
		"endpoint=5K/s": {`did you mean "endpoints"`, `"5K/s" is not a rate`},
		"policies=":     {`"" is not a rate`},
		"services=-1":   {"out of range"},
		"services=NaN":  {"out of range"},
		"services=1e9":  {"out of range"},
	} {
		_, err := parseChurn(text)
		for _, part := range append(want, "want KIND=RATE/s") {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v, want %q", text, err, part)
			}
		}
	}
}

// TestChurnIsACondition: of the run, and of a variant, which may also do without.
func TestChurnIsACondition(t *testing.T) {
	run := Default().Lab
	run.Churn, _ = parseChurn("services=5/s")
	for text, want := range map[string]string{"canal": "services=5/s", "canal(churn=policies=2/s)": "policies=2/s", "canal(churn=none)": "none"} {
		v, err := ParseVariant(text)
		if err != nil || v.String() != text {
			t.Errorf("%s is %s (%v)", text, v, err)
		}
		if got := v.Lab(run).Churn.String(); got != want {
			t.Errorf("%s has %s, want %s", v, got, want)
		}
	}
}

func TestChurnRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		profiles, churn, workload string
		want                      []string
	}{
		"no use":      {"macvlan,flannel-vxlan,canal", "policies=1/s", "rr", []string{"macvlan enforces no", "flannel-vxlan enforces no"}},
		"no agent":    {"aws-vpc,aws-vpc(policies-unselected=1)", "policies=1/s", "rr", []string{"aws-vpc has its policy agent with policies only"}},
		"no Services": {"macvlan,sriov,canal", "services=1/s", "rr", []string{"macvlan serves no", "sriov serves no"}},
		"raw":         {"raw(churn=services=1/s),canal", "none", "rr", []string{"raw(churn=services=1/s): raw serves no Services"}},
		"pods":        {"canal", "policies=1/s", "ttfr", []string{"ttfr changes rules itself"}},
		"roll":        {"canal", "endpoints=5/s", "http(backends=2,roll)", []string{"changes endpoints itself"}},
		"search":      {"canal", "endpoints=5/s", "throughput", []string{"short probes"}},
		"ipvs":        {"flannel-vxlan(service-proxy=ipvs)", "services=5/s", "rr", []string{"take churn=endpoints"}},
	} {
		p := sweptPlan(tt.profiles, "")
		p.Lab.Churn, _ = parseChurn(tt.churn)
		w, err := ParseWorkload(tt.workload)
		if err != nil {
			t.Fatal(err)
		}
		p.Workloads = []Workload{w}
		err = p.Validate()
		for _, part := range tt.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", name, err, part)
			}
		}
	}
	p := sweptPlan("canal", "")
	p.Lab.Churn, _ = parseChurn("endpoints=1/s")
	if p.Duration = minWindow; p.Validate() == nil || !strings.Contains(p.Validate().Error(), "has no change") {
		t.Errorf("a window without a change: %v", p.Validate())
	}
}

// TestChurnOfTheDefault: of the profiles that are not named, those whose objects cannot change are left out, and raw is
// measured as the baseline; the window has room for changes.
func TestChurnOfTheDefault(t *testing.T) {
	p := Preset("quick")
	p.Lab.Churn, _ = parseChurn("policies=2/s")
	p = p.Settle().Fit(100)
	if err := p.Validate(); err != nil || len(p.Profiles) < 5 || p.Measured()[0] != VariantOf("raw") {
		t.Errorf("%v: %v", p.Measured(), err)
	}
	if p.Duration.Seconds() != 5 {
		t.Errorf("a window of %s for ten changes at 2/s", p.Duration)
	}
}
