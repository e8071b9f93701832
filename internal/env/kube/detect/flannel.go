package detect

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/profile"
)

// Annotations that flanneld writes on its node when it runs.
const (
	flannelBackend = "flannel.alpha.coreos.com/backend-type"
	flannelData    = "flannel.alpha.coreos.com/backend-data"
)

// detectFlannel sets the profile and settings of flannel or canal from net-conf.json and from the backend in the nodes'
// annotations. K3s has only the annotations. For canal it judges only flannel's part, because Calico's part has only one
// mode.
func (d *detective) detectFlannel(of profile.CNI, daemon workloadSpec) {
	component, namespace, configured := of.Name, daemon.Namespace, ""
	if c, ok := d.configMap(namespace, of.ConfigMaps...); ok {
		if r, good := d.judgeObjects(c.configInput()); good {
			d.adoptReport(r)
			if s := d.findSetting(component, "Backend.Type"); s != nil {
				configured = strings.ToLower(s.Asked)
			}
		}
	} else if component == canal {
		d.addUnproven("canal's mode as configured: its ConfigMap in %s was not read", namespace)
	}
	if daemon.flagValue("iptables-forward-rules") == "false" {
		d.But = append(d.But, "flannel adds no FLANNEL-FWD (--iptables-forward-rules=false, as in RKE2's chart)")
	}
	backend := d.backendOnNodes()
	switch {
	case backend == "" && configured == "":
		d.Title = component + " with a backend that could not be read"
		d.addUnproven("flannel's backend: neither its ConfigMap nor its annotations on the nodes were read")
		return
	case backend != "":
		d.setInForce(component, "Backend.Type", configClaim{backend, "annotation " + flannelBackend + " of the nodes"})
		if backend != configured {
			d.adoptBackend(of, backend)
		}
	}
	if vni := d.vniOnNodes(); vni != 0 && (backend == "vxlan" || backend == "" && configured == "vxlan") {
		d.setInForce(component, "VNI", configClaim{fmt.Sprint(vni), "annotation " + flannelData + " of the nodes"})
	}
	if s := d.findSetting(component, "EnableNFTables"); s != nil && s.Asked == "true" {
		d.But = append(d.But, "flannel's own rules are nftables'")
	}
}

// adoptBackend sets the profile from backend, which the nodes' annotations show, in place of the configured backend.
func (d *detective) adoptBackend(of profile.CNI, backend string) {
	c := configMap{Name: of.ConfigMaps[0], Data: map[string]string{"net-conf.json": `{"Backend":{"Type":` + strconv.Quote(backend) + `}}`}}
	in := c.configInput()
	in.Name = "annotations of the nodes"
	if r, ok := d.judgeObjects(in); ok {
		d.setProfile(r)
	}
}

// flannelBackends returns the backends in flanneld's annotations, in lower case, by node.
func (s Snapshot) flannelBackends() map[string]string {
	by := map[string]string{}
	for _, n := range s.Nodes {
		if b := n.Annotations[flannelBackend]; b != "" {
			by[n.Name] = strings.ToLower(b)
		}
	}
	return by
}

// backendOnNodes returns flannel's backend in the nodes' annotations, or "" if there are none. If the nodes differ, it adds a
// doubt and returns "".
func (d *detective) backendOnNodes() string {
	groups, distinct := groupNodes(d.flannelBackends())
	switch len(distinct) {
	case 0:
		return ""
	case 1:
		return distinct[0]
	}
	d.addDoubt("flannel's backend differs between the nodes: %s", strings.Join(groups, "; "))
	return ""
}

// vniOnNodes returns the VNI in flanneld's annotation of the first node that has one, else 0.
func (d *detective) vniOnNodes() int {
	for _, n := range d.Nodes {
		var data struct{ VNI int }
		if json.Unmarshal([]byte(n.Annotations[flannelData]), &data) == nil && data.VNI != 0 {
			return data.VNI
		}
	}
	return 0
}
