package profile

import "slices"

// Function is something that a reader may need of a network beside its speed.
type Function struct {
	// Name is the function in words, Letter stands for it where columns are dear.
	Name, Letter string
	by           func(Profile) string
}

// NetworkPolicy and Encryption are the functions that a report asks for when it says what is best.
var (
	NetworkPolicy = Function{"NetworkPolicy", "P", func(p Profile) string { return engine(p.Policy) }}
	Encryption    = Function{"encryption", "E", func(p Profile) string {
		if p.Encapsulation == "wireguard" {
			return p.Encapsulation
		}
		return ""
	}}
)

// services is whether pods reach Services.
var services = Function{"Services", "S", func(p Profile) string { return engine(p.Services) }}

// Expected are the functions that a cluster usually needs: a report says so where the best profile lacks one.
var Expected = []Function{services, NetworkPolicy}

// Functions are all functions in report order.
var Functions = []Function{
	services, NetworkPolicy, Encryption,
	{"IPv6", "6", func(p Profile) string {
		if p.NoIPv6 != "" {
			return ""
		}
		return "yes"
	}},
}

// By returns what provides f in p, "" if nothing does.
func (f Function) By(p Profile) string { return f.by(p) }

// engine is a word of a record, "" for none.
func engine(word string) string {
	if word == "none" {
		return ""
	}
	return word
}

// Fidelity is what a comparison of the lab with a real cluster said of a profile's CPU time. docs/results/fidelity.md has the
// comparison; a test holds the record against its table.
type Fidelity struct {
	// Measured is the day, NIC the model of the lab's NICs on it.
	Measured string `yaml:"measured" json:"measured"`
	NIC      string `yaml:"nic" json:"nic"`
	// Workloads are those that were compared. Nothing is known of others.
	Workloads []Compared `yaml:"workloads" json:"workloads"`
}

// Compared is one workload of a comparison.
type Compared struct {
	// Name is the workload without sizes and congestion control, such as "stream(udp)".
	Name string `yaml:"name" json:"name"`
	// Rows are the paths compared, Within those equal within 5 %, Differ those that differ significantly.
	Rows   int `yaml:"rows" json:"rows"`
	Within int `yaml:"within" json:"within"`
	Differ int `yaml:"differ" json:"differ"`
	// Lab and Cluster are the costs between pods of different nodes, as multiples of the bare node's.
	Lab     float64 `yaml:"lab" json:"lab"`
	Cluster float64 `yaml:"cluster" json:"cluster"`
}

// Total sums up the rows of all workloads.
func (f *Fidelity) Total() (all Compared) {
	for _, w := range f.Workloads {
		all.Rows, all.Within, all.Differ = all.Rows+w.Rows, all.Within+w.Within, all.Differ+w.Differ
	}
	return all
}

// Covers says whether a workload was compared under a NIC model of the lab, "" for a workload that NICs do not matter to.
func (f *Fidelity) Covers(workload, nic string) bool {
	return f != nil && (nic == "" || nic == f.NIC) && slices.ContainsFunc(f.Workloads, func(w Compared) bool { return w.Name == workload })
}
