package profilefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/position"
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
	f.Fuzz(func(_ *testing.T, text string) {
		_, faults := readProfile("f.yaml", text)
		_ = faults.Error()
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
