package selftest

import (
	"context"
	"testing"

	"github.com/cnibench/cnibench/internal/env/lab"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/plan/condition"
)

// policies is a lab with policies.
var policies = plan.Lab{Policies: 3, PoliciesUnselected: 2}

// breakagesOfServices are things done to policies, to what comes from outside, and to Services that only a self-test has.
var breakagesOfServices = []breakage{
	{
		name: "policies that deny nothing", profile: "calico-underlay", lab: policies, at: bothNodes,
		script:  `$IPTABLES -S | sed -n 's/^-A \(cali-p[oi]-.*--dports 9 .*\)/-D \1/p' | while read -r rule; do eval "$IPTABLES $rule"; done`,
		notices: []string{"policy.denied" + same, "policy.denied" + cross},
		holds:   []string{"policy.walk.egress" + cross, "policy.walk.ingress" + cross, "exchange" + cross},
	},
	{
		name: "a policy that is not asked about what a pod sends", profile: "calico-vxlan", lab: policies,
		script:  `$IPTABLES -D cali-fw-$VETH $($IPTABLES -S cali-fw-$VETH | grep -n -m 1 -e '-j cali-po-' | cut -d: -f1 | awk '{print $1 - 1}')`,
		notices: []string{"policy.walk.egress" + cross},
		holds:   []string{"policy.walk.ingress" + cross, "exchange" + cross, "policy.denied" + cross},
	},
	{
		name: "a policy that is not asked about what a pod receives", profile: "calico-nftables", lab: policies, at: []string{"node-2"},
		script: `dev=$(ip -o route | awk '/^10.244.2.1 / {print $3}')
			nft delete rule ip calico filter-cali-tw-$dev handle $(nft -a list chain ip calico filter-cali-tw-$dev | awk '/jump filter-cali-pi-/ {print $NF; exit}')`,
		notices: []string{"policy.walk.ingress" + cross},
		holds:   []string{"policy.walk.egress" + cross, "exchange" + cross, "policy.denied" + cross},
	},
	{
		name: "a pod whose packets AWS's policy agent does not see", profile: "aws-vpc", lab: policies,
		script:  `tc filter del dev $VETH ingress`,
		notices: []string{"policy.programs", "policy.tracked" + cross},
		holds:   []string{"policy.denied" + cross, "exchange" + cross},
	},
	{
		name: "pods without programs of AWS's policy agent", profile: "aws-vpc-eni2", lab: plan.Lab{Policies: 1}, at: bothNodes,
		script:  `for dev in $(ip -o link show type veth | grep -o 'eni[0-9a-f]*'); do tc qdisc del dev $dev clsact; done`,
		notices: []string{"policy.denied" + same, "policy.denied" + cross, "policy.programs", "policy.tracked" + cross},
		holds:   []string{"exchange" + cross, "rules.pods"},
	},
	{
		name: "silence where a Service has no endpoints", profile: "flannel-host-gw", services: true,
		script:  `$IPTABLES -I FORWARD -d $NOBODY -j DROP`,
		notices: []string{"none.tcp", "none.udp"},
		holds:   []string{"sticky", "shared.even", "exchange@pod-to-service/remote"},
	},
	{
		// What a removal brings is loaded over this.
		name: "no affinity, and one backend for all", profile: "ptp", services: true,
		script: `for chain in $($IPTABLES -t nat -S | awk '/-m recent --rcheck/ {print $2}' | sort -u); do
				while number=$($IPTABLES -t nat -S $chain | grep -n -e '--rcheck' | head -n 1 | cut -d: -f1) && [ -n "$number" ]; do $IPTABLES -t nat -D $chain $((number - 1)); done
			done
			chain=$($IPTABLES -t nat -S KUBE-SERVICES | sed -n 's/.*svc-shared.*-j //p')
			$IPTABLES -t nat -R $chain 2 -j $($IPTABLES -t nat -S $chain | tail -n 1 | sed 's/.*-j //')`,
		notices: []string{"sticky", "shared.even"},
		holds:   []string{"shared.removed", "none.tcp"},
	},
	{
		name: "somebody else who still knows a backend that is gone", profile: "flannel-vxlan", services: true,
		script: `nft add table ip other
			nft add chain ip other pre '{ type nat hook prerouting priority -110; }'
			nft add rule ip other pre ip daddr $SHARED tcp dport 5201 numgen random mod 2 0 dnat to $GONE:5201`,
		notices: []string{"shared.removed"},
		holds:   []string{"sticky", "none.tcp"},
	},
	{
		name: "a kept address masqueraded", profile: "canal", lab: plan.Lab{TrafficPolicy: "Local"},
		script:  `$IPTABLES -t nat -I POSTROUTING -p tcp -d $NEAR -j MASQUERADE`,
		notices: []string{"source@external-to-nodeport/local"},
		holds:   []string{"exchange@external-to-nodeport/local", "refused@external-to-nodeport/remote"},
	},
	{
		name: "traffic that is passed on though it is to stay", profile: "flannel-vxlan", lab: plan.Lab{TrafficPolicy: "Local"},
		script: `$IPTABLES -t filter -F KUBE-EXTERNAL-SERVICES
			$IPTABLES -t nat -I PREROUTING -p tcp --dport 30202 -j DNAT --to-destination ${SUBNET%.0/24}.2:5201
			$IPTABLES -t nat -I POSTROUTING -o flannel.1 -j MASQUERADE`,
		notices: []string{"refused@external-to-nodeport/remote"},
		holds:   []string{"exchange@external-to-nodeport/local"},
	},
}

