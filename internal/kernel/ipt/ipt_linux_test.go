package ipt

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/kernel/netns"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

func newNS(t *testing.T) *netns.NS {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes network namespaces")
	}
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ns.Close(); err != nil {
			t.Error(err)
		}
	})
	return ns
}

// eachFlavor runs test with every flavour that the machine has.
func eachFlavor(t *testing.T, test func(t *testing.T, tool *Tool)) {
	for _, flavor := range []Flavor{NFT, Legacy} {
		t.Run(string(flavor), func(t *testing.T) {
			tool, err := Find(t.Context(), flavor, false)
			if errors.Is(err, ErrMissing) {
				t.Skipf("no iptables of this flavour: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			test(t, tool)
		})
	}
}

func TestFind(t *testing.T) {
	eachFlavor(t, func(t *testing.T, tool *Tool) {
		if !strings.HasPrefix(tool.Name(), "iptables-"+string(tool.Flavor)+" 1.") {
			t.Errorf("the tool calls itself %q", tool.Name())
		}
	})
	if _, err := Find(t.Context(), "bpf", false); err == nil || !strings.Contains(err.Error(), `"bpf"`) {
		t.Errorf("an unknown flavour: %v", err)
	}
}

// TestIPv6IsAnotherProgram: rules of one version of IP are none of the other's.
func TestIPv6IsAnotherProgram(t *testing.T) {
	eachFlavor(t, func(t *testing.T, in4 *Tool) {
		in6, err := Find(t.Context(), in4.Flavor, true)
		if err != nil {
			t.Fatal(err)
		}
		if in4.Family != IPv4 || in6.Family != IPv6 || !strings.HasPrefix(in6.Name(), "ip6tables-"+string(in4.Flavor)+" 1.") {
			t.Errorf("%s and %s", in4.Name(), in6.Name())
		}
		ns := newNS(t)
		for tool, rule := range map[*Tool]string{in4: "-d 192.0.2.1/32 -j DROP", in6: "-d 2001:db8::1/128 -j DROP"} {
			if err := tool.Restore(t.Context(), ns, "*filter\n-A OUTPUT "+rule+"\nCOMMIT\n"); err != nil {
				t.Fatal(err)
			}
		}
		for tool, rule := range map[*Tool]string{in4: "-d 192.0.2.1/32 -j DROP", in6: "-d 2001:db8::1/128 -j DROP"} {
			got, err := tool.Counters(t.Context(), ns, "filter", "OUTPUT")
			if err != nil || len(got) != 1 || got[0].Rule != rule {
				t.Errorf("%s has %+v (%v), want %s", tool.Name(), got, err, rule)
			}
		}
	})
	if tool, err := Find(t.Context(), Auto, true); err != nil || tool.Family != IPv6 {
		t.Errorf("by itself: %+v, %v", tool, err)
	}
}

func TestAutoWorks(t *testing.T) {
	ns := newNS(t)
	tool, err := Find(t.Context(), Auto, false)
	if errors.Is(err, ErrMissing) {
		t.Skipf("no iptables: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := tool.Restore(t.Context(), ns, "*nat\n-A OUTPUT -j RETURN\nCOMMIT\n"); err != nil {
		t.Error(err)
	}
}

func TestMissingProgramHasAHint(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	old := sbin
	sbin = nil
	defer func() { sbin = old }()
	for name, find := range map[string]func() error{
		"nft":    func() error { _, err := Find(context.Background(), NFT, false); return err },
		"auto":   func() error { _, err := Find(context.Background(), Auto, false); return err },
		"ipset":  func() error { _, err := FindIPSet(context.Background()); return err },
		"legacy": func() error { _, err := Find(context.Background(), Legacy, false); return err },
	} {
		err := find()
		if !errors.Is(err, ErrMissing) || !strings.Contains(advice.Of(err), "apt-get install") {
			t.Errorf("%s: error %v with hint %q", name, err, advice.Of(err))
		}
	}
}

func TestRestoreReplaces(t *testing.T) {
	eachFlavor(t, func(t *testing.T, tool *Tool) {
		ns := newNS(t)
		const rules = "*filter\n:FORWARD DROP [0:0]\n:X - [0:0]\n-A FORWARD -j X\n-A X -s 192.0.2.1/32 -j ACCEPT\nCOMMIT\n"
		for range 2 {
			if err := tool.Restore(t.Context(), ns, rules); err != nil {
				t.Fatal(err)
			}
		}
		count := func(chain string) int {
			t.Helper()
			c, err := tool.Counters(t.Context(), ns, "filter", chain)
			if err != nil {
				t.Fatal(err)
			}
			return len(c)
		}
		if f, x := count("FORWARD"), count("X"); f != 1 || x != 1 {
			t.Errorf("after two loads FORWARD has %d rules and X %d, want 1 and 1", f, x)
		}
		if _, err := tool.Counters(t.Context(), ns, "filter", "NOWHERE"); err == nil {
			t.Error("a chain that is not there has counters")
		}
	})
}

// TestNamespacesAreApart loads different rules into two namespaces at once, many times.
func TestNamespacesAreApart(t *testing.T) {
	eachFlavor(t, func(t *testing.T, tool *Tool) {
		var wg sync.WaitGroup
		for _, name := range []string{"ONE", "TWO", "THREE"} {
			ns := newNS(t)
			wg.Go(func() {
				for range 5 {
					if err := tool.Restore(t.Context(), ns, "*filter\n:"+name+" - [0:0]\n-A FORWARD -j "+name+"\nCOMMIT\n"); err != nil {
						t.Error(err)
					}
				}
				text, err := tool.Save(t.Context(), ns, "")
				if err != nil {
					t.Error(err)
				}
				for _, other := range []string{"ONE", "TWO", "THREE"} {
					if strings.Contains(text, ":"+other+" ") != (other == name) {
						t.Errorf("namespace of %s holds %s: %v", name, other, other != name)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestRefusalsNameTheLine(t *testing.T) {
	eachFlavor(t, func(t *testing.T, tool *Tool) {
		ns := newNS(t)
		err := tool.Restore(t.Context(), ns, "*filter\n-A FORWARD -j ACCEPT\n-A FORWARD -m bogus -j DROP\nCOMMIT\n")
		if err == nil || !strings.Contains(err.Error(), `at line 3 "-A FORWARD -m bogus -j DROP": `) {
			t.Errorf("an unknown match: %v", err)
		}
		err = tool.Restore(t.Context(), ns, "*filter\n-A FORWARD -j NOWHERE\nCOMMIT\n")
		if err == nil || !strings.Contains(err.Error(), " at line ") {
			t.Errorf("an unknown chain: %v", err)
		}
	})
}

func TestIPSet(t *testing.T) {
	ns := newNS(t)
	sets, err := FindIPSet(t.Context())
	if errors.Is(err, ErrMissing) {
		t.Skipf("no ipset: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	const text = "create a hash:net family inet\nadd a 192.0.2.0/24\n"
	for range 2 { // the second load finds everything there
		if err := sets.Restore(t.Context(), ns, text); err != nil {
			t.Fatal(err)
		}
	}
	got, err := sets.Save(t.Context(), ns)
	if err != nil || !strings.Contains(got, "add a 192.0.2.0/24") {
		t.Errorf("saved %q, %v", got, err)
	}
	err = sets.Restore(t.Context(), ns, "create b hash:net\nadd c 192.0.2.0/24\n")
	if err == nil || !strings.Contains(err.Error(), `"add c 192.0.2.0/24"`) {
		t.Errorf("a set that is not there: %v", err)
	}
	other := newNS(t)
	if got, err := sets.Save(t.Context(), other); err != nil || got != "" {
		t.Errorf("another namespace has sets %q, %v", got, err)
	}
}

// TestOwnLock proves that no run waits for another's lock: each holds its own exclusively while the others run.
func TestOwnLock(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skipf("needs the flock program: %v", err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "restore")
	gate := filepath.Join(dir, "gate")
	// Holds its lock until the test, having seen them all, opens the gate.
	text := "#!/bin/sh\nexec 9<>\"$XTABLES_LOCKFILE\" && flock -n 9 && echo >>" + dir + "/held && while ! [ -e " + gate + " ]; do sleep 0.01; done\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	ns := newNS(t)
	tool := &Tool{Flavor: Legacy, restore: script}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := tool.Restore(t.Context(), ns, ""); err != nil {
				t.Error(err)
			}
		})
	}
	deadline := time.Now().Add(20 * time.Second)
	for held := 0; held < 3; {
		if time.Now().After(deadline) {
			t.Errorf("%d of 3 hold their lock", held)
			break
		}
		b, err := os.ReadFile(filepath.Join(dir, "held"))
		if err == nil {
			held = strings.Count(string(b), "\n")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := os.WriteFile(gate, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

// TestLegacyObeysTheLockVariable: what TestOwnLock shows is of use only if the real program looks at the variable.
func TestLegacyObeysTheLockVariable(t *testing.T) {
	ns := newNS(t)
	tool, err := Find(t.Context(), Legacy, false)
	if errors.Is(err, ErrMissing) {
		t.Skipf("no legacy flavour: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool.restore)
	cmd.Env = append(cmd.Environ(), "XTABLES_LOCKFILE="+t.TempDir()+"/no/such/directory")
	cmd.Stdin = strings.NewReader("*filter\nCOMMIT\n")
	if err := ns.Do(cmd.Run); err == nil {
		t.Errorf("%s took a lock elsewhere than where it was told", tool.Name())
	}
}

func TestCancelled(t *testing.T) {
	ns := newNS(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the user has had enough")
	cancel(why)
	tool := &Tool{Flavor: NFT, restore: "/bin/cat"}
	if err := tool.Restore(ctx, ns, ""); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}
