package check

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/external"
	"github.com/cnibench/cnibench/internal/judge/stat"
	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/outcome"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/finding"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

// The severities, for the tables.
const (
	Impossible = finding.Impossible
	Doubtful   = finding.Doubtful
	Note       = finding.Note
)

// paths shortens the tables: S and X are pods on one and on two nodes, H the hosts, P a pod and the host of another node, Q
// the other way, O of its own, V and W a Service with its endpoint near and far, N a NodePort.
var paths = map[string]string{
	"S": "pod-to-pod/same-node", "X": "pod-to-pod/cross-node", "H": "host-to-host/cross-node", "P": "pod-to-host/cross-node", "O": "pod-to-host/same-node", "Q": "host-to-pod/cross-node",
	"V": "pod-to-service/local", "W": "pod-to-service/remote", "N": "external-to-nodeport/remote", "L": "external-to-loadbalancer",
}

// imported reads facts ("# key: value") and rows "profile;path;workload;metric;value unit[;repetition]", as `cnibench
// import` would; a row without a metric is a failed trial.
func imported(t *testing.T, text string) (result.Header, []result.Record) {
	t.Helper()
	facts, rows := "# cnibench-csv v1\n", "profile,path,workload,metric,value,unit,repetition,status\n"
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch fields := strings.Split(line, ";"); {
		case line == "":
		case strings.HasPrefix(line, "#"):
			facts += line + "\n"
		case len(fields) == 3:
			rows += fields[0] + "," + paths[fields[1]] + `,"` + fields[2] + `",,,,1,failed` + "\n"
		default:
			value, unit, _ := strings.Cut(fields[4], " ")
			repetition := "1"
			if len(fields) > 5 {
				repetition = fields[5]
			}
			rows += strings.Join([]string{fields[0], paths[fields[1]], `"` + fields[2] + `"`, fields[3], value, unit, repetition, "ok"}, ",") + "\n"
		}
	}
	batch, err := external.Decode("", []byte(facts+rows))
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	c, err := external.Contents(batch)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return c.Header, c.Records
}

// ask returns what one rule finds.
func ask(t *testing.T, id string, h result.Header, records []result.Record) []finding.Finding {
	t.Helper()
	r, err := view(h, records).Report("r", []string{id})
	if err != nil {
		t.Fatal(err)
	}
	return r.Findings
}

// ruleCase is the smallest example at which a rule rings, or a near miss.
type ruleCase struct {
	rule string
	text string
	// want is in what it says, "" if it must be silent.
	want     string
	severity finding.Severity
}

const claimAB = "# claim: goodput of canal over ptp on pod-to-pod/cross-node under stream "

