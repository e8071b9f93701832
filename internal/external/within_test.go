package external

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

func sampleText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// prefixedLines puts a prefix before each line.
func prefixedLines(text, prefix string) string {
	return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix) + "\n"
}

// TestLogs: what kubectl, the runtime or a script puts around the output of a tool changes nothing of what is read.
func TestLogs(t *testing.T) {
	for _, name := range []string{
		"iperf3/testdata/iperf3-text/tcp.txt", "netperf/testdata/netperf/keyval.txt", "outputs/testdata/wrk/wrk_lat.txt", "sockperf/testdata/sockperf/sp_pp_tcp.txt",
		"ping/testdata/ping/ping.txt", "outputs/testdata/hey/hey.txt", "outputs/testdata/vegeta/vegeta.txt", "outputs/testdata/ab/ab.txt", "outputs/testdata/qperf/qperf_vv.txt",
		"iperf3/testdata/iperf3/tcp.json", "outputs/testdata/fortio/fortio.json",
	} {
		text := sampleText(t, name)
		plain, err := Decode("", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		format, _ := Detect([]byte(text))
		for _, prefix := range []string{
			"[pod/client-abc12/iperf3] ", "client-1  | ", "2026-11-26T14:53:01.123456789Z ", "2026-11-26T14:53:01.123456789+01:00 stdout F ",
			"\x1b[36m[client]\x1b[0m ", "[pod/client-abc12/iperf3] 2026-11-26T14:53:01.123456789Z ", "Nov 26 14:53:01 node-a bench[123]: ", "run-7> ", "[client] ", "1795718717 ", "1795718717.123 ",
		} {
			log := prefixedLines(text, prefix)
			for _, from := range []string{"", format} {
				got, err := Decode(from, []byte(log))
				if a, b := string(dump(got, err)), string(dump(plain, nil)); a != b {
					t.Errorf("%s behind %q, from %q: got\n%s\nwant\n%s", name, prefix, from, a, b)
				}
			}
		}
		for _, around := range []string{"\x1b[32mstarting\x1b[0m\n%s", "warning: something\n%s\nall done\n"} {
			if !strings.HasSuffix(name, ".json") {
				continue
			}
			got, err := Decode("", []byte(strings.Replace(around, "%s", text, 1)))
			if err != nil || len(got.Readings) != 1 || len(got.Readings[0].Metrics) != len(plain.Readings[0].Metrics) {
				t.Errorf("%s within %q: %s", name, around, dump(got, err))
			}
		}
	}
}

// TestJSONLogs: a log of which each line is an object, as Docker, stern and Loki write them, is what its lines hold.
func TestJSONLogs(t *testing.T) {
	for _, name := range []string{"iperf3/testdata/iperf3-text/tcp.txt", "iperf3/testdata/iperf3/tcp.json", "ping/testdata/ping/ping.txt"} {
		text := sampleText(t, name)
		plain, err := Decode("", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []string{`{"log":%s,"stream":"stdout"}`, `{"message":%s,"podName":"client-abc12","containerName":"iperf3"}`, `{"line":%s,"timestamp":"2026-11-26T14:53:01Z"}`} {
			var log strings.Builder
			for line := range strings.Lines(text) {
				quoted, err := json.Marshal(line)
				if err != nil {
					t.Fatal(err)
				}
				log.WriteString(strings.Replace(form, "%s", string(quoted), 1) + "\n")
			}
			got, err := Decode("", []byte(log.String()))
			if a, b := string(dump(got, err)), string(dump(plain, nil)); a != b {
				t.Errorf("%s in %s: got\n%s\nwant\n%s", name, form, a, b)
			}
		}
	}
}

// TestTextBetween: documents with text between are all read, and text that tells runs apart does so.
func TestTextBetween(t *testing.T) {
	doc := strings.TrimSpace(sampleText(t, "iperf3/testdata/iperf3/tcp.json"))
	next := another(doc, 2)
	x := Label{Profile: "x", Path: podPath}
	for _, c := range []struct {
		name, text string
		want       []string // profiles, with a sign for each repetition
	}{
		{"pairs of nodes", "node-a -> node-b\n" + doc + "\nnode-a -> node-c\n" + next + "\n", []string{"x+above.node-a-node-b#", "x+above.node-a-node-c#"}},
		{"runs below a heading", "calico\nrun 1\n" + doc + "\nrun 2\n" + next + "\ncilium\nrun 1\n" + another(doc, 3), []string{"x+above.calico#", "x+above.calico##", "x+above.cilium#"}},
		{"numbers of runs", "=== run 1 ===\n" + doc + "\n=== run 2 ===\n" + next + "\n", []string{"x#", "x##"}},
		{"times", "Thu Nov 26 14:53:01 UTC 2026\n" + doc + "\nThu Nov 26 14:54:01 UTC 2026\n" + next + "\n", []string{"x#", "x##"}},
		{"nothing", doc + "\n" + next, []string{"x#", "x##"}},
		{"text behind", doc + "\niperf Done.\n", []string{"x#"}},
	} {
		got, h := cases(t, []Batch{decoded(t, x, c.text)})
		for i := range got {
			got[i] = strings.Replace(got[i], " pod-to-pod/cross-node stream", "", 1)
			got[i] = strings.NewReplacer("(congestion=bbr)", "").Replace(got[i])
		}
		if strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if strings.Contains(c.text, "node-b") && !strings.Contains(h.Facts[FactLeftOut], "node-a -> node-b") {
			t.Errorf("%s: left out %q", c.name, h.Facts[FactLeftOut])
		}
	}
	// What is cut off is not read without its end.
	if got, err := Decode("", []byte("first\n"+doc+"\nsecond\n"+doc[:len(doc)/2])); err == nil {
		t.Errorf("a cut document: %s", dump(got, nil))
	}
	if got, err := Decode("", []byte(doc+"\n"+doc[:len(doc)/2])); err == nil {
		t.Errorf("a cut document behind a whole one: %s", dump(got, nil))
	}
}

// TestSeveralPods: lines of several pods are taken apart, also where they alternate; a server's lines are named.
func TestSeveralPods(t *testing.T) {
	a, b := strings.Split(sampleText(t, "iperf3/testdata/iperf3-text/tcp.txt"), "\n"), strings.Split(sampleText(t, "iperf3/testdata/iperf3-text/tcp_rev.txt"), "\n")
	var log strings.Builder
	for i := range max(len(a), len(b)) {
		for _, pod := range []struct {
			name  string
			lines []string
		}{{"[pod/a-1/iperf3] ", a}, {"[pod/b-2/iperf3] ", b}, {"[pod/dns/dns] ", []string{"ready"}}} {
			if i < len(pod.lines) {
				log.WriteString(pod.name + pod.lines[i] + "\n")
			}
		}
	}
	got, err := Decode("", []byte(log.String()))
	if err != nil || len(got.Readings) != 2 || got.Readings[0].Workload.Traits().Reverse || !got.Readings[1].Workload.Traits().Reverse {
		t.Errorf("%s", dump(got, err))
	}
	if all := strings.Join(got.LeftOut, "; "); !strings.Contains(all, "[pod/dns/dns]: not the output") || !strings.Contains(all, "[pod/a-1/iperf3], [pod/b-2/iperf3] are counted as alike") {
		t.Errorf("left out: %s", all)
	}
}

// TestRelatives: output of tools that is not read is called by its name, with the nearest form that is, and the way by CSV.
// The example of the way is one that import reads.
func TestRelatives(t *testing.T) {
	const iperf2 = "------------------------------------------------------------\nClient connecting to 10.0.2.9, TCP port 5001\nTCP window size: 45.0 KByte (default)\n" +
		"------------------------------------------------------------\n[  3] local 10.0.1.7 port 33390 connected with 10.0.2.9 port 5001\n[ ID] Interval       Transfer     Bandwidth\n[  3]  0.0-10.0 sec  1.40 GBytes  1.20 Gbits/sec\n"
	for _, c := range []struct{ text, from, says, hint string }{
		{iperf2, "", "iperf 2", "iperf3 -J"},
		{iperf2, "iperf3-text", "iperf3-text", "iperf3-text"},
		{"19700101000000,127.0.0.1,46448,127.0.0.1,5001,1,0.0-1.0,1176240188,9289914389\n", "", "iperf 2", "iperf3 -J"},
		{"Fortio 1.63.0 running at 0 queries per second, 2->2 procs, for 2s: http://x\n", "", "text of fortio", "-json"},
		{"Bombarding http://127.0.0.1:8080/ for 1s using 8 connection(s)\n", "", "text of bombardier", "-o json"},
		{"     http_req_duration..............: avg=144.56ms min=104.11ms med=110.47ms\n", "", "text of k6", "--summary-export"},
		{"Summary:\n  Success rate:\t100.00%\n  Total:\t2.0 sec\n  Slowest:\t0.1 sec\n", "", "text or the CSV of oha", "json"},
		{"request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status\n0.0012,0.0001,0.0009,0.0226,0.0226,100,200\n", "", "text or the CSV of oha", "json"},
		{"                    RDMA_Write BW Test\n #bytes     #iterations    BW peak[MB/sec]\n", "", "perftest", "cnibench-csv"},
		{"+-------------+---------+\n|   RESULT TYPE    |  DRIVER  | SCENARIO | PARALLELISM |\n", "", "tables of k8s-netperf", "--json"},
		{"Client connecting to 10.0.0.1, TCP port 5001 with pid 3166 (2 flows)\n[SUM] 0.00-0.50 sec  1.85 GBytes  31.7 Gbits/sec\n", "", "iperf 2", "iperf3 -J"},
		{"response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n0.0037,0.0005,0.0000,0.0003,0.0021,0.0007,200,0.0003\n", "", "CSV of hey", "without -o csv"},
		{"Bucket         #    %       Histogram\n[0s,    10ms]  27   13.57%  ####\n", "", "histogram of vegeta", "vegeta report -type json"},
		{"1795718717521323554,200,9385848,0,1024,,eHh4,0,name,GET,http://10.0.0.1/,aa\n", "", "single requests", "vegeta report -type json"},
		{"{\"attack\":\"\",\"seq\":0,\"code\":200,\"latency\":9385848}\n", "", "single requests", "vegeta report -type json"},
		{"Statistics        Avg      Stdev        Max\n  Reqs/sec        96.17     114.13     752.65\n", "", "bombardier", "-o json"},
		{"This is ApacheBench, Version 2.3\n<table ><tr><th colspan=2>Server Software:</th></tr></table>\n", "", "HTML of ab -w", "CSV"},
		{"{	\"transactions\":			       16367,\n	\"availability\":			      100.00,\n", "", "siege", "oha"},
		{"Percentage served,Time in ms\n0,0.064\n", "", "CSV or the gnuplot file of ab", "without -e"},
		{"starttime	seconds	ctime	dtime	ttime	wait\nFri Nov 27 00:15:40 2026	1795738540	0	0	0	0\n", "", "CSV or the gnuplot file of ab", "without -e"},
		{"{\"type\":\"Metric\",\"data\":{\"name\":\"http_reqs\"}}\n", "", "single requests of k6", "--summary-export"},
		{"10.42.1.5 : xmt/rcv/%loss = 10/10/0%, min/avg/max = 0.11/0.15/0.31\n", "", "fping", "by ping"},
		{"[  3]  0.0-10.0 sec  11.0 GBytes  9.41 Gbits/sec\n", "", "iperf 2", "iperf3 -J"},
		{"{\"report\": {\"mtr\": {\"src\": \"client\", \"dst\": \"10.42.1.5\"}}}\n", "", "mtr", "by ping"},
		{"{\"resp\": {\"host\": \"10.42.1.5\", \"seq\": 0, \"size\": 64, \"rtt\": 0.34}}\n", "", "fping", "by ping"},
		{"<ntttcpr computername=\"node-a\" version=\"5.33\"></ntttcpr>\n", "", "ntttcp", "iperf3 -J"},
		{"+ netperf -H 10.42.1.5 -t TCP_STREAM -P 0\n131072  16384  16384    10.00    9412.05\n", "", "netperf -P 0", "without -P 0"},
		{"HPING 10.42.1.5 (eth0 10.42.1.5): S set, 40 headers + 0 data bytes\n", "", "hping3", "by ping"},
		{"NTTTCP for Linux 1.4.0\n16:22:00 INFO:   throughput     :9.51Gbps\n", "", "ntttcp", "iperf3 -J"},
		{"[ ID]   Protocol    Interval      Bits/s\n[  6]     TCP      000-001 sec     9.41G\nEthr done, duration: 10s.\n", "", "ethr", "iperf3 -J"},
		{"{\"fastest\":1,\"latencyDistribution\":[{\"percentage\":50,\"latency\":4100000}]}\n", "", "ghz", "cnibench-csv"},
		{"Type,Name,Request Count,Failure Count\nGET,/,1000,0\n", "", "locust", "oha"},
		{"{\"metadata\":{},\"results\":{},\"x_values\":[0],\"raw_values\":{}}\n", "", "flent", "netperf"},
		{"====== PING_INLINE ======\n  100000 requests completed in 1.21 seconds\n", "", "redis-benchmark", "cnibench-csv"},
		{"------------------------------\ntest was performed using the following parameters: --mps=600000 --burst=1 --msg-size=14 --time=1\n", "", "single messages of sockperf", "printed"},
		{"finished in 5.01s, 12345.67 req/s, 1.2MB/s\n", "", "h2load", "oha"},
		{"KVStore:                 Ok   Disabled\nKubernetes:              Ok   1.30\n", "", "cilium status", "check --config"},
		{"Calico process is running.\n\nIPv4 BGP status\n", "", "calicoctl node status", "check --config"},
		{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: antrea-config}\n", "", "document of Kubernetes", "check --config"},
		{"kind: List\nitems: []\napiVersion: v1\n", "", "document of Kubernetes", "check --config"},
		{"Role,Driver,Profile,Same node\nClient,netperf,TCP_STREAM,false\n", "", "the CPU or the losses of k8s-netperf", "result-*.csv"},
		{"📋 Scenario        | Test            | Num Samples     | Duration\n", "", "an old cilium connectivity perf", "newer"},
		{"# TYPE kubenurse_errors_total counter\nkubenurse_errors_total 1\n", "", "metrics for Prometheus", "cnibench-csv"},
		{"Pinging 10.244.1.5 with 32 bytes of data:\n", "", "ping of Windows", "LC_ALL=C"},
		{"PING 10.244.1.5 (10.244.1.5) 56(84) Bytes an Daten.\n", "", "another language", "LC_ALL=C"},
		{"10.9.0.2 : 0.037 0.041 - 0.039\n", "", "fping", "by ping"},
		{"megabytes=11.3 real_seconds=2.00 rate_Mbps=47.5\n", "", "nuttcp", "iperf3 -J"},
		{"{\"start\":{},\"intervals\":[],\"end\":{\"sum_received\":{\"bytes\":\"9\"}}}", "", "end.sum_received.bytes is a string", "cnibench-csv"},
		{"PK\x03\x04\x14\x00\x06\x00..[Content_Types].xml", "", "a spreadsheet", "cnibench-csv"},
		{"some words\n", "", "nor the output of a supported tool", "cnibench-csv v1"},
		{"some words\n", "iperf3", "as iperf3", "leave out --from"},
		{"{\"a\": 1}", "fortio", "as fortio", "cnibench-csv v1"},
		{"some words\n", "iperf9", "unknown format", "leave out --from"},
	} {
		_, err := Decode(c.from, []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.says) && c.from == "" {
			t.Errorf("%q from %q: %v, want %q", c.text, c.from, err, c.says)
			continue
		}
		if c.from == "iperf3-text" {
			continue // what it says is of the format that was asked for
		}
		if hint := advice.Of(err); !strings.Contains(hint, c.hint) || strings.Contains(hint, "name the format by") {
			t.Errorf("%q from %q: hint %q, want %q", c.text, c.from, hint, c.hint)
		}
	}
	if _, err := Decode("csv", []byte("# cnibench-csv v1\nprofile,path,workload,metric,value,unit\ncanal,pod-to-pod/cross-node,stream,goodput,9.4,Gbit/s\n")); err != nil || !strings.Contains(csvWay, "canal,pod-to-pod/cross-node,stream,goodput,9.4,Gbit/s") {
		t.Errorf("the example of the way by CSV: %v", err)
	}
}

// TestWrapped: what a harness writes around the output of a tool changes nothing of what is read, and its words tell runs
// apart.
func TestWrapped(t *testing.T) {
	quote := func(text string) string {
		b, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, name := range []string{"iperf3/testdata/iperf3/tcp.json", "outputs/testdata/fortio/fortio.json", "iperf3/testdata/iperf3-text/tcp.txt", "ping/testdata/ping/ping.txt"} {
		text := sampleText(t, name)
		plain, err := Decode("", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		forms := []string{`{"rc": 0, "stdout": %q}`, `[{"pod": "client-a1", "output": %q}]`, "starting\n" + `{"results": [{"stdout": %q}]}` + "\n"}
		if strings.HasSuffix(name, ".json") {
			forms = append(forms, `{"result": %s}`, `{"uid": "3", "data": {"runs": [%s]}}`)
		}
		for _, form := range forms {
			doc := strings.NewReplacer("%q", quote(text), "%s", text).Replace(form)
			got, err := Decode("", []byte(doc))
			if err != nil || len(got.Readings) != len(plain.Readings) || len(got.Readings[0].Metrics) != len(plain.Readings[0].Metrics) || len(got.Readings[0].Conditions) > 0 {
				t.Errorf("%s within %s: %s", name, form, dump(got, err))
			}
		}
	}
	doc := sampleText(t, "iperf3/testdata/iperf3/tcp.json")
	both := `{"results": [{"item": "calico", "stdout": ` + quote(doc) + `}, {"item": "cilium", "stdout": ` + quote(another(doc, 2)) + `}]}`
	got, _ := cases(t, []Batch{decoded(t, Label{Profile: "x", Path: podPath}, both)})
	if len(got) != 2 || !strings.HasPrefix(got[0], "x+above.item.calico") || !strings.HasPrefix(got[1], "x+above.item.cilium") {
		t.Errorf("two items are %q", got)
	}
}

// TestSeveralTools: of a log with the output of two tools, both are read.
func TestSeveralTools(t *testing.T) {
	for _, names := range [][2]string{
		{"ping/testdata/ping/ping.txt", "iperf3/testdata/iperf3-text/tcp.txt"}, {"outputs/testdata/wrk/wrk_lat.txt", "outputs/testdata/hey/hey.txt"},
		{"iperf3/testdata/iperf3/tcp.json", "ping/testdata/ping/ping.txt"}, {"netperf/testdata/netperf/keyval.txt", "outputs/testdata/qperf/qperf_vv.txt"},
	} {
		want := 0
		for _, name := range names {
			b, err := Decode("", []byte(sampleText(t, name)))
			if err != nil {
				t.Fatal(err)
			}
			want += len(b.Readings)
		}
		got, err := Decode("", []byte(sampleText(t, names[0])+"\n"+sampleText(t, names[1])))
		if err != nil || len(got.Readings) != want {
			t.Errorf("%v: %d trials, want %d: %v", names, len(got.Readings), want, err)
		}
	}
}

// TestUTF16: PowerShell writes what it redirects as UTF-16.
func TestUTF16(t *testing.T) {
	text := sampleText(t, "iperf3/testdata/iperf3/tcp.json")
	plain, err := Decode("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		b := order.AppendUint16(nil, 0xfeff)
		for _, unit := range utf16.Encode([]rune(strings.ReplaceAll(text, "\n", "\r\n"))) {
			b = order.AppendUint16(b, unit)
		}
		for _, marked := range [][]byte{b, b[2:]} {
			got, err := Decode("", marked)
			if a, b := string(dump(got, err)), string(dump(plain, nil)); a != b {
				t.Errorf("%v: got\n%s\nwant\n%s", order, a, b)
			}
		}
	}
}

// TestPacked: a mark at the begin, gzip and the line ends of Windows change nothing of what is read.
func TestPacked(t *testing.T) {
	names, _ := Formats()
	for _, format := range names {
		for _, name := range samples(t, format) {
			text := sampleText(t, name)
			plain, err := Decode("", []byte(text))
			if err != nil {
				continue
			}
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			if _, err := z.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			windows := strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
			for what, b := range map[string][]byte{"a mark": []byte("\ufeff" + text), "gzip": packed.Bytes(), "CRLF": []byte(windows)} {
				got, err := Decode("", b)
				if a, b := string(dump(got, err)), string(dump(plain, nil)); a != b {
					t.Errorf("%s with %s: got\n%s\nwant\n%s", name, what, a, b)
				}
			}
		}
	}
}

// TestHeadings: text above the runs of a log tells them apart, unless it only counts them.
func TestHeadings(t *testing.T) {
	x := Label{Profile: "x", Path: podPath}
	for _, name := range []string{"iperf3/testdata/iperf3-text/tcp.txt", "outputs/testdata/wrk/wrk_lat.txt", "sockperf/testdata/sockperf/sp_pp_tcp.txt", "netperf/testdata/netperf/v27_tcp_rr.txt"} {
		run := sampleText(t, name)
		for _, c := range []struct{ first, second, want string }{
			{"=== calico ===", "=== cilium ===", "x+above.calico x+above.cilium"},
			{"=== calico run 1 ===", "=== calico run 2 ===", "x x"},
			{"# 2026-11-26 10:00:00", "# 2026-11-26 10:00:30", "x x"},
			{"+ kubectl exec a -- tool -P 1", "+ kubectl exec a -- tool -P 4", "x+above.kubectl-exec-a-tool-P-1 x+above.kubectl-exec-a-tool-P-4"},
			{"", "+ sleep 5", "x x"},
			{"=== calico ===\n" + run, "=== cilium ===\n" + run, "x+above.calico x+above.calico x+above.cilium x+above.cilium"},
		} {
			b := decoded(t, x, c.first+"\n"+run+"\n"+c.second+"\n"+run)
			got, err := Contents(b)
			if err != nil {
				t.Fatal(err)
			}
			var profiles []string
			for _, r := range got.Records {
				if r.Type == result.TypeTrial {
					profiles = append(profiles, r.Profile.String())
				}
			}
			if s := strings.Join(profiles, " "); s != c.want {
				t.Errorf("%s below %q and %q: %s, want %s", name, c.first, c.second, s, c.want)
			}
		}
	}
}

// TestWarmupsDiffer: runs that discard another time before their window are not repetitions of one case.
func TestWarmupsDiffer(t *testing.T) {
	x := Label{Profile: "x", Path: podPath}
	doc := sampleText(t, "iperf3/testdata/iperf3/tcp.json")
	longer := strings.Replace(another(doc, 2), `"omit"`, `"omit":5, "was"`, 1)
	for text, want := range map[string]int{longer: 2, another(doc, 2): 1} {
		got, err := Contents(decoded(t, x, doc), decoded(t, x, text))
		if err != nil || len(got.Header.Plan.Profiles) != want {
			t.Errorf("%v profiles, want %d: %v", got.Header.Plan.Profiles, want, err)
		}
	}
}

// TestWindowsDiffer: runs of 1 s and of 10 s are not repetitions of one case; transfers of so many bytes are.
func TestWindowsDiffer(t *testing.T) {
	for _, c := range []struct {
		windows []time.Duration
		want    int
	}{{[]time.Duration{time.Second, 10 * time.Second}, 2}, {[]time.Duration{9990 * time.Millisecond, 10 * time.Second}, 1}, {[]time.Duration{412 * time.Millisecond, 1350 * time.Millisecond}, 1}} {
		b := decoded(t, Label{Profile: "x", Path: podPath}, sampleText(t, "iperf3/testdata/iperf3/tcp.json"))
		other := b.Readings[0]
		b.Readings[0].Window, other.Window, other.Run = c.windows[0], c.windows[1], "other"
		b.Readings = append(b.Readings, other)
		got, err := Contents(b)
		if err != nil || len(got.Header.Plan.Profiles) != c.want {
			t.Errorf("%v: %v profiles, want %d: %v", c.windows, got.Header.Plan.Profiles, c.want, err)
		}
	}
}
