package explain

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestRecorded attributes stacks that a kernel has shown, each with the part that its reader would say.
func TestRecorded(t *testing.T) {
	table, err := parts()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("testdata/linux-6.18.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, n := bufio.NewScanner(f), 0
	for lines.Scan() {
		want, stack, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			t.Fatalf("line %q: want a part and a stack", lines.Text())
		}
		n++
		if got := table.partOfStack(strings.Split(stack, ";")); got.ID != want {
			t.Errorf("part %q, want %q:\n%s", got.ID, want, stack)
		}
	}
	if n < 40 {
		t.Errorf("%d stacks", n)
	}
}

// TestAnotherKernel attributes what a distribution's kernel has shown, of profiles that this kernel partly lacks: nearly all
// of it is explained, and the pieces that tell the profiles apart are found.
func TestAnotherKernel(t *testing.T) {
	table, err := parts()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/linux-6.12-debian.txt")
	if err != nil {
		t.Fatal(err)
	}
	samples, all := map[string]map[string]int{}, map[string]int{}
	var stack []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		w := strings.Fields(line)
		depth, err := strconv.Atoi(w[0])
		if err != nil || depth > len(stack) {
			t.Fatalf("line %q", line)
		}
		stack = append(stack[:depth], w[1])
		if len(w) < 3 {
			continue
		}
		n, err := strconv.Atoi(w[2])
		if err != nil {
			t.Fatal(err)
		}
		profile := stack[0]
		if samples[profile] == nil {
			samples[profile] = map[string]int{}
		}
		samples[profile][table.partOfStack(stack[1:]).ID] += n
		all[profile] += n
	}
	for profile, want := range map[string][]string{
		"flannel-vxlan": {"vxlan", "bridge", "br_netfilter", "conntrack", "nat", "rules forward"}, "canal": {"vxlan", "conntrack", "rules prerouting", "rules forward"},
		"cilium-native": {"bpf handle_ip", "bpf policy", "bpf handle_netdev", "redirect"}, "flannel-wireguard": {"wireguard", "bridge"}, "ipvlan": {"macvlan"},
	} {
		got := samples[profile]
		if all[profile] < 300 || float64(got["unexplained"]) > 0.05*float64(all[profile]) || got["rules elsewhere"] > 0 {
			t.Errorf("%s: %v of %d samples", profile, got, all[profile])
		}
		for _, id := range want {
			if float64(got[id]) < 0.005*float64(all[profile]) {
				t.Errorf("%s: %d of %d samples are in %s", profile, got[id], all[profile], id)
			}
		}
		if profile != "cilium-native" && got["bpf"] > 0 {
			t.Errorf("%s has no BPF program, and %d samples are of BPF", profile, got["bpf"])
		}
	}
}

// TestAttribute has the rules that make a choice.
func TestAttribute(t *testing.T) {
	table, err := parts()
	if err != nil {
		t.Fatal(err)
	}
	receive := "node-1;entry_SYSCALL_64_after_hwframe;handle_softirqs;process_backlog;__netif_receive_skb_one_core;"
	for stack, want := range map[string]string{
		"":                   "unexplained",
		"pod":                "unexplained",
		"pod;[unknown]":      "unexplained",
		"pod;main.main;x.go": "user",
		"pod;runtime.goexit;entry_SYSCALL_64_after_hwframe":                                 "syscall",
		"pod;[user];entry_SYSCALL_64_after_hwframe;[unknown]":                               "syscall",
		"pod;runtime.goexit;[unknown]":                                                      "unexplained",
		"switch;process_backlog;br_handle_frame":                                            "switch",
		receive + "br_handle_frame":                                                         "bridge",
		receive + "br_handle_frame;br_nf_pre_routing":                                       "br_netfilter",
		receive + "ip_rcv;nf_hook_slow":                                                     "rules prerouting",
		receive + "ip_forward;nf_hook_slow;nft_do_chain_ipv4;nft_do_chain":                  "rules forward",
		receive + "ip_forward;nf_hook_slow;ipt_do_table;comment_mt":                         "rules forward",
		receive + "nf_hook_slow":                                                            "rules elsewhere",
		receive + "ip_output;nf_hook_slow;nf_nat_inet_fn;nft_nat_do_chain;nft_do_chain":     "nat",
		receive + "bpf_prog_08219b7491364280_handle_ip;bpf_skb_fib_lookup;fib_table_lookup": "bpf handle_ip",
		// A packet that a program has sent on is not the program's.
		receive + "bpf_prog_08219b7491364280_x;__dev_queue_xmit;veth_xmit":            "veth",
		"pod;tcp_sendmsg;bpf_prog_0011223344556677_ops;handle_softirqs;ip_rcv":        "ip",
		receive + "skb_do_redirect;_raw_spin_lock":                                    "redirect",
		receive + "tcp_rcv_established;sock_def_readable;_raw_spin_unlock_irqrestore": "sched",
		// Turning softirqs on again is of who turned them off, until one runs.
		receive + "ip_rcv;nf_hook_slow;nf_conntrack_in;nf_conntrack_tcp_packet;__local_bh_enable_ip": "conntrack",
		"pod;ip_output;ip_finish_output2;__dev_queue_xmit;__local_bh_enable_ip;do_softirq.part.0":    "receive",
		receive + "enqueue_to_backlog;_raw_spin_unlock_irqrestore":                                   "receive",
		receive + "validate_xmit_skb.isra.0;netif_skb_features":                                      "xmit",
		receive + "__dev_forward_skb2;eth_type_trans":                                                "veth",
		receive + "vxlan_rcv;eth_type_trans":                                                         "receive",
	} {
		var frames []string
		if stack != "" {
			frames = strings.Split(stack, ";")
		}
		if got := table.partOfStack(frames); got.ID != want {
			t.Errorf("part %q, want %q: %s", got.ID, want, stack)
		}
	}
}

// TestTable: every rule is reachable, and faults in a table have a line.
func TestTable(t *testing.T) {
	table, err := parts()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range table.globs {
		if name := strings.ReplaceAll(r.function, "*", ""); r.caller == "" {
			if got, ok := table.findRule(name, ""); !ok || got.part.ID != r.part.ID {
				t.Errorf("%s of %s is hidden by %s of %s", r.function, r.part.ID, got.function, got.part.ID)
			}
		}
		if r.reason == "" {
			t.Errorf("%s has no reason", r.function)
		}
	}
	for name, rules := range table.exact {
		if len(rules) > 1 && rules[0].caller == "" && rules[1].caller == "" {
			t.Errorf("%s is in %s and in %s", name, rules[0].part.ID, rules[1].part.ID)
		}
	}
	for _, text := range []string{"[x]\n", "[x] y\n", "a  b\n", "[x] y: z\nalone\n"} {
		if _, err := parseTable(text); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzAttribute(f *testing.F) {
	table, err := parts()
	if err != nil {
		f.Fatal(err)
	}
	f.Add("node;entry_SYSCALL_64;bpf_prog_;nf_hook_slow")
	f.Fuzz(func(t *testing.T, stack string) {
		if p := table.partOfStack(strings.Split(stack, ";")); p.ID == "" || strings.Contains(p.ID, "*") {
			t.Errorf("part %+v", p)
		}
	})
}