var ruleCases = []ruleCase{
	{"rate-times-time", "canal;X;stream;goodput;10 Gbit/s\ncanal;X;stream;window;10 s\ncanal;X;stream;transferred;12.5 GiB", "2^30 taken for 10^9", Impossible},
	{"rate-times-time", "canal;X;stream;goodput;10 Gbit/s\ncanal;X;stream;window;10 s\ncanal;X;stream;transferred;12.6 GB", "", ""},
	{"rate-times-time", "canal;X;stream;goodput;10 Gbit/s\ncanal;X;stream;transferred;99 GB", "", ""},
	{"requests-times-time", "canal;X;http;request_rate;1000 1/s\ncanal;X;http;window;30 s\ncanal;X;http;requests;60000 1", "60000 requests in 30 s are 2000/s", Impossible},
	{"requests-times-time", "canal;X;http;request_rate;1000 1/s\ncanal;X;http;window;30 s\ncanal;X;http;requests;30100 1", "", ""},
	{"loss-arithmetic", "canal;X;stream(udp);frame_loss_rate;0.024 %\ncanal;X;stream(udp);datagrams;1341176 1\ncanal;X;stream(udp);datagrams_lost;32 1", "the decimal point one place off", Impossible},
	{"loss-arithmetic", "canal;X;stream(udp);frame_loss_rate;0.0024 %\ncanal;X;stream(udp);datagrams;1341176 1\ncanal;X;stream(udp);datagrams_lost;32 1", "", ""},
	{"retransmit-arithmetic", "canal;X;stream;retransmits;100 1\ncanal;X;stream;transferred;10 GB\ncanal;X;stream;retransmits_per_gb;100 1/GB", "are 10 per GB", Impossible},
	{"retransmit-arithmetic", "canal;X;stream;retransmits;100 1\ncanal;X;stream;transferred;10 GB\ncanal;X;stream;retransmits_per_gb;10.2 1/GB", "", ""},
	{"loss-and-rate", "canal;X;stream(udp);offered_load;1 Gbit/s\ncanal;X;stream(udp);goodput;0.9 Gbit/s\ncanal;X;stream(udp);frame_loss_rate;1 %", "which leaves 990 Mbit/s", Doubtful},
	{"loss-and-rate", "canal;X;stream(udp);offered_load;1 Gbit/s\ncanal;X;stream(udp);goodput;0.9 Gbit/s\ncanal;X;stream(udp);frame_loss_rate;9 %", "", ""},
	{"packets-and-rate", "canal;X;stream(udp,message=1000);goodput;1 Gbit/s\ncanal;X;stream(udp,message=1000);packet_rate;100000 1/s", "1250 B a datagram", Doubtful},
	{"packets-and-rate", "canal;X;stream(udp,message=1000);goodput;1 Gbit/s\ncanal;X;stream(udp,message=1000);packet_rate;124000 1/s", "", ""},
	{"offered-load", "canal;X;stream(udp,rate=1G);goodput;500 Mbit/s", "exactly half", Doubtful},
	{"offered-load", "canal;X;stream(udp,rate=1G);goodput;1.2 Gbit/s", "1.20 Gbit/s left the sender", Doubtful},
	{"offered-load", "canal;X;stream(udp,rate=1G);goodput;790 Mbit/s\ncanal;X;stream(udp,rate=1G);frame_loss_rate;20 %", "", ""},
	{"offered-load", "canal;X;stream(udp);goodput;790 Mbit/s", "", ""},
	{"offered-load", "canal;X;stream(udp,bidirectional,rate=1G);goodput;2 Gbit/s", "", ""}, // a gigabit each way
	{"offered-load", "canal;X;stream(udp,bidirectional,rate=1G);goodput;1 Gbit/s", "exactly half", Doubtful},
	{"sender-receiver", "canal;X;stream;offered_load;10.5 Gbit/s\ncanal;X;stream;goodput;10 Gbit/s", "", ""},
	{"sender-receiver", "canal;X;stream;offered_load;12 Gbit/s\ncanal;X;stream;goodput;10 Gbit/s", "the receiver 10.0 Gbit/s", Doubtful},
	{"quantiles", "canal;X;rr;rtt.p50;20 us\ncanal;X;rr;rtt.p90;19 us", "rtt.p50 is 20.0 µs, above p90 of 19.0 µs", Impossible},
	{"quantiles", "canal;X;rr;rtt.mean;20 us\ncanal;X;rr;rtt.max;19 us", "rtt.mean", Impossible},
	{"quantiles", "canal;X;rr;rtt.mean;20 us\ncanal;X;rr;rtt.p50;50 us", "above 2 times mean of 20.0 µs", Impossible},
	{"quantiles", "canal;X;rr;rtt.min;10 us\ncanal;X;rr;rtt.max;20 us\ncanal;X;rr;rtt.stddev;9 us", "stddev", Impossible},
	{"quantiles", "canal;X;rr;rtt.min;10 us\ncanal;X;rr;rtt.mean;30 us\ncanal;X;rr;rtt.p50;20 us\ncanal;X;rr;rtt.p90;20 us\ncanal;X;rr;rtt.p99;90 us\ncanal;X;rr;rtt.max;500 us\ncanal;X;rr;rtt.stddev;50 us", "", ""},
	{"concurrency", "canal;X;http(connections=100);request_rate;20000 1/s\ncanal;X;http(connections=100);response_time.mean;8 ms", "160 under way, and there are 100", Impossible},
	// A stall of 138 ms at the opening of a window of 501 ms, and one that is too short for the same sum.
	{"concurrency", "canal;X;http(connections=10);request_rate;43238 1/s\ncanal;X;http(connections=10);response_time.mean;0.2457 ms\ncanal;X;http(connections=10);response_time.max;138 ms\ncanal;X;http(connections=10);window;0.501 s", "", ""},
	{"concurrency", "canal;X;http(connections=10);request_rate;43238 1/s\ncanal;X;http(connections=10);response_time.mean;0.2457 ms\ncanal;X;http(connections=10);response_time.max;3 ms\ncanal;X;http(connections=10);window;0.501 s", "10.6 under way, and there are 10", Impossible},
	{"concurrency", "canal;X;http(connections=100,tool=wrk);request_rate;20000 1/s\ncanal;X;http(connections=100,tool=wrk);response_time.mean;8 ms", "", ""},
	{"concurrency", "canal;X;rr;transaction_rate;10000 1/s\ncanal;X;rr;rtt.mean;104 us", "", ""},
	{"concurrency", "canal;X;rr(burst=8);transaction_rate;80000 1/s\ncanal;X;rr(burst=8);rtt.mean;100 us", "", ""},
	{"concurrency", "canal;X;rr(burst=8);transaction_rate;90000 1/s\ncanal;X;rr(burst=8);rtt.mean;100 us", "9 under way, and there are 8", Impossible},
	{"concurrency", "canal;X;crr(arrival=saturate);transaction_rate;300000 1/s\ncanal;X;crr(arrival=saturate);rtt.mean;100 us", "", ""},
	{"idle-connections", "canal;X;http(connections=100);request_rate;2000 1/s\ncanal;X;http(connections=100);response_time.mean;8 ms", "16 under way, of 100", Doubtful},
	{"idle-connections", "canal;X;http(connections=100);request_rate;12000 1/s\ncanal;X;http(connections=100);response_time.mean;8 ms", "", ""},
	{"zero-time", "canal;X;stream(udp);jitter;0 ms", "jitter is 0", Impossible},
	{"zero-time", "# claim: jitter of canal on pod-to-pod/cross-node under stream(udp) = 0.000..0.004 ms\ncanal;X;stream(udp);jitter;4 us", "0 is claimed", Impossible},
	{"zero-time", "canal;X;rr;rtt.stddev;0 ms\ncanal;X;rr;rtt.min;1 ns", "", ""},
	{"zero-rate", "canal;W;stream;goodput;0 Gbit/s\ncanal;X;stream;goodput;9.4 Gbit/s", "goodput is 0", Doubtful},
	{"zero-rate", "canal;X;rr;transaction_rate;0 1/s", "transaction_rate is 0", Doubtful},
	{"zero-rate", "canal;X;stream;goodput;0.001 Gbit/s\ncanal;X;stream;retransmits;0 1\ncanal;W;stream", "", ""},
	{"call-rate", "canal;X;stream(message=1024);goodput;22.2 Gbit/s", "2.71e+06 send calls", Doubtful},
	{"call-rate", "canal;X;stream(message=1024,flows=4);goodput;22.2 Gbit/s", "", ""},
	{"call-rate", "canal;X;stream(message=1024,bidirectional);goodput;22.2 Gbit/s", "", ""},
	{"udp-without-loss", "canal;X;stream(udp);goodput;9 Gbit/s", "neither offered load nor loss", Doubtful},
	{"udp-without-loss", "canal;X;stream(udp);goodput;9 Gbit/s\ncanal;X;stream(udp);frame_loss_rate;0 %", "", ""},
	{"udp-without-loss", "# claim: goodput of canal over ptp on pod-to-pod/cross-node under stream(udp) is better\ncanal;X;stream(udp)", "neither offered load nor loss is given", Doubtful},
	{"short-window", "canal;X;ping(interval=1s);rtt.mean;1 ms\ncanal;X;ping(interval=1s);window;10 s", "10 echoes", Doubtful},
	{"short-window", "canal;X;ping(interval=100ms);rtt.mean;1 ms\ncanal;X;ping(interval=100ms);window;10 s", "", ""},
	{"short-window", "canal;X;stream;goodput;1 Gbit/s\ncanal;X;stream;window;1 s", "1 s without a warm-up", Doubtful},
	{"short-window", "# warmup: 1s\ncanal;X;stream;goodput;1 Gbit/s\ncanal;X;stream;window;1 s", "", ""},
	{"transfer-dies", "canal;X;stream;goodput;70.2 kbit/s", "70.2 kbit/s of TCP", Doubtful},
	{"transfer-dies", "canal;X;stream;goodput;1.1 Mbit/s\ncanal;X;stream(udp);goodput;70 kbit/s\ncanal;W;stream;goodput;0 kbit/s", "", ""},

	{"line-rate", "# line_rate: 10Gbit/s\ncanal;X;stream;goodput;15.4 Gbit/s", "1.54 times", Impossible},
	{"line-rate", "# line_rate: 10Gbit/s\ncanal;X;stream(bidirectional);goodput;18.6 Gbit/s", "", ""},
	{"line-rate", "# line_rate: 10 Gbit/s\ncanal;S;stream;goodput;15.4 Gbit/s\ncanal;X;stream;goodput;9.9 Gbit/s", "", ""},
	{"line-rate", "canal;X;stream;goodput;15.4 Gbit/s", "", ""},
	{"faster-than-hosts", "canal;H;stream;goodput;9 Gbit/s\ncanal;W;stream;goodput;16 Gbit/s", "1.78 times better", Impossible},
	{"faster-than-hosts", "canal;H;rr;rtt.mean;100 us\ncanal;X;rr;rtt.mean;70 us", "1.43 times better", Doubtful},
	{"faster-than-hosts", "canal;H;rr;rtt.mean;100 us\ncanal;X;rr;rtt.mean;82 us\ncanal;H;stream;goodput;9 Gbit/s\ncanal;X;stream;goodput;10 Gbit/s\ncanal;S;rr;rtt.mean;20 us", "", ""},
	{"pods-below-hosts", "calico-vxlan;H;stream;goodput;12.9 Gbit/s\ncalico-vxlan;H;stream;goodput;12.7 Gbit/s;2\ncalico-vxlan;X;stream;goodput;1.5 Gbit/s\ncalico-vxlan;X;stream;goodput;1.4 Gbit/s;2", "between the bare hosts: 8.", Doubtful},
	{"pods-below-hosts", "host;H;stream;goodput;9.4 Gbit/s\ncilium-vxlan;W;stream;goodput;2.4 Gbit/s", "3.92 times worse", Doubtful},
	{"pods-below-hosts", "canal;H;rr;transaction_rate;30000 1/s\ncanal;X;rr;transaction_rate;9000 1/s", "3.33 times worse", Doubtful},
	// Encryption costs so much, datagrams depend on the socket, and within a node and from outside there are no such hosts.
	{"pods-below-hosts", "host;H;stream;goodput;9.4 Gbit/s\ncalico-wireguard;X;stream;goodput;2.4 Gbit/s\ncanal;X;stream;goodput;3.2 Gbit/s\ncanal;S;stream;goodput;1 Gbit/s\ncanal;N;stream;goodput;1 Gbit/s\nhost;H;stream(udp);goodput;9 Gbit/s\ncanal;X;stream(udp);goodput;1 Gbit/s", "", ""},
	// Whose own hosts were measured is held against those.
	{"pods-below-hosts", "raw;H;stream;goodput;90 Gbit/s\ncanal;H;stream;goodput;9 Gbit/s\ncanal;X;stream;goodput;8 Gbit/s", "", ""},
	{"directions-apart", "cilium-vxlan;X;stream;goodput;2.4 Gbit/s\ncilium-vxlan;X;stream(reverse);goodput;9.0 Gbit/s", "the other way, by pod-to-pod/cross-node stream(reverse): 3.75 times worse", Doubtful},
	{"directions-apart", "a;X;stream;goodput;15 Gbit/s\na;X;stream(reverse);goodput;5 Mbit/s", "3000 times worse", Doubtful},
	{"directions-apart", "a;P;stream;goodput;9 Gbit/s\na;Q;stream;goodput;2 Gbit/s", "by pod-to-host/cross-node stream", Doubtful},
	{"directions-apart", "a;X;stream(bidirectional);goodput;9.2 Gbit/s\na;X;stream(bidirectional);goodput.forward;9 Gbit/s\na;X;stream(bidirectional);goodput.reverse;0.2 Gbit/s", "9.00 Gbit/s the other way at the same time", Doubtful},
	{"directions-apart", "a;X;stream;goodput;4 Gbit/s\na;X;stream(reverse);goodput;9.0 Gbit/s\nb;X;stream;goodput;1 Gbit/s\na;W;stream;goodput;1 Gbit/s", "", ""},
	{"same-node-slower", "canal;S;ping;rtt.mean;0.91 ms\ncanal;X;ping;rtt.mean;0.205 ms", "91.0 µs, would fit", Doubtful},
	{"same-node-slower", "canal;S;crr;rtt.mean;983 us\ncanal;P;crr;rtt.mean;804 us", "1.22 times worse", Doubtful},
	{"same-node-slower", "canal;V;stream;goodput;9 Gbit/s\ncanal;W;stream;goodput;10 Gbit/s", "1.11 times worse", Doubtful},
	{"same-node-slower", "canal;S;stream;goodput;9 Gbit/s\ncanal;X;stream;goodput;9.2 Gbit/s", "", ""},
	// Intervals that overlap are no finding, however far the medians are apart.
	{"same-node-slower", "canal;S;stream;goodput;5 Gbit/s;1\ncanal;S;stream;goodput;11 Gbit/s;2\ncanal;X;stream;goodput;9 Gbit/s;1\ncanal;X;stream;goodput;10 Gbit/s;2", "", ""},
	{"unit-apart", "canal;V;stream;goodput;20 Gbit/s\ncanal;W;stream;goodput;9 Mbit/s", "on pod-to-service/remote: 2222 times better", Doubtful},
	{"unit-apart", "canal;S;rr;rtt.mean;20 us\ncanal;X;rr;rtt.mean;40 ms", "2000 times better", Doubtful},
	{"unit-apart", "canal;S;stream;goodput;40 Gbit/s\ncanal;X;stream;goodput;900 Mbit/s", "", ""},
	{"service-faster", "canal;X;stream;goodput;9 Gbit/s\ncanal;W;stream;goodput;10 Gbit/s", "1.11 times better", Doubtful},
	{"service-faster", "canal;X;stream;goodput;9 Gbit/s\ncanal;W;stream;goodput;9.3 Gbit/s\ncanal;V;stream;goodput;20 Gbit/s", "", ""},
	{"encapsulation-free", "calico-ipip;X;stream;goodput;4.5 Gbit/s\ncalico-underlay;X;stream;goodput;3.9 Gbit/s", "1.15 times better", Doubtful},
	{"encapsulation-free", "calico-ipip;X;stream;goodput;4.5 Gbit/s\ncalico-underlay;X;stream;goodput;4.2 Gbit/s\nmacvlan;X;stream;goodput;1 Gbit/s", "", ""},
	{"encapsulation-free", "cilium-vxlan;X;stream;goodput;4.5 Gbit/s\ncilium-native-legacy;X;stream;goodput;3 Gbit/s\ncalico-ipip;P;stream;goodput;9 Gbit/s\ncalico-underlay;P;stream;goodput;5 Gbit/s", "", ""},
	{"tunnels-disagree", "calico-vxlan;X;stream;goodput;1.4 Gbit/s\ncilium-vxlan;X;stream;goodput;8.3 Gbit/s", "uses vxlan too: 5.93 times worse", Doubtful},
	{"tunnels-disagree", "calico-vxlan;X;stream;goodput;3 Gbit/s\ncilium-vxlan;X;stream;goodput;8.3 Gbit/s\ncalico-ipip;X;stream;goodput;1 Gbit/s", "", ""},
	{"part-slower", "cilium-vxlan;P;stream;goodput;3 Gbit/s\ncilium-vxlan;X;stream;goodput;8.3 Gbit/s", "2.77 times worse", Doubtful},
	{"part-slower", "cilium-vxlan;P;stream;goodput;6 Gbit/s\ncilium-vxlan;X;stream;goodput;8.3 Gbit/s", "", ""},
	{"modes-disagree", "calico-vxlan;S;crr;rtt.mean;983 us\ncalico-ipip;S;crr;rtt.mean;265 us\ncalico-underlay;S;crr;rtt.mean;278 us", "up to 3.71 times worse", Doubtful},
	{"modes-disagree", "calico-vxlan;S;crr;rtt.mean;383 us\ncalico-ipip;S;crr;rtt.mean;265 us\ncalico-ebpf;S;crr;rtt.mean;100 us\ncalico-vxlan;X;crr;rtt.mean;983 us\ncalico-ipip;X;crr;rtt.mean;265 us", "", ""},
	{"odd-one-out", "canal;S;crr;rtt.mean;980 us\ncanal;O;crr;rtt.mean;230 us\nptp;S;crr;rtt.mean;260 us\nptp;O;crr;rtt.mean;225 us\nbridge;S;crr;rtt.mean;280 us\nbridge;O;crr;rtt.mean;205 us\nmacvlan;S;crr;rtt.mean;270 us\nmacvlan;O;crr;rtt.mean;190 us", "980 µs: 3.6 times worse", Doubtful},
	{"odd-one-out", "canal;S;crr;rtt.mean;640 us\ncanal;O;crr;rtt.mean;230 us\nptp;S;crr;rtt.mean;260 us\nptp;O;crr;rtt.mean;225 us\nbridge;S;crr;rtt.mean;280 us\nbridge;O;crr;rtt.mean;205 us\nmacvlan;S;crr;rtt.mean;270 us\nmacvlan;O;crr;rtt.mean;190 us", "", ""},
	{"wire-time", "# line_rate: 1Gbit/s\ncanal;X;rr(request=1024,response=1024);rtt.min;10 us", "the wire alone takes 17.8 µs", Impossible},
	{"wire-time", "# wire.metres: 100000\ncanal;X;rr;rtt.p50;0.5 ms", "the wire alone takes 1.00 ms", Impossible},
	{"wire-time", "# line_rate: 1Gbit/s\n# wire.metres: 100\ncanal;X;rr(request=1024,response=1024);rtt.min;20 us\ncanal;S;rr(request=1024,response=1024);rtt.min;5 us", "", ""},
	{"wire-bound", "# line_rate: 10Gbit/s\ncanal;X;stream;goodput;9.9 Gbit/s\nmacvlan;X;stream;goodput;9.8 Gbit/s", "canal, macvlan are within 3%", Note},
	{"wire-bound", "canal;H;stream;goodput;9.9 Gbit/s\ncanal;X;stream;goodput;9.9 Gbit/s\nmacvlan;X;stream;goodput;9.8 Gbit/s", "", ""},
	{"wire-bound", "canal;H;stream(udp,rate=1G);goodput;1 Gbit/s\ncanal;X;stream(udp,rate=1G);goodput;1 Gbit/s\nmacvlan;H;stream(udp,rate=1G);goodput;1 Gbit/s\nmacvlan;X;stream(udp,rate=1G);goodput;1 Gbit/s", "", ""},
	{"one-machine", "# nodes.machines: 1\ncanal;X;rr;rtt.p50;9 us", "all nodes are on one machine", Doubtful},
	{"one-machine", "# nodes.machines: 1\ncanal;S;rr;rtt.p50;9 us", "", ""},
	{"one-machine", "# nodes.machines: 2\ncanal;X;rr;rtt.p50;9 us", "", ""},
	{"token-bucket", "# instance: AWS t3.medium\ncanal;X;rr;rtt.p50;9 us", "run on credits", Doubtful},
	{"token-bucket", "# line_rate: 5Gbit/s\n# line_rate.sustained: 256Mbit/s\ncanal;X;rr;rtt.p50;9 us", "256 Mbit/s for good", Doubtful},
	{"token-bucket", "# instance: c5n.18xlarge\n# line_rate: 100Gbit/s\ncanal;X;rr;rtt.p50;9 us", "", ""},

	{"cpu-limit", "# cpu.limit: 2\ncanal;X;rr;rtt.p50;9 us", "limit of 2", Doubtful},
	{"cpu-limit", "# cpu.limit.server: 500m\n# cpu.limit.server.of: nginx\ncanal;X;rr;rtt.p50;9 us", "limit of 500m on nginx", Doubtful},
	{"cpu-limit", "# cpu.count: 2\ncanal;X;rr;rtt.p50;9 us", "", ""},
	{"hybrid-cpu", "# cpu.model: Intel(R) Core(TM) i9-14900K\ncanal;X;rr;rtt.p50;9 us", "no placement is stated", Doubtful},
	{"hybrid-cpu", "# cpu.model: Intel(R) Core(TM) i9-14900K\n# cpu.placement: P-cores 0 to 7\ncanal;X;rr;rtt.p50;9 us", "", ""},
	{"hybrid-cpu", "# cpu.model: Intel(R) Xeon(R) CPU E5-2620 0\ncanal;X;rr;rtt.p50;9 us", "", ""},
	{"leftovers", "# cluster.reuse: yes\n# cluster.cleanup: kubectl delete\n# order: canal, ptp\ncanal;X;rr;rtt.p50;9 us", "one cluster for canal, then ptp", Doubtful},
	{"leftovers", "# leftovers: cali chains beside cilium\ncanal;X;rr;rtt.p50;9 us", "cali chains", Doubtful},
	{"leftovers", "# cluster.reuse: yes\n# cluster.cleanup: nodes rebuilt\ncanal;X;rr;rtt.p50;9 us", "", ""},
	{"fixed-order", "# order: canal, ptp\ncanal;X;rr;rtt.p50;9 us", "first canal, then ptp", Doubtful},
	{"fixed-order", "# order: canal, ptp, interleaved\ncanal;X;rr;rtt.p50;9 us", "", ""},
	{"fixed-order", "# order: not stated\ncanal;X;rr;rtt.p50;9 us", "", ""},
	{"confounded", claimAB + "is better\n# setting.mtu: canal=1450; ptp=1500\n# setting.encapsulation: canal=vxlan; ptp=none\ncanal;X;stream;goodput;9 Gbit/s", "2 settings differ", Doubtful},
	{"confounded", claimAB + "is better\n# setting.mtu: canal=1450; ptp=1450\n# setting.encapsulation: canal=vxlan; ptp=none\ncanal;X;stream;goodput;9 Gbit/s", "", ""},
	{"unequal-load", "canal;X;stream(udp);transferred;1.875 GB\ncanal;X;stream(udp);datagrams;1341176 1\nptp;X;stream(udp);transferred;1.875 GB\nptp;X;stream(udp);datagrams;1294860 1", "1398 B under canal and of 1448 B under ptp", Doubtful},
	// Datagrams of 1400 B, half of which are lost under ptp: received bytes, and datagrams offered.
	{"unequal-load", "canal;X;stream(udp);transferred;1.4 GB\ncanal;X;stream(udp);datagrams;1000000 1\ncanal;X;stream(udp);datagrams_lost;0 1\nptp;X;stream(udp);transferred;0.7 GB\nptp;X;stream(udp);datagrams;1000000 1\nptp;X;stream(udp);datagrams_lost;500000 1", "", ""},
	{"unequal-load", "canal;X;stream(udp);transferred;1.4 GB\ncanal;X;stream(udp);datagrams;1000000 1\nptp;X;stream(udp);transferred;0.7 GB\nptp;X;stream(udp);datagrams;1000000 1\nptp;X;stream(udp);frame_loss_rate;50 %", "", ""},
	{"unequal-load", "canal;X;stream(udp);transferred;1.4 GB\ncanal;X;stream(udp);datagrams;1000000 1\nptp;X;stream(udp);transferred;0.7 GB\nptp;X;stream(udp);datagrams;1000000 1\nptp;X;stream(udp);datagrams_lost;100000 1", "of 1400 B under canal and of 700 B under ptp", Doubtful},
	{"unequal-load", "canal;X;stream(udp);transferred;1.875 GB\ncanal;X;stream(udp);datagrams;1341176 1\nptp;X;stream(udp);transferred;0.9 GB\nptp;X;stream(udp);datagrams;641176 1", "", ""},
	{"dsr-path", "# claim: goodput of calico-ebpf-dsr over calico-ebpf on pod-to-service/remote under stream is same\ncalico-ebpf-dsr;W;stream;goodput;9 Gbit/s", "compared on paths", Doubtful},
	{"dsr-path", "calico-ebpf-dsr;W;stream;goodput;9 Gbit/s", "no path from a client outside", Note},
	{"dsr-path", "calico-ebpf-dsr;L;stream;goodput;9 Gbit/s\ncalico-ebpf;W;stream;goodput;9 Gbit/s", "", ""},
	{"dsr-path", "calico-ebpf-dsr;N;stream;goodput;9 Gbit/s\ncalico-ebpf;W;stream;goodput;9 Gbit/s", "", ""},
	{"not-served", "macvlan;W;stream;goodput;9 Gbit/s", "numbers on pod-to-service/remote", Doubtful},
	{"not-served", "macvlan;O;stream;goodput;9 Gbit/s", "numbers on pod-to-host/same-node", Doubtful},
	{"not-served", "sriov;O;stream;goodput;9 Gbit/s\nmacvlan;P;stream;goodput;9 Gbit/s\nmacvlan;W;stream\ncanal;W;stream;goodput;9 Gbit/s", "", ""},
	{"encapsulation-unproven", "# firewall: tcp 179, IP protocol 4\n# setting.encapsulation: canal=vxlan; ptp=none\ncanal;X;stream;goodput;9 Gbit/s", "vxlan is stated", Doubtful},
	{"encapsulation-unproven", "# firewall: udp 8472\n# setting.encapsulation: canal=vxlan; ptp=none\ncanal;X;stream;goodput;9 Gbit/s", "", ""},
	{"edited-output", "# pods: client-7b8c9d5f6e-xyz12\ncanal;X;stream;goodput;9 Gbit/s", `"7b8c9d5f6e" has "e", "xyz12" has "y1"`, Impossible},
	{"edited-output", "# pods: kube-proxy-abcde\ncanal;X;stream;goodput;9 Gbit/s", `"abcde" has "ae"`, Impossible},
	{"edited-output", "# pods: iperf3-client-6f4ddb5448-jgx8s calico-kube-controllers-68cdf756d9-dfwnf kube-proxy-228qc etcd-0\ncanal;X;stream;goodput;9 Gbit/s", "", ""},
	{"asked-not-published", "# asked: rtt.p99 rtt.mean\ncanal;X;rr;rtt.mean;9 us", "no number for rtt.p99", Note},
	{"asked-not-published", "# asked: rtt.mean\ncanal;X;rr;rtt.mean;9 us", "", ""},
	{"conditions", "# kernel: 6.1\n# order: not stated\ncanal;X;rr;rtt.mean;9 us", "not stated: MTU, line rate", Note},
	{"conditions", allStated + "canal;X;rr;rtt.mean;9 us", "", ""},

	{"few-repetitions", "canal;X;rr;rtt.mean;9 us", "measured once", Doubtful},
	{"few-repetitions", "canal;X;rr;rtt.mean;9 us\ncanal;X;rr;rtt.mean;9 us;2\ncanal;X;rr;rtt.mean;9 us;3\ncanal;X;rr;rtt.mean;9 us;4", "", ""},
	{"few-repetitions", "# repetitions: 10\ncanal;X;rr;rtt.mean;9 us", "", ""},
	{"few-repetitions", "# repetitions: 2\ncanal;X;rr", "2 stated", Doubtful},
	{"spread", "canal;X;stream;goodput;9 Gbit/s\ncanal;X;stream;goodput;5 Gbit/s;2\ncanal;X;stream;goodput;9 Gbit/s;3\ncanal;X;stream;goodput;9 Gbit/s;4", "1 of 1 cell, ", Note},
	{"spread", "canal;X;stream;goodput;9 Gbit/s\ncanal;X;stream;goodput;8 Gbit/s;2\ncanal;X;stream;goodput;9 Gbit/s;3\ncanal;X;stream;goodput;9 Gbit/s;4", "", ""},
	{"copied", "canal;X;rr;rtt.mean;113.27 us\nptp;X;rr;rtt.mean;113.27 us\nraw;X;rr;rtt.mean;113.27 us", "113.27 µs for each of canal, ptp, raw", Impossible},
	{"copied", "canal;X;rr;rtt.mean;113 us\nptp;X;rr;rtt.mean;113 us\nraw;X;rr;rtt.mean;113 us", "for each of", Doubtful},
	{"copied", "canal;X;rr;rtt.mean;11 us\nptp;X;rr;rtt.mean;11 us\nraw;X;rr;rtt.mean;11 us\ncanal;X;crr;rtt.mean;113.27 us\nptp;X;crr;rtt.mean;113.27 us", "", ""},
	{"copied", "canal;X;rr;softirq_share;44.44444444 %\nptp;X;rr;softirq_share;44.44444444 %\nraw;X;rr;softirq_share;44.44444444 %", "", ""},
	{"flows-slower", "canal;X;stream;goodput;54 Gbit/s\ncanal;X;stream(flows=4);goodput;36 Gbit/s", "and 54.0 Gbit/s by one flow: 1.50 times worse", Doubtful},
	{"flows-slower", "canal;X;stream;goodput;54 Gbit/s\ncanal;X;stream(flows=4);goodput;53 Gbit/s", "", ""},
	{"failed-trials", "canal;X;stream", "the source gives no reason", Note},
	{"failed-trials", "canal;X;stream;goodput;9 Gbit/s", "", ""},

	{"claim-unit", "# claim: goodput of canal on pod-to-pod/cross-node under stream = 14.72 Gbit/s\ncanal;X;stream;goodput;1838 MiB/s", "2^20 taken for 10^6", Impossible},
	{"claim-unit", "# claim: goodput of canal on pod-to-pod/cross-node under stream = 15.42 Gbit/s\ncanal;X;stream;goodput;1838 MiB/s", "", ""},
	{"claim-decimal", "# claim: frame_loss_rate of canal on pod-to-pod/cross-node under stream(udp) = 0.024..0.038 %\ncanal;X;stream(udp);frame_loss_rate;0.00239 %\ncanal;X;stream(udp);frame_loss_rate;0.0377 %;2", "the lowest is 0.00239 %: the decimal point", Impossible},
	{"claim-decimal", "# claim: frame_loss_rate of canal on pod-to-pod/cross-node under stream(udp) = 0.0024..0.038 %\ncanal;X;stream(udp);frame_loss_rate;0.00239 %\ncanal;X;stream(udp);frame_loss_rate;0.0377 %;2", "", ""},
	{"claim-does-not-follow", claimAB + "= +38%\ncanal;X;stream;goodput;13.8 Gbit/s\nptp;X;stream;goodput;10 Gbit/s", "", ""},
	{"claim-does-not-follow", claimAB + "= +45%\ncanal;X;stream;goodput;13.8 Gbit/s\nptp;X;stream;goodput;10 Gbit/s", "the numbers give 1.38x, +38%", Doubtful},
	{"claim-does-not-follow", claimAB + "= 3.6x\ncanal;X;stream;goodput;37.4 Gbit/s\nptp;X;stream;goodput;10 Gbit/s", "3.6x is claimed", Doubtful},
	{"claim-does-not-follow", claimAB + "is better\ncanal;X;stream;goodput;9 Gbit/s\nptp;X;stream;goodput;10 Gbit/s", "called better", Doubtful},
	{"claim-does-not-follow", claimAB + "is same\ncanal;X;stream;goodput;9 Gbit/s\nptp;X;stream;goodput;18 Gbit/s", "50% apart", Doubtful},
	{"claim-does-not-follow", "# claim: goodput of canal on pod-to-pod/cross-node under stream is best\ncanal;X;stream;goodput;9 Gbit/s\nptp;X;stream;goodput;18 Gbit/s", "number 2 of 2: ptp has 18.0 Gbit/s", Doubtful},
	{"claim-does-not-follow", "# claim: rtt.p50 of canal on pod-to-pod/cross-node under rr is best\ncanal;X;rr;rtt.p50;9 us\nptp;X;rr;rtt.p50;18 us", "", ""},
	{"claim-does-not-follow", "# claim: everything is better\ncanal;X;rr;rtt.p50;9 us", "it cannot be read", Doubtful},
	{"claim-without-numbers", "# claim: training_time of canal over ptp on pod-to-pod/cross-node under stream = -70%\ncanal;X;stream;goodput;9 Gbit/s", "nothing here measures training_time", Doubtful},
	{"claim-without-numbers", claimAB + "is better\ncanal;X;stream;goodput;9 Gbit/s\nptp;X;stream;goodput;8 Gbit/s", "", ""},
	{"claim-one-run", claimAB + "is better\ncanal;X;stream;goodput;9 Gbit/s\nptp;X;stream;goodput;8 Gbit/s", "1 of 1 comparison stands", Doubtful},
	{"claim-one-run", claimAB + "is better\ncanal;X;stream;goodput;9 Gbit/s\ncanal;X;stream;goodput;9 Gbit/s;2\nptp;X;stream;goodput;8 Gbit/s\nptp;X;stream;goodput;8 Gbit/s;2", "", ""},
	{"claim-two-measures", claimAB + "is better\n# claim.2: rtt.p50 of canal over ptp on pod-to-pod/cross-node under rr is same\ncanal;X;stream;goodput;104 Mbit/s\nptp;X;stream;goodput;100 Mbit/s\ncanal;X;rr;rtt.p50;110 us\nptp;X;rr;rtt.p50;100 us", "10.0% is called the same", Doubtful},
	{"claim-two-measures", claimAB + "is better\n# claim.2: rtt.p50 of canal over ptp on pod-to-pod/cross-node under rr is same\ncanal;X;stream;goodput;114 Mbit/s\nptp;X;stream;goodput;100 Mbit/s\ncanal;X;rr;rtt.p50;110 us\nptp;X;rr;rtt.p50;100 us", "", ""},
	{"retransmits-per-byte", "# claim: retransmits of canal over ptp on pod-to-pod/cross-node under stream = -35%\ncanal;X;stream;retransmits;576 1\nptp;X;stream;retransmits;892 1\ncanal;X;stream;transferred;200 GiB\nptp;X;stream;transferred;53.9 GiB", "2.68 of canal and 15.4 of ptp", Doubtful},
	{"retransmits-per-byte", "# claim: retransmits_per_gb of canal over ptp on pod-to-pod/cross-node under stream is better\ncanal;X;stream;retransmits_per_gb;2 1/GB\nptp;X;stream;retransmits_per_gb;3 1/GB", "", ""},
	{"claim-one-sided", claimAB + "is better\ncanal;X;stream;goodput;9 Gbit/s\nptp;X;stream;goodput;8 Gbit/s\ncanal;S;stream;goodput;9 Gbit/s\nptp;S;stream;goodput;10 Gbit/s", "pod-to-pod/same-node stream: 9.00 Gbit/s and 10.0 Gbit/s", Note},
	{"claim-one-sided", claimAB + "is better\ncanal;X;stream;goodput;9 Gbit/s\nptp;X;stream;goodput;8 Gbit/s\ncanal;S;stream;goodput;11 Gbit/s\nptp;S;stream;goodput;10 Gbit/s", "", ""},
}

