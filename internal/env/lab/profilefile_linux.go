package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/env/lab/own"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/profilefile"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/profile/plugins"
)

// described is what the lab knows of a profile: its record in package profile and its dataplane.
type described struct {
	record profile.Profile
	dataplane.Entry
	// file is the profile file, nil for a profile of the catalogue.
	file *profilefile.Profile
}

// lookUpProfile returns what the lab knows of a profile: from one of the given files, or from the catalogue. It fails for an
// unknown name or an invalid file.
func lookUpProfile(name string, files []plan.OwnSource) (described, error) {
	if i := slices.IndexFunc(files, func(s plan.OwnSource) bool { return s.Name == name }); i >= 0 {
		file, err := profilefile.Of(files[i])
		if err != nil {
			return described{}, err
		}
		return fileProfile(file)
	}
	record, ok := profile.Lookup(name)
	if !ok {
		return described{}, fmt.Errorf("unknown profile %q (names: cnibench list profiles)", name)
	}
	entry, ok := dataplaneOf(name)
	if !ok {
		return described{}, fmt.Errorf("profile %q has no dataplane in the lab", name)
	}
	return described{record: record, Entry: entry}, nil
}

// fileProfile returns what a profile file defines. This is its base with the file's changes. Without a base, it is a
// plain node whose pods are connected by CNI plugins. It fails if the base is unknown.
func fileProfile(file profilefile.Profile) (described, error) {
	d := described{
		record: profile.Profile{Encapsulation: "none", Services: "kube-proxy", Policy: "none", Signs: profile.Signs{PodDevice: "veth"}, Needs: []string{"veth", "bridge", "iptables", "nat"}},
		Entry:  dataplane.Entry{Dataplane: plain{}, Expect: dataplane.Expectation{Unsaid: true, Served: dataplane.Clients{dataplane.PodPodSame: dataplane.AnyAddress, dataplane.PodPodCross: dataplane.AnyAddress}}},
		file:   &file,
	}
	if file.BasedOn != "" {
		base, err := lookUpProfile(file.BasedOn, nil)
		if err != nil {
			return base, err
		}
		d.record, d.Entry = base.record, base.Entry
	} else if file.CNI != nil {
		d.Dataplane = plain{onUnderlay: file.CNI.Addresses == "underlay", unrouted: file.CNI.Routes != nil && !*file.CNI.Routes}
		d.record.OnNIC = file.CNI.Addresses == "underlay"
	}
	d.record.Name, d.Profile = file.Name, file.Name
	if file.Title != "" || file.BasedOn == "" {
		d.record.Title, d.record.Summary = file.Title, file.Summary
	}
	for _, family := range []int{4, IPv6} {
		if !file.Supports(family) && family == IPv6 {
			d.record.NoIPv6 = "its file says so (families)"
		}
	}
	if len(file.Node.Services) > 0 {
		d.record.Services = FileServices
	}
	setFileExpectation(&d, file.Expect)
	return d, nil
}

// clients maps the words of a profile file to the client address that a backend sees.
var clients = map[string]dataplane.Client{
	"any": dataplane.AnyAddress, "own": dataplane.OwnAddress, "node": dataplane.NodeAddress, "tunnel": dataplane.TunnelEnd, "first-of-range": dataplane.FirstOfRange,
}

