package cli

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cnibench/cnibench/internal/plan"
)

// planFlag is a flag that shapes the plan. field is the key of a plan file that it stands for.
type planFlag struct {
	name, field, usage string
	set                func(p *plan.Plan, text string) error
}

// planFlags are applied in this order over the plan file or the preset.
var planFlags = slices.Concat(measureFlags, clusterFlags, []planFlag{
	{toolFlag, "workloads", "`programs` that send the workloads beside our own engine: " + strings.Join(plan.ToolNames(), ", "), nil},
})

// measureFlags say what is measured, and where in the lab.
var measureFlags = []planFlag{
	{"env", "environment", "`environment`: lab, kubernetes or kind", func(p *plan.Plan, s string) error { p.Environment = s; return nil }},
	{"profiles", "profiles", "`names` of profiles, separated by commas (cnibench list profiles)", func(p *plan.Plan, s string) (err error) {
		p.Profiles, err = plan.ParseVariants(s)
		return err
	}},
	{"paths", "paths", "`names` of paths, separated by commas, or all, which is every one but external-to-loadbalancer (cnibench list paths)", setPaths},
	{"workloads", "workloads", "`workloads`, separated by commas, such as rr,stream(udp,rate=1G) (cnibench list workloads)", func(p *plan.Plan, s string) (err error) {
		p.Workloads, err = plan.ParseWorkloads(s)
		return err
	}},
	{"load", "workloads", "`shares` of the capacity, such as 10%..95% or 50%: each of rr, crr and http in an open loop once for every share", func(p *plan.Plan, s string) error {
		loads, err := plan.ParseLoads(s)
		if err == nil {
			p.Workloads, err = plan.WithLoads(p.Workloads, loads)
		}
		return err
	}},
	{"repetitions", "repetitions", "how `often` each case is measured at least", func(p *plan.Plan, s string) error { return setInt(&p.Repetitions, s) }},
	{"max-repetitions", "maxRepetitions", "how `often` at most, to reach the precision", func(p *plan.Plan, s string) error { return setInt(&p.MaxRepetitions, s) }},
	{"precision", "precision", "wanted half-width of the intervals, as a `share` such as 0.05 or 5%", setPrecision},
	{"duration", "duration", "measurement `window` of each trial, such as 500ms", func(p *plan.Plan, s string) (err error) {
		p.Duration, err = plan.ParseWindow(s)
		return err
	}},
	{"warmup", "warmup", "`time` that is discarded before each window", func(p *plan.Plan, s string) error { return setDuration(&p.Warmup, s) }},
	{"budget", "budget", "`time` that the whole run may take, 0 for any", func(p *plan.Plan, s string) error { return setDuration(&p.Budget, s) }},
	{"seed", "seed", "`number` that decides the order; chosen if not given", func(p *plan.Plan, s string) (err error) {
		if p.Seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			return fmt.Errorf("%q is not a whole number from 0 to 2^64-1", s)
		}
		return nil
	}},
	{"baseline", "baseline", "`profile` that the others are compared with", func(p *plan.Plan, s string) (err error) {
		p.Baseline, err = plan.ParseVariant(s)
		return err
	}},
	{"nodes", "lab.nodes", "`number` of nodes of each profile", func(p *plan.Plan, s string) error { return setInt(&p.Lab.Nodes, s) }},
	{"nic", "lab.nic", "node NIC `model`: wire (segmentation off) or ideal (super-packets cross)", func(p *plan.Plan, s string) error { p.Lab.NIC = s; return nil }},
	{"cpu", "lab.cpu", "CPU `placement`: one, split or auto", func(p *plan.Plan, s string) error { p.Lab.CPU = s; return nil }},
	{"mtu", "lab.mtu", "`bytes` of the switch's MTU", func(p *plan.Plan, s string) error { return setInt(&p.Lab.MTU, s) }},
	{"delay", "lab.delay", "`time` by which every host's wire delays what it sends, to test the measurement; 0 is none", func(p *plan.Plan, s string) (err error) {
		p.Lab.Delay, err = time.ParseDuration(s)
		return err
	}},
	{"loss", "lab.loss", "`share` of what a host sends that its wire loses, such as 1%, to test the measurement", func(p *plan.Plan, s string) (err error) {
		p.Lab.Loss, err = plan.ParseLoss(s)
		return err
	}},
	{"line-rate", "lab.lineRate", "`rate` that each node NIC sends at, such as 1G; 0 is unshaped", func(p *plan.Plan, s string) (err error) {
		p.Lab.LineRate, err = plan.ParseRate(s)
		return err
	}},
	{"services", "lab.services", "`number` of Services besides the two that are measured", func(p *plan.Plan, s string) error { return setInt(&p.Lab.Services, s) }},
	{"service-proxy", "lab.serviceProxy", "`mode` of kube-proxy: iptables, nftables or ipvs", func(p *plan.Plan, s string) error { p.Lab.ServiceProxy = s; return nil }},
	{"family", "lab.family", "`version` of IP: 4 or 6", func(p *plan.Plan, s string) error { return setInt(&p.Lab.Family, s) }},
	{"traffic-policy", "lab.trafficPolicy", "`externalTrafficPolicy` of the measured Services: Cluster or Local", func(p *plan.Plan, s string) error { p.Lab.TrafficPolicy = s; return nil }},
	{"policies", "lab.policies", "`number` of NetworkPolicies that select every pod", func(p *plan.Plan, s string) error { return setInt(&p.Lab.Policies, s) }},
	{"policies-unselected", "lab.policiesUnselected", "`number` of NetworkPolicies that select no pod", func(p *plan.Plan, s string) error { return setInt(&p.Lab.PoliciesUnselected, s) }},
	{"iptables", "lab.iptables", "iptables `variant`: nft, legacy or auto", func(p *plan.Plan, s string) error { p.Lab.Iptables = s; return nil }},
}

