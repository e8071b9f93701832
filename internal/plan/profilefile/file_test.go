package profilefile

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/position"
	"github.com/cnibench/cnibench/internal/vocab/each"
)

// withOwn returns a plan that names profile files, with files and their text beside them.
func withOwn(t *testing.T, files map[string]string, profiles ...string) (plan.Plan, func(string) ([]byte, error)) {
	t.Helper()
	p := plan.Default()
	p.Profiles = nil
	for _, text := range profiles {
		v, err := plan.ParseVariant(text)
		if err != nil {
			t.Fatal(err)
		}
		p.Profiles = append(p.Profiles, v)
	}
	return p, func(name string) ([]byte, error) {
		if text, ok := files[filepath.Clean(name)]; ok {
			return []byte(text), nil
		}
		return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
	}
}

const ownHead = "apiVersion: cnibench/v1\nkind: Profile\n"

const ownConflist = `{"cniVersion": "1.0.0", "name": "x", "plugins": [{"type": "bridge", "mtu": ${mtu}, "ipam": {"type": "host-local"}}]}`

// ownFiles are a profile file with its conflist and plugins.
func ownFiles() map[string]string {
	return map[string]string{
		"dir/mine.yaml":      ownHead + "name: mine\nbased-on: bridge\ncni:\n  bin: bin\n  conflist: my.conflist\n",
		"dir/my.conflist":    ownConflist,
		"dir/bin/bridge":     "program",
		"dir/bin/host-local": "program",
	}
}

func TestLoad(t *testing.T) {
	files := ownFiles()
	p, read := withOwn(t, files, "./dir/mine.yaml(mtu=9000)", "bridge", "dir/mine.yaml")
	_, faults := Load(p, read)
	if faults != nil {
		// The two spellings are one file by another name, which is a fault that names both.
		if !strings.Contains(faults.Error(), `"mine" is the name of`) {
			t.Fatal(faults)
		}
	}
	p, _ = withOwn(t, files, "./dir/mine.yaml(mtu=9000)", "bridge", "./dir/mine.yaml")
	p, faults = Load(p, read)
	if faults != nil {
		t.Fatal(faults)
	}
	if got := strings.Join(plan.Texts(p.Profiles), " "); got != "mine(mtu=9000) bridge mine" {
		t.Errorf("variants: %s", got)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	if len(p.Own) != 1 || len(p.Own[0].Parts) != 3 || p.Own[0].File != "./dir/mine.yaml" {
		t.Fatalf("sources: %+v", p.Own)
	}
	o, err := Of(p.Own[0])
	if err != nil || o.CNI.Conflist != ownConflist || o.Dir != "dir" {
		t.Errorf("profile: %+v, %v", o, err)
	}
	if err := Changed(p, read); err != nil {
		t.Error(err)
	}
	for file := range files {
		was := files[file]
		files[file] = was + " "
		if err := Changed(p, read); err == nil || !strings.Contains(err.Error(), filepath.Base(file)+" has changed since the run began") {
			t.Errorf("%s changed: %v", file, err)
		}
		delete(files, file)
		if err := Changed(p, read); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%s is gone: %v", file, err)
		}
		files[file] = was
	}
	// A plan whose profiles were replaced keeps no file.
	p.Profiles = plan.Variants("bridge")
	if p, _ = Load(p, read); p.Own != nil {
		t.Errorf("files that are not measured: %+v", p.Own)
	}
}