// setFileExpectation replaces those parts of d's expectation that a file sets. It always replaces AffinityAfter. A tunnel
// in the file also changes d.record. The file must be valid.
func setFileExpectation(d *described, x profilefile.Expect) {
	e := &d.Expect
	read := func(words map[string]string) dataplane.Clients {
		all := dataplane.Clients{}
		for name, word := range words {
			if p, err := plan.ParsePath(name); err == nil {
				all[p] = clients[word]
			}
		}
		return all
	}
	if x.Paths != nil {
		e.Served = read(x.Paths)
	}
	e.AffinityAfter = time.Duration(x.AffinityAfter)
	if x.Datagrams != nil {
		e.Datagrams = read(x.Datagrams)
	}
	if x.Refused != nil {
		e.Refused = nil
		for _, name := range x.Refused {
			if p, err := plan.ParsePath(name); err == nil {
				e.Refused = append(e.Refused, p)
			}
		}
	}
	if a := x.Attach; a != nil {
		gateways := map[string]dataplane.Gateway{"first-address": dataplane.FirstAddress, "link-local": dataplane.LinkLocal}
		e.Unsaid = false
		e.Attach = &dataplane.Attachment{Bridge: a.Bridge, Gateway: gateways[a.Gateway], SameTTL: a.SameTTL, CrossTTL: a.CrossTTL, ProxyARP: a.ProxyARP, OwnMAC: a.OwnMAC}
		for _, ttl := range []*int{&e.Attach.SameTTL, &e.Attach.CrossTTL} {
			if *ttl == 0 {
				*ttl = 64
			}
		}
	}
	if x.Tracked != nil {
		e.Tracked = *x.Tracked
	}
	if x.Untouched != nil {
		e.Untouched = *x.Untouched
	}
	if r := x.Route; r != nil {
		e.Remote = &dataplane.Route{Device: r.Dev, OnLink: r.OnLink, Protocol: r.Protocol}
	}
	if t := x.Tunnel; t != nil {
		d.record.Encapsulation, d.record.Overhead = t.Kind, t.Overhead
		d.record.Tunnel = &profile.Tunnel{Devices: []string{t.Dev}, Kind: t.Kind, Port: t.Port, VNI: t.VNI}
		if t.Tracked != nil {
			e.TunnelTracked = *t.Tracked
		}
	}
}

// plain is the dataplane of nodes whose pods are connected only by plugins. Each node has a range of addresses for its
// pods, and routes to the ranges of the other nodes.
type plain struct {
	dataplane.Nothing
	// onUnderlay means that pods have addresses of the underlay instead. unrouted means that the routes are missing.
	onUnderlay, unrouted bool
}

func (p plain) Arrange(n *dataplane.Node, number, pods int) {
	if p.onUnderlay {
		plugins.ArrangeOnUnderlay(n, number, pods)
		return
	}
	plugins.Bridge{}.Arrange(n, number, pods)
}

func (p plain) JoinNodes(from, to dataplane.Node) []link.Thing {
	if p.onUnderlay || p.unrouted {
		return nil
	}
	return plugins.Bridge{}.JoinNodes(from, to)
}

// requestedPodMTU returns the MTU of pods that the condition or the profile file asks for, 0 if neither does.
func (s instanceSpec) requestedPodMTU() int {
	switch {
	case s.Lab.PodMTU != 0 && (s.file != nil || s.Profile.PodDevice != ""):
		return s.Lab.PodMTU
	case s.file != nil:
		return s.file.Pod.MTU
	}
	return 0
}

// PodMTU returns the MTU of pods in bytes.
func (s instanceSpec) PodMTU() int {
	return cmp.Or(s.requestedPodMTU(), s.Lab.MTU-s.Profile.ReservedOn(s.Lab.Family))
}

// TunnelMTU returns the MTU of the tunnel in bytes. If the file has no base or defines the tunnel, this is the MTU
// of the pods. Otherwise it is the underlay's MTU without the overhead. A changed MTU of pods does not affect the
// base's tunnel.
func (s instanceSpec) TunnelMTU() int {
	if s.file != nil && (s.file.BasedOn == "" || s.file.Expect.Tunnel != nil) {
		return s.PodMTU()
	}
	return s.Lab.MTU - s.Profile.ReservedOn(s.Lab.Family)
}

// Plugged reports whether CNI plugins connect the pods.
func (s instanceSpec) Plugged() bool { return s.file != nil && s.file.CNI != nil }

// fileRefusal returns why the profile file rules out a path. It returns "" if the file does not.
func (s instanceSpec) fileRefusal(p plan.Path) string {
	if s.file != nil && slices.Contains(s.file.Expect.Refused, p.String()) {
		return "the profile file lists it under expect.refused"
	}
	return ""
}

// spareAddresses is how many addresses the plugins of a node may assign in addition to those of its pods.
const spareAddresses = 8