// allStated are facts that leave nothing to ask for.
const allStated = "# kernel: 6.1\n# mtu: 1500\n# line_rate: 100Gbit/s\n# cpu.model: some\n# tool.version: 3.16\n# cpu.placement: pinned\n# order: interleaved\n# repetitions: 10\n"

func TestRules(t *testing.T) {
	rang, silent := map[string]bool{}, map[string]bool{}
	for _, c := range ruleCases {
		h, records := imported(t, c.text)
		found := ask(t, c.rule, h, records)
		switch {
		case c.want == "" && len(found) > 0:
			t.Errorf("%s rings at\n%s\n%+v", c.rule, c.text, found)
		case c.want == "":
			silent[c.rule] = true
		case len(found) == 0:
			t.Errorf("%s is silent at\n%s", c.rule, c.text)
		case !strings.Contains(found[0].Saw, c.want) || found[0].Severity != c.severity:
			t.Errorf("%s says %q (%s), want %q (%s)", c.rule, found[0].Saw, found[0].Severity, c.want, c.severity)
		default:
			rang[c.rule] = true
		}
	}
	for _, r := range Rules() {
		if r.ID == "trial-warnings" {
			continue // of trials of our own: TestTrialWarnings
		}
		if !rang[r.ID] || !silent[r.ID] {
			t.Errorf("%s: rang %t, silent %t: it needs an example of both", r.ID, rang[r.ID], silent[r.ID])
		}
	}
}

