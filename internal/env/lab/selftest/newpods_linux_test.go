package selftest

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/dataplane/walktest"
	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/plan"
)

// acrossNodes is the path of new pods.
var acrossNodes = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}

// answering serves single bytes at a pod of the other node.
func answering(t *testing.T, inst *lab.Instance) control.Endpoint {
	t.Helper()
	pod := inst.Nodes[1].Pods[0]
	walktest.Answer(t, pod.NS, net.JoinHostPort(pod.Addr.String(), "5201"))
	return control.Endpoint{Address: pod.Addr.String(), Port: 5201}
}

// TestNewPodsByPlugins makes new pods by the reference plugin of a profile file. Their addresses are free again. A plugin
// that begins to fail or to hang is named, and nothing of its pod stays.
func TestNewPodsByPlugins(t *testing.T) {
	t.Parallel()
	dir := referencePlugins(t)
	const fault = `[ $CNI_COMMAND = ADD ] && [ -e /run/fail ] && { echo '{"cniVersion":"1.0.0","code":11,"msg":"no luck"}'; exit 1; }
[ $CNI_COMMAND = ADD ] && [ -e /run/hang ] && { sleep 1000 & wait; }
`
	text := "based-on: ptp\ncni:\n  bin: bin\n" + withReference("moody", "", `"subnet": "${node-cidr}"`)
	up, inst := raisedOwn(t, plan.Lab{NIC: "wire"}, fileOf(t, strings.ReplaceAll(text, `"host-local"`, `"local"`), map[string]string{
		"moody": fault + fmt.Sprintf(`sed 's/"type":"moody"/"type":"ptp"/' | exec %s/ptp`, dir), "local": fmt.Sprintf("exec %s/host-local", dir)}))
	if inst.Err != nil {
		t.Fatal(inst.Err)
	}
	to := answering(t, inst)
	for _, tc := range []struct{ before, kind, want string }{
		{before: "true"},
		{"touch /run/fail", "not attached", `plugin type="moody" failed (add): no luck`},
		{"rm /run/fail; touch /run/hang", "not attached", " within "},
		{before: "rm /run/hang"},
	} {
		timeout := 30 * time.Second
		if strings.Contains(tc.before, "hang") && tc.kind != "" {
			timeout = 300 * time.Millisecond
		}
		if err := inst.Ask(t.Context(), 0, tc.before); err != nil {
			t.Fatal(err)
		}
		o, err := up.NewPods(t.Context(), control.Arrivals{Route: plan.Single(inst.Name, acrossNodes), To: to, Rate: 10, Window: 300 * time.Millisecond,
			Timeout: timeout, Opens: func() error { return nil }})
		var said *control.Error
		switch {
		case tc.kind == "" && err != nil:
			t.Errorf("%s: %v", tc.before, err)
		case tc.kind == "" && (o.Operations == 0 || o.Operations != o.Schedule.Sent || o.Pods.Waits["device"] == 0):
			t.Errorf("%s: %+v", tc.before, o)
		case tc.kind != "" && (!errors.As(err, &said) || said.Kind != tc.kind || !strings.Contains(said.Message, tc.want)):
			t.Errorf("%s: %v, want %s: %s", tc.before, err, tc.kind, tc.want)
		}
		// The standing pods keep their addresses and devices; ptp has one device for each.
		for what, command := range map[string]string{"addresses": "ls /var/lib/cni/networks/own | grep -c ^1", "devices": "ip -o link show type veth | grep -c veth"} {
			if err := inst.Ask(t.Context(), 0, fmt.Sprintf(`n=$(%s); [ "$n" -eq %d ] || { echo "$n %s"; exit 1; }`, command, len(inst.Nodes[0].Pods), what)); err != nil {
				t.Errorf("%s: %v", tc.before, err)
			}
		}
	}
}

// TestFilesThatTakeNoNewPods names what a profile file does to its pods that is not done to new ones.
func TestFilesThatTakeNoNewPods(t *testing.T) {
	t.Parallel()
	up, inst := raisedOwn(t, plan.Lab{}, fileOf(t, "based-on: bridge\npod:\n  mtu: 1400\n", nil))
	if inst.Err != nil {
		t.Fatal(inst.Err)
	}
	r := plan.Single(inst.Name, acrossNodes)
	r.NewPods = true
	var not *control.NotServedError
	if _, err := up.Endpoints(r); !errors.As(err, &not) || !strings.Contains(err.Error(), "its profile file changes pods") {
		t.Error(err)
	}
}