// nodeVariables returns the values of the variables of a profile file for node k.
func (s instanceSpec) nodeVariables(k int) map[string]string {
	n := s.Nodes[k]
	values := map[string]string{
		"node": n.Name, "node-ip": n.Addr.Addr().String(), "node-subnet": n.Addr.Masked().String(), "pod-cidr": n.Cluster.String(),
		"gateway": s.net.switchAddr.String(), "device": dataplane.NIC, "mtu": strconv.Itoa(s.PodMTU()), "default": s.net.everywhere.String(),
		"nodes": strconv.Itoa(len(s.Nodes)), "node-cidr": "", "range-first": "", "range-last": "",
	}
	if n.PodCIDR.IsValid() {
		values["node-cidr"], values["gateway"] = n.PodCIDR.String(), n.Gateway().String()
	}
	if len(n.Pods) > 0 && !n.Pods[0].HostNetwork {
		first, last := n.Pods[0].Addr.Addr(), n.Pods[len(n.Pods)-1].Addr.Addr()
		for range spareAddresses {
			last = last.Next()
		}
		values["range-first"], values["range-last"] = first.String(), last.String()
	}
	return values
}

// peerVariables returns the values of the variables that describe node k to another node.
func (s instanceSpec) peerVariables(k int) map[string]string {
	n := s.Nodes[k]
	values := map[string]string{"peer": n.Name, "peer-ip": n.Addr.Addr().String(), "peer-mac": n.MAC.String(), "peer-cidr": ""}
	if n.PodCIDR.IsValid() {
		values["peer-cidr"] = n.PodCIDR.String()
	}
	return values
}

// startOwnPrograms prepares node k for a profile file. It runs the commands of node.prepare, starts the daemons, and waits
// until they are ready. It does nothing without a file, or if the file has neither plugins, commands nor daemons.
func (b *builder) startOwnPrograms(ctx context.Context, k int) error {
	file := b.spec.file
	if file == nil || file.CNI == nil && len(file.Node.Prepare)+len(file.Node.Join)+len(file.Node.Services)+len(file.Node.Daemons) == 0 {
		return nil
	}
	if err := b.openOwnNode(k); err != nil {
		return err
	}
	return b.inst.Nodes[k].own.Prepare(ctx)
}

// openOwnNode opens node k for the programs of a profile file. It starts none.
func (b *builder) openOwnNode(k int) (err error) {
	n, file := b.inst.Nodes[k], b.spec.file
	o := own.Options{Profile: *file, Name: n.Name, NS: n.NS, Values: b.spec.nodeVariables(k), CPUs: n.CPUs, IPv6: b.spec.Lab.Family == IPv6}
	if n.group != nil {
		o.Cgroup = n.group.FD()
	}
	n.own, err = own.Open(o)
	return err
}

// nodeDevices returns the devices and addresses that the dataplane adds to a node before its pods. If plugins connect
// the pods, it omits bridges and their addresses, which the plugins make.
func (b *builder) nodeDevices(n dataplane.Node) []link.Thing {
	things := b.spec.dataplane.Prepare(n)
	if !b.spec.Plugged() {
		return things
	}
	bridges := map[string]bool{}
	for _, t := range things {
		if bridge, ok := t.(link.Bridge); ok {
			bridges[bridge.Name] = true
		}
	}
	return slices.DeleteFunc(things, func(t link.Thing) bool {
		switch t := t.(type) {
		case link.Bridge:
			return true
		case link.Address:
			return bridges[t.Dev]
		}
		return false
	})
}

