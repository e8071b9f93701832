package profile

import (
	"encoding/csv"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

func TestCatalogueIsComplete(t *testing.T) {
	list, err := read(Files)
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
	_, err := read(fstest.MapFS{"some/other.yaml": {Data: []byte("order: 1\ntunel: {kind: vxlan}\n")}})
	if err == nil || !strings.Contains(err.Error(), "some/other.yaml") || !strings.Contains(err.Error(), "tunel") {
		t.Errorf("error: %v", err)
	}
}

// TestFidelity: what the records say of real clusters is what the rows of the comparison say.
func TestFidelity(t *testing.T) {
	page, err := os.ReadFile("../../docs/results/fidelity.md")
	if err != nil {
		t.Fatal(err)
	}
	measured := regexp.MustCompile(`Measured on ([0-9-]+) by .make fidelity`).FindSubmatch(page)
	file, err := os.Open("../../docs/results/data/fidelity-flannel.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || measured == nil {
		t.Fatalf("docs/results/fidelity.md has no comparison: %v", err)
	}
	want := map[string]*Fidelity{}
	sizes := regexp.MustCompile(`(buffer|congestion)=[^,)]*,?`)
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, row := range rows {
		fields := row[1:]
		name := fields[0]
		if _, ok := Lookup(name); !ok || row[0] != "CPU time per unit of work" {
			continue
		}
		if want[name] == nil {
			want[name] = &Fidelity{Measured: string(measured[1]), NIC: "ideal"}
		}
		workload := strings.ReplaceAll(sizes.ReplaceAllString(fields[2], ""), "()", "")
		f := want[name]
		if n := len(f.Workloads); n == 0 || f.Workloads[n-1].Name != workload {
			f.Workloads = append(f.Workloads, Compared{Name: workload})
		}
		w := &f.Workloads[len(f.Workloads)-1]
		if w.Rows++; fields[1] == "pod-to-pod/cross-node" {
			w.Lab, w.Cluster = number(fields[4]), number(fields[6])
		}
		switch last := fields[len(fields)-1]; last {
		case "within 5 %":
			w.Within++
		case "differs":
			w.Differ++
		case "undecided":
		default:
			t.Errorf("%s: outcome %q", name, last)
		}
	}
	if len(want) == 0 {
		t.Error("no profile was compared")
	}
	for _, p := range All() {
		if !reflect.DeepEqual(p.Fidelity, want[p.Name]) {
			t.Errorf("%s: the record has %+v, docs/results/fidelity.md has %+v", p.Name, p.Fidelity, want[p.Name])
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