// own is a run of ours: a case with so many trials, of which some carry a warning.
func own(trials, warned int, id string) []result.Record {
	var records []result.Record
	for i := range trials {
		r := result.Record{Type: result.TypeTrial, Status: result.OK, Metrics: map[string]float64{"goodput": 1e9 + float64(i)}}
		r.Case = plan.Case{Profile: plan.VariantOf("canal"), Path: plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}, Workload: plan.Workload{Spec: plan.Stream{}}.Normalize()}
		r.Repetition = i + 1
		if i < warned {
			r.Warnings = []sample.Warning{{ID: id, Message: "seen"}, {ID: id, Message: "seen again"}}
		}
		records = append(records, r)
	}
	return records
}

func TestTrialWarnings(t *testing.T) {
	for _, c := range []struct {
		trials, warned int
		id, want       string
		severity       finding.Severity
	}{
		{7, 5, outcome.Disagree, "5 of 7 trials of one case, canal pod-to-pod/cross-node stream: seen", Doubtful},
		{7, 3, outcome.Disagree, "3 of 7 trials", Note},
		{7, 7, outcome.CPUSteal, "7 of 7 trials", Note},
		{7, 7, remark, "", Note},
		{7, 0, outcome.Disagree, "", Note},
	} {
		found := ask(t, "trial-warnings", result.Header{}, own(c.trials, c.warned, c.id))
		switch {
		case c.want == "" && len(found) == 0:
		case len(found) != 1 || c.want == "" || !strings.Contains(found[0].Saw, c.want) || found[0].Severity != c.severity || found[0].Where != c.id:
			t.Errorf("%d of %d with %s: got %+v, want %q (%s)", c.warned, c.trials, c.id, found, c.want, c.severity)
		}
	}
}

