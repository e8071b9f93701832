package plan

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan/condition"
)

// TestVariantRoundTrips: any variant that can be written is read back as itself, whatever the order of its conditions.
func TestVariantRoundTrips(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		conditions := map[string]string{}
		for _, flag := range variantFlags() {
			s, _ := SettingOf(flag)
			if r.IntN(2) == 0 {
				continue
			}
			if len(s.Words) > 0 {
				conditions[flag] = s.Words[r.IntN(len(s.Words))]
				continue
			}
			p := Default()
			conditions[flag] = s.Text(p)
		}
		var parts []string
		for flag, value := range conditions { // in random order
			parts = append(parts, flag+"="+value)
		}
		text := "calico-vxlan"
		if r.IntN(2) == 0 {
			text += "@east"
		}
		if len(parts) > 0 {
			text += "(" + strings.Join(parts, ",") + ")"
		}
		if r.IntN(2) == 0 {
			text += twinSuffix
		}
		v, err := ParseVariant(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseVariant(v.String())
		if err != nil || again != v {
			t.Fatalf("%s: %s, and again %s, %v", text, v, again, err)
		}
		if v.Profile() != "calico-vxlan" || strings.Count(v.Conditions(), "=") != len(parts) {
			t.Errorf("%s: profile %q, conditions %q", v, v.Profile(), v.Conditions())
		}
	}
}

func TestVariantLab(t *testing.T) {
	v, err := ParseVariant("canal( services=100, service-proxy=nftables )~twin")
	if err != nil {
		t.Fatal(err)
	}
	if want := VariantOf("canal(services=100,service-proxy=nftables)~twin"); v != want {
		t.Errorf("canonical form %q, want %q", v, want)
	}
	run := Default().Lab
	run.Services, run.MTU = 7, 9000
	got := v.Lab(run)
	if got.Services != 100 || got.ServiceProxy != "nftables" || got.MTU != 9000 {
		t.Errorf("conditions %+v", got)
	}
	if !reflect.DeepEqual(VariantOf("canal").Lab(run), run) {
		t.Error("a plain profile has the conditions of the run")
	}
}

func TestBadVariants(t *testing.T) {
	for text, want := range map[string]string{
		"canal(servces=1)":             `unknown condition "servces", did you mean "services"?`,
		"canal(cpu=one)":               "cpu is the same for the whole run; a variant may set",
		"canal(services=1,services=2)": "services is given twice",
		"canal(services=-1)":           "-1 is out of range: want 0 to " + strconv.Itoa(MaxServices),
		"canal(nic=wier)":              `"wier" is not one of ideal, wire, did you mean "wire"?`,
		"canal(services)":              "want PROFILE or PROFILE(CONDITION=VALUE,...)",
		"canal(services=1":             "want PROFILE or PROFILE(CONDITION=VALUE,...)",
	} {
		if v, err := ParseVariant(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v, want %q", text, v, err, want)
		}
	}
	if _, err := parseList("canal(services=x),host(mtu=1)", ParseVariant); err == nil || strings.Count(err.Error(), "variant ") != 2 {
		t.Errorf("every fault is named: %v", err)
	}
}

// TestForeignNames: names of other tools' archives pass through.
func TestForeignNames(t *testing.T) {
	for _, name := range []Variant{VariantOf("Calico (eBPF)"), VariantOf("k8s (v1.30=beta"), Variant{}, VariantOf("("), VariantOf("a)b")} {
		if !reflect.DeepEqual(name.Lab(Default().Lab), Default().Lab) {
			t.Errorf("%q has conditions", name)
		}
		if name.IsTwin() || name.Original() != name {
			t.Errorf("%q is a twin", name)
		}
	}
}

