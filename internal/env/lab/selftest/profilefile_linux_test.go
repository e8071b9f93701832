package selftest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/profilefile"
)

// fileOf writes a profile file called own into a directory and returns it as a source. plugins are scripts by name.
func fileOf(t *testing.T, text string, plugins map[string]string) plan.OwnSource {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, script := range plugins {
		if err := os.WriteFile(filepath.Join(dir, "bin", name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "own.yaml")
	// A text after --- is that of base.yaml, beside it.
	text, base, _ := strings.Cut(text, "\n---\n")
	for file, text := range map[string]string{file: "name: own\n" + text, filepath.Join(dir, "base.yaml"): "name: base\n" + base} {
		if err := os.WriteFile(file, []byte("apiVersion: cnibench/v1\nkind: Profile\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := plan.Default()
	p.Profiles = plan.Variants(file)
	p, faults := profilefile.Load(p, os.ReadFile)
	if faults != nil {
		t.Fatal(faults)
	}
	return p.Own[0]
}

// raisedOwn raises a profile file. inst.Err is for the test to judge.
func raisedOwn(t *testing.T, l plan.Lab, source plan.OwnSource) (*lab.Lab, *lab.Instance) {
	t.Helper()
	up, err := lab.Up(t.Context(), plan.Variants("own"), lab.Options{Lab: l, Own: []plan.OwnSource{source}, Program: program})
	if err != nil {
		t.Skipf("no lab: %v", err)
	}
	t.Cleanup(func() { _ = up.Close(context.Background()) })
	return up, up.Instances()[0]
}

// withReference is the conflist of a reference plugin for the lab's variables.
func withReference(plugin, more, ranges string) string {
	return fmt.Sprintf("  conflist: |\n    {\"cniVersion\": \"1.0.0\", \"name\": \"own\", \"plugins\": [{\"type\": %q, \"mtu\": ${mtu}, %s\n"+
		"     \"ipam\": {\"type\": \"host-local\", \"ranges\": [[{%s}]], \"routes\": [{\"dst\": \"${default}\"}]}}]}\n", plugin, more, ranges)
}

// referenceFile is a profile file of the reference plugin in place of the built-in dataplane of the same name.
func referenceFile(dir, name string) string {
	ranges := `"subnet": "${node-cidr}"`
	if name == "macvlan" {
		ranges = `"subnet": "${node-subnet}", "rangeStart": "${range-first}", "rangeEnd": "${range-last}"`
	}
	more := map[string]string{"bridge": `"bridge": "cni0", "isGateway": true,`, "macvlan": `"master": "${device}", "mode": "bridge",`}[name]
	return "based-on: " + name + "\ncni:\n  timeout: 1m\n  bin: " + dir + "\n" + withReference(name, more, ranges)
}

// TestPodMTULeavesTheTunnel: a file that changes the MTU of pods changes nothing of its base's tunnel, whose self-test holds
// for pods of a smaller and of a larger MTU.
func TestPodMTULeavesTheTunnel(t *testing.T) {
	t.Parallel()
	for _, mtu := range []int{1400, 1500} {
		t.Run(fmt.Sprint(mtu), func(t *testing.T) {
			t.Parallel()
			_, inst := raisedOwn(t, plan.Lab{NIC: "wire"}, fileOf(t, fmt.Sprintf("based-on: flannel-vxlan\npod:\n  mtu: %d\n", mtu), nil))
			if inst.Err != nil {
				t.Fatal(inst.Err)
			}
			if got := inst.Spec.PodMTU(); got != mtu {
				t.Errorf("pods have %d", got)
			}
			all := Run(t.Context(), inst)
			for _, a := range Failed(all) {
				t.Error(a)
			}
			if !holds(all, "mtu") || !holds(all, "tunnel.device") {
				t.Error("pods and tunnel are not asserted")
			}
		})
	}
}

// TestProfileFiles raises the reference plugins from profile files: by libcni, with IPAM, CHECK and DEL. The self-test of
// the built-in dataplane holds. A second instance finds the addresses free, and nothing stays.
func TestProfileFiles(t *testing.T) {
	t.Parallel()
	dir := referencePlugins(t)
	for _, name := range []string{"bridge", "ptp", "macvlan"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up, inst := raisedOwn(t, plan.Lab{NIC: "wire"}, fileOf(t, referenceFile(dir, name), nil))
			for range 2 {
				if inst.Err != nil {
					t.Fatal(inst.Err)
				}
				all := Run(t.Context(), inst)
				for _, a := range Failed(all) {
					t.Error(a)
				}
				if !holds(all, "cni.check") || !holds(all, "cni.del") {
					t.Error("CHECK and DEL are not asserted")
				}
				if err := up.Renew(t.Context(), plan.Variants("own"))[plan.VariantOf("own")]; err != nil {
					t.Fatal(err)
				}
				inst = up.Instance(plan.VariantOf("own"))
			}
			if err := up.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat("/var/lib/cni/networks/own"); err == nil {
				t.Error("addresses of IPAM are left on the machine")
			}
		})
	}
}

func holds(all []Assertion, id string) bool {
	for _, a := range all {
		if a.ID == id {
			return a.OK
		}
	}
	return false
}

// script is a profile file whose one plugin is a script.
const script = "cni:\n  bin: bin\n  timeout: 1s\n  conflist: '{\"cniVersion\": \"1.0.0\", \"name\": \"own\", \"plugins\": [{\"type\": \"mine\"}]}'\n"

// TestFaultyPlugins: each fault of a plugin is named with the pod and the call, and the profile is not raised.
func TestFaultyPlugins(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ plugin, want string }{
		"fails":          {`echo '{"cniVersion":"1.0.0","code":11,"msg":"no luck"}'; exit 1`, `ADD of node-1/pod-1: plugin type="mine" failed (add): no luck`},
		"dies":           {`echo oh dear >&2; exit 3`, "exit status 3: oh dear"},
		"hangs":          {`sleep 1000 & wait`, "ADD of node-1/pod-1 did not end within 1s"},
		"writes garbage": {`echo garbage`, `it wrote what is not JSON: "garbage"`},
		"writes a lot":   {`yes`, "wrote more than 1048576 bytes"},
		"no address":     {`echo '{"cniVersion":"1.0.0"}'`, "no IPv4 address: the conflist needs an ipam plugin"},
		"no device":      {`[ $CNI_COMMAND = ADD ] && echo '{"cniVersion":"1.0.0","ips":[{"address":"10.1.1.2/24"}]}'; true`, "left no device"},
		"CHECK disagrees": {`case $CNI_COMMAND in ADD) echo '{"cniVersion":"1.0.0","ips":[{"address":"10.1.1.2/24"}]}';;
			CHECK) echo '{"cniVersion":"1.0.0","code":7,"msg":"not what I made"}'; exit 1;; esac`, "CHECK of node-1/pod-1: not what I made"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up, inst := raisedOwn(t, plan.Lab{}, fileOf(t, script, map[string]string{"mine": tc.plugin}))
			if inst.Err == nil || !strings.Contains(inst.Err.Error(), tc.want) {
				t.Errorf("error: %v, want %s", inst.Err, tc.want)
			}
			if err := up.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPluginLeavesDevices: a plugin whose DEL removes nothing fails the assertion that names the device.
func TestPluginLeavesDevices(t *testing.T) {
	t.Parallel()
	dir := referencePlugins(t)
	text := "based-on: ptp\ncni:\n  bin: bin\n" + withReference("lazy", "", `"subnet": "${node-cidr}"`)
	plugins := map[string]string{"lazy": fmt.Sprintf(`[ $CNI_COMMAND = DEL ] && exit 0
sed 's/"type":"lazy"/"type":"ptp"/' | exec %s/ptp`, dir)}
	source := fileOf(t, strings.ReplaceAll(text, `"host-local"`, `"local"`), map[string]string{
		"lazy": plugins["lazy"], "local": fmt.Sprintf("exec %s/host-local", dir)})
	_, inst := raisedOwn(t, plan.Lab{NIC: "wire"}, source)
	if inst.Err != nil {
		t.Fatal(inst.Err)
	}
	for _, a := range Failed(Run(t.Context(), inst)) {
		if a.ID != "cni.del" || !strings.Contains(a.Got, "device veth") {
			t.Error(a)
			continue
		}
		return
	}
	t.Error("what DEL left was not found")
}

// TestDevicesEndWithTheNamespace: devices that DEL leaves are no failure if the file says so, a routing rule is one.
func TestDevicesEndWithTheNamespace(t *testing.T) {
	t.Parallel()
	dir := referencePlugins(t)
	for _, tc := range []struct{ name, add, want string }{
		{"devices", "", "nothing"},
		{"routing rule", `[ $CNI_COMMAND = ADD ] && [ $CNI_CONTAINERID = node-1-spare ] && ip rule add priority 512 to 10.99.0.1` + "\n", "routing rule to 10.99.0.1/32 lookup main of the node"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			text := "based-on: ptp\ncni:\n  bin: bin\n  leaves-devices: true\n" + withReference("lazy", "", `"subnet": "${node-cidr}"`)
			_, inst := raisedOwn(t, plan.Lab{NIC: "wire"}, fileOf(t, strings.ReplaceAll(text, `"host-local"`, `"local"`), map[string]string{
				"lazy": tc.add + fmt.Sprintf(`[ $CNI_COMMAND = DEL ] && exit 0
sed 's/"type":"lazy"/"type":"ptp"/' | exec %s/ptp`, dir), "local": fmt.Sprintf("exec %s/host-local", dir)}))
			if inst.Err != nil {
				t.Fatal(inst.Err)
			}
			for _, a := range Run(t.Context(), inst) {
				if a.ID == "cni.del" && a.Got == tc.want {
					return
				} else if a.ID == "cni.del" || !a.OK {
					t.Error(a)
				}
			}
			t.Error("DEL is not asserted as expected")
		})
	}
}

// TestDaemons: a daemon is ready, dies with its last words, and a daemon that is never ready is named.
func TestDaemons(t *testing.T) {
	t.Parallel()
	const head = "based-on: bridge\nnode:\n  prepare: ['echo $NODE $NODE_CIDR > /run/node; echo x > /var/lib/cnibench-test']\n  daemons:\n"
	up, inst := raisedOwn(t, plan.Lab{}, fileOf(t, head+`    - name: steady
      run: test -s /run/node; touch /run/steady; exec sleep 1000
      ready: {file: /run/steady, command: grep -q node- /run/node}
    - name: brief
      run: while test ! -e /run/end; do sleep 0.02; done; echo famous last words; exit 3
      on: node-1
  timeout: 5s
`, nil))
	if inst.Err != nil {
		t.Fatal(inst.Err)
	}
	if err := up.Dead(plan.VariantOf("own")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("/var/lib/cnibench-test"); err == nil {
		t.Error("a command has written to the machine")
	}
	for _, a := range Failed(Run(t.Context(), inst)) {
		t.Error(a)
	}
	if err := inst.Ask(t.Context(), 0, "touch /run/end"); err != nil {
		t.Fatal(err)
	}
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for up.Dead(plan.VariantOf("own")) == nil && t.Context().Err() == nil {
		<-retry.C
	}
	if err := up.Dead(plan.VariantOf("own")); err == nil || !strings.Contains(err.Error(), "node-1: daemon brief died: exit status 3: famous last words") {
		t.Errorf("dead: %v", err)
	}
	for daemon, want := range map[string]string{
		"run: exit 4":                      "daemon d died: exit status 4",
		"run: no-such-program":             "no-such-program",
		"run: sleep 1000":                  "daemon d is not ready within 200ms: stat /run/never: no such file or directory",
		"run: echo waiting; exec sleep 99": "waiting",
	} {
		_, inst := raisedOwn(t, plan.Lab{}, fileOf(t, "based-on: bridge\nnode:\n  daemons:\n    - name: d\n      "+daemon+"\n      ready: {file: /run/never, within: 200ms}\n", nil))
		if inst.Err == nil || !strings.Contains(inst.Err.Error(), want) {
			t.Errorf("%s: %v, want %s", daemon, inst.Err, want)
		}
	}
}

// TestChanges: a base with changes is what its file says, and what the file expects is asserted.
func TestChanges(t *testing.T) {
	t.Parallel()
	source := fileOf(t, `based-on: ptp
pod: {mtu: 1400, sysctls: {net.ipv4.tcp_ecn: 1}}
node:
  prepare: ['iptables -N EARLY; iptables -A FORWARD -j EARLY'] # before kube-proxy's rules
  sysctls: {net.ipv4.conf.all.log_martians: 1}
  routes: [{to: 198.51.100.0/24, via: '${gateway}', dev: eth0}]
  tc: qdisc add dev eth0 root pfifo limit 333
  rules: |
    *filter
    -A FORWARD -s ${node-cidr} -m comment --comment mine -j ACCEPT
    COMMIT
`, nil)
	source.Text = strings.ReplaceAll(source.Text, "'${gateway}'", "172.18.0.1")
	_, inst := raisedOwn(t, plan.Lab{NIC: "wire"}, source)
	if inst.Err != nil {
		t.Fatal(inst.Err)
	}
	for _, a := range Failed(Run(t.Context(), inst)) {
		t.Error(a)
	}
	for command, want := range map[string]string{
		"cat /proc/sys/net/ipv4/conf/all/log_martians": "1", "ip route show 198.51.100.0/24": "via 172.18.0.1",
		"iptables-save": "--comment mine", "iptables -S FORWARD": "-j EARLY", "tc qdisc show dev eth0": "limit 333",
	} {
		if err := inst.Ask(t.Context(), 0, command+" | grep -q -e '"+want+"'"); err != nil {
			t.Errorf("%s has no %s: %v", command, want, err)
		}
	}
	d, err := link.DeviceIn(inst.Nodes[0].Pods[0].NS, nic)
	if err != nil || d.MTU != 1400 {
		t.Errorf("MTU %d, %v", d.MTU, err)
	}
	// An expectation that does not hold is found.
	_, inst = raisedOwn(t, plan.Lab{NIC: "wire"}, fileOf(t, "based-on: ptp\nexpect:\n  paths: {pod-to-pod/cross-node: node, pod-to-pod/same-node: any}\n  attach: {gateway: first-address, same-ttl: 60, cross-ttl: 62}\n", nil))
	bad := map[string]bool{}
	for _, a := range Failed(Run(t.Context(), inst)) {
		bad[a.ID] = true
	}
	if len(bad) != 2 || !bad["source@pod-to-pod/cross-node"] || !bad["ttl@pod-to-pod/same-node"] {
		t.Errorf("failed: %v", bad)
	}
	for text, want := range map[string]string{
		"node: {tc: nonsense}":                         "tc",
		"node: {rules: 'garbage'}":                     "rules",
		"node: {offloads: {eth0: rx-grooo=on}}":        "has no feature rx-grooo",
		"node: {sysctls: {net.ipv4.no_such: 1}}":       "net/ipv4/no_such",
		"node: {prepare: ['echo why >&2; exit 9']}":    "exit status 9: why",
		"node: {join: ['test $PEER = nobody']}":        "join node-2",
		"node: {prepare: [sleep 100], timeout: 100ms}": "did not end within 100ms",
	} {
		if _, inst := raisedOwn(t, plan.Lab{}, fileOf(t, "based-on: bridge\n"+text+"\n", nil)); inst.Err == nil || !strings.Contains(inst.Err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, inst.Err, want)
		}
	}
}

// TestChangedFile: a file based on a file changes what the base does, after it. Its nodes route what the base encapsulates.
func TestChangedFile(t *testing.T) {
	t.Parallel()
	const base = `
---
cni:
  bin: ` + "%s" + `
  routes: false
` + "%s" + `node:
  prepare: ['ip link add tunnel0 type vxlan id 7 dstport 4789 local $NODE_IP dev eth0 nolearning', 'ip link set tunnel0 up']
  join: ['ip route add $PEER_CIDR via $PEER_IP dev tunnel0 onlink']
  rules: |
    *filter
    -A FORWARD -m comment --comment first
    COMMIT
expect:
  attach: {bridge: cni0, gateway: first-address, cross-ttl: 62}
  tracked: true
  tunnel: {dev: tunnel0, kind: vxlan, port: 4789, vni: 7, overhead: 50}
`
	below := fmt.Sprintf(base, referencePlugins(t), withReference("bridge", `"bridge": "cni0", "isGateway": true,`, `"subnet": "${node-cidr}"`))
	const change = `based-on: base.yaml
node:
  join: ['ip route replace $PEER_CIDR via $PEER_IP dev eth0; ip link del tunnel0 2>/dev/null || true']
  rules: |
    *filter
    -A FORWARD -m comment --comment second
    COMMIT
expect:
`
	_, inst := raisedOwn(t, plan.Lab{NIC: "wire"}, fileOf(t, change+"  route: {dev: eth0}\n  plain: true"+below, nil))
	if inst.Err != nil {
		t.Fatal(inst.Err)
	}
	wire := ""
	for _, a := range Run(t.Context(), inst) {
		if !a.OK {
			t.Error(a)
		}
		if a.ID == "wire@pod-to-pod/cross-node" {
			wire = a.Got
		}
	}
	if wire != "plain" {
		t.Errorf("on the wire: %q", wire)
	}
	if err := inst.Ask(t.Context(), 0, "iptables -S FORWARD | grep -A1 'comment first' | grep -q 'comment second'"); err != nil {
		t.Errorf("the rules of both files, in their order: %v", err)
	}
	if mtu := inst.Spec.PodMTU(); mtu != 1500 {
		t.Errorf("MTU %d", mtu)
	}
	// Without the change of what is expected, the base's tunnel is missed.
	if _, inst = raisedOwn(t, plan.Lab{NIC: "wire"}, fileOf(t, change+"  tracked: true"+below, nil)); inst.Err == nil || !strings.Contains(inst.Err.Error(), "tunnel0") {
		t.Errorf("a tunnel that is gone: %v", inst.Err)
	}
}

// programIn returns the path of a program in one of the directories or in PATH.
func programIn(program string, dirs ...string) (string, error) {
	for _, dir := range dirs {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path, nil
		}
	}
	return exec.LookPath(program)
}

// TestExampleProfiles raises each profile file of the examples with the reference plugins beside it, as its documents say,
// and lets it prove what it claims.
func TestExampleProfiles(t *testing.T) {
	t.Parallel()
	dir := referencePlugins(t)
	const examples = "../../../../examples/profiles"
	files, err := filepath.Glob(examples + "/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	bin := filepath.Join(t.TempDir(), "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	needed := map[string][]string{
		"antrea.yaml":         {"ovs-vswitchd", "ovsdb-tool", "ipset", "jq"},
		"antrea-noencap.yaml": {"ovs-vswitchd", "ovsdb-tool", "ipset", "jq", "nft"},
		"ovn-kubernetes.yaml": {"ovs-vswitchd", "ovsdb-tool", "ovn-northd", "ovn-controller", "nft", "jq"},
		"flanneld.yaml":       {"flanneld", "etcd", "curl"},
		"aws-vpc-plugin.yaml": {"aws-cni", "egress-cni", "ipamd"},
		"cilium.yaml":         {"cilium-agent", "cilium-cni", "cilium-dbg", "etcd", "clang-19"},
	}
	built, err := filepath.Abs(examples + "/bin")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"antrea-port", "ovn-port", "extra-hop", "bridge", "ptp", "macvlan", "host-local", "aws-cni", "egress-cni", "ipamd", "cilium-agent", "cilium-cni", "cilium-dbg", "etcd"} {
		path, err := programIn(program, dir, built)
		if err != nil {
			continue // the files that need it are skipped
		}
		if err := os.Symlink(path, filepath.Join(bin, program)); err != nil {
			t.Fatal(err)
		}
	}
	texts := map[string]string{}
	copyOf := func(file string) string { return filepath.Join(filepath.Dir(bin), filepath.Base(file)) }
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
		if err := os.WriteFile(copyOf(file), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			for _, program := range needed[filepath.Base(file)] {
				if _, err := programIn(program, bin); err != nil {
					t.Skipf("%v; docs/how-to/test-your-own-dataplane.md says how to build it", err)
				}
			}
			if _, err := os.Stat("/sys/module/openvswitch"); err != nil && slices.Contains(needed[filepath.Base(file)], "ovs-vswitchd") {
				t.Skip("the kernel has no openvswitch; make test-vm has")
			}
			copied := copyOf(file)
			proves(t, copied)
			second := map[string]*strings.Replacer{
				"aws-vpc-plugin.yaml": strings.NewReplacer("based-on: aws-vpc", "based-on: aws-vpc-eni2", "-last $RANGE_LAST", "-last $RANGE_LAST -interface 2"),
				"cilium.yaml":         strings.NewReplacer("--enable-bpf-masquerade", "--enable-bpf-masquerade --bpf-lb-mode dsr", "nodeport/remote: node", "nodeport/remote: own"),
			}[filepath.Base(file)]
			if second != nil {
				if err := os.WriteFile(copied, []byte(second.Replace(texts[file])), 0o644); err != nil {
					t.Fatal(err)
				}
				proves(t, copied)
			}
		})
	}
}

// proves raises a profile file and lets it prove what it claims.
func proves(t *testing.T, file string) {
	t.Helper()
	p := plan.Default()
	p.Profiles = plan.Variants(file)
	p, faults := profilefile.Load(p, os.ReadFile)
	if faults != nil {
		t.Fatal(faults)
	}
	name := p.Profiles[0]
	up, err := lab.Up(t.Context(), p.Profiles, lab.Options{Lab: plan.Lab{NIC: "wire"}, Own: p.Own, Program: program})
	if err != nil {
		t.Skipf("no lab: %v", err)
	}
	defer up.Close(context.Background())
	if err := up.Instance(name).Err; err != nil {
		t.Fatal(err)
	}
	for _, a := range Failed(Run(t.Context(), up.Instance(name))) {
		t.Error(a)
	}
	if err := up.Dead(name); err != nil {
		t.Error(err)
	}
}