// toolFlag is the flag that comes last: tools are for the workloads as all other flags have left them.
const toolFlag = "tool"

// planArgs are the flags that say what is measured.
type planArgs struct {
	file, preset string
	noTwin       bool
	texts        map[string]*string
	switches     map[string]*bool
	// drawn is true when the seed was drawn, because nobody said one.
	drawn bool
	// left says what of the plan is not to be had: workloads that the tools cannot send, conditions that a cluster is not given.
	left []string
	// labToo is true where one plan is for clusters and for the lab beside them.
	labToo bool
}

// values are the words that a flag of a plan can have, for the shell to complete.
var values = map[string]func() []string{
	"env":            fixed(plan.EnvLab, plan.EnvKubernetes, plan.EnvKind),
	"profiles":       profileNames,
	"baseline":       profileNames,
	"paths":          func() []string { return append(pathNames(), "all") },
	"workloads":      workloadNames,
	"nic":            fixed("wire", "ideal"),
	"cpu":            fixed("auto", "one", "split"),
	"iptables":       fixed("auto", "nft", "legacy"),
	"service-proxy":  fixed("iptables", "nftables", "ipvs"),
	"family":         fixed("4", "6"),
	"traffic-policy": fixed("Cluster", "Local"),
	toolFlag:         fixed(plan.ToolNames()...),
}

func fixed(words ...string) func() []string { return func() []string { return words } }

// declare adds all flags that shape a plan to cmd.
func (a *planArgs) declare(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&a.file, "file", "f", "", "plan `file` (examples/*.yaml)")
	f.StringVar(&a.preset, "preset", "quick", "`plan` to start from without a file: "+strings.Join(plan.Presets, ", "))
	f.BoolVar(&a.noTwin, "no-twin", false, "do not measure the baseline a second time; there is no noise floor then")
	cmd.MarkFlagsMutuallyExclusive("file", "preset")
	complete(cmd, "preset", fixed(plan.Presets...))
	var all []string
	for _, p := range planFlags {
		all = append(all, p.name)
	}
	a.declareSome(cmd, all)
	a.switches = map[string]*bool{}
	for _, s := range switches {
		a.switches[s.name] = f.Bool(s.name, false, s.usage)
	}
}

// declareSome adds the flags called names to cmd.
func (a *planArgs) declareSome(cmd *cobra.Command, names []string) {
	if a.preset == "" {
		a.preset = plan.Presets[0]
	}
	a.texts = map[string]*string{}
	for _, p := range planFlags {
		if !slices.Contains(names, p.name) {
			continue
		}
		a.texts[p.name] = cmd.Flags().String(p.name, "", p.usage)
		if words := values[p.name]; words != nil {
			complete(cmd, p.name, words)
		}
	}
}

// said says whether any flag that shapes the plan was given.
func (a *planArgs) said(cmd *cobra.Command) bool {
	names := []string{"file", "preset", "no-twin"}
	for _, p := range planFlags {
		names = append(names, p.name)
	}
	for _, s := range switches {
		names = append(names, s.name)
	}
	for _, n := range names {
		if cmd.Flags().Changed(n) {
			return true
		}
	}
	return false
}

