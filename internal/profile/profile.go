// Package profile is the catalogue of CNI dataplanes. Each family of profiles has a folder here with everything about
// it:
//
//	<family>/<profile>.yaml   what the profile is, how detection recognises it, and how it comes onto a cluster
//	<family>/family.yaml      what the recipes of the family share
//	<family>/*_linux.go       how the lab builds it, and what an observer must find there
//
// This package reads the first document of each profile's file; package recipe reads the second one. Package lab lists
// the Go code of each folder (env/lab/profiles_linux.go).
package profile

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/vocab/each"
	"go.yaml.in/yaml/v3"
)

// Profile describes a CNI dataplane with its settings.
type Profile struct {
	// Name is the identifier and the name of the file, for example "calico-vxlan". Family is the name of the folder.
	Name   string `yaml:"-"`
	Family string `yaml:"-"`
	// Order is the place in reports: smaller numbers first.
	Order int `yaml:"order"`
	// Title is the name for people. Summary describes in one line what moves the packets.
	Title   string `yaml:"title"`
	Summary string `yaml:"summary"`
	// Encapsulation is "none", "vxlan", "ipip", "wireguard" or "ipsec". Overhead is the bytes that it adds to a packet
	// on IPv4.
	Encapsulation string `yaml:"encapsulation"`
	Overhead      int    `yaml:"overhead"`
	// NoIPv6 is why the lab does not support the profile in IPv6, "" if it does.
	NoIPv6 string `yaml:"noIPv6"`
	// Services is the engine behind a ClusterIP: "kube-proxy", "ebpf", "none".
	Services string `yaml:"services"`
	// Policy is the engine that enforces a NetworkPolicy: "calico-iptables", "calico-nftables", "ebpf", "aws-agent" (which runs
	// only if there are policies), "kube-router", "nfqueue", "none".
	Policy string `yaml:"policy"`
	// Model describes which parts the lab only imitates, "" if it uses the same parts as the product.
	Model string `yaml:"model"`
	// Provided is why there is no recipe for this CNI, "" if there is one or the profile is not a CNI.
	Provided string `yaml:"provided"`
	// Needs are the kernel features and programs that the lab requires, by their names in package kernel/probe.
	Needs []string `yaml:"needs"`
	// Fidelity compares the CPU time of the profile in the lab with that on a real cluster; nil if this was never measured.
	Fidelity *Fidelity `yaml:"-"`

	use   `yaml:",inline"`
	Signs `yaml:",inline"`
}

// use says where a profile is used by default.
type use struct {
	// DefaultOn are the platforms whose clusters have the profile unless the user chooses another CNI, for example "EKS".
	DefaultOn []string `yaml:"defaultOn"`
	// OnlyNamed means that a run measures the profile only if it is named.
	OnlyNamed bool `yaml:"onlyNamed"`
}

// Signs are the properties by which detection recognises a profile.
type Signs struct {
	// CNI is the name of the CNI that this profile describes whatever the CNI's settings are; "" if the settings decide.
	CNI string `yaml:"cni"`
	// PodDevice is the kind of a pod's device, "" if pods have no network of their own.
	PodDevice string `yaml:"podDevice"`
	// OnNIC means that pods' devices are on the node's NIC, so that a node and its own pods cannot reach each other.
	OnNIC bool `yaml:"onNIC"`
	// Tunnel is the device of a node that encapsulates, nil if there is none.
	Tunnel *Tunnel `yaml:"tunnel"`
	// Absent are devices that a node of this profile does not have.
	Absent []string `yaml:"absent"`
	// Encrypted are the kinds of encryption between nodes that the CNI can be configured for.
	Encrypted []encrypted `yaml:"encrypted"`
}

// encrypted is an encrypting tunnel that replaces the profile's own tunnel.
type encrypted struct {
	Tunnel `yaml:",inline"`
	// Overhead is the bytes that the tunnel adds to a packet on IPv4.
	Overhead int `yaml:"overhead"`
}

// WithEncryption returns p with this kind of encryption in place of its encapsulation. It returns p unchanged if p does not
// support that kind.
func (p Profile) WithEncryption(kind string) Profile {
	for _, e := range p.Encrypted {
		if e.Kind == kind {
			p.Encapsulation, p.Overhead, p.Tunnel = e.Kind, e.Overhead, &e.Tunnel
			p.Needs = append(slices.Clone(p.Needs), e.Kind)
			p.NoIPv6 = "the lab encrypts " + p.Name + " in IPv4"
		}
	}
	return p
}

// Tunnel is the device of a node that encapsulates.
type Tunnel struct {
	// Devices are the possible names of the device, the usual one first.
	Devices []string `yaml:"devices"`
	// Kind is "vxlan", "ipip", "wireguard" or "ipsec", which has no device.
	Kind string `yaml:"kind"`
	// Device6 is the name in IPv6 if it differs.
	Device6 string `yaml:"device6"`
	// Port is the UDP destination port, VNI the network identifier; 0 if the tunnel does not have it.
	Port int `yaml:"port"`
	VNI  int `yaml:"vni"`
	// External means that the outer addresses come from the packet's metadata.
	External bool `yaml:"external"`
	// Addressed means that the device has an IP address.
	Addressed bool `yaml:"addressed"`
	// Spare is set if packets between nodes of one subnet do not use the tunnel, and otherwise 0. It is the overhead on
	// IPv4, in bytes, for which the MTU of pods leaves room all the same.
	Spare int `yaml:"spare"`
	// Inside is the part of the overhead, in bytes, that another encapsulation adds before the tunnel encrypts.
	Inside int `yaml:"inside"`
}