// attachByPlugins connects pod j of node k by the CNI plugins, and records its address and devices.
func (b *builder) attachByPlugins(ctx context.Context, k, j int) error {
	n, pod := b.inst.Nodes[k], b.inst.Nodes[k].Pods[j]
	plugged := own.Pod{Name: pod.Name, NS: pod.NS}
	at, err := n.own.Add(ctx, plugged)
	if err == nil {
		err = n.own.Check(ctx, plugged)
	}
	if err != nil {
		return err
	}
	p := &b.spec.Nodes[k].Pods[j]
	device, err := link.DeviceIn(pod.NS, own.Device)
	if err != nil {
		return fmt.Errorf("ADD of %s left no device: %w", pod.Name, err)
	}
	p.Addr, p.MAC, p.MTU = at.Addr, device.MAC, device.MTU
	if p.HostDevice = ""; device.Kind == "veth" || device.Kind == "netkit" {
		nodes, err := link.At(n.NS, (*link.Handle).Devices)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(nodes, func(d link.Device) bool { return d.Index == device.Peer }); i >= 0 {
			p.HostDevice = nodes[i].Name
		}
	}
	pod.Addr, pod.MAC, pod.HostDevice = at.Addr.Addr(), device.MAC.String(), p.HostDevice
	return nil
}

// joinOwnNodes runs the commands of node.join on every node for every other node. It records the addresses of tunnels
// that the file's daemons made. If the file serves Services, it then runs the commands of node.services.
func (b *builder) joinOwnNodes(ctx context.Context) error {
	for k, n := range b.inst.Nodes {
		for other := range b.inst.Nodes {
			if n.own == nil || other == k {
				continue
			}
			if err := n.own.Join(ctx, b.spec.peerVariables(other)); err != nil {
				return err
			}
		}
		if t := b.spec.Profile.Tunnel; n.own != nil && t != nil && !n.TunnelAddr.IsValid() {
			device, err := link.DeviceIn(n.NS, t.Devices[0])
			if err != nil {
				return fmt.Errorf("%s: tunnel of the profile file: %w", n.Name, err)
			}
			for _, a := range device.Addresses {
				if a.Addr().Is4() == n.Addr.Is4() && !a.Addr().IsLinkLocalUnicast() {
					n.TunnelAddr = a.Addr()
				}
			}
		}
	}
	if b.spec.Profile.Services != FileServices {
		return nil
	}
	for k, n := range b.inst.Nodes {
		if err := n.runServiceCommands(ctx, b.spec, k); err != nil {
			return err
		}
	}
	return nil
}

// runServiceCommands runs the commands of node.services of a profile file on node k, with the Services of spec.
func (n *Node) runServiceCommands(ctx context.Context, spec instanceSpec, k int) error {
	objects, err := service.Objects(spec.proxyServices(k))
	if err != nil {
		return err
	}
	return n.own.Serve(ctx, objects)
}

