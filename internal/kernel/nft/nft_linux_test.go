package nft

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cnibench/cnibench/internal/kernel/link"
	"github.com/cnibench/cnibench/internal/kernel/netns"
)

func newNS(t testing.TB) *netns.NS {
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

// program runs nft in ns and returns what it prints.
func program(t *testing.T, ns *netns.NS, input string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("nft")
	if err != nil {
		path = "/usr/sbin/nft"
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no nft program to compare with (package nftables): %v", err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := ns.Do(cmd.Run); err != nil {
		t.Fatalf("nft %v: %v\n%s", args, err, stderr.String())
	}
	return out.String()
}

func samplers() []*Table {
	return []*Table{sampler(), samplerOf(IPv6, netip.MustParsePrefix("2001:db8::/64")), samplerOfBoth()}
}

// TestNetlinkAndTextAgree programs the same table by netlink and, through nft, from its text, and asks nft what stands
// in the kernel: the same rules, of the same instructions.
func TestNetlinkAndTextAgree(t *testing.T) {
	for _, table := range samplers() {
		t.Run(string(table.Family), func(t *testing.T) {
			ours, theirs := newNS(t), newNS(t)
			if err := Load(context.Background(), ours, table); err != nil {
				t.Fatal(err)
			}
			program(t, theirs, table.String(), "-f", "-")
			got, want := program(t, ours, "", "-s", "list", "ruleset"), program(t, theirs, "", "-s", "list", "ruleset")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what nft prints: by nft -, by netlink +:\n%s", diff)
			}
			if diff := cmp.Diff(instructions(t, theirs), instructions(t, ours)); diff != "" {
				t.Errorf("instructions: by nft -, by netlink +:\n%s", diff)
			}
		})
	}
}

// TestReplaceLeavesNothingOfTheOld: what stands afterwards is the new table alone, and others are left as they are.
func TestReplaceLeavesNothingOfTheOld(t *testing.T) {
	for _, family := range []Family{IPv4, IPv6} {
		ns, fresh := newNS(t), newNS(t)
		old, other, now := NewTable(family, "t"), NewTable(family, "other"), NewTable(family, "t")
		old.Chain("gone").Add(Count, Drop)
		old.Base("in", Hook{"filter", "input", FilterPriority}).Add(Jump("gone"))
		old.Set("ports", Port).Insert(uint16(80))
		now.Set("ports", Port).Insert(uint16(81))
		now.Base("in", Hook{"filter", "input", FilterPriority}).Add(Is(L4Proto, L4("tcp")), In("ports", DestPort), Accept)
		ctx := context.Background()
		if err := errors.Join(Load(ctx, ns, old, other), Replace(ctx, ns, now), Load(ctx, fresh, other, now)); err != nil {
			t.Fatal(err)
		}
		list := func(ns *netns.NS) string {
			return program(t, ns, "", "list", "table", string(family), "other") + program(t, ns, "", "list", "table", string(family), "t")
		}
		if diff := cmp.Diff(list(fresh), list(ns)); diff != "" {
			t.Errorf("fresh -, replaced +:\n%s", diff)
		}
		// There need be nothing to replace.
		if err := Replace(ctx, newNS(t), now); err != nil {
			t.Error(err)
		}
	}
}

// instructions returns the rules of ns as the kernel runs them, without handles and the numbers of anonymous maps.
func instructions(t *testing.T, ns *netns.NS) []string {
	t.Helper()
	var list []string
	for _, line := range strings.Split(program(t, ns, "", "--debug=netlink", "list", "ruleset"), "\n") {
		if strings.HasPrefix(line, "  [") || strings.HasPrefix(line, "  userdata") {
			list = append(list, mapNumber.ReplaceAllString(line, "__map"))
		}
	}
	if len(list) == 0 {
		t.Fatal("nft prints no instructions")
	}
	return list
}

var mapNumber = regexp.MustCompile(`__map\d+`)

// TestRefusalsNameTheirSubject: the kernel refuses what it alone can know, and the error says where.
func TestRefusalsNameTheirSubject(t *testing.T) {
	for _, tt := range []struct {
		name, subject string
		build         func(*Table)
	}{
		{"a translation where there is nothing to translate", `chain x, rule 2, "dnat to 192.0.2.1:80"`, func(t *Table) {
			t.Base("x", Hook{"filter", "forward", 0}).Add(Accept).Add(DNAT(netip.MustParseAddrPort("192.0.2.1:80")))
		}},
		{"a route chain elsewhere", "chain x", func(t *Table) { t.Base("x", Hook{"route", "forward", 0}) }},
		{"a loop", "the transaction", func(t *Table) {
			t.Base("base", Hook{"filter", "forward", 0}).Add(Jump("x"))
			t.Chain("x").Add(Jump("y"))
			t.Chain("y").Add(Jump("x"))
		}},
	} {
		table := NewTable(IPv4, "t")
		tt.build(table)
		err := Load(context.Background(), newNS(t), table)
		var number unix.Errno
		if !errors.As(err, &number) || !strings.Contains(err.Error(), "table t: ") {
			t.Errorf("%s: %v, want a refusal", tt.name, err)
			continue
		}
		// In which message the kernel finds a loop is its own business.
		if tt.name != "a loop" && !strings.Contains(err.Error(), ": "+tt.subject+": ") {
			t.Errorf("%s: refused %v, want %q", tt.name, err, tt.subject)
		}
	}
}

