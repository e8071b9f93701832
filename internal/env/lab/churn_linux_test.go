package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/control"
	"github.com/cnibench/cnibench/internal/dataplane/policy"
	"github.com/cnibench/cnibench/internal/dataplane/service"
	"github.com/cnibench/cnibench/internal/kernel/nft"
	"github.com/cnibench/cnibench/internal/kernel/thread"
	"github.com/cnibench/cnibench/internal/plan"
)

// TestChurn changes each kind of object under each engine. Every change is seen by packets, and nothing is left of it.
func TestChurn(t *testing.T) {
	needRights(t)
	variants := []plan.Variant{
		plan.VariantOf("ptp(churn=endpoints=20/s)"), plan.VariantOf("ptp(service-proxy=nftables,churn=services=20/s)"), plan.VariantOf("ptp(churn=services=20/s)"),
		plan.VariantOf("calico-vxlan(churn=policies=20/s)"), plan.VariantOf("calico-nftables(policies=3,churn=policies=20/s)"), plan.VariantOf("calico-vxlan(policies=3,churn=policies=20/s)"),
		plan.VariantOf("cilium-native(churn=endpoints=20/s)"), plan.VariantOf("cilium-vxlan(churn=services=20/s)"), plan.VariantOf("cilium-native(churn=policies=20/s)"),
		plan.VariantOf("calico-ebpf(churn=endpoints=20/s)"), plan.VariantOf("calico-ebpf(churn=services=20/s)"), plan.VariantOf("calico-ebpf(policies=2,churn=policies=20/s)"),
		plan.VariantOf("ptp(churn=none)"),
	}
	l := upWith(t, Options{}, plan.Texts(variants)...)
	for _, v := range variants {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			inst := l.Instance(v)
			if inst.Err != nil {
				t.Skip(inst.Err)
			}
			before := rulesOf(t, l, inst)
			seen, err := l.Churn(t.Context(), control.Churning{Variant: v, Warmup: 10 * time.Millisecond, Window: 400 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if v == plan.VariantOf("ptp(churn=none)") {
				if seen != nil || inst.Service(churnService) != nil {
					t.Errorf("without churn: %+v", seen)
				}
				return
			}
			if seen.Made == 0 || seen.Due < seen.Made || seen.Enforced.Count() == 0 || seen.Probes < uint64(seen.Enforced.Count()) || seen.CPUNs <= 0 || seen.AppliedNs <= 0 {
				t.Errorf("%+v", seen)
			}
			if after := rulesOf(t, l, inst); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// rulesOf describes the rules of the nodes, in no order, without counters and the numbers of maps.
func rulesOf(t *testing.T, l *Lab, inst *Instance) string {
	t.Helper()
	tool, err := l.tools.iptables()
	if err != nil {
		t.Skip(err)
	}
	var lines []string
	for _, n := range inst.Nodes {
		rules, err := tool.Save(context.Background(), n.NS, "")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(rules) {
			if _, rule, ok := strings.Cut(line, "] "); ok {
				line = rule
			}
			chain, _, _ := strings.Cut(line, " [")
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, n.Name+" "+chain)
			}
		}
		counted, err := nft.Counters(n.NS, nft.IPv4, policy.TableCalico)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range counted {
			lines = append(lines, n.Name+" "+c.Chain+" "+c.Verdict)
		}
		if inst.Spec.ProxyNFT() {
			served, err := nft.Elements(n.NS, nft.IPv4, service.TableNFT, service.MapServiceIPs)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%s: %d Services", n.Name, served))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestEnforced: the moment is that of the first probe from which on all see the change, once that is certain.
func TestEnforced(t *testing.T) {
	now := thread.Monotonic()
	const ms = 1_000_000
	answer := func(ago int64, how syscall.Errno) attempt { return attempt{sent: now - ago*ms, ended: true, how: how} }
	silent := func(ago int64) attempt { return attempt{sent: now - ago*ms} }
	for name, tt := range map[string]struct {
		probes []attempt
		want   sign
		over   int64
		at     int64 // in ms ago, 0 for not yet
	}{
		"seen":              {[]attempt{answer(9, syscall.ECONNREFUSED), answer(8, 0), answer(7, 0), answer(5, 0)}, opened, 6, 8},
		"before its end":    {[]attempt{answer(9, syscall.ECONNREFUSED), answer(8, 0)}, opened, 6, 0},
		"not yet":           {[]attempt{answer(9, 0), answer(5, 0)}, refused, 6, 0},
		"one of two nodes":  {[]attempt{answer(9, 0), answer(8, syscall.ECONNREFUSED), answer(7, 0), answer(5, 0)}, opened, 6, 7},
		"one under way":     {[]attempt{answer(9, syscall.ECONNREFUSED), silent(8), answer(5, 0)}, opened, 6, 0},
		"a younger one":     {[]attempt{answer(9, syscall.ECONNREFUSED), answer(5, 0), silent(1)}, opened, 6, 5},
		"dropped":           {[]attempt{answer(200, 0), silent(150), silent(90)}, closed, 100, 150},
		"perhaps dropped":   {[]attempt{answer(200, 0), silent(150), silent(40)}, closed, 100, 0},
		"rejected":          {[]attempt{answer(200, 0), answer(150, syscall.EHOSTUNREACH), answer(90, syscall.ECONNREFUSED)}, closed, 100, 150},
		"no answer is none": {[]attempt{answer(200, 0), silent(150), silent(90)}, refused, 100, 0},
	} {
		p := prober{probes: tt.probes}
		at, ok := p.enforcementTime(tt.want, now-tt.over*ms)
		if ok != (tt.at > 0) || ok && at != now-tt.at*ms {
			t.Errorf("%s: %d ms ago (%t), want %d", name, (now-at)/ms, ok, tt.at)
		}
	}
}

// TestPause: a probe that was answered at once is not one without an answer after a pause longer than probes are waited for.
func TestPause(t *testing.T) {
	needRights(t)
	l := upWith(t, Options{}, "ptp(churn=endpoints=1/s)")
	inst := l.Instance(plan.VariantOf("ptp(churn=endpoints=1/s)"))
	if inst.Err != nil {
		t.Skip(inst.Err)
	}
	p, err := inst.changing.openProber(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := p.sendProbe(); err != nil {
		t.Fatal(err)
	}
	p.pauseUntil(thread.Monotonic() + stale + settles)
	if b := p.probes[0]; !b.hasSign(opened) {
		t.Errorf("ended %t: %v", b.ended, b.how)
	}
}
