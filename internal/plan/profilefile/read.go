package profilefile

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/profile"
	"github.com/cnibench/cnibench/internal/vocab/advice"
	"github.com/cnibench/cnibench/internal/vocab/each"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

var profileName = pattern.New(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// reader returns the text of a profile file on which another is based, in whose directory it is.
type reader func(name string) (string, error)

// layer is what one file says: a profile file, or one on which it is based.
type layer struct {
	said Profile
	checker
}

// parseProfile parses the text of a profile file, and of those on which it is based. It returns what they say together,
// and each by itself, the first file first. The decoders of the layers have the faults, which do not cover the files that
// the texts name. name is the file's name in faults. Its directory is the base of relative paths. above are the files
// that are based on this one.
func parseProfile(name, text string, read reader, above ...string) (Profile, []layer) {
	o := Profile{Dir: filepath.Dir(name)}
	f, root := position.NewDecoder(name, text, "apiVersion, kind and what the dataplane is")
	if root == nil {
		return o, []layer{{o, checker{d: f, root: 1}}}
	}
	keys := f.Keys(&o)
	keys["apiVersion"], keys["kind"] = f.Constant(plan.APIVersion), f.Constant(kindProfile)
	f.Mapping("", root, keys)
	for _, must := range []string{"apiVersion", "kind"} {
		if f.Line(must) == 0 && !f.Spoiled(must) {
			f.Fault(root.Line, must, "is missing")
		}
	}
	c := checker{d: f, root: root.Line}
	c.checkTags("", reflect.ValueOf(o))
	c.checkPlace("node", o.Node.Place)
	c.checkPlace("pod", o.Pod.Place)
	layers := []layer{{o, c}}
	var base Profile
	if plan.VariantOf(o.BasedOn).File() != "" {
		var below []layer
		base, below = c.parseBase(o, read, append(above, filepath.Base(name)))
		layers = append(layers, below...)
		if below == nil || len(faultsOf(below)) > 0 {
			return o, layers
		}
		if o.CNI != nil {
			for i := range below {
				layers[i+1].said.CNI = nil // nothing of it is needed
			}
		}
	}
	c.checkDaemons(o, base.Node.Daemons)
	whole := o.onTopOf(base)
	c.checkCombination(whole)
	c.checkExpect(whole.Expect)
	if o.Expect.Plain && base.Expect.Tunnel == nil {
		c.addFault("expect.plain", "based-on is not a profile file with a tunnel: remove it")
	}
	return whole, layers
}

// parseBase parses the profile file that o is based on. Without layers, it cannot be read and c has the fault.
func (c checker) parseBase(o Profile, read reader, above []string) (Profile, []layer) {
	name := filepath.Clean(o.BasedOn)
	if filepath.Dir(name) != "." {
		c.addFault("based-on", "%s is in another directory, to which its paths are relative: put it beside this file", o.BasedOn)
		return o, nil
	}
	if slices.Contains(above, name) {
		c.addFault("based-on", "makes a circle: %s", strings.Join(append(above, name), ", "))
		return o, nil
	}
	text, err := read(name)
	if err != nil {
		c.addFault("based-on", "%s cannot be read: %s", name, messageWithoutPath(err))
		return o, nil
	}
	return parseProfile(filepath.Join(o.Dir, name), text, read, above...)
}

// faultsOf returns the faults of all layers.
func faultsOf(layers []layer) position.Faults {
	var all position.Faults
	for _, l := range layers {
		all = append(all, l.d.Faults()...)
	}
	return all
}

// onTopOf returns base with the changes of o. It returns o unchanged if base is empty, as o is not based on a file.
func (o Profile) onTopOf(base Profile) Profile {
	if base.Name == "" {
		return o
	}
	if o.Expect.Plain {
		base.Expect.Tunnel = nil
	}
	base.Expect.Plain = false
	extend(reflect.ValueOf(&o).Elem(), reflect.ValueOf(base))
	o.BasedOn = base.BasedOn
	return o
}

// extend sets the keys of v to those of base that v adds to, and to those that v does not have.
func extend(v, base reflect.Value) {
	for _, f := range keyFields(v.Type()) {
		at, from := v.FieldByIndex(f.Index), base.FieldByIndex(f.Index)
		switch adds := f.Tag.Get("adds") != ""; {
		case at.Kind() == reflect.Struct:
			extend(at, from)
		case at.IsZero():
			at.Set(from)
		case adds && at.Kind() == reflect.Slice:
			at.Set(reflect.AppendSlice(from, at))
		case adds && at.Kind() == reflect.Map:
			for _, key := range from.MapKeys() {
				if !at.MapIndex(key).IsValid() {
					at.SetMapIndex(key, from.MapIndex(key))
				}
			}
		case adds:
			at.SetString(from.String() + "\n" + at.String())
		}
	}
}

// checker adds faults for wrong values of a profile file to its decoder.
type checker struct {
	d    *position.Decoder
	root int
}

// addFault adds a fault of a field at its line, or at the line of the nearest field that contains it. If the field has
// a fault already, it does nothing.
func (c checker) addFault(field, format string, args ...any) {
	if c.d.Spoiled(field) {
		return
	}
	line := c.root
	for at := field; at != ""; {
		if n := c.d.Line(at); n > 0 {
			line = n
			break
		}
		i := strings.LastIndexByte(at, '.')
		if i < 0 {
			break
		}
		at = at[:i]
	}
	c.d.Fault(line, field, format, args...)
}

// checkTags adds faults for the fields of v, and of everything within it, that contradict their struct tags. need is
// for required keys, and words lists the allowed words of a text.
func (c checker) checkTags(field string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.checkTags(field, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.checkTags(fmt.Sprintf("%s.%d", field, i), v.Index(i))
		}
	case reflect.Struct:
		for _, f := range keyFields(v.Type()) {
			at, path := v.FieldByIndex(f.Index), strings.TrimPrefix(field+"."+f.Tag.Get("yaml"), ".")
			if f.Tag.Get("need") != "" && at.IsZero() {
				c.addFault(path, "is missing")
			}
			if words := f.Tag.Get("words"); words != "" && !at.IsZero() && !slices.Contains(strings.Split(words, ","), at.String()) {
				c.addFault(path, "unknown word %q: want %s", at.String(), strings.ReplaceAll(words, ",", ", "))
			}
			c.checkTags(path, at)
		}
	}
}