// TestTextOfVariants: String returns the text that VariantOf read, byte for byte, also through JSON.
func TestTextOfVariants(t *testing.T) {
	for _, text := range []string{"", "a", "a@", "@c", "a@b@c", "a(mtu=9000)", "a@b(mtu=9000,services=1)~twin", "a~twin", "~twin", "a~twin~twin", "a(b)(c=1)", "(=)",
		"a(b)", "a()", "a(b=1", "a)b=1(", "a(mtu=1)@b", " a ( mtu = 1 ) ", "a@(b=1)", "ä@ö(ü=ß)"} {
		var v Variant
		b, err := json.Marshal(VariantOf(text))
		if err == nil {
			err = json.Unmarshal(b, &v)
		}
		if want := strconv.Quote(text); v.String() != text || v != VariantOf(text) || string(b) != want || err != nil || v.IsZero() != (text == "") {
			t.Errorf("%q became %q, %s, %v", text, v, b, err)
		}
	}
}

// TestConditionsAreWords: a value is one of the words, not a part of their list.
func TestConditionsAreWords(t *testing.T) {
	for _, cpu := range []condition.Placement{"one split", "split one", "auto one"} {
		l := Lab{CPU: cpu}.Filled()
		if err := l.Validate(); err == nil || !strings.Contains(err.Error(), "lab.cpu: ") {
			t.Errorf("placement %q: %v", cpu, err)
		}
	}
	if l := (Lab{}).Filled(); !reflect.DeepEqual(l, Default().Lab) {
		t.Errorf("nothing said is %+v", l)
	}
}

// TestExplanationOfClusters: a cluster is sampled by privileged pods only if the plan allows them.
func TestExplanationOfClusters(t *testing.T) {
	p := Default()
	p.Environment, p.Explain, p.Profiles, p.Baseline = EnvKubernetes, true, Variants(Detected), VariantOf("host")
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "explain: the CPUs of a cluster are sampled by privileged pods") {
		t.Error(err)
	}
	if p.Cluster.Inspect = true; p.Validate() != nil {
		t.Error(p.Validate())
	}
}

// TestVariantsOfRecipes: version and values of a chart are part of a variant; they are refused where nothing is installed.
func TestVariantsOfRecipes(t *testing.T) {
	v, err := ParseVariant("cilium-native(set.bpf.masquerade=true,version=1.18.2,set.a_b.c-d=x/y:1)")
	if err != nil || v != VariantOf("cilium-native(set.a_b.c-d=x/y:1,set.bpf.masquerade=true,version=1.18.2)") {
		t.Fatal(v, err)
	}
	version, sets := v.Recipe()
	if version != "1.18.2" || strings.Join(sets, " ") != "a_b.c-d=x/y:1 bpf.masquerade=true" {
		t.Error(version, sets)
	}
	if version, sets := VariantOf("canal(services=10)").Recipe(); version != "" || sets != nil {
		t.Error(version, sets)
	}
	for text, want := range map[string]string{
		"canal(version=)": "want letters", "canal(set.=1)": "want letters", "canal(set.a=b c)": "want letters", "canal(versoin=1)": "version",
		"canal(version=1,version=2)": "given twice",
	} {
		if _, err := ParseVariant(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for _, tc := range []struct {
		environment string
		install     bool
		variant     Variant
		want        string
	}{
		{EnvLab, false, VariantOf("canal(version=1)"), "nothing is installed in the lab"},
		{EnvKubernetes, false, VariantOf("canal(version=1)"), "add --install or --env kind"},
		{EnvKubernetes, true, VariantOf("canal(services=10)"), "other conditions are for the lab"},
		{EnvKubernetes, true, VariantOf("host(version=1)"), "nothing is installed for host"},
		{EnvKubernetes, true, VariantOf("canal(version=1)"), ""},
		{EnvKind, false, VariantOf("canal(set.a=1)"), ""},
	} {
		p := Default()
		p.Environment, p.Cluster.Install, p.Profiles, p.Baseline = tc.environment, tc.install, []Variant{tc.variant}, VariantOf("host")
		said := ""
		if err := p.Validate(); err != nil {
			said = err.Error()
		}
		if tc.want != "" && !strings.Contains(said, tc.want) || tc.want == "" && strings.Contains(said, "canal") {
			t.Errorf("%s in %s: %q, want %q", tc.variant, tc.environment, said, tc.want)
		}
	}
}