// TestLoadedTwice: the same table once more adds its rules again and takes its elements for what they are.
func TestLoadedTwice(t *testing.T) {
	ns := newNS(t)
	table := NewTable(IPv4, "t")
	table.Set("s", Addr).Insert(netip.MustParseAddr("192.0.2.1"))
	table.Base("c", Hook{"filter", "forward", 0}).Add(Count)
	for range 2 {
		if err := Load(context.Background(), ns, table); err != nil {
			t.Fatal(err)
		}
	}
	rules, err := Counters(ns, IPv4, "t")
	n, setErr := Elements(ns, IPv4, "t", "s")
	if err != nil || setErr != nil || len(rules) != 2 || n != 1 {
		t.Errorf("%d rules, %d elements, want 2 and 1: %v %v", len(rules), n, err, setErr)
	}
}

func TestNotThere(t *testing.T) {
	ns := newNS(t)
	if list, err := Counters(ns, IPv4, "nowhere"); err != nil || len(list) != 0 {
		t.Errorf("the rules of a table that is not there: %v, %v", list, err)
	}
	if _, err := Elements(ns, IPv4, "nowhere", "s"); err == nil || !strings.Contains(err.Error(), "table nowhere") {
		t.Errorf("the elements of a set that is not there: %v", err)
	}
}

// TestManyElements: what does not fit one message or one transaction arrives all the same, also a choice among more
// than one message holds.
func TestManyElements(t *testing.T) {
	const n = 20000
	ns := newNS(t)
	table := NewTable(IPv4, "t")
	nets, ways := table.Set("nets", Addr), table.Map("ways", Addr, Port)
	nets.Interval = true
	var to []netip.AddrPort
	for i := range n {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0})
		nets.Insert(netip.PrefixFrom(a, 24))
		ways.Put(Goto("choice"), a, uint16(i))
		if i < 3000 {
			to = append(to, netip.AddrPortFrom(a, 80))
		}
	}
	table.Chain("choice").Add(Is(L4Proto, L4("tcp")), DNATRandom(to...))
	table.Base("nat", Hook{"nat", "prerouting", DNATPriority}).Add(In("nets", DestAddr), VMap("ways", DestAddr, DestPort))
	if err := Load(context.Background(), ns, table); err != nil {
		t.Fatal(err)
	}
	// A prefix is two elements: where it begins and where it ends.
	for set, want := range map[string]int{"nets": 2 * n, "ways": n} {
		if got, err := Elements(ns, IPv4, "t", set); err != nil || got != want {
			t.Errorf("%s holds %d elements, want %d: %v", set, got, want, err)
		}
	}
	if got := strings.Count(program(t, ns, "", "list", "chain", "ip", "t", "choice"), " . 80"); got != len(to) {
		t.Errorf("the choice is among %d, want %d", got, len(to))
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("the user has had enough")
	cancel(why)
	if err := Load(ctx, newNS(t), sampler()); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}

// FuzzAnswer: nothing that comes from the socket makes parse read beyond it.
func FuzzAnswer(f *testing.F) {
	f.Add(make([]byte, 36))
	f.Add([]byte("\x24\x00\x00\x00\x02\x00\x00\x02\x01\x00\x00\x00\x00\x00\x00\x00\xfe\xff\xff\xff\x14\x00\x00\x00\x06\x0a\x05\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08\x00\x01\x00no\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		answers, err := syscall.ParseNetlinkMessage(b)
		if err != nil {
			return
		}
		for _, a := range answers {
			if r, ok := parseReply(a); !ok && r.text != "" {
				t.Errorf("no answer, and it says %q", r.text)
			}
		}
	})
}

func TestAnswer(t *testing.T) {
	b := []byte("\x2c\x00\x00\x00\x02\x00\x00\x02\x01\x00\x00\x00\x00\x00\x00\x00\xfe\xff\xff\xff\x14\x00\x00\x00\x06\x0a\x05\x00\x07\x00\x00\x00\x00\x00\x00\x00\x07\x00\x01\x00no\x00\x00")
	answers, err := syscall.ParseNetlinkMessage(b)
	if err != nil || len(answers) != 1 {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	r, ok := parseReply(answers[0])
	if !ok || r.number != unix.ENOENT || r.sequence != 7 || r.text != "no" {
		t.Errorf("parsed %+v, %v", r, ok)
	}
}

// TestFlowtable loads a flowtable by netlink, and by nft from its text. It goes with its table.
func TestFlowtable(t *testing.T) {
	table := NewTable(Inet, "t")
	table.Flowtable(Flowtable{Name: "fast", Priority: 5, Devices: []string{link.Loopback}})
	table.Base("forward", Hook{"filter", "forward", ManglePriority}).
		Add(State(Established), MorePackets(20), Offload("fast"), Count)
	ours, theirs := newNS(t), newNS(t)
	if err := Load(t.Context(), ours, table); errors.Is(err, unix.ENOENT) && strings.Contains(err.Error(), "flowtable fast") {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	program(t, theirs, table.String(), "-f", "-")
	list := func(ns *netns.NS) string { return program(t, ns, "", "-s", "list", "ruleset") }
	if diff := cmp.Diff(list(theirs), list(ours)); diff != "" {
		t.Errorf("by nft -, by netlink +:\n%s", diff)
	}
	program(t, ours, "", "delete", "table", "inet", "t")
	if left := list(ours); left != "" {
		t.Errorf("left: %s", left)
	}
}
