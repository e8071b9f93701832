package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/dataplane"
	"github.com/cnibench/cnibench/internal/kernel/capture"
	"github.com/cnibench/cnibench/internal/kernel/probe"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/profile"
)

// TestMain lets the test binary be the programs that a lab starts: an agent that echoes lines, the janitor, and a
// program that holds a lab until it is killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "agent":
			os.Exit(echo())
		case JanitorVerb:
			if err := Janitor(os.Args[2], os.Stdin); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case SocketsVerb:
			if err := ServeSockets(os.Stdin); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case WireGuardVerb:
			if err := ServeWireGuard(os.Args[2:], os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "hold":
			if last := os.Args[len(os.Args)-1]; strings.HasSuffix(last, ".yaml") {
				os.Exit(arrive(last))
			}
			os.Exit(hold(slices.Contains(os.Args, "anew"), slices.Contains(os.Args, "churn")))
		}
	}
	os.Exit(m.Run())
}

// echo answers every line with the line and ends with its input; at "die" it complains and ends.
func echo() int {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if in.Text() == "die" {
			fmt.Fprintln(os.Stderr, "told to die")
			return 1
		}
		fmt.Println(in.Text())
	}
	return 0
}

var program = []string{"/proc/self/exe", "agent"}

// up raises a lab that the test takes down.
func up(t *testing.T, l plan.Lab, profiles ...string) *Lab {
	t.Helper()
	return upWith(t, Options{Lab: l}, profiles...)
}

// upWith is up with more than conditions.
func upWith(t *testing.T, o Options, profiles ...string) *Lab {
	t.Helper()
	needRights(t)
	o.Program = program
	lab, err := Up(t.Context(), plan.Variants(profiles...), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return lab
}

func needRights(t *testing.T) {
	t.Helper()
	if err := checkNamespaceRight(); errors.Is(err, os.ErrPermission) {
		t.Skipf("no right to make network namespaces: %v", err)
	}
}

// standing returns the instances that stand, and skips by name those that need what this machine lacks.
func standing(t *testing.T, l *Lab) []*Instance {
	t.Helper()
	var list []*Instance
	for _, i := range l.Instances() {
		if i.Err == nil {
			list = append(list, i)
		} else if missing := lacking(t, i.Profile); missing != "" {
			t.Run(i.Name.String(), func(t *testing.T) { t.Skipf("%v; lacking %s", i.Err, missing) })
		} else {
			t.Errorf("%s does not stand: %v", i.Name, i.Err)
		}
	}
	return list
}

// lacking names what a profile needs and this machine does not have; "" when it is all there.
func lacking(t *testing.T, p profile.Profile) string {
	t.Helper()
	findings, err := probe.Check(t.Context(), p.Needs...)
	if err != nil {
		t.Fatal(err)
	}
	var missing []string
	for _, f := range findings {
		if f.Outcome == probe.No {
			missing = append(missing, f.Feature+": "+f.Missing+" ("+f.WayOut+")")
		}
	}
	return strings.Join(missing, "; ")
}

// connect opens a TCP connection along a path, sends a line and reads it back.
func connect(i *Instance, e Ends) error { return carry(i, e, func() error { return nil }) }

// carry is connect with something to do between the handshake and the first byte.
func carry(i *Instance, e Ends, connected func() error) error {
	var listener net.Listener
	var err error
	// A process that another test is starting holds a copy of the listener of the path before for a moment.
	for range 200 {
		err = i.Host(e.Server).NS.Do(func() (err error) {
			listener, err = net.Listen("tcp4", fmt.Sprintf(":%d", e.ListenPort))
			return err
		})
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	defer listener.Close()
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = io.Copy(c, c)
	}()
	dialer, err := i.Dialer(i.Host(e.Client))
	if err != nil {
		return err
	}
	defer dialer.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c, err := dialer.Dial(ctx, "tcp4", netip.AddrPortFrom(e.Address, uint16(e.Port)).String())
	if err != nil {
		return err
	}
	defer c.Close()
	if err := errors.Join(c.SetDeadline(time.Now().Add(5*time.Second)), connected()); err != nil {
		return err
	}
	// More than one segment in each direction, so that a wrong MTU shows.
	sent := strings.Repeat("x", 20000) + "\n"
	go func() { _, _ = io.WriteString(c, sent) }()
	got, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && got != sent {
		err = fmt.Errorf("sent %d bytes, got %d others back", len(sent), len(got))
	}
	return err
}

func TestEveryServedPathCarriesTraffic(t *testing.T) {
	l := up(t, plan.Lab{PodsPerNode: 3}, append(profile.Names(), profile.Raw+"~twin")...)
	for _, i := range standing(t, l) {
		t.Run(i.Name.String(), func(t *testing.T) {
			t.Parallel()
			for _, p := range plan.Paths {
				e, err := i.Spec.Ends(p)
				var not *control.NotServedError
				if errors.As(err, &not) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := connect(i, e); err != nil {
					t.Errorf("%s (%s to %v:%d at %s): %v", p, e.Client, e.Address, e.Port, e.Server, err)
				}
			}
		})
	}
}

// TestSwitchKnowsItsNodes: what is for a node goes to that node alone from the first frame on, though it has not said a
// word.
func TestSwitchKnowsItsNodes(t *testing.T) {
	for _, i := range standing(t, up(t, plan.Lab{}, "ptp")) {
		beside, err := capture.Open(i.Nodes[0].NS, capture.Options{Device: dataplane.NIC})
		if err != nil {
			t.Fatal(err)
		}
		defer beside.Close()
		target := i.Nodes[1].Addr
		if err := i.External.NS.Do(func() error {
			_, err := net.DialTimeout("tcp", net.JoinHostPort(target.String(), "9"), 5*time.Second)
			return err
		}); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("%s: %v", target, err)
		}
		frames, err := beside.Drain()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range frames {
			if f.IP != nil && f.IP.Destination == target {
				t.Errorf("%s hears %s", i.Nodes[0].Name, &f)
			}
		}
	}
}

// TestFirstMessageRefuses: a dialer needs one ICMP message only, although the first arrives while connect() holds the
// socket.
func TestFirstMessageRefuses(t *testing.T) {
	for _, family := range []int{4, IPv6} {
		l := up(t, plan.Lab{Family: family}, "raw")
		i := standing(t, l)[0]
		tool, err := l.tools.iptables()
		if err != nil {
			t.Skip(err)
		}
		const rules = `*filter
-A INPUT -p tcp --dport 9 -m limit --limit 1/day --limit-burst 1 -j REJECT
-A INPUT -p tcp --dport 9 -j DROP
COMMIT
`
		if err := tool.Restore(t.Context(), i.Nodes[1].NS, rules); err != nil {
			t.Fatal(err)
		}
		dialer, err := i.Dialer(&i.Nodes[0].Host)
		if err != nil {
			t.Fatal(err)
		}
		defer dialer.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		network := "tcp4"
		if family == IPv6 {
			network = "tcp6"
		}
		_, err = dialer.Dial(ctx, network, netip.AddrPortFrom(i.Nodes[1].Addr, 9).String())
		if err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("IPv%d: %v", family, err)
		}
	}
}
