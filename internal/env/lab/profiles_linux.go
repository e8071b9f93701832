package lab

import (
	"slices"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/profile/aws"
	"github.com/cnibench/cnibench/internal/profile/azure"
	"github.com/cnibench/cnibench/internal/profile/bare"
	"github.com/cnibench/cnibench/internal/profile/calico"
	"github.com/cnibench/cnibench/internal/profile/canal"
	"github.com/cnibench/cnibench/internal/profile/cilium"
	"github.com/cnibench/cnibench/internal/profile/flannel"
	"github.com/cnibench/cnibench/internal/profile/kindnet"
	"github.com/cnibench/cnibench/internal/profile/kuberouter"
	"github.com/cnibench/cnibench/internal/profile/plugins"
	"github.com/cnibench/cnibench/internal/profile/sriov"
)

// profiles lists the dataplanes of all profiles: one line for each folder of package profile.
var profiles = slices.Concat(
	bare.Profiles,
	plugins.Profiles,
	flannel.Profiles,
	canal.Profiles,
	calico.Profiles,
	cilium.Profiles,
	sriov.Profiles,
	aws.Profiles,
	azure.Profiles,
	kindnet.Profiles,
	kuberouter.Profiles,
)

// Expect returns what an observer of the instance must find under the default conditions.
func (s instanceSpec) Expect() dataplane.Expectation {
	if s.file != nil {
		d, _ := fileProfile(*s.file) // it was described before
		return d.Expect
	}
	e, _ := dataplaneOf(s.Profile.Name) // NewSpec found it
	if e, ok := e.Encrypted[s.Lab.Encryption]; ok {
		return e.Expect
	}
	return e.Expect
}

// dataplaneOf returns the lab's entry for a profile of the catalogue, and false if there is none.
func dataplaneOf(name string) (dataplane.Entry, bool) {
	i := slices.IndexFunc(profiles, func(e dataplane.Entry) bool { return e.Profile == name })
	if i < 0 {
		return dataplane.Entry{}, false
	}
	return profiles[i], true
}
