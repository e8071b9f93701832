package ipt

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnibench/cnibench/internal/kernel/netns"
)

// Lack is something that a node's rules need and this machine refuses.
type Lack struct {
	// Feature is the table, match or target, for example "rpfilter match".
	Feature string
	// Without says what cannot be imitated, and Remedy what to look for in the kernel.
	Without, Remedy string
	// Err is the refusal.
	Err error
}

func (l Lack) String() string {
	return fmt.Sprintf("no %s: %s; %s (%v)", l.Feature, l.Without, l.Remedy, l.Err)
}

// feature is a rule that uses one thing, in a table.
type feature struct{ name, table, rule, without, remedy string }

var features = []feature{
	{"nat table", "nat", "-A POSTROUTING -j MASQUERADE --random-fully", "no Service and no masquerading", "CONFIG_NF_NAT, CONFIG_NETFILTER_XT_TARGET_MASQUERADE (module xt_MASQUERADE)"},
	{"DNAT target", "nat", "-A PREROUTING -p tcp -j DNAT --to-destination 192.0.2.1:80", "no Service", "CONFIG_NETFILTER_XT_NAT (module xt_nat)"},
	{"statistic match", "nat", "-A PREROUTING -m statistic --mode random --probability 0.5", "no sharing among the endpoints of a Service", "CONFIG_NETFILTER_XT_MATCH_STATISTIC (module xt_statistic)"},
	{"addrtype match", "nat", "-A PREROUTING -m addrtype --dst-type LOCAL", "no node ports", "CONFIG_NETFILTER_XT_MATCH_ADDRTYPE (module xt_addrtype)"},
	{"recent match", "nat", "-A PREROUTING -m recent --set --name cnibench --rsource", "no session affinity", "CONFIG_NETFILTER_XT_MATCH_RECENT (module xt_recent)"},
	{"conntrack match", "filter", "-A FORWARD -m conntrack --ctstate NEW", "no Service and no policy", "CONFIG_NETFILTER_XT_MATCH_CONNTRACK (module xt_conntrack)"},
	{"comment match", "filter", `-A FORWARD -m comment --comment "x"`, "no rules in the shape of a node's", "CONFIG_NETFILTER_XT_MATCH_COMMENT (module xt_comment)"},
	{"mark match and target", "filter", "-A FORWARD -m mark --mark 1/1 -j MARK --set-xmark 0/1", "no masquerading mark and no policy", "CONFIG_NETFILTER_XT_MARK (module xt_mark)"},
	{"multiport match", "filter", "-A FORWARD -p udp -m multiport --dports 4789", "no Calico", "CONFIG_NETFILTER_XT_MATCH_MULTIPORT (module xt_multiport)"},
	{"REJECT target", "filter", "-A FORWARD -j REJECT", "a Service without endpoints cannot refuse", "CONFIG_IP_NF_TARGET_REJECT (module ipt_REJECT)"},
	{"rpfilter match", "raw", "-A PREROUTING -m rpfilter --validmark --invert", "no Calico: it checks the source of what pods send", "CONFIG_IP_NF_MATCH_RPFILTER (module ipt_rpfilter)"},
	{"NOTRACK target", "raw", "-A PREROUTING -p udp -j NOTRACK", "no Calico with VXLAN: it keeps outer packets out of conntrack", "CONFIG_NETFILTER_XT_TARGET_CT (module xt_CT)"},
	{"set match", "mangle", "-A POSTROUTING -m set --match-set cnibench-probe src", "no Calico and no canal", "CONFIG_IP_SET, CONFIG_IP_SET_HASH_NET, CONFIG_NETFILTER_XT_SET (module xt_set)"},
}

// Lacks loads one rule for each thing that a node's rules use, each into a namespace of its own that it drops again, and
// returns what was refused. Without the ipset program the set match counts as refused, with ErrMissing in its error.
func (t *Tool) Lacks(ctx context.Context) ([]Lack, error) {
	var lacks []Lack
	for _, f := range features {
		err := t.try(ctx, f)
		if ctx.Err() != nil {
			return nil, err
		}
		var refusal *RestoreError
		switch {
		case err == nil:
		case errors.As(err, &refusal), errors.Is(err, ErrMissing):
			lacks = append(lacks, Lack{Feature: f.name, Without: f.without, Remedy: "look for " + f.remedy, Err: err})
		default:
			return nil, err
		}
	}
	return lacks, nil
}

func (t *Tool) try(ctx context.Context, f feature) error {
	ns, err := netns.New()
	if err != nil {
		return err
	}
	// A failed close loses nothing: the kernel removes the namespace with the process.
	defer func() { _ = ns.Close() }()
	if f.name == "set match" {
		sets, err := FindIPSet(ctx)
		if err != nil {
			return err
		}
		if err := sets.Restore(ctx, ns, "create cnibench-probe hash:net family inet\n"); err != nil {
			return err
		}
	}
	return t.Restore(ctx, ns, "*"+f.table+"\n"+f.rule+"\nCOMMIT\n")
}
