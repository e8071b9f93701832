package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/judge/compare"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

// TestQuietErrors: an outcome that was printed already is quiet, and what failed beside it is said, with its hint. The exit code is
// the outcome's.
func TestQuietErrors(t *testing.T) {
	lost := advice.With(errors.New("delete namespace x: no answer"), "cnibench kube clean")
	for name, c := range map[string]struct {
		err  error
		code int
		want string
	}{
		"quiet alone":         {quietError(exitWorse), exitWorse, ""},
		"joined with nothing": {errors.Join(quietError(exitWorse), nil), exitWorse, ""},
		"with a failure":      {errors.Join(quietError(exitWorse), lost), exitWorse, "cnibench: delete namespace x: no answer\nhint: cnibench kube clean\n"},
		"after a failure":     {errors.Join(lost, errors.Join(nil, quietError(exitWorse))), exitWorse, "cnibench: delete namespace x: no answer\nhint: cnibench kube clean\n"},
		"two":                 {errors.Join(quietError(exitWorse), quietError(exitFailed)), exitWorse, ""},
		"loud":                {lost, exitFailed, "cnibench: delete namespace x: no answer\nhint: cnibench kube clean\n"},
	} {
		var said bytes.Buffer
		p := &program{stderr: &said}
		if code := p.reportError(c.err); code != c.code || said.String() != c.want {
			t.Errorf("%s: code %d, said %q; want %d, %q", name, code, strings.TrimSpace(said.String()), c.code, c.want)
		}
	}
}

// TestMappedVariants: the sides of --map may be variants, whose conditions have commas and equals signs.
func TestMappedVariants(t *testing.T) {
	a := comparison{names: map[plan.Variant]plan.Variant{}, mapped: []string{"canal(mtu=1400,services=10)=canal,x=y", "flannel-vxlan=canal(services=10)"}}
	if err := a.parseFlags(&cobra.Command{}); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"canal(mtu=1400,services=10)": "canal", "x": "y", "flannel-vxlan": "canal(services=10)"} {
		if got := a.names[plan.VariantOf(from)]; got != plan.VariantOf(to) {
			t.Errorf("%s is mapped to %q, want %s", from, got, to)
		}
	}
	a = comparison{names: map[plan.Variant]plan.Variant{}, mapped: []string{"canal(mtu=1400)"}}
	if err := a.parseFlags(&cobra.Command{}); err == nil {
		t.Error("a variant alone is taken")
	}
}

// TestUnmeasuredProfiles: a gate names the profiles that its budgets are for and that were not measured.
func TestUnmeasuredProfiles(t *testing.T) {
	d := &report.Document{}
	d.Analysis = &compare.Analysis{
		Baseline: plan.VariantOf("host"), Workloads: []plan.Workload{{Spec: plan.RR{}}}, Paths: []plan.Path{{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}},
	}
	d.Profiles = []result.Profile{
		{Name: plan.VariantOf("host"), Skipped: "the baseline"}, {Name: plan.VariantOf("canal")}, {Name: plan.VariantOf("cilium-native"), Skipped: "no BPF"},
	}
	for budget, want := range map[string]bool{
		"service_demand > +5%": true, "profile=cilium-native service_demand > +5%": true, "profile=canal service_demand > +5%": false, "path=pod-to-pod/same-node service_demand > +5%": false,
	} {
		b, err := compare.ParseBudget(budget)
		if err != nil {
			t.Fatal(err)
		}
		err = unmeasuredProfiles(d, []compare.Budget{b})
		if (err != nil) != want || want && err.Error() != "no verdict on cilium-native: it was not measured: no BPF" {
			t.Errorf("%s: %v", budget, err)
		}
	}
}