// plan returns the plan that the flags ask for, valid. The error is plan.Faults where the request is wrong.
func (a *planArgs) plan(cmd *cobra.Command) (plan.Plan, error) {
	p, file, err := a.base(cmd)
	if err != nil {
		return p, err
	}
	faults := file.Faults()
	changed := map[string]string{}
	for _, f := range planFlags {
		if !cmd.Flags().Changed(f.name) {
			continue
		}
		if changed[f.field] == "" {
			changed[f.field] = "--" + f.name // the first says most of it
		}
		set := f.set
		if f.name == toolFlag {
			set = a.setTools
		}
		if err := set(&p, *a.texts[f.name]); err != nil {
			faults = append(faults, plan.Fault{Field: "--" + f.name, Message: err.Error()})
		}
	}
	for _, s := range switches {
		if cmd.Flags().Changed(s.name) {
			*s.at(&p) = *a.switches[s.name]
			changed[s.field] = "--" + s.name
		}
	}
	if a.noTwin {
		p.Twin = false
	}
	// Who says how long and how often says how long it may take in all.
	if a.file == "" && changed["duration"] != "" && changed["budget"] == "" {
		p.Budget = 0
	}
	if !cmd.Flags().Changed("seed") && p.Seed == 0 {
		p.Seed, a.drawn = rand.Uint64N(1_000_000_000), true
	}
	if a.file == "" && p.OnCluster() && changed["warmup"] == "" {
		p.Warmup = plan.ClusterWarmup
	}
	p = p.Settle()
	faults = append(faults, a.elsewhere(cmd, p)...)
	if err := both(faults, file.Place(p.Validate()), changed); err != nil {
		return p, err
	}
	if err := checkKind(p); err != nil {
		return p, usage(err)
	}
	if p.OnCluster() && !a.labToo {
		var idle []string
		if p, idle = p.WithoutLab(); idle != nil {
			a.left = append(a.left, strings.Join(idle, ", ")+" of the plan: for the lab only; the cluster is measured as it stands")
		}
	}
	return p, nil
}

// setTools adds each workload once more for every tool that can send it.
func (a *planArgs) setTools(p *plan.Plan, s string) (err error) {
	p.Workloads, a.left, err = plan.WithTools(p.Workloads, split(s))
	return err
}

// base is the plan that the flags are applied to, and the file that it is of.
func (a *planArgs) base(cmd *cobra.Command) (plan.Plan, plan.File, error) {
	if a.file == "" {
		p, ok := plan.Preset(a.preset)
		if !ok {
			return p, plan.File{}, usageOf(cmd, fmt.Errorf("unknown preset %q: want %s", a.preset, strings.Join(plan.Presets, " or ")))
		}
		return p, plan.File{}, nil
	}
	f, err := os.Open(a.file)
	if err != nil {
		return plan.Plan{}, plan.File{}, usage(fmt.Errorf("open plan: %w", err))
	}
	defer f.Close() // it was only read
	environment := ""
	if cmd.Flags().Changed("env") {
		environment = *a.texts["env"]
	}
	return plan.Read(a.file, f, environment)
}

// both joins the faults of a file and of flags that could not be read with those that the plan as a whole has. The latter are
// called by the flag that set the field, and left out where it could not be read.
func both(unread, whole plan.Faults, changed map[string]string) error {
	spoiled := map[string]bool{}
	for _, f := range unread {
		spoiled[f.Field] = true
	}
	for _, f := range whole {
		if flag := changed[f.Field]; flag != "" {
			f.File, f.Line, f.Field = "", 0, flag
		}
		if !spoiled[f.Field] {
			unread = append(unread, f)
		}
	}
	if len(unread) == 0 {
		return nil
	}
	unread.Sort()
	return unread
}

func split(s string) []string {
	var list []string
	for part := range strings.SplitSeq(s, ",") {
		list = append(list, strings.TrimSpace(part))
	}
	return list
}

func setPaths(p *plan.Plan, s string) error {
	p.Paths = nil
	if s == "all" {
		// A balancer's address may face the internet: nobody gets one who has not named the path.
		p.Paths = slices.DeleteFunc(slices.Clone(plan.Paths), func(q plan.Path) bool { return q.To == plan.LoadBalancer })
		return nil
	}
	var wrong []string
	for _, name := range split(s) {
		path, err := plan.ParsePath(name)
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		p.Paths = append(p.Paths, path)
	}
	if wrong != nil {
		return fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return nil
}

func setPrecision(p *plan.Plan, s string) error {
	digits, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return fmt.Errorf("%q is not a share: want a number such as 0.05 or 5%%", s)
	}
	if percent {
		v /= 100
	}
	p.Precision = v
	return nil
}

func setInt(at *int, s string) error {
	v, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", s)
	}
	*at = v
	return nil
}

func setDuration(at *time.Duration, s string) error {
	v, err := time.ParseDuration(s)
	if s == "0" {
		v, err = 0, nil
	}
	if err != nil {
		return fmt.Errorf("%q is not a duration: want a number with a unit, such as 500ms, 10s or 2m", s)
	}
	*at = v
	return nil
}
