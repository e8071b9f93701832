package lab

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// TestNICModelsOnTheWire: every profile changes its NIC model between trials, whatever came before. Under "ideal" its
// super-packets cross the nodes' NICs, tunnels included. Under "wire" the pod's device cuts them, on a path within the node
// as between nodes, and TCP makes them all the same.
func TestNICModelsOnTheWire(t *testing.T) {
	for _, base := range []plan.NIC{plan.NICIdeal, plan.NICWire} {
		t.Run(string(base), func(t *testing.T) {
			l := up(t, plan.Lab{NIC: base}, profile.Names()...)
			var crew errgroup.Group
			crew.SetLimit(8) // most of the time goes by waiting for the kernel to let go of sockets and features
			for _, i := range standing(t, l) {
				crew.Go(func() error {
					t.Run(i.Name.String(), func(t *testing.T) {
						for _, path := range []string{"pod-to-pod/cross-node", "pod-to-pod/same-node", "host-to-host/cross-node"} {
							for _, model := range []plan.NIC{plan.NICWire, plan.NICIdeal, "", plan.NICWire} {
								seesModel(t, l, i, path, model, base)
							}
						}
					})
					return nil
				})
			}
			_ = crew.Wait() // none fails
		})
	}
}

// seesModel sends under a NIC model and looks at the frames.
func seesModel(t *testing.T, l *Lab, i *Instance, path string, model, base plan.NIC) {
	t.Helper()
	p, err := plan.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	r := plan.Single(i.Name, p)
	r.NIC = model
	ends, err := l.Endpoints(r)
	var not *control.NotServedError
	if errors.As(err, &not) {
		return
	}
	way, wrong := i.Spec.Ends(p)
	if err := errors.Join(err, wrong); err != nil {
		t.Fatal(err)
	}
	if model == "" {
		model = base
	}
	began := time.Now()
	if err := ends.Ready(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s: ready after %s", path, model, time.Since(began))
	client, arrives := i.Host(way.Client), &i.Nodes[1].Host
	if client.NS == i.Host(way.Server).NS {
		return // the loopback's
	}
	if _, switched := i.Spec.dataplane.(dataplane.Switched); switched {
		arrives = i.Host(way.Server) // its wire does not end at the node
	}
	for _, h := range i.Hosts() {
		limited := len(h.cut.Kept) == 0 || h != client && h != i.Host(way.Server) // those of the path's ends are limited later
		checkCutting(t, i, h, model == plan.NICWire && limited)
	}
	entry := dataplane.NIC
	if nics := i.NICs(arrives); p.From == plan.Pod {
		entry = nics[len(nics)-1] // pods are on the last one
	}
	sends, wire := framesAt(t, client.NS, dataplane.NIC), framesAt(t, arrives.NS, entry)
	before := outRequests(t, client.NS)
	if err := carry(i, way, ends.Connected); err != nil {
		t.Fatalf("%s %s: %v", path, model, err)
	}
	packets := outRequests(t, client.NS) - before
	sent, largest := sizes(t, sends)
	_, passed := sizes(t, wire)
	full := dataplane.NIC + " carries at most 1514 bytes"
	switch {
	case model == plan.NICWire && (largest > 1514 || passed > 1514):
		t.Errorf("%s %s: %s, and the pod sent %d, the node got %d", path, model, full, largest, passed)
	case model == plan.NICWire && sent < packets+2: // without super-packets both are the same
		t.Errorf("%s %s: TCP made %d packets and the device %d frames: they were not cut there", path, model, packets, sent)
	case model == plan.NICIdeal && largest <= 1514:
		t.Errorf("%s %s: no super-packet left: %d bytes", path, model, largest)
	case model == plan.NICIdeal && p.Locality == plan.CrossNode && p.From == plan.Pod && passed <= 1514 && i.Profile.Encapsulation != "wireguard":
		t.Errorf("%s %s: no super-packet arrived at the other node: %d bytes", path, model, passed)
	}
}

func framesAt(t *testing.T, at *netns.NS, dev string) *capture.Capture {
	t.Helper()
	c, err := capture.Open(at, capture.Options{Device: dev})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// sizes returns how many frames with TCP were sent, and the length of the largest that was seen at all.
func sizes(t *testing.T, c *capture.Capture) (sent, largest int) {
	t.Helper()
	frames, err := c.Drain()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		largest = max(largest, f.Length)
		if f.Outgoing && f.TCP != nil {
			sent++
		}
	}
	return sent, largest
}

// outRequests counts the packets that the transports of a namespace gave to IP, a super-packet as one.
func outRequests(t *testing.T, at *netns.NS) int {
	t.Helper()
	var text []byte
	if err := at.Do(func() (err error) { text, err = os.ReadFile("/proc/thread-self/net/snmp"); return err }); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for k, name := range strings.Fields(lines[0]) {
		if name == "OutRequests" {
			n, err := strconv.Atoi(strings.Fields(lines[1])[k])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no OutRequests in %s", lines[0])
	return 0
}