// Names of the profiles that code refers to.
const (
	Raw  = "raw"
	Host = "host"
)

// Files holds the YAML files of all families.
//
//go:embed */*.yaml
var Files embed.FS

// FamilyFile is the name of the file in a family's folder that does not describe a profile.
const FamilyFile = "family.yaml"

// catalogue returns the profiles of the embedded files, which it reads once.
var catalogue = sync.OnceValue(func() []Profile {
	list, err := readProfiles(Files)
	if err != nil {
		panic(err) // the files are part of the program, and a test reads them
	}
	return list
})

// readProfiles returns the profiles of all folders in report order.
func readProfiles(files fs.FS) ([]Profile, error) {
	names, err := fs.Glob(files, "*/*.yaml")
	if err != nil {
		return nil, err
	}
	compared, err := ReadComparisons(strings.NewReader(comparisons))
	if err != nil {
		return nil, fmt.Errorf("fidelity.tsv: %w", err)
	}
	var list []Profile
	for _, file := range names {
		if path.Base(file) == FamilyFile {
			continue
		}
		p := Profile{Name: strings.TrimSuffix(path.Base(file), ".yaml"), Family: path.Dir(file)}
		p.Fidelity = fidelityOf(compared, p.Name)
		f, err := files.Open(file)
		if err != nil {
			return nil, err
		}
		d := yaml.NewDecoder(f)
		d.KnownFields(true)
		err = d.Decode(&p)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Profile) int { return cmp.Compare(a.Order, b.Order) })
	return list, nil
}

// PodMTU returns the MTU of the pod's device or route over an IPv4 underlay with an MTU of 1500 bytes.
func (p Profile) PodMTU() int { return 1500 - p.ReservedOn(4) }

// longerIPv6 is the difference between the headers of IPv6 and IPv4, in bytes.
const longerIPv6 = 20

// OverheadOn returns the overhead in bytes per packet over an underlay of the given version of IP, 4 or 6. The overhead of
// WireGuard is the same for both, because flannel always reserves room for IPv6.
func (p Profile) OverheadOn(family int) int {
	return familyOverhead(p.Overhead, family, p.Encapsulation)
}

// ReservedOn returns by how many bytes the MTU of pods is smaller than the MTU of the underlay: the overhead or, if it
// is set, Tunnel.Spare.
func (p Profile) ReservedOn(family int) int {
	if p.Tunnel != nil && p.Tunnel.Spare > 0 {
		return familyOverhead(p.Tunnel.Spare, family, p.Tunnel.Kind)
	}
	return p.OverheadOn(family)
}

// familyOverhead returns the overhead in bytes of an encapsulation over an underlay of the given version of IP, 4 or 6.
// overhead is its overhead over IPv4.
func familyOverhead(overhead, family int, encapsulation string) int {
	if family == 6 && overhead > 0 && encapsulation != "wireguard" {
		return overhead + longerIPv6
	}
	return overhead
}

// All returns the catalogue in report order.
func All() []Profile { return slices.Clone(catalogue()) }

// FiltersBridge reports whether the pods of a node are on a bridge whose packets netfilter sees.
func (p Profile) FiltersBridge() bool { return slices.Contains(p.Needs, "br_netfilter") }

// MaxFlowtable is the largest threshold of kindnet's flowtable that has an effect. The rule of the flowtable compares
// packet counts byte by byte, the lowest byte first, and no byte exceeds 255.
const MaxFlowtable = 254

// ByFlowtable returns a text that explains kindnet's threshold for its flowtable, "" if it is "0".
func ByFlowtable(threshold string) string {
	if threshold == "0" {
		return ""
	}
	if n, err := strconv.Atoi(threshold); err != nil || n < 0 || n > MaxFlowtable {
		return fmt.Sprintf("connections pass by a flowtable after %s packets: in the lab after %d at most", threshold, MaxFlowtable)
	}
	return fmt.Sprintf("connections pass by a flowtable after %s packets: in the lab kindnet(flowtable=%[1]s)", threshold)
}

// Flowtables returns the largest value of the condition flowtable for p, 0 if the CNI does not use a flowtable. It is 1 for
// Calico, which has no threshold: its flowtable takes every established connection.
func (p Profile) Flowtables() int {
	switch {
	case p.Name == "kindnet":
		return MaxFlowtable
	case p.Policy == "calico-nftables":
		return 1
	}
	return 0
}

// Lookup returns the profile called name, false if the catalogue does not have it.
func Lookup(name string) (Profile, bool) {
	i := slices.IndexFunc(catalogue(), func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return catalogue()[i], true
}

// OfCNI returns the profile that describes a CNI whatever its settings are, false if the settings decide.
func OfCNI(cni string) (Profile, bool) {
	i := slices.IndexFunc(catalogue(), func(p Profile) bool { return p.CNI == cni })
	if i < 0 {
		return Profile{}, false
	}
	return catalogue()[i], true
}

// DefaultOf returns the platform of this name, ignoring case, and its default profile; ok is false for an unknown platform.
func DefaultOf(name string) (platform string, p Profile, ok bool) {
	for _, p := range catalogue() {
		for _, platform := range p.DefaultOn {
			if strings.EqualFold(platform, name) {
				return platform, p, true
			}
		}
	}
	return "", Profile{}, false
}

// Usual returns the names of the profiles that a run measures if it names none, in report order.
func Usual() []string {
	usual := slices.DeleteFunc(All(), func(p Profile) bool { return p.OnlyNamed })
	return each.Of(usual, func(p Profile) string { return p.Name })
}

// Names returns the names of all profiles in report order.
func Names() []string {
	return each.Of(catalogue(), func(p Profile) string { return p.Name })
}
