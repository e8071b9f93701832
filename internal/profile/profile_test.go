package profile

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestCatalogueIsComplete(t *testing.T) {
	list, err := readProfiles(Files)
	if err != nil {
		t.Fatal(err)
	}
	names, orders := map[string]bool{}, map[int]string{}
	for _, p := range list {
		if names[p.Name] || orders[p.Order] != "" {
			t.Errorf("%s: the name or the order %d is used twice: %s", p.Name, p.Order, orders[p.Order])
		}
		names[p.Name], orders[p.Order] = true, p.Name
		if p.Title == "" || p.Summary == "" || p.Services == "" || p.Policy == "" || len(p.Needs) == 0 {
			t.Errorf("%s lacks a description", p.Name)
		}
		spare := p.Tunnel != nil && p.Tunnel.Spare > 0
		if (p.Encapsulation == "none") != (p.Overhead == 0) || (p.Encapsulation == "none") != (p.Tunnel == nil || spare) {
			t.Errorf("%s: encapsulation %s with %d bytes of overhead and tunnel %v", p.Name, p.Encapsulation, p.Overhead, p.Tunnel)
		}
		if p.Tunnel != nil && !spare && p.Tunnel.Kind != p.Encapsulation {
			t.Errorf("%s: encapsulation %s by a device of kind %s", p.Name, p.Encapsulation, p.Tunnel.Kind)
		}
		if (p.PodDevice == "") != (p.Name == Raw || p.Name == Host) {
			t.Errorf("%s: device of the pod is %q", p.Name, p.PodDevice)
		}
		if q, ok := Lookup(p.Name); !ok || q.Name != p.Name {
			t.Errorf("Lookup(%q) = %v, %v", p.Name, q, ok)
		}
	}
	if _, ok := Lookup("no such profile"); ok {
		t.Error("Lookup finds a profile that does not exist")
	}
	if all := Names(); len(all) != len(list) || all[0] != Raw || all[1] != Host {
		t.Errorf("Names: %v", all)
	}
}

// TestUnknownField: a typing error in a record is not ignored.
func TestUnknownField(t *testing.T) {
	_, err := readProfiles(fstest.MapFS{"some/other.yaml": {Data: []byte("order: 1\ntunel: {kind: vxlan}\n")}})
	if err == nil || !strings.Contains(err.Error(), "some/other.yaml") || !strings.Contains(err.Error(), "tunel") {
		t.Errorf("error: %v", err)
	}
}

// TestFidelity: rows of the bare node are what others are multiples of; one row that differs or is more than 10 % off, or a
// median beyond 5 %, holds nothing, and other workloads and NIC models are not covered.
func TestFidelity(t *testing.T) {
	row := func(name, path, workload, verdict string, lab, cluster float64) Comparison {
		return Comparison{Measured: "2026-01-02", NIC: "ideal", Dataplane: "ptp", Profile: name, Path: path, Workload: workload, Verdict: verdict, Lab: lab, Cluster: cluster, Quotient: 1}
	}
	const across, within = "pod-to-pod/cross-node", "pod-to-pod/same-node"
	rows := []Comparison{
		row("host", across, "rr", "", 100, 110), row("ptp", within, "rr", "within 5 %", 100, 101),
		row("ptp", across, "rr", "undecided", 200, 218), row("ptp", across, "stream(udp)", "differs", 100, 100),
		{Dataplane: "bridge", Profile: "bridge", Lab: 1, Cluster: 1, Quotient: 1},
	}
	rows = append(rows, row("ptp", "pod-to-service/local", "rr", "undecided", 100, 97))
	got := fidelityOf(rows, "ptp")
	want := &Fidelity{Measured: "2026-01-02", NIC: "ideal", All: Compared{Rows: 4, Within: 1, Differ: 1, Distance: 0.005, Farthest: 0.09}, Workloads: []Compared{
		{Name: "rr", Rows: 3, Within: 1, Distance: 0.01, Farthest: 0.09, Lab: 2, Cluster: 218.0 / 110}, {Name: "stream(udp)", Rows: 1, Differ: 1},
	}}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if fidelityOf(rows, "canal") != nil || got.Holds() || !got.Covers("rr", "ideal") || !got.Covers("rr", "") || got.Covers("rr", "wire") || got.Covers("stream(udp)", "ideal") || got.Covers("crr", "") {
		t.Error("something is covered that was not compared, or that differs")
	}
	if (Compared{Distance: -0.001, Farthest: 0.11}).Holds() {
		t.Error("a median among rows that scatter holds")
	}
	var b bytes.Buffer
	if err := WriteComparisons(&b, rows[:2]); err != nil {
		t.Fatal(err)
	}
	again, err := ReadComparisons(bytes.NewReader(b.Bytes()))
	if diff := cmp.Diff(rows[:2], again); err != nil || diff != "" {
		t.Errorf("read back: %v\n%s", err, diff)
	}
	for _, bad := range []string{"", "a\tb\n", b.String() + "x\n", strings.Replace(b.String(), "110", "-1", 1)} {
		if _, err := ReadComparisons(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestFunctions(t *testing.T) {
	for _, c := range []struct{ profile, want string }{
		{"macvlan", "6"}, {"flannel-wireguard", "SE6"}, {"calico-ipip", "SP"}, {"cilium-native", "SP6"}, {"host", "S6"},
	} {
		p, _ := Lookup(c.profile)
		got := ""
		for _, f := range Functions {
			if f.By(p) != "" {
				got += f.Letter
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.profile, got, c.want)
		}
	}
}

// TestByFlowtable: a threshold that the lab cannot raise is not named as a variant.
func TestByFlowtable(t *testing.T) {
	for threshold, want := range map[string]string{"0": "", "20": "kindnet(flowtable=20)", "254": "kindnet(flowtable=254)", "255": "254 at most", "": "254 at most", "-1": "254 at most"} {
		if got := ByFlowtable(threshold); !strings.HasSuffix(got, want) || (want == "") != (got == "") {
			t.Errorf("ByFlowtable(%q) = %q, want %q", threshold, got, want)
		}
	}
}