// TestMinority: what few trials of a case show is a note, unless it is impossible.
func TestMinority(t *testing.T) {
	rows := func(metrics ...string) string {
		var b strings.Builder
		for i, m := range metrics {
			b.WriteString("canal;X;stream(udp,rate=1G);" + m + ";" + string(rune('1'+i)) + "\n")
		}
		return b.String()
	}
	h, records := imported(t, rows("goodput;1 Gbit/s", "goodput;1 Gbit/s", "goodput;0.7 Gbit/s"))
	found := ask(t, "offered-load", h, records)
	if len(found) != 1 || found[0].Severity != Note || !strings.Contains(found[0].Saw, "in 1 of 3 trials") {
		t.Errorf("a third of the trials: got %+v", found)
	}
	h, records = imported(t, rows("jitter;1 us", "jitter;1 us", "jitter;0 us"))
	if found = ask(t, "zero-time", h, records); len(found) != 1 || found[0].Severity != Impossible {
		t.Errorf("an impossible number in a third of the trials: got %+v", found)
	}
}

// TestLabIsNoCluster: what has no wire is not held against one.
func TestLabIsNoCluster(t *testing.T) {
	_, records := imported(t, "macvlan;H;rr;rtt.p50;12 us\nmacvlan;X;rr;rtt.p50;9 us\ncanal;H;stream;goodput;60 Gbit/s\ncanal;X;stream;goodput;9 Gbit/s\ncanal;X;stream(flows=4);goodput;5 Gbit/s\ncanal;X;stream;offered_load;12 Gbit/s")
	lab := result.Header{Plan: plan.Plan{Environment: "lab"}}
	for _, id := range []string{"faster-than-hosts", "pods-below-hosts", "flows-slower", "conditions", "sender-receiver"} {
		if found := ask(t, id, lab, records); len(found) > 0 {
			t.Errorf("%s rings in the lab: %+v", id, found)
		}
	}
	_, records = imported(t, "canal;S;stream;goodput;5 Gbit/s\ncanal;X;stream;goodput;9 Gbit/s")
	split := lab
	split.Facts = facts.Facts{facts.Placement: "split: 0 | 1"}
	if found := ask(t, "same-node-slower", split, records); len(found) > 0 {
		t.Errorf("same-node-slower rings where each node has CPUs of its own: %+v", found)
	}
	if found := ask(t, "same-node-slower", lab, records); len(found) == 0 {
		t.Error("same-node-slower is silent in the lab")
	}
	shaped := lab
	shaped.Plan.Lab.LineRate = 1e9
	if found := ask(t, "line-rate", shaped, records); len(found) == 0 {
		t.Error("line-rate does not know the lab's shaper")
	}
}