// TestOwnFaults: each mistake has its line, and all are found at once.
func TestOwnFaults(t *testing.T) {
	files := ownFiles()
	delete(files, "dir/bin/host-local")
	files["bad.yaml"] = ownHead + `name: bridge
based-on: brigde
familes: [4]
cni:
  conflist: '{"name": "x", "plugins": [{"type": "a", "mtu": ${mtuu}}]}'
  timeout: 10
pod:
  mtu: 100
node:
  sysctls: {kernel.pid_max: 1}
  offloads: {eth0: gro}
  routes: [{to: nowhere, dev: eth0}]
  daemons:
    - {name: d, run: sleep 1, signal: USR1, ready: {address: here}}
    - {name: d}
expect:
  paths: {pod-to-pod: own, pod-to-self: nobody}
`
	files["none.yaml"] = ownHead + "name: none\n"
	files["list.yaml"] = "- a\n"
	files["both.yaml"] = ownHead + "name: both\nbased-on: cilium-native\ncni: {bin: dir/bin, conflist: dir/my.conflist}\n"
	files["raw.yaml"] = ownHead + "name: other\nbased-on: raw\npod: {mtu: 1400}\n"
	files["garbage.yaml"] = ownHead + "name: garbage\ncni: {bin: dir/bin, conflist: '{\"name\": '}\n"
	for file, wants := range map[string][]string{
		"bad.yaml": {
			`bad.yaml:3: name: "bridge" is a built-in profile`, `bad.yaml:4: based-on: unknown profile "brigde"`, `did you mean "bridge"?`,
			`bad.yaml:5: unknown key "familes"`, `bad.yaml:7: cni.bin: is missing`, `bad.yaml:8: cni.timeout: "10" is not a duration`,
			`bad.yaml:10: pod.mtu: 100 is out of range`, "node.sysctls: kernel.pid_max is not a parameter", `node.offloads.eth0: "gro" is not FEATURE=on`,
			`"nowhere" is not a range`, `unknown word "USR1"`, `"here" is not an address`, "node.daemons.1.name: d is given twice", "node.daemons.1.run: is missing",
			`path "pod-to-pod" has several forms`, `unknown client "nobody"`,
		},
		"none.yaml":     {"none.yaml:1: says nothing about how pods are connected"},
		"list.yaml":     {"list.yaml:1: is not a mapping"},
		"gone.yaml":     {"gone.yaml: cannot be read: file does not exist"},
		"dir/mine.yaml": {"dir/mine.yaml:6: cni.bin: bin/host-local cannot be read"},
		"both.yaml":     {"both.yaml:4: based-on: cilium-native connects pods by its own BPF programs"},
		"raw.yaml":      {"raw has no pods"},
		"garbage.yaml":  {"cni.conflist: is not JSON"},
	} {
		p, read := withOwn(t, files, file)
		_, faults := Load(p, read)
		for _, want := range wants {
			if !strings.Contains(faults.Error(), want) {
				t.Errorf("%s: no fault %q in\n%s", file, want, faults.Error())
			}
		}
	}
	p, read := withOwn(t, files, "bad.yaml", "none.yaml")
	_, faults := Load(p, read)
	if len(faults) < 16 {
		t.Errorf("faults of both files: %v", faults)
	}
	var all position.Faults
	if !errors.As(faults.Err(), &all) {
		t.Error("not Faults")
	}
}