// TestMissingPoliciesAreNoticed holds profiles without policies, and with the policy Cluster, against tables of a lab that
// has others.
func TestMissingPoliciesAreNoticed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"canal", "calico-nftables", "cilium-native", "calico-ebpf", "aws-vpc"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inst := raised(t, plan.Lab{}, name)
			want := table(name).withLocalPolicy()
			want.policies = 2
			notices := []string{"policy.denied" + same, "policy.denied" + cross, "refused" + entry}
			if want.policed {
				notices = append(notices, "policy.walk.egress"+cross, "policy.walk.ingress"+cross, "policy.egress"+cross, "source@external-to-nodeport/local")
			}
			if want.Agent {
				notices = append(notices, "policy.programs", "policy.tracked"+cross)
			}
			hold(t, testInstance(context.Background(), inst, want), notices, []string{"exchange" + cross})
		})
	}
}

// TestUntracked: without connection tracking between pods, profiles are what they claim, and a profile that tracks is noticed.
func TestUntracked(t *testing.T) {
	t.Parallel()
	for name, notices := range map[string][]string{
		"canal":                {"conntrack.inner" + same, "conntrack.inner" + cross, "policy.egress" + cross, "policy.ingress" + cross, "conntrack.outer" + cross},
		"cilium-native-legacy": {"conntrack.inner" + cross},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, a := range Failed(Run(context.Background(), raised(t, plan.Lab{}, name+"(conntrack=off)"))) {
				t.Error(a)
			}
			hold(t, testInstance(context.Background(), raised(t, plan.Lab{}, name), table(name).withoutTracking()),
				notices, []string{"exchange" + cross})
		})
	}
}

// TestUnfilteredBridge: with netfilter off on bridges, profiles are what they claim: no rule counts a packet between pods of a
// node, and what crosses nodes is tracked. A profile whose rules see the bridge is noticed.
func TestUnfilteredBridge(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bridge", "flannel-vxlan"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Run(context.Background(), raised(t, plan.Lab{BridgeNetfilter: condition.BridgeNetfilterOff}, name))
			for _, a := range Failed(got) {
				t.Error(a)
			}
			hold(t, testInstance(context.Background(), raised(t, plan.Lab{}, name), table(name).withUnfilteredBridge()),
				[]string{"bridge.filtering", "untouched" + same, "conntrack.inner" + same, "refused@pod-to-service/local"}, []string{"conntrack.inner" + cross, "exchange" + cross})
		})
	}
}

// TestNodesThatChooseForThemselves holds Services whose backends every node draws by chance against the table of Maglev.
func TestNodesThatChooseForThemselves(t *testing.T) {
	t.Parallel()
	inst := raisedWith(t, lab.Options{TestServices: true}, "cilium-native")
	want := table("cilium-native-dsr")
	want.testServices = true
	hold(t, testInstance(context.Background(), inst, want), []string{"maglev"}, []string{"shared.even", "sticky"})
}