func TestUnknownRule(t *testing.T) {
	_, err := New(result.Header{}).Report("r", []string{"spread", "bogus", "sprad"})
	if err == nil || err.Error() != `there is no rule bogus, sprad, did you mean "spread"?` {
		t.Errorf("got %v", err)
	}
}

func TestRulesAreWhole(t *testing.T) {
	seen := map[string]bool{}
	for i, r := range Rules() {
		q := rules[i]
		if seen[q.id] || r.ID != q.id || r.Severity.Rank() < 0 || q.trial == nil && q.find == nil && q.beside == nil {
			t.Errorf("rule %s is there twice, lacks its words in page.md or asks nothing", q.id)
		}
		seen[q.id] = true
	}
	if n := strings.Count(page, "\n### "); n != len(rules) {
		t.Errorf("page.md has %d rules, and there are %d", n, len(rules))
	}
	few := pageRules().Of("few-repetitions").Do
	if want := fmt.Sprintf("at least %d times", stat.MinRepetitions); !strings.Contains(few, want) {
		t.Errorf("%q lacks %q", few, want)
	}
}

// TestFewRepetitionsOfOurs: a few cells that lost trials are a note in a run of ours, most of them a doubt; what somebody
// else published is doubtful in any case.
func TestFewRepetitionsOfOurs(t *testing.T) {
	short := func(cells int) []result.Record {
		var records []result.Record
		for i := range 5 {
			n := 7
			if i < cells {
				n = 2
			}
			for _, r := range own(n, 0, "") {
				r.Profile = plan.VariantOf(string(rune('a' + i)))
				records = append(records, r)
			}
		}
		return records
	}
	for _, c := range []struct {
		origin string
		cells  int
		want   []finding.Severity
	}{{"", 0, nil}, {"", 2, []finding.Severity{Note}}, {"", 3, []finding.Severity{Doubtful}}, {"iperf3", 2, []finding.Severity{Doubtful}}} {
		var got []finding.Severity
		for _, f := range ask(t, "few-repetitions", result.Header{Origin: c.origin}, short(c.cells)) {
			got = append(got, f.Severity)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("origin %q, %d of 5 cases short: %v, want %v", c.origin, c.cells, got, c.want)
		}
	}
}