// TestFileOnFile: a file changes another file, whose text and parts are kept with it.
func TestFileOnFile(t *testing.T) {
	files := ownFiles()
	files["dir/base.yaml"] = strings.Replace(files["dir/mine.yaml"], "based-on: bridge\n", `title: base
families: [4]
node:
  timeout: 20s
  prepare: [one]
  join: [first]
  rules: "*raw"
  nft: table ip base
  sysctls: {net.a: 1, net.b: 1}
  daemons: [{name: d, run: ./daemon}]
pod: {mtu: 1400}
expect:
  paths: {pod-to-pod/same-node: own, pod-to-self: own}
  tracked: true
  tunnel: {dev: t0, kind: geneve, overhead: 50}
`, 1)
	files["dir/base.yaml"] = strings.Replace(files["dir/base.yaml"], "name: mine", "name: base", 1)
	files["dir/my.conflist"] = ownConflist
	files["dir/daemon"] = "program"
	files["dir/top.yaml"] = ownHead + `name: top
based-on: ./base.yaml
node:
  timeout: 30s
  join: [second]
  rules: "*nat"
  sysctls: {net.b: 2}
  daemons: [{name: e, run: ./other}]
expect:
  paths: {pod-to-self: any}
  plain: true
`
	files["dir/other"] = "program"
	// A third file has another tunnel in place of none.
	files["dir/roof.yaml"] = ownHead + "name: roof\nbased-on: top.yaml\ncni: {bin: ., conflist: '" + strings.ReplaceAll(ownConflist, "bridge", "daemon") + "'}\nexpect: {tunnel: {dev: t1, kind: vxlan, overhead: 50}}\n"
	files["dir/host-local"] = "program"
	p, read := withOwn(t, files, "./dir/base.yaml", "./dir/top.yaml", "./dir/roof.yaml")
	p, faults := Load(p, read)
	if faults != nil {
		t.Fatal(faults)
	}
	base, _ := Of(p.Own[0])
	top, err := Of(p.Own[1])
	if err != nil {
		t.Fatal(err)
	}
	if len(base.Node.Join) != 1 || base.Node.Sysctls["net.b"] != "1" || base.Expect.Tunnel == nil || base.Name != "base" {
		t.Errorf("the base was changed: %+v", base)
	}
	n := top.Node
	got := []any{top.Name, top.Title, top.BasedOn, top.Families[0], top.Pod.MTU, n.Timeout.Or(0), n.Prepare, n.Join, n.Rules, n.NFT, n.Sysctls, n.Daemons[0].Name, n.Daemons[1].Name, len(n.Daemons),
		top.Expect.Paths, *top.Expect.Tracked, top.Expect.Tunnel, top.Expect.Plain, top.CNI.Conflist == ownConflist}
	want := []any{"top", "base", "", 4, 1400, 30 * time.Second, []string{"one"}, []string{"first", "second"}, "*raw\n*nat", "table ip base", map[string]string{"net.a": "1", "net.b": "2"}, "d", "e", 2,
		map[string]string{"pod-to-self": "any"}, true, (*expectedTunnel)(nil), true, true}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("top:\n%+v\nwant\n%+v", got, want)
	}
	roof, err := Of(p.Own[2])
	if err != nil || roof.Expect.Tunnel == nil || roof.Expect.Tunnel.Dev != "t1" || roof.Expect.Plain || roof.CNI.Bin != "." || len(roof.Node.Join) != 2 {
		t.Errorf("roof: %+v, %v", roof, err)
	}
	parts := func(s plan.OwnSource) string {
		return strings.Join(each.Of(s.Parts, func(p plan.OwnPart) string { return p.File }), " ")
	}
	if got := parts(p.Own[1]); got != "./daemon ./other base.yaml bin/bridge bin/host-local my.conflist" {
		t.Errorf("parts of top: %s", got)
	}
	if got := parts(p.Own[2]); got != "./daemon ./other base.yaml daemon host-local top.yaml" {
		t.Errorf("parts of roof: %s", got)
	}
	p.Own = p.Own[2:]
	for _, file := range []string{"dir/base.yaml", "dir/top.yaml"} {
		was := files[file]
		files[file] = was + "# changed\n"
		if err := Changed(p, read); err == nil || !strings.Contains(err.Error(), file+" has changed since the run began") {
			t.Errorf("%s changed: %v", file, err)
		}
		files[file] = was
	}
	if err := Changed(p, read); err != nil {
		t.Error(err)
	}
	p.Own[0].Parts = p.Own[0].Parts[3:] // without base.yaml
	if _, err := Of(p.Own[0]); err == nil || !strings.Contains(err.Error(), "dir/top.yaml:4: based-on: base.yaml cannot be read") {
		t.Errorf("a result without the base: %v", err)
	}
}

// TestFileOnFileFaults: each fault has the file and line that it is in, once.
func TestFileOnFileFaults(t *testing.T) {
	files := ownFiles()
	on := func(name, base, more string) string {
		return ownHead + "name: " + name + "\nbased-on: " + base + "\n" + more
	}
	files["dir/self.yaml"] = on("self", "self.yaml", "")
	files["dir/a.yaml"], files["dir/b.yaml"], files["dir/c.yaml"] = on("a", "b.yaml", ""), on("b", "c.yaml", ""), on("c", "./b.yaml", "")
	files["dir/gone.yaml"] = on("gone", "nothing.yaml", "")
	files["far.yaml"] = on("far", "dir/mine.yaml", "")
	files["dir/bad.yaml"] = on("bad", "bridge", "pod:\n  mtu: 1\nnode:\n  daemons: [{name: d, run: ./none}]\n")
	files["dir/onbad.yaml"], files["dir/onbad2.yaml"] = on("onbad", "bad.yaml", "familes: [4]\n"), on("onbad2", "bad.yaml", "")
	files["dir/lost.yaml"] = strings.Replace(files["dir/mine.yaml"], "bin: bin", "bin: lost", 1)
	files["dir/onlost.yaml"] = on("onlost", "lost.yaml", "")
	files["dir/found.yaml"] = on("found", "lost.yaml", "cni: {bin: bin, conflist: my.conflist}\n")
	files["dir/daemon.yaml"] = on("daemon", "mine.yaml", "node:\n  daemons:\n    - {name: d, run: sleep 1}\n")
	files["dir/top.yaml"] = on("top", "daemon.yaml", "node:\n  daemons:\n    - {name: e, run: sleep 1}\n    - {name: d, run: sleep 1}\nexpect:\n  plain: true\n")
	files["dir/address.yaml"] = on("address", "mine.yaml", "cni: {bin: bin, conflist: my.conflist, addresses: underlay}\n")
	for file, want := range map[string]string{
		"dir/self.yaml":    "dir/self.yaml:4: based-on: makes a circle: self.yaml, self.yaml",
		"dir/a.yaml":       "dir/c.yaml:4: based-on: makes a circle: a.yaml, b.yaml, c.yaml, b.yaml",
		"dir/gone.yaml":    "dir/gone.yaml:4: based-on: nothing.yaml cannot be read: file does not exist",
		"far.yaml":         "far.yaml:4: based-on: dir/mine.yaml is in another directory, to which its paths are relative: put it beside this file",
		"dir/onbad2.yaml":  "dir/bad.yaml:6: pod.mtu: 1 is out of range: want 576 to 9000\ndir/bad.yaml:8: node.daemons.0.run: ./none cannot be read: file does not exist",
		"dir/onlost.yaml":  "dir/lost.yaml:6: cni.bin: lost/bridge cannot be read: file does not exist",
		"dir/found.yaml":   "",
		"dir/daemon.yaml":  "",
		"dir/top.yaml":     "dir/top.yaml:8: node.daemons.1.name: d is given twice\ndir/top.yaml:10: expect.plain: based-on is not a profile file with a tunnel: remove it",
		"dir/address.yaml": "dir/address.yaml:5: cni.addresses: is decided by based-on: remove it",
	} {
		p, read := withOwn(t, files, file)
		if _, faults := Load(p, read); faults.Error() != want {
			t.Errorf("%s:\n%s\nwant\n%s", file, faults, want)
		}
	}
	p, read := withOwn(t, files, "dir/onbad.yaml", "dir/onbad2.yaml", "dir/bad.yaml")
	if _, faults := Load(p, read); len(faults) != 3 {
		t.Errorf("want a fault of onbad.yaml and two of bad.yaml, got\n%s", faults)
	}
}

