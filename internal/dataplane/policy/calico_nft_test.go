package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/dataplane/ruleset"
	"github.com/cnibench/cnibench/internal/dataplane/ruletest"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/tool/golden"
)

// inNFT is a node of one of the profiles with everything moved to nftables that can be.
func inNFT(n Node) Node {
	n.ProxyNFT = true
	if n.Calico != nil {
		n.Calico.NFTables = true
	}
	return n
}

func TestCalicoNFTables(t *testing.T) {
	for _, name := range []string{"calico-vxlan", "calico-underlay", "calico-policies"} {
		for node := range pods {
			n := inNFT(profiles[name](node))
			var text strings.Builder
			for _, table := range n.Tables() {
				if err := table.Check(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				text.WriteString(table.String())
			}
			golden.Check(t, fmt.Sprintf("%s-%d.nft", name, node), []byte(text.String()))
			rules, sets := n.Render()
			if left := regexp.MustCompile(`KUBE-S|cali`).FindString(rules + sets); left != "" {
				t.Errorf("%s: %s is left in iptables:\n%s", name, left, rules)
			}
		}
	}
}

// TestCalicoFlowtable: Felix's first rule of the forward hook offloads between devices of pods and tunnels, not the node's
// NIC.
func TestCalicoFlowtable(t *testing.T) {
	n := inNFT(profiles["calico-vxlan"](0))
	n.Calico.Flowtable, n.Calico.WireGuard = true, true
	table := CalicoNFT(*n.Calico)
	if err := table.Check(); err != nil {
		t.Error(err)
	}
	chain := table.Chain("filter-cali-FORWARD")
	const rule = "ct state established,related ip saddr != @cali40no-flow-offload ip daddr != @cali40no-flow-offload counter flow add @calico"
	if got := chain.Rules[0].String(); !strings.HasPrefix(got, rule) {
		t.Errorf("the first rule is %s, want %s", got, rule)
	}
	devices := "flowtable calico {\n\t\thook ingress priority 0\n\t\tdevices = { vxlan.calico, wireguard.cali, " + strings.Join(n.Calico.Devices, ", ") + " }\n"
	if !strings.Contains(table.String(), devices) {
		t.Errorf("no %q in:\n%s", devices, table)
	}
}

// TestTablesStandInTheirOrder: kube-proxy's comes first, so that Calico's base chains of the same priority run first.
func TestTablesStandInTheirOrder(t *testing.T) {
	var names []string
	for _, table := range inNFT(profiles["calico-vxlan"](0)).Tables() {
		names = append(names, table.Name)
	}
	if !slices.Equal(names, []string{"kube-proxy", "calico"}) {
		t.Errorf("tables %q", names)
	}
	if tables := profiles["calico-vxlan"](0).Tables(); len(tables) != 0 {
		t.Errorf("in iptables mode there are %d tables", len(tables))
	}
}

// tree is a chain of the prefix tree that finds a pod's chain in iptables; in nftables a map does.
var tree = regexp.MustCompile(`^cali-(from|to)-wl-dispatch-`)

// TestBothModesSayTheSame compares the two generators chain by chain: the same chains by name, but for the tree, with the
// same number of rules and the same ends of rules.
func TestBothModesSayTheSame(t *testing.T) {
	for _, name := range []string{"calico-vxlan", "calico-underlay", "calico-policies", "calico-ipip"} {
		n := profiles[name](0)
		rules := ruleset.New()
		addCalico(rules, *n.Calico)
		table := CalicoNFT(*inNFT(n).Calico)
		has := map[string][]string{}
		for _, c := range table.Chains() {
			has[c.Name] = ends(c)
		}
		for _, tab := range rules.Tables() {
			for _, c := range tab.Chains() {
				want := []string{}
				for _, r := range c.Rules() {
					want = append(want, meaning(tab.Name, ruletest.Target(r)))
				}
				key := tab.Name + "-" + c.Name
				got, ok := has[key]
				delete(has, key)
				switch {
				case tree.MatchString(c.Name):
					if ok {
						t.Errorf("%s: %s in nftables", name, key)
					}
				case strings.HasSuffix(c.Name, "-wl-dispatch"):
					if !slices.Equal(got, []string{"", "drop"}) {
						t.Errorf("%s: %s ends in %q", name, key, got)
					}
				case !slices.Equal(got, want):
					t.Errorf("%s: %s ends in\n %q, in iptables in\n %q", name, key, got, want)
				}
			}
		}
		for left, rules := range has {
			if len(rules) > 0 {
				t.Errorf("%s: chain %s is in nftables alone", name, left)
			}
		}
		if lost := ruletest.UnreachableNFT(table); len(lost) != 2*n.Calico.PoliciesUnselected {
			t.Errorf("%s: nothing leads to %q, want the %d policies in both directions that select nobody", name, lost, n.Calico.PoliciesUnselected)
		}
	}
}

// meaning is an iptables target in the words of nftables; what is no verdict is "".
func meaning(table, target string) string {
	switch target {
	case "ACCEPT", "DROP", "RETURN":
		return strings.ToLower(target)
	case "MARK", "NOTRACK", "MASQUERADE":
		return ""
	}
	return table + "-" + target
}

// ends are the verdicts at the end of a chain's rules, chains by their name, "" where a rule has none.
func ends(c *nft.Chain) []string {
	out := []string{}
	for _, r := range c.Rules {
		end := ""
		for _, term := range r {
			if v, ok := term.(nft.Verdict); ok {
				words := strings.Fields(nft.Rule{v}.String())
				end = words[len(words)-1]
			}
		}
		out = append(out, end)
	}
	return out
}

// TestWayToAPodIsOneLookup: however many pods a node has, their device is looked up once.
func TestWayToAPodIsOneLookup(t *testing.T) {
	c := CalicoConfig{NFTables: true}
	for i := range 200 {
		c.Devices = append(c.Devices, fmt.Sprintf("cali%011d", i))
	}
	table := CalicoNFT(c)
	for _, name := range []string{"filter-cali-from-wl-dispatch", "filter-cali-to-wl-dispatch"} {
		if n := len(table.Chain(name).Rules); n != 2 {
			t.Errorf("%s has %d rules, want the lookup and the end", name, n)
		}
		if n := len(table.Lookup(name).Elements); n != 200 {
			t.Errorf("%s holds %d ways, want 200", name, n)
		}
	}
	if err := table.Check(); err != nil {
		t.Error(err)
	}
}