// checkCombination checks the name of the profile, the families, the MTU, and fields that depend on each other.
func (c checker) checkCombination(o Profile) {
	if _, builtIn := profile.Lookup(o.Name); builtIn || slices.Contains([]string{plan.Detected, profile.Host}, o.Name) {
		c.addFault("name", "%q is a built-in profile: choose another name, and base it on that by based-on: %s", o.Name, o.Name)
	} else if o.Name != "" && !profileName.MatchString(o.Name) {
		c.addFault("name", "%q is not a name: want small letters, digits, - and .", o.Name)
	}
	if o.BasedOn != "" {
		c.checkBasedOn(o)
	}
	for _, f := range o.Families {
		if f != 4 && f != 6 {
			c.addFault("families", "%d is not a version of IP: want 4 or 6", f)
		}
	}
	if o.BasedOn == "" && o.CNI == nil {
		c.addFault("", "says nothing about how pods are connected: give based-on or cni")
	}
	if m := o.Pod.MTU; m != 0 && (m < 576 || m > 9000) {
		c.addFault("pod.mtu", "%d is out of range: want 576 to 9000", m)
	}
	if o.Pod.MTU != 0 && o.CNI != nil && !strings.Contains(o.CNI.Conflist, "${mtu}") && strings.HasPrefix(strings.TrimSpace(o.CNI.Conflist), "{") {
		c.addFault("pod.mtu", "has no effect: the conflist decides the MTU; use the variable ${mtu} there")
	}
	if o.CNI != nil && o.CNI.Addresses == "underlay" && o.CNI.Routes != nil && *o.CNI.Routes {
		c.addFault("cni.routes", "makes no sense with addresses: underlay, where pods of other nodes are neighbours")
	}
}

func (c checker) checkBasedOn(o Profile) {
	switch base, ok := profile.Lookup(o.BasedOn); {
	case !ok:
		c.addFault("based-on", "unknown profile %q%s", o.BasedOn, advice.DidYouMean(o.BasedOn, profile.Names()))
	case base.PodDevice == "" && (o.CNI != nil || o.Pod.MTU != 0):
		c.addFault("based-on", "%s has no pods with a network of their own: remove cni and pod", o.BasedOn)
	case o.CNI != nil && base.Services == "ebpf":
		c.addFault("based-on", "%s connects pods by its own BPF programs, which expect its devices: remove cni, or choose another base", o.BasedOn)
	case o.CNI != nil && o.CNI.Addresses != "":
		c.addFault("cni.addresses", "is decided by based-on: remove it")
	case o.CNI != nil && o.CNI.Routes != nil:
		c.addFault("cni.routes", "is decided by based-on: remove it")
	}
}

