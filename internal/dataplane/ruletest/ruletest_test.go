package ruletest

import (
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/kernel/nft"
)

func TestTarget(t *testing.T) {
	tests := map[string]string{
		"-j ACCEPT":                            "ACCEPT",
		"-i cali+ -g cali-x":                   "cali-x",
		`-m comment --comment "go -j NOWHERE"`: "",
		`-m comment --comment "a -j B" -j C`:   "C",
		"-m recent --set --name x":             "",
		"-j":                                   "",
		"-s 10.0.0.0/8 -g KUBE-SVC-1 -x 12":    "KUBE-SVC-1",
	}
	for rule, want := range tests {
		if got := Target(rule); got != want {
			t.Errorf("Target(%q) = %q, want %q", rule, got, want)
		}
	}
}

func TestCheckFindsFaults(t *testing.T) {
	tests := map[string]struct {
		chain, rule, finds string
	}{
		"undeclared chain":     {"X", "-j NOWHERE", `"NOWHERE"`},
		"built-in as a target": {"X", "-j INPUT", `"INPUT"`},
		"line break":           {"X", "-j DROP\n-A X -j ACCEPT", "line break"},
		"open quote":           {"X", `-m comment --comment "x -j DROP`, "open quote"},
		"empty":                {"X", "", "empty"},
		"long name":            {strings.Repeat("x", maxChainName+1), "-j DROP", "29 bytes"},
	}
	for name, tt := range tests {
		r := ruleset.New()
		r.Table(ruleset.Filter).Chain(tt.chain).Append(tt.rule)
		err := Check(r)
		if err == nil || !strings.Contains(err.Error(), tt.finds) {
			t.Errorf("%s: Check says %v, want something about %q", name, err, tt.finds)
		}
	}
	r := ruleset.New()
	r.Table(ruleset.Filter).Chain(strings.Repeat("x", maxChainName)).Append("-j DROP")
	if err := Check(r); err != nil {
		t.Errorf("the longest name that iptables takes is refused: %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	r := ruleset.New()
	nat := r.Table(ruleset.NAT)
	nat.Chain("OUTPUT").Append("-j A")
	nat.Chain("A").Append("-g B")
	nat.Chain("B").Append("-j A") // a loop must not hang the walk
	nat.Chain("LONELY").Append("-j ALSO-LONELY")
	nat.Chain("ALSO-LONELY")
	want := []string{"nat/LONELY", "nat/ALSO-LONELY"}
	if got := Unreachable(r); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUnreachableNFT(t *testing.T) {
	table := nft.NewTable(nft.IPv4, "t")
	table.Map("ports", nft.Port).Put(nft.Goto("web"), uint16(80))
	table.Base("in", nft.Hook{Type: "filter", Hook: "input"}).Add(nft.VMap("ports", nft.DestPort)).Add(nft.GotoRandom("a", "b"))
	table.Chain("web").Add(nft.Jump("deep"))
	for _, name := range []string{"deep", "a", "b"} {
		table.Chain(name)
	}
	if lost := UnreachableNFT(table); len(lost) > 0 {
		t.Errorf("nothing leads to %q", lost)
	}
	table.Map("unused", nft.Port).Put(nft.Goto("alone"), uint16(80))
	table.Chain("alone").Add(nft.Jump("web"))
	if lost := UnreachableNFT(table); !slices.Equal(lost, []string{"alone"}) {
		t.Errorf("unreachable are %q, want alone", lost)
	}
}
