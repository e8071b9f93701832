package external

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/vocab/pattern"
)

func decoded(t *testing.T, label Label, text string) Batch {
	t.Helper()
	b, err := Decode("", []byte(text))
	if err == nil {
		err = label.Apply("file", &b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// another returns a run of iperf3 as the i-th of several: each has a cookie of its own.
func another(run string, i int) string {
	return cookie.Regexp().ReplaceAllString(run, `"cookie": "run-`+strconv.Itoa(i)+`"`)
}

var cookie = pattern.New(`"cookie":\s*"[^"]*"`)

func cases(t *testing.T, batches []Batch) (keys []string, h result.Header) {
	t.Helper()
	c, err := Contents(batches...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range c.Records {
		if r.Type == result.TypeTrial {
			keys = append(keys, r.Key()+strings.Repeat("#", r.Repetition))
		}
	}
	return keys, c.Header
}

// TestUnlikeRuns: runs whose settings differ are not repetitions of one case, even if no workload has a word for the setting.
func TestUnlikeRuns(t *testing.T) {
	x := Label{Profile: "x", Path: podPath}
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	paced := read("iperf3/testdata/iperf3/fq_rate.json")
	plain := strings.ReplaceAll(paced, `"fqrate": 20000000`, `"fqrate": 0`)
	toned := strings.ReplaceAll(plain, `"tos": 0`, `"tos": 184`)
	unknown := strings.ReplaceAll(plain, `"tos": 0`, `"tos": 0, "mptcp": true`)
	held := strings.ReplaceAll(plain, "\"reverse\": 0,\n   \"tos\": 0,\n   \"target_bitrate\": 0", "\"reverse\": 0,\n   \"tos\": 0,\n   \"target_bitrate\": 5000000")
	sized := strings.ReplaceAll(plain, `"sock_bufsize": 0`, `"sock_bufsize": 262144`)
	knb := read("outputs/testdata/knb/result.json")
	otherMTU := strings.ReplaceAll(knb, "1450", "8950")
	if held == plain || sized == plain || otherMTU == knb {
		t.Fatal("a sample does not hold what the test changes")
	}
	const where = " pod-to-pod/cross-node stream(congestion=bbr"
	for _, c := range []struct {
		name   string
		inputs []string
		want   []string
	}{
		{"alike", []string{plain, plain}, []string{"x" + where + ")#", "x" + where + ")##"}},
		{"alike and paced", []string{paced, paced}, []string{"x" + where + ")#", "x" + where + ")##"}},
		{"one is paced by fq", []string{plain, paced}, []string{"x" + where + ")#", "x+fqrate.20000000" + where + ")#"}},
		{"one is paced by -b", []string{held, plain}, []string{"x+target_bitrate.5000000" + where + ")#", "x" + where + ")#"}},
		{"another type of service", []string{plain, toned}, []string{"x" + where + ")#", "x+tos.184" + where + ")#"}},
		{"a setting of a version to come", []string{plain, unknown}, []string{"x" + where + ")#", "x+mptcp.true" + where + ")#"}},
		{"both have conditions", []string{toned, unknown}, []string{"x+tos.184" + where + ")#", "x+mptcp.true" + where + ")#"}},
		{"a setting that a workload has", []string{plain, sized}, []string{"x" + where + ")#", "x pod-to-pod/cross-node stream(buffer=262144,congestion=bbr)#"}},
	} {
		var batches []Batch
		for i, text := range c.inputs {
			batches = append(batches, decoded(t, x, another(text, i)))
		}
		got, _ := cases(t, batches)
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	got, _ := cases(t, []Batch{decoded(t, Label{Profile: "x"}, knb), decoded(t, Label{Profile: "x"}, otherMTU)})
	if all := strings.Join(got, "\n"); !strings.Contains(all, "x+cluster.mtu.1450 ") || !strings.Contains(all, "x+cluster.mtu.8950 ") || strings.Contains(all, "##") {
		t.Errorf("two MTUs:\n%s", all)
	}
	loop := strings.ReplaceAll(read("outputs/testdata/qperf/qp_twice.txt"), "1.78 GB", "178 MB")
	if got, _ := cases(t, []Batch{decoded(t, x, loop)}); strings.Join(got, ", ") != "x+run.1 pod-to-pod/cross-node stream(message=65536)#, x+run.2 pod-to-pod/cross-node stream(message=65536)#" {
		t.Errorf("a loop over sizes that are not printed: %s", got)
	}
	if got, _ := cases(t, []Batch{decoded(t, x, read("outputs/testdata/qperf/qp_twice.txt"))}); len(got) != 2 || !strings.HasSuffix(got[1], "##") {
		t.Errorf("one test twice: %s", got)
	}
	long := decoded(t, Label{Profile: strings.Repeat("x", 95), Path: podPath}, another(toned, 1))
	longer := decoded(t, Label{Profile: strings.Repeat("x", 95), Path: podPath}, another(strings.ReplaceAll(toned, `"tos": 184`, `"tos": 188`), 2))
	if got, _ := cases(t, []Batch{long, longer}); len(got) != 2 || strings.Contains(strings.Join(got, ""), "##") || len(strings.Fields(got[0])[0]) != longestProfile {
		t.Errorf("names that differ after %d bytes: %s", longestProfile, got)
	}
	kube := Label{Profile: "x"}
	suite := read("outputs/testdata/k8s-netperf/across_az.json")
	once, _ := cases(t, []Batch{decoded(t, kube, suite)})
	twice, said := cases(t, []Batch{decoded(t, kube, suite), decoded(t, kube, suite)})
	if len(once) == 0 || strings.Join(once, "\n") != strings.Join(twice, "\n") || !strings.Contains(said.Facts[FactLeftOut], "there twice") {
		t.Errorf("a document that is given twice: %s, where once it is %s", twice, once)
	}
	got, h := cases(t, []Batch{decoded(t, x, paced)})
	if len(got) != 1 || !strings.Contains(h.Facts[FactLeftOut], "fqrate=20000000") {
		t.Errorf("the line of what is left out: %q", h.Facts[FactLeftOut])
	}
}

// TestSizeOfTheSender: the sender's row tells the size, and repetitions agree on it although each is rounded.
func TestSizeOfTheSender(t *testing.T) {
	text, err := os.ReadFile("iperf3/testdata/iperf3-text/udp_size.txt")
	if err != nil {
		t.Fatal(err)
	}
	x := Label{Profile: "x", Path: podPath}
	lost := strings.ReplaceAll(string(text), "177350/328940", "170000/328940")
	// 1.09 GB of 746000 datagrams are 1562 to 1576 B each, 1.08 GB 1547 to 1561: sizes that one size cannot explain stay apart.
	long := strings.ReplaceAll(strings.ReplaceAll(string(text), "328940", "746000"), "458 MBytes", "1.09 GBytes")
	longer := strings.ReplaceAll(long, "746000", "745000")
	other := strings.ReplaceAll(long, "1.09 GBytes", "1.12 GBytes")
	got, _ := cases(t, []Batch{decoded(t, x, string(text)), decoded(t, x, lost), decoded(t, x, long), decoded(t, x, longer), decoded(t, x, other)})
	want := "x pod-to-pod/cross-node stream(udp,message=1460)#\nx pod-to-pod/cross-node stream(udp,message=1460)##\n" +
		"x pod-to-pod/cross-node stream(udp,message=1570)#\nx pod-to-pod/cross-node stream(udp,message=1570)##\nx pod-to-pod/cross-node stream(udp,message=1610)#"
	if all := strings.Join(got, "\n"); all != want {
		t.Errorf("got:\n%s\nwant:\n%s", all, want)
	}
}

// TestKeyTwice: an object that has a key twice is not read by its last, except for the two directions of an old iperf3.
func TestKeyTwice(t *testing.T) {
	for _, c := range []struct{ name, old, twice string }{
		{"iperf3/testdata/iperf3/tcp.json", `"num_streams":`, `"num_streams": 77, "num_streams":`},
		{"iperf3/testdata/iperf3/tcp.json", `"num_streams":`, `"Num_Streams": 77, "num_streams":`},
		{"outputs/testdata/k8s-netperf/drivers.json", `"throughput":`, `"throughput": 5, "throughput":`},
		{"outputs/testdata/cilium-perf/report.json", `"unit":`, `"unit": "x", "unit":`},
	} {
		b, err := os.ReadFile(c.name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(b), c.old, c.twice, 1)
		if text == string(b) {
			t.Fatalf("%s has no %s", c.name, c.old)
		}
		if _, err := Decode("", []byte(text)); err == nil || !strings.Contains(err.Error(), "twice") || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s with %s: %v", c.name, c.twice, err)
		}
	}
}

// TestOldBidirectional: 3.7 to 3.10 write the totals of both directions under one key and do not say that they are two.
func TestOldBidirectional(t *testing.T) {
	for _, name := range []string{"iperf3/testdata/iperf3/tcp_bidir.json", "iperf3/testdata/iperf3/udp_bidir.json"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		now, err := Decode("iperf3", b)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "_bidir_reverse", "")
		text = strings.Replace(text, `"bidir"`, `"was_bidir"`, 1)
		old, err := Decode("iperf3", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		old.Readings[0].Conditions = nil // was_bidir
		if got, want := string(dump(old, nil)), string(dump(now, nil)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestKnbHostNetwork: an archive says which of its pods were on the host's network.
func TestKnbHostNetwork(t *testing.T) {
	for _, c := range []struct{ client, server, want string }{
		{"false", "false", "pod-to-pod/cross-node pod-to-pod/cross-node pod-to-service/remote"},
		{"true", "true", "host-to-host/cross-node host-to-host/cross-node host-to-service/remote"},
		{"false", "true", "pod-to-host/cross-node pod-to-host/cross-node pod-to-service/remote"},
		{"true", "false", "host-to-pod/cross-node host-to-pod/cross-node host-to-service/remote"},
	} {
		members := knbMembers(t)
		members[1].body += "HOST_NETWORK_CLIENT=\"" + c.client + "\"\nHOST_NETWORK_SERVER=\"" + c.server + "\"\nADD_CMD=\"-P 4\"\n"
		b, err := Decode("", archive(t, members...))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range b.Readings {
			got = append(got, r.Path.String())
			if len(r.Conditions) != 1 || r.Conditions[0] != "arguments=-P 4" {
				t.Errorf("conditions %q", r.Conditions)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("client %s, server %s: %s, want %s (left out: %s)", c.client, c.server, got, c.want, b.LeftOut)
		}
	}
}

// TestOneRunOnce: a run that is there twice, as a copy or from its server, is one trial, and another run is another.
func TestOneRunOnce(t *testing.T) {
	b, err := os.ReadFile("iperf3/testdata/iperf3/tcp.json")
	if err != nil {
		t.Fatal(err)
	}
	run := string(b)
	server := strings.Replace(run, `"timestamp"`, `"accepted_connection": {"host": "10.0.0.1", "port": 1}, "timestamp"`, 1)
	if server == run {
		t.Fatal("the sample has no timestamp")
	}
	x := Label{Profile: "x", Path: podPath}
	for _, c := range []struct {
		name   string
		inputs []string
		want   int
	}{
		{"a copy in one file", []string{run + run}, 1},
		{"a copy in another file", []string{run, run}, 1},
		{"the server's side", []string{server, run}, 1},
		{"two runs", []string{run, another(run, 1)}, 2},
	} {
		var batches []Batch
		for _, text := range c.inputs {
			batches = append(batches, decoded(t, x, text))
		}
		contents, err := Contents(batches...)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(contents.Records) - 1; got != c.want || (c.want == 1) != strings.Contains(contents.Header.Facts[FactLeftOut], "counted once") {
			t.Errorf("%s: %d trials, want %d; left out %q", c.name, got, c.want, contents.Header.Facts[FactLeftOut])
		}
		if contents.Records[0].Client == nil {
			t.Errorf("%s: the server's side was kept", c.name)
		}
	}
}

// TestAssumedRates: a rate of round digits is assumed, unless a run as fast as possible came as near to it by chance.
func TestAssumedRates(t *testing.T) {
	text, err := os.ReadFile("iperf3/testdata/iperf3-text/udp_size.txt")
	if err != nil {
		t.Fatal(err)
	}
	x := Label{Profile: "x", Path: podPath}
	sent := func(mbit string) string { return strings.ReplaceAll(string(text), "1921 Mbits/sec", mbit+" Mbits/sec") }
	const free, held = "x pod-to-pod/cross-node stream(udp,message=1460)", "x pod-to-pod/cross-node stream(udp,message=1460,rate="
	for _, c := range []struct {
		name string
		sent []string
		want []string
	}{
		{"line rate, once round", []string{"957", "950", "943"}, []string{free + "#", free + "##", free + "###"}},
		{"held to a rate", []string{"100", "100"}, []string{held + "100M)#", held + "100M)##"}},
		{"two rates", []string{"100", "200"}, []string{held + "100M)#", held + "200M)#"}},
		{"one held and one not", []string{"100", "957"}, []string{held + "100M)#", free + "#"}},
		{"no -b", []string{"1.05"}, []string{held + "1.048576M)#"}},
	} {
		var batches []Batch
		for _, s := range c.sent {
			batches = append(batches, decoded(t, x, sent(s)))
		}
		if got, _ := cases(t, batches); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n%s\nwant:\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestEndedEarly: a run that lasted clearly less than it was asked to has failed, also where its output names no error.
func TestEndedEarly(t *testing.T) {
	for _, c := range []struct{ file, old, now, says string }{
		{"iperf3/testdata/iperf3/ended_early.json", "", "", "after 2s of 5s"},
		{"iperf3/testdata/iperf3/no_totals.json", "", "", "no totals"},
		{"iperf3/testdata/iperf3/tcp.json", `"duration":	2`, `"duration":	10`, "after 2s of 10s"},
		{"iperf3/testdata/iperf3/udp.json", `"duration":	2`, `"duration":	30`, "of 30s"},
		{"iperf3/testdata/iperf3-text/server_terminated.txt", "", "", "the sender reported no bytes"},
		{"iperf3/testdata/iperf3-text/verbose_rate.txt", "1 second test", "10 second test", "of 10s"},
		{"outputs/testdata/wrk/wrk_interrupted.txt", "", "", "after 2.3s of 20s"},
		{"outputs/testdata/wrk/wrk_lat.txt", "Running 2s", "Running 1m", "of 1m0s"},
		{"outputs/testdata/fortio/interrupted.json", "", "", "after 2.5s of 20s"},
		{"outputs/testdata/fortio/fortio_qps.json", `"2s"`, `"until stop"`, ""},
		{"outputs/testdata/bombardier/interrupted.json", "", "", "after 2.49s of 20s"},
		{"sockperf/testdata/sockperf/interrupted.txt", "", "", "by user"},
		{"neper/testdata/neper/rr.txt", "test_length=1\n", "test_length=60\n", "of 1m0s"},
		{"neper/testdata/neper/rr.txt", "test_length=1\n", "test_length=-60\n", ""},
	} {
		text, err := os.ReadFile(c.file)
		if err != nil || !strings.Contains(string(text), c.old) {
			t.Fatalf("%s: %v, or it holds no %q", c.file, err, c.old)
		}
		b, err := Decode("", []byte(strings.ReplaceAll(string(text), c.old, c.now)))
		if err != nil || len(b.Readings) == 0 {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		f := b.Readings[0].Failure
		if got := f != nil && f.Kind == "interrupted" && strings.Contains(f.Message, c.says); got != (c.says != "") {
			t.Errorf("%s: %+v, want %q", c.file, f, c.says)
		}
	}
}