// TestDSRBehindALoadBalancer: in the lab the client is outside, in our own runs on a cluster it is on a node.
func TestDSRBehindALoadBalancer(t *testing.T) {
	p := plan.Path{From: plan.External, To: plan.LoadBalancer}
	for env, want := range map[string]bool{plan.EnvLab: true, plan.EnvKubernetes: false, plan.EnvKind: false} {
		v := &View{header: result.Header{Plan: plan.Plan{Environment: env}}}
		if v.entersFromOutside(p) != want {
			t.Errorf("%s: from outside %t", env, !want)
		}
	}
	imported := &View{header: result.Header{Origin: "csv", Plan: plan.Plan{Environment: plan.EnvKubernetes}}}
	if !imported.entersFromOutside(p) {
		t.Error("whoever measured elsewhere had a client outside")
	}
}

// TestOddOneOut: a value that neither its row nor its column explains, and what explains one.
func TestOddOneOut(t *testing.T) {
	grid := func(rows map[string][]string) string {
		var b strings.Builder
		for _, path := range []string{"S", "O", "X", "W"} {
			for i, value := range rows[path] {
				b.WriteString([]string{"canal", "ptp", "bridge", "macvlan", "ipvlan"}[i] + ";" + path + ";crr;rtt.mean;" + value + " us\n")
			}
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		rows map[string][]string
		want string
	}{
		"one":                      {map[string][]string{"S": {"980", "260", "280", "270"}, "O": {"230", "225", "205", "190"}}, "980 µs: 3.6 times worse"},
		"few others":               {map[string][]string{"S": {"980", "260", "280"}, "O": {"230", "225", "205"}}, ""},
		"two of them":              {map[string][]string{"S": {"980", "900", "280", "270"}, "O": {"230", "225", "205", "190"}}, ""},
		"slow on the similar path": {map[string][]string{"S": {"980", "260", "280", "270"}, "O": {"800", "225", "205", "190"}}, ""},
		"slow elsewhere":           {map[string][]string{"S": {"980", "260", "280", "270"}, "O": {"230", "225", "205", "190"}, "X": {"1500", "500", "510", "505"}}, ""},
		"no similar path":          {map[string][]string{"W": {"980", "260", "280", "270"}, "O": {"230", "225", "205", "190"}}, ""},
		"within the factor":        {map[string][]string{"S": {"640", "260", "280", "270"}, "O": {"230", "225", "205", "190"}}, ""},
		"ten times too good":       {map[string][]string{"S": {"26", "260", "280", "270"}, "O": {"230", "225", "205", "190"}}, "26.0 µs: 10.4 times better"},
		"good on the similar path": {map[string][]string{"S": {"26", "260", "280", "270"}, "O": {"30", "225", "205", "190"}}, ""},
		"two too good":             {map[string][]string{"S": {"26", "30", "280", "270"}, "O": {"230", "225", "205", "190"}}, ""},
		"good":                     {map[string][]string{"S": {"60", "260", "280", "270"}, "O": {"230", "225", "205", "190"}}, ""},
	} {
		h, records := imported(t, grid(c.rows))
		found := ask(t, "odd-one-out", h, records)
		if len(found) > 0 != (c.want != "") || c.want != "" && (!strings.HasPrefix(found[0].Where, "canal pod-to-pod/same-node") || !strings.Contains(found[0].Saw, c.want)) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestFlowsOfAVariant: what is under way at most follows from the flows of the variant, not from those of its workload alone.
func TestFlowsOfAVariant(t *testing.T) {
	for v, plausible := range map[plan.Variant]bool{plan.VariantOf("ptp"): false, plan.VariantOf("ptp(flows=8)"): false, plan.VariantOf("ptp(flows=16)"): true} {
		c := plan.Case{Profile: v, Path: plan.Paths[0], Workload: plan.Workload{Spec: plan.RR{}}.Normalize()}
		r := result.Record{Trial: plan.Trial{Case: c}, Metrics: map[string]float64{metric.TransactionRate: 150000, metric.RTT + ".mean": 100e3}}
		if said := newTrial(&View{header: result.Header{Plan: plan.Default()}}, c, r).concurrencyFault(); (said == "") != plausible {
			t.Errorf("%s: %q", v, said)
		}
	}
}

// TestTransferDies reads the rows over time: the end of a window, rows without a byte, and what is alive.
func TestTransferDies(t *testing.T) {
	const mbit = 1e6 / 8
	for _, c := range []struct {
		name string
		rows []float64 // in Mbit/s, a second each
		w    plan.Spec
		want string
	}{
		{"collapses", []float64{4304, 4352, 4168, 1136, 128, 120, 72, 40, 40, 40}, plan.Stream{}, "4.35 Gbit/s in its best row, and at most 40.0 Mbit/s in the last quarter of 10s"},
		{"stops", []float64{20.9, 0, 0, 0, 0, 0, 0, 0, 0, 0}, plan.Stream{}, "in 9 of 10 rows"},
		{"starts and stops", []float64{900, 0, 900, 0, 900, 0, 900, 0, 900, 0}, plan.Stream{}, "5 of 10 rows"},
		{"lives", []float64{900, 880, 910, 905, 890, 902, 60, 900, 901, 899}, plan.Stream{}, ""},
		{"has one bad second at its end", []float64{900, 880, 910, 905, 890, 902, 890, 900, 901, 1}, plan.Stream{}, ""},
		{"is slower at its end", []float64{900, 880, 910, 905, 890, 902, 90, 90, 91, 92}, plan.Stream{}, ""},
		{"is too short to be judged", []float64{900, 900, 1}, plan.Stream{}, ""},
		{"is datagrams, which the sender counts", []float64{900, 900, 900, 900, 0, 0, 0, 0, 0, 0}, plan.Stream{Protocol: plan.UDP}, ""},
	} {
		r := own(1, 0, "")[0]
		r.Workload = plan.Workload{Spec: c.w}.Normalize()
		r.Client = &sample.Observation{Side: "client"}
		for i, rate := range c.rows {
			r.Client.Intervals = append(r.Client.Intervals, sample.Interval{StartNs: int64(i) * 1e9, EndNs: int64(i+1) * 1e9, Bytes: uint64(rate * mbit)})
		}
		// A warm-up is no part of the window.
		r.Client.Intervals = append([]sample.Interval{{StartNs: -1e9, Bytes: 1e12, Warmup: true}}, r.Client.Intervals...)
		found := ask(t, "transfer-dies", result.Header{Origin: "iperf3"}, []result.Record{r})
		switch {
		case c.want == "" && len(found) > 0:
			t.Errorf("what %s: %+v", c.name, found)
		case c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Saw, c.want)):
			t.Errorf("what %s: %+v, want %q", c.name, found, c.want)
		}
	}
}

// TestForeignTransfers asks the new rules of the output of tools: of transfers that die, of two directions, and of sound ones.
func TestForeignTransfers(t *testing.T) {
	const dir = "../../external/"
	between := plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	slow := "Connecting to host 10.0.2.9, port 5201\n[  5] local 10.0.1.7 port 51884 connected to 10.0.2.9 port 5201\n" +
		"[ ID] Interval           Transfer     Bitrate         Retr\n[  5]   0.00-10.00  sec  6.20 MBytes  5.20 Mbits/sec  900             sender\n[  5]   0.00-10.04  sec  6.00 MBytes  5.01 Mbits/sec                  receiver\n"
	fast := "Connecting to host 10.0.2.9, port 5201\nReverse mode, remote host 10.0.2.9 is sending\n[  5] local 10.0.1.7 port 51884 connected to 10.0.2.9 port 5201\n" +
		"[  5]   0.00-10.04  sec  17.5 GBytes  15.0 Gbits/sec    0             sender\n[  5]   0.00-10.00  sec  17.5 GBytes  15.0 Gbits/sec                  receiver\n"
	for _, c := range []struct {
		name, file, text string
		rule, want       string // want is "" where the rule is silent
	}{
		{"a black hole", dir + "iperf3/testdata/iperf3-text/black_hole.txt", "", "transfer-dies", "in 9 of 10 rows"},
		{"a collapse", dir + "iperf3/testdata/iperf3/collapse.json", "", "transfer-dies", "4.35 Gbit/s in its best row"},
		{"a sound text", dir + "iperf3/testdata/iperf3-text/tcp.txt", "", "transfer-dies", ""},
		{"a sound run", dir + "iperf3/testdata/iperf3/tcp_p3.json", "", "transfer-dies", ""},
		{"one held to a rate", dir + "iperf3/testdata/iperf3/fq_rate.json", "", "transfer-dies", ""},
		{"two directions", "", slow + fast, "directions-apart", "2994"},
		{"two directions alike", dir + "iperf3/testdata/iperf3/tcp_bidir.json", "", "directions-apart", ""},
		{"connections that vegeta does not say", dir + "outputs/testdata/vegeta/vegeta.json", "", "idle-connections", ""},
		{"connections that oha does not say", dir + "outputs/testdata/oha/documented.json", "", "concurrency", ""},
		{"a rate that fortio was held to", dir + "outputs/testdata/fortio/fortio_qps.json", "", "idle-connections", ""},
		{"percentiles of fortio", dir + "outputs/testdata/fortio/fortio.json", "", "quantiles", ""},
	} {
		b := []byte(c.text)
		if c.file != "" {
			var err error
			if b, err = os.ReadFile(c.file); err != nil {
				t.Fatal(err)
			}
		}
		batch, err := external.Decode("", b)
		if err == nil {
			err = external.Label{Profile: "x", Path: between}.Apply("f", &batch)
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		contents, err := external.Contents(batch)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		found := ask(t, c.rule, contents.Header, contents.Records)
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Saw, c.want)) {
			t.Errorf("%s: %s says %+v, want %q", c.name, c.rule, found, c.want)
		}
	}
}