func (c checker) checkPlace(field string, p Place) {
	for _, name := range slices.Sorted(maps.Keys(p.Sysctls)) {
		if path := SysctlPath(name); !strings.HasPrefix(path, "net/") || strings.Contains(path, "..") {
			c.addFault(field+".sysctls", "%s is not a parameter of a network namespace: want net.…", name)
		}
	}
	for _, dev := range slices.Sorted(maps.Keys(p.Offloads)) {
		if _, err := ParseFeatures(p.Offloads[dev]); err != nil {
			c.addFault(field+".offloads."+dev, "%s", err)
		}
	}
	for i, r := range p.Routes {
		at := fmt.Sprintf("%s.routes.%d", field, i)
		if _, err := netip.ParsePrefix(r.To); err != nil && r.To != "" && !strings.Contains(r.To, "${") {
			c.addFault(at+".to", "%q is not a range such as 10.0.0.0/16", r.To)
		}
		if _, err := netip.ParseAddr(r.Via); err != nil && r.Via != "" && !strings.Contains(r.Via, "${") {
			c.addFault(at+".via", "%q is not an address", r.Via)
		}
		c.checkVariables(at+".to", r.To)
		c.checkVariables(at+".via", r.Via)
	}
	for key, text := range map[string]string{"rules": p.Rules, "nft": p.NFT, "tc": p.TC} {
		c.checkVariables(field+"."+key, text)
	}
}

// SysctlPath returns the path of a kernel parameter below /proc/sys. A name with slashes is a path already.
func SysctlPath(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return strings.ReplaceAll(name, ".", "/")
}

var reference = pattern.New(`\$\{([^}]*)\}`)

// checkVariables adds a fault for each unknown variable of a text, and for each variable that exists only in commands
// of node.join. It is not for commands, because they have variables of the shell.
func (c checker) checkVariables(field, text string) {
	for _, m := range reference.FindAllStringSubmatch(text, -1) {
		i := slices.IndexFunc(Variables, func(v variable) bool { return v.Name == m[1] })
		switch {
		case i < 0:
			names := each.Of(Variables, func(v variable) string { return v.Name })
			c.addFault(field, "unknown variable ${%s}%s", m[1], advice.DidYouMean(m[1], names))
		case Variables[i].Peer:
			c.addFault(field, "variable ${%s} exists in node.join only", m[1])
		}
	}
}

// checkDaemons checks the daemons of a file. base are those of the file on which it is based.
func (c checker) checkDaemons(o Profile, base []Daemon) {
	names := map[string]bool{}
	for _, d := range base {
		names[d.Name] = true
	}
	for i, d := range o.Node.Daemons {
		field := fmt.Sprintf("node.daemons.%d", i)
		if names[d.Name] {
			c.addFault(field+".name", "%s is given twice", d.Name)
		}
		names[d.Name] = true
		if d.On != "" && !strings.HasPrefix(d.On, "node-") {
			c.addFault(field+".on", "%q is not a node of a lab: want node-1, node-2 and so on", d.On)
		}
		if a := d.Ready.Address; a != "" {
			if _, err := netip.ParseAddrPort(Expand(a, map[string]string{"node-ip": "127.0.0.1"})); err != nil {
				c.addFault(field+".ready.address", "%q is not an address such as 127.0.0.1:2379", a)
			}
		}
	}
}

func (c checker) checkExpect(x Expect) {
	for key, paths := range map[string]map[string]string{"paths": x.Paths, "datagrams": x.Datagrams} {
		for _, name := range slices.Sorted(maps.Keys(paths)) {
			field := "expect." + key + "." + name
			if _, err := plan.ParsePath(name); err != nil {
				c.addFault(field, "%s", err)
			}
			if !slices.Contains(clients, paths[name]) {
				c.addFault(field, "unknown client %q: want %s", paths[name], strings.Join(clients, ", "))
			}
			if _, both := x.Paths[name]; both && slices.Contains(x.Refused, name) && key == "paths" {
				c.addFault(field, "is among refused, too")
			}
		}
	}
	for _, name := range x.Refused {
		if _, err := plan.ParsePath(name); err != nil {
			c.addFault("expect.refused", "%s", err)
		}
	}
}

// pluginNames returns the names of the plugins that a network configuration list runs: those in the list, and their
// ipam plugins. It fails for an invalid list.
func pluginNames(text string) ([]string, error) {
	var list struct {
		Name    string `json:"name"`
		Plugins []struct {
			Type string `json:"type"`
			IPAM struct {
				Type string `json:"type"`
			} `json:"ipam"`
		} `json:"plugins"`
	}
	if err := json.Unmarshal([]byte(reference.ReplaceAllString(text, "0")), &list); err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	if list.Name == "" {
		return nil, fmt.Errorf("has no name")
	}
	if len(list.Plugins) == 0 {
		return nil, fmt.Errorf("has no plugins: want a list (.conflist) and not the configuration of one plugin")
	}
	var types []string
	for _, p := range list.Plugins {
		if p.Type == "" {
			return nil, fmt.Errorf("has a plugin without type")
		}
		types = append(types, p.Type, p.IPAM.Type)
	}
	return slices.DeleteFunc(each.Once(types), func(name string) bool { return name == "" }), nil
}