// applyChanges applies the changes of a profile file to nodes and pods.
func (b *builder) applyChanges(ctx context.Context) error {
	for k, n := range b.inst.Nodes {
		for _, place := range b.inst.changedPlaces(k) {
			closers, err := place.Change(ctx)
			n.attached = append(n.attached, closers...)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// changedPlaces returns the namespaces of node k that a profile file changes: the node's, then its pods'. It
// returns none without a file.
func (i *Instance) changedPlaces(k int) []own.Place {
	file, n := i.Spec.file, i.Nodes[k]
	if file == nil {
		return nil
	}
	changes := file.Node.Place
	changes.Rules = n.before + changes.Rules
	node := own.Place{Name: n.Name, NS: n.NS, Changes: changes, Values: i.Spec.nodeVariables(k), Profile: *file, Iptables: i.lab.tools.iptables}
	places := []own.Place{node}
	for _, p := range n.Pods {
		if p.HostDevice != "" {
			places[0].Pods = append(places[0].Pods, p.HostDevice)
		}
		if p.HostNetwork {
			continue
		}
		pod := node
		pod.Name, pod.NS, pod.Changes = p.Name, p.NS, file.Pod.Place
		places = append(places, pod)
	}
	return places
}

// restoreRules adds the iptables rules of a profile file to node k and its pods again, after kube-proxy's were
// replaced.
func (i *Instance) restoreRules(ctx context.Context, k int) error {
	for _, place := range i.changedPlaces(k) {
		if err := place.Rules(ctx); err != nil {
			return err
		}
	}
	return nil
}

// endOwnPrograms disconnects the pods of a profile file's plugins, ends its daemons, and closes what is attached to the
// nodes. The error has the first DEL that failed on each node.
func (i *Instance) endOwnPrograms() error {
	var errs []error
	for _, n := range i.Nodes {
		if err := n.own.Close(); err != nil {
			errs = append(errs, fmt.Errorf("profile %q: %w", i.Name, err))
		}
		n.own = nil
		for _, c := range n.attached {
			_ = c.Close() // the program goes with its device
		}
		n.attached = nil
	}
	return errors.Join(errs...)
}

// Dead returns an error with the last output of each daemon of a variant that has ended by itself. It returns nil
// if all daemons run.
func (l *Lab) Dead(name plan.Variant) error {
	inst := l.Instance(name)
	if inst == nil {
		return nil
	}
	var errs []error
	for _, n := range inst.Nodes {
		if n.own != nil {
			errs = append(errs, n.own.Dead())
		}
	}
	return errors.Join(errs...)
}

// CheckPods asks the plugins of a profile file whether every pod is still connected as ADD left it. The file must have
// plugins.
func (i *Instance) CheckPods(ctx context.Context) error {
	var errs []error
	for _, n := range i.Nodes {
		for _, p := range n.Pods {
			errs = append(errs, n.own.Check(ctx, own.Pod{Name: p.Name, NS: p.NS}))
		}
	}
	return errors.Join(errs...)
}

// Rehearse connects one more pod to the first node by the plugins, and disconnects it. It returns what is left: new
// devices, routes and routing rules of the node, and any in the pod. Devices in the pod are ignored if the file says
// leaves-devices.
func (i *Instance) Rehearse(ctx context.Context) (left []string, err error) {
	n := i.Nodes[0]
	ns, err := netns.New()
	if err != nil {
		return nil, err
	}
	defer ns.Close() // it holds nothing that matters
	before, err := listState(n.NS)
	if err != nil {
		return nil, err
	}
	p := own.Pod{Name: n.Name + "/spare", NS: ns}
	if err := n.own.Try(ctx, p); err != nil {
		return nil, err
	}
	if i.Spec.file.CNI.LeavesDevices {
		if err := removeDevices(ns); err != nil {
			return nil, err
		}
	}
	after, err := listState(n.NS)
	if err != nil {
		return nil, err
	}
	for _, name := range after {
		if !slices.Contains(before, name) {
			left = append(left, name+" of the node")
		}
	}
	inside, err := listState(ns)
	for _, name := range inside {
		left = append(left, name+" of the pod")
	}
	return left, err
}

// addedByProgram reports whether a program added the device. The kernel itself adds a loopback and, if its module is
// loaded, an ipip device to each namespace.
func addedByProgram(d link.Device) bool { return d.Name != link.Loopback && d.Kind != "ipip" }

// removeDevices removes all devices of a namespace that a program added.
func removeDevices(ns *netns.NS) error {
	return link.In(ns, func(at *link.Handle) error {
		devices, err := at.Devices()
		for _, d := range devices {
			if addedByProgram(d) {
				err = errors.Join(err, at.Remove(d.Name))
			}
		}
		return err
	})
}

// listState describes the devices of a namespace that a program added, its routes and its routing rules.
func listState(ns *netns.NS) ([]string, error) {
	return link.At(ns, func(at *link.Handle) ([]string, error) {
		devices, err := at.Devices()
		if err != nil {
			return nil, err
		}
		routes, err := at.Routes()
		var all []string
		for _, d := range devices {
			if addedByProgram(d) {
				all = append(all, "device "+d.Name)
			}
		}
		for _, r := range routes {
			all = append(all, "route to "+r.To.String())
		}
		rules, rulesErr := at.Policy()
		for _, r := range rules {
			all = append(all, "routing rule "+r.Words)
		}
		return all, errors.Join(err, rulesErr)
	})
}

// Ask runs a shell command at node k, with the files that the node's programs see. It fails if the command fails.
func (i *Instance) Ask(ctx context.Context, k int, command string) error {
	b := &builder{lab: i.lab, spec: i.Spec, inst: i}
	if i.Nodes[k].own == nil {
		if err := b.openOwnNode(k); err != nil {
			return err
		}
	}
	return i.Nodes[k].own.Shell(ctx, command)
}