// TestOwnOnCluster: a profile file is for the lab.
func TestOwnOnCluster(t *testing.T) {
	p, read := withOwn(t, ownFiles(), "./dir/mine.yaml")
	p.Environment = plan.EnvKubernetes
	if _, faults := Load(p, read); faults == nil || !strings.Contains(faults.Error(), "those are for the lab") {
		t.Errorf("faults: %v", faults)
	}
}

// TestOwnInPlanFile: the path is relative to the plan file.
func TestOwnInPlanFile(t *testing.T) {
	text := "apiVersion: cnibench/v1\nkind: Plan\nprofiles: [mine.yaml, 'mine.yaml(mtu=9000)', bridge]\nbaseline: mine.yaml\n"
	p, f, err := plan.Read("dir/plan.yaml", strings.NewReader(text), "")
	if err != nil || f.Faults() != nil {
		t.Fatal(err, f.Faults())
	}
	_, read := withOwn(t, ownFiles())
	p, faults := Load(p, read)
	if faults != nil || p.Baseline != plan.VariantOf("mine") || strings.Join(plan.Texts(p.Profiles), " ") != "mine mine(mtu=9000) bridge" {
		t.Errorf("%v, %v, %v", p.Profiles, p.Baseline, faults)
	}
}

// TestOwnTable: every key has words for people, and every variable a name of its own.
func TestOwnTable(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Keys() {
		if k.Help == "" || k.Values == "" || seen[k.Key] {
			t.Errorf("key %+v", k)
		}
		seen[k.Key] = true
	}
	if len(seen) < 60 {
		t.Errorf("%d keys", len(seen))
	}
}

func FuzzReadOwn(f *testing.F) {
	f.Add(ownFiles()["dir/mine.yaml"])
	f.Add(ownHead + "name: a\nnode: {daemons: [{}], rules: '${x}'}\nexpect: {attach: {gateway: 1}}\n")
	f.Add(ownHead + "name: a\nbased-on: mine.yaml\nnode: {rules: '*raw', sysctls: {net.a: 1}, daemons: [{name: d}]}\nexpect: {plain: true}\n")
	f.Fuzz(func(_ *testing.T, text string) {
		_, layers := parseProfile("dir/f.yaml", text, func(string) (string, error) { return ownFiles()["dir/mine.yaml"], nil })
		_ = faultsOf(layers).Error()
	})
}

// TestOwnPage: the profile file of the how-to page is that of the examples, which a test of the lab raises.
func TestOwnPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/how-to/test-your-own-dataplane.md")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("../../../examples/profiles/mine.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(file), "\napiVersion")
	if !strings.Contains(string(page), "```yaml\napiVersion"+text+"```") {
		t.Error("the page has another mine.yaml than the examples")
	}
}
