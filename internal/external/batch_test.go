package external

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cnibench/cnibench/internal/external/adapter"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/tool/golden"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

var (
	podPath  = plan.Path{From: plan.Pod, To: plan.Pod, Locality: plan.CrossNode}
	hostPath = plan.Path{From: plan.Host, To: plan.Host, Locality: plan.CrossNode}
	rr       = plan.Workload{Spec: plan.RR{}}.Normalize()
	stream   = plan.Workload{Spec: plan.Stream{}}.Normalize()
)

func reading(profile plan.Variant, p plan.Path, w plan.Workload, repetition int) Reading {
	return Reading{Profile: profile.String(), Path: p, Workload: w, Repetition: repetition, Metrics: map[string]float64{metric.TransactionRate: 5}}
}

func TestLabel(t *testing.T) {
	failed := Reading{}
	failed.Fail("timeout", "no answer")
	for _, c := range []struct {
		name     string
		readings []Reading
		label    Label
		want     []string // profile path workload of each
		says     string
	}{
		{"fills what is missing", []Reading{reading(plan.Variant{}, plan.Path{}, rr, 0)}, Label{Profile: "canal", Path: podPath}, []string{"canal pod-to-pod/cross-node rr"}, ""},
		{"names another profile", []Reading{reading(plan.VariantOf("a"), podPath, rr, 0)}, Label{Profile: "b"}, []string{"b pod-to-pod/cross-node rr"}, ""},
		{"refines a workload", []Reading{reading(plan.VariantOf("a"), podPath, rr, 0)}, Label{Workload: plan.Workload{Spec: plan.RR{RequestSize: 64}}}, []string{"a pod-to-pod/cross-node rr(request=64)"}, ""},
		{"leaves what is there where something is missing", []Reading{reading(plan.VariantOf("macvlan"), podPath, rr, 0), reading(plan.Variant{}, podPath, rr, 0)}, Label{Profile: "b"},
			[]string{"macvlan pod-to-pod/cross-node rr", "b pod-to-pod/cross-node rr"}, ""},
		{"gives a failed trial its workload", []Reading{failed}, Label{Profile: "a", Path: podPath, Workload: rr}, []string{"a pod-to-pod/cross-node rr"}, ""},
		{"does not merge profiles", []Reading{reading(plan.VariantOf("a"), podPath, rr, 0), reading(plan.VariantOf("b"), podPath, rr, 0)}, Label{Profile: "c"}, nil, "one profile for all trials, but the file names several: a, b"},
		{"does not merge paths", []Reading{reading(plan.VariantOf("a"), podPath, rr, 0), reading(plan.VariantOf("a"), hostPath, rr, 0)}, Label{Path: podPath}, nil, "one path"},
		{"does not replace a path", []Reading{reading(plan.VariantOf("a"), hostPath, rr, 0)}, Label{Path: podPath}, nil, "its path is host-to-host/cross-node, as it says itself"},
		{"does not drop settings", []Reading{reading(plan.VariantOf("a"), podPath, plan.Workload{Spec: plan.RR{Flows: 4}}, 0)}, Label{Workload: rr}, nil, "rr(flows=4), as it says itself"},
		{"does not turn a stream into rr", []Reading{reading(plan.VariantOf("a"), podPath, stream, 0)}, Label{Workload: rr}, nil, "its workload is stream, not rr"},
		{"does not turn tcp into udp", []Reading{reading(plan.VariantOf("a"), podPath, rr, 0)}, Label{Workload: plan.Workload{Spec: plan.RR{Protocol: plan.UDP}}}, nil, "not rr(udp)"},
		{"wants a profile and a path", []Reading{reading(plan.Variant{}, plan.Path{}, rr, 0)}, Label{}, nil, "does not name the profile or the path"},
		{"wants a clean profile", []Reading{reading(plan.VariantOf("=cmd"), podPath, rr, 0)}, Label{}, nil, `profile "=cmd"`},
	} {
		b := Batch{Readings: c.readings}
		err := c.label.Apply("file", &b)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "file: ") {
				t.Errorf("%s: got error %v, want one with %q", c.name, err, c.says)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i, r := range b.Readings {
			if got := (plan.Case{Profile: plan.VariantOf(r.Profile), Path: r.Path, Workload: r.Workload}).Key(); got != c.want[i] {
				t.Errorf("%s: reading %d is %s, want %s", c.name, i, got, c.want[i])
			}
		}
	}
}

// TestContents joins two inputs: repetitions are numbered, facts that differ stand side by side, failures stay.
func TestContents(t *testing.T) {
	began := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	failed := reading(plan.VariantOf("canal"), podPath, rr, 0)
	failed.Started, failed.Window = began.Add(time.Hour), time.Second
	failed.Fail("timeout", "no answer")
	a := Batch{Tool: "netperf", Title: "a", Facts: map[string]string{"kernel": "6.1", "mtu": "1500"}, Readings: []Reading{
		reading(plan.VariantOf("canal"), podPath, rr, 0), reading(plan.VariantOf("canal"), podPath, rr, 0), reading(plan.VariantOf("raw"), hostPath, stream, 1), reading(plan.VariantOf("raw~twin"), hostPath, stream, 1),
	}}
	b := Batch{Tool: "iperf3 3.12", Title: "b", Baseline: "raw", Facts: map[string]string{"kernel": "5.15", "mtu": "1500"}, Readings: []Reading{failed, reading(plan.VariantOf("raw"), hostPath, stream, 1)}, LeftOut: []string{"this", "that"}}
	c, err := Contents(a, b)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, r := range c.Records {
		if r.Type == result.TypeTrial {
			keys = append(keys, r.Key()+" "+r.Status+" "+strings.Repeat("#", r.Repetition))
		}
	}
	want := "canal pod-to-pod/cross-node rr ok #\ncanal pod-to-pod/cross-node rr ok ##\nraw host-to-host/cross-node stream ok #\n" +
		"raw~twin host-to-host/cross-node stream ok #\ncanal pod-to-pod/cross-node rr failed ###\nraw host-to-host/cross-node stream ok ##"
	if got := strings.Join(keys, "\n"); got != want {
		t.Errorf("trials:\n%s\nwant:\n%s", got, want)
	}
	h := c.Header
	if h.Origin != "netperf, iperf3 3.12" || h.Facts["kernel"] != "6.1 | 5.15" || h.Facts["mtu"] != "1500" || h.Plan.Name != "a; b" || !h.Created.Equal(began.Add(time.Hour)) {
		t.Errorf("header %+v", h)
	}
	if h.Plan.Baseline != plan.VariantOf("raw") || !h.Plan.Twin || h.Plan.Repetitions != 3 || len(h.Plan.Profiles) != 2 {
		t.Errorf("plan %+v", h.Plan)
	}
	if got := h.Facts[FactLeftOut]; got != "this; that" {
		t.Errorf("left out %q", got)
	}
	end := c.Records[len(c.Records)-1].End
	if end == nil || end.Trials != 6 || end.Failed != 1 {
		t.Errorf("end %+v", end)
	}
	for _, r := range c.Records {
		if r.Status == result.Failed && (r.Metrics != nil || r.WindowNs != 0 || r.Error == nil) {
			t.Errorf("failed trial %+v", r)
		}
	}
}

func TestShareWorkload(t *testing.T) {
	failed := Reading{}
	failed.Fail("timeout", "no answer")
	same := []Batch{{Readings: []Reading{failed}}, {Readings: []Reading{reading(plan.VariantOf("a"), podPath, rr, 0), reading(plan.VariantOf("a"), podPath, rr, 0)}}}
	ShareWorkload(same)
	if r := same[0].Readings[0]; r.Workload != rr || len(r.Warnings) != 1 || r.Warnings[0].ID != adapter.Assumed {
		t.Errorf("the failed trial did not take the workload of the others: %+v", r)
	}
	apart := []Batch{{Readings: []Reading{failed}}, {Readings: []Reading{reading(plan.VariantOf("a"), podPath, rr, 0), reading(plan.VariantOf("a"), podPath, stream, 0)}}}
	ShareWorkload(apart)
	if r := apart[0].Readings[0]; r.Workload.Spec != nil {
		t.Errorf("the failed trial took one of two workloads: %+v", r)
	}
}

func TestReadIsBounded(t *testing.T) {
	if _, err := Read(io.LimitReader(zeros{}, adapter.MaxInput+2), "stdin", ""); err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("a huge input: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// member is a file of an archive.
type member struct {
	name, body string
	kind       byte
}

func archive(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Typeflag: m.kind, Mode: 0o600, Size: int64(len(m.body))}
		if m.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if m.kind == tar.TypeSymlink {
			h.Linkname = "/etc/passwd"
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const knbSettings = `BENCHMARK_RUN_NAME="canal"
GENERATOR="knb"
VERSION="1.5.0"
BENCHMARK_DATE="2021-04-27 10:00:00"
SERVER_NODE="node-b"
CLIENT_NODE="node-a"

SOCKET_BUFFER_SIZE="auto"
CLIENT_TCP_P2P_POD_NAME="knb-client-tcp-p2p-1"
CLIENT_UDP_P2P_POD_NAME="knb-client-udp-p2p-1"
CLIENT_TCP_P2S_POD_NAME="knb-client-tcp-p2s-1"
CLIENT_UDP_P2S_POD_NAME=""
`

func knbMembers(t testing.TB) []member {
	t.Helper()
	tcp, err := os.ReadFile("iperf3/testdata/iperf3-text/tcp.txt")
	if err != nil {
		t.Fatal(err)
	}
	return []member{
		{name: "./", kind: tar.TypeDir}, {name: "./env", body: knbSettings}, {name: "./kernel", body: "5.4.0\n"}, {name: "./mtu", body: "1450\n"},
		{name: "./knb-client-tcp-p2p-1.log", body: string(tcp)}, {name: "./knb-client-tcp-p2p-1.bw", body: "84400\n"},
		{name: "./knb-client-udp-p2p-1.bw", body: "7001\n"}, {name: "./knb-client-tcp-p2s-1.bw", body: ""},
	}
}

// TestKnbData reads an archive: the log of a test where there is one, else its bandwidth, else a failed trial.
func TestKnbData(t *testing.T) {
	b := archive(t, knbMembers(t)...)
	if name, err := Detect(b); name != "knb-data" {
		t.Errorf("detected as %q, %v", name, err)
	}
	got, err := Decode("", b)
	golden.Check(t, "../outputs/testdata/knb-data.golden", dump(got, err))
}

// TestHostileArchive refuses what is not a regular file beside the others, and runs nothing.
func TestHostileArchive(t *testing.T) {
	env := member{name: "env", body: knbSettings}
	many := []member{env}
	for i := range 1000 {
		many = append(many, member{name: "f" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26)})
	}
	canary := filepath.Join(t.TempDir(), "canary")
	for _, c := range []struct {
		name    string
		members []member
		says    string
	}{
		{"link", []member{env, {name: "kernel", kind: tar.TypeSymlink}}, "not a regular file"},
		{"device", []member{env, {name: "kernel", kind: tar.TypeChar}}, "not a regular file"},
		{"above", []member{{name: "../env", body: knbSettings}}, "outside its own folder"},
		{"absolute", []member{{name: "/env", body: knbSettings}}, "outside its own folder"},
		{"below", []member{{name: "a/env", body: knbSettings}}, "outside its own folder or below"},
		{"twice", []member{env, {name: "./env", body: "X=\"1\"\n"}}, "twice"},
		{"no env", []member{{name: "kernel"}}, "no file env"},
		{"command", []member{{name: "env", body: "SERVER_NODE=\"$(touch " + canary + ")\"\n"}}, "env is read as text"},
		{"statement", []member{{name: "env", body: knbSettings + "touch " + canary + "\n"}}, "line 13: of env"},
		{"many", many, "more than 1000 files"},
		{"bomb", []member{env, {name: "kernel", body: strings.Repeat("\x00", adapter.MaxInput)}}, "unpacks to more than 64 MiB"},
	} {
		if _, err := Decode("knb-data", archive(t, c.members...)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
	}
	if _, err := os.Stat(canary); !errors.Is(err, os.ErrNotExist) {
		t.Error("something in an archive was run")
	}
	whole := archive(t, knbMembers(t)...)
	if _, err := Decode("knb-data", whole[:len(whole)/2]); err == nil || !strings.Contains(err.Error(), "cannot unpack") {
		t.Errorf("a cut archive: %v", err)
	}
}

// TestFolder reads a results folder in the layout of InfraBuilder's benchmark.
func TestFolder(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s), Mode: 0o600} }
	sample := func(name string) *fstest.MapFile {
		b, err := os.ReadFile(filepath.Join("iperf3", "testdata", "iperf3", name))
		if err != nil {
			t.Fatal(err)
		}
		return file(string(b))
	}
	files := fstest.MapFS{
		"canal/1/all.results":         file("DTS_BW=59006079314\nSTM_BW=null\nSTM_RTS=null\nSUS_BW=2045222000.9\n"),
		"canal/1/dts-client.stdout":   sample("tcp.json"),
		"canal/1/dts-client.cmd":      file("kubectl exec -it a3 --  statexec -d 10 --  iperf3 -c 10.42.1.3 -O 1 -Z -t 60 --json\n"),
		"canal/1/sts-client.stdout":   sample("refused.json"),
		"canal/1/dus-client.stdout":   file("{"),
		"canal/1/dum-client.stdout":   file(""),
		"canal/2/all.results":         file(""),
		"canal/2/dts-client.stdout":   sample("refused.json"),
		"canal/2/dts-client.cmd":      file("iperf3 -c 10.42.1.3 -Z -t 60 --json\n"),
		"canal/results-spreadsheet":   file("x"),
		"baremetal/1/all.results":     file("DTS_BW=39000000000\n"),
		"baremetal/1/dts-client.prom": file("x"),
	}
	decodeFolder := func(files fs.FS, name, above string) (Batch, error) {
		dir := filepath.Join(t.TempDir(), above, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, files); err != nil {
			t.Fatal(err)
		}
		batch, err := Open(dir, "")
		return batch, err
	}
	got, err := decodeFolder(files, "results", "cni")
	golden.Check(t, "../outputs/testdata/folder.golden", dump(got, err))

	one, err := decodeFolder(fstest.MapFS{"all.results": file("DTS_BW=1\n")}, "3", "canal")
	if err != nil || one.Readings[0].Profile != "canal" || one.Readings[0].Repetition != 3 {
		t.Errorf("the folder of one run: %+v, %v", one.Readings, err)
	}
	if _, err := decodeFolder(fstest.MapFS{"canal/first/all.results": file("DTS_BW=1\n")}, "results", "cni"); err == nil || !strings.Contains(err.Error(), "not the number of a run") {
		t.Errorf("a run without a number: %v", err)
	}
	if _, err := decodeFolder(fstest.MapFS{"x": file("")}, "results", "cni"); err == nil || !strings.Contains(err.Error(), "no run of the benchmark") {
		t.Errorf("another folder: %v", err)
	}
}

// TestFolderStaysInside does not follow a link out of the folder.
func TestFolderStaysInside(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "results", "canal", "1")
	if err := os.MkdirAll(run, 0o700); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "secret")
	b, err := os.ReadFile("iperf3/testdata/iperf3/tcp.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string][]byte{secret: b, filepath.Join(run, "all.results"): []byte("DTS_BW=null\n")} {
		if err := os.WriteFile(name, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, filepath.Join(run, "dts-client.stdout")); err != nil {
		t.Fatal(err)
	}
	got, err := Open(filepath.Join(dir, "results"), "")
	if err == nil {
		t.Errorf("a link out of the folder was followed: %s", dump(got, nil))
	}
	if _, err := Open(filepath.Join(dir, "results"), "csv"); err == nil || !strings.Contains(err.Error(), "it is a folder") {
		t.Errorf("a folder as csv: %v", err)
	}
	if _, err := Decode("cni-benchmark", []byte("x")); err == nil || !strings.Contains(err.Error(), "it is a file") {
		t.Errorf("a file as a folder: %v", err)
	}
}

// TestSampleArithmetic holds decoders to what tools say of themselves: rate times window is what was moved.
func TestSampleArithmetic(t *testing.T) {
	names, _ := Formats()
	for _, name := range names {
		for _, file := range samples(t, name) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			batch, err := Decode(name, b)
			if err != nil {
				continue // the golden files have those
			}
			for _, r := range batch.Readings {
				moved, ok1 := r.Metrics[metric.Transferred]
				rate, ok2 := r.Metrics[metric.Goodput]
				if ok1 && ok2 && r.Window > 0 && name != "csv" && math.Abs(moved*8/r.Window.Seconds()/rate-1) > 0.011 {
					t.Errorf("%s: %v B in %s are not %v bit/s", file, moved, r.Window, rate)
				}
				for _, order := range [][2]string{{"min", "p50"}, {"p50", "p90"}, {"p90", "p99"}, {"p99", "p99.9"}, {"p99.9", "max"}, {"min", "mean"}, {"mean", "max"}} {
					for _, family := range []string{metric.RTT, metric.ResponseTime} {
						low, ok1 := r.Metrics[family+"."+order[0]]
						high, ok2 := r.Metrics[family+"."+order[1]]
						if ok1 && ok2 && low > high {
							t.Errorf("%s: %s.%s %v > %s %v", file, family, order[0], low, order[1], high)
						}
					}
				}
			}
		}
	}
}

// holds checks what every decoder promises of whatever it accepts.
func holds(t *testing.T, b Batch) {
	t.Helper()
	for i, r := range b.Readings {
		if r.Failure != nil && (r.Metrics != nil || r.Failure.Kind == "" || r.Failure.Message == "") {
			t.Fatalf("failed reading %d: %+v", i, r)
		}
		for name, v := range r.Metrics {
			if _, ok := metric.Lookup(name); !ok || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 && name != metric.CPUUtilization {
				t.Fatalf("reading %d: %s = %v", i, name, v)
			}
		}
		if r.Workload.Spec != nil {
			if err := r.Workload.Validate(); err != nil || r.Workload != r.Workload.Normalize() {
				t.Fatalf("reading %d: workload %+v: %v", i, r.Workload, err)
			}
		}
		if r.Window < 0 {
			t.Fatalf("reading %d: window %s", i, r.Window)
		}
	}
	label := Label{}
	for _, r := range b.Readings {
		if r.Profile == "" {
			label.Profile = "p"
		}
		if r.Path == (plan.Path{}) {
			label.Path = podPath
		}
		if r.Workload.Spec == nil {
			return // only a person can say it
		}
	}
	if err := label.Apply("fuzz", &b); err != nil {
		return
	}
	c, err := Contents(b)
	if err != nil {
		t.Fatal(err)
	}
	var file memory
	w := result.NewWriter(&file, "fuzz")
	err = w.Header(c.Header)
	for _, r := range c.Records {
		if r.Type == result.TypeEnd {
			err = errors.Join(err, w.Finish(*r.End))
		} else {
			err = errors.Join(err, w.Append(r))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	rd, err := result.NewReader(&file, "fuzz")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for ; ; n++ {
		if _, err := rd.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != len(c.Records) {
		t.Fatalf("%d records were written and %d read", len(c.Records), n)
	}
}

// memory is a file in memory.
type memory struct{ bytes.Buffer }

func (*memory) Sync() error          { return nil }
func (*memory) Close() error         { return nil }
func (*memory) Truncate(int64) error { return nil }

// FuzzDecode feeds the decoder of each format with its samples and what becomes of them.
func FuzzDecode(f *testing.F) {
	names, _ := Formats()
	for i, name := range names {
		for _, file := range samples(f, name) {
			b, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(i, b)
		}
	}
	f.Fuzz(func(t *testing.T, i int, b []byte) {
		if batch, err := Decode(names[uint(i)%uint(len(names))], b); err == nil {
			holds(t, batch)
		}
	})
}

// FuzzKnbData changes the files of an archive, and the archive as a whole.
func FuzzKnbData(f *testing.F) {
	f.Add(knbSettings, "[  5]   0.00-2.00   sec  19.7 GBytes  84.4 Gbits/sec  receiver\n", "84400")
	f.Fuzz(func(t *testing.T, env, log, bandwidth string) {
		b := archive(t, member{name: "env", body: env}, member{name: "knb-client-tcp-p2p-1.log", body: log}, member{name: "knb-client-udp-p2p-1.bw", body: bandwidth})
		if batch, err := Decode("knb-data", b); err == nil {
			holds(t, batch)
		}
		if batch, err := Decode("knb-data", []byte(env)); err == nil {
			holds(t, batch)
		}
	})
}

// FuzzDetect never panics and never names what there is not.
func FuzzDetect(f *testing.F) {
	names, _ := Formats()
	for _, name := range names {
		for _, file := range samples(f, name) {
			b, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if batch, err := Decode("", b); err == nil {
			holds(t, batch)
		}
	})
}

const magic = "# cnibench-csv v1"

// TestDocumentedCSV decodes the example of docs/reference/import.md.
func TestDocumentedCSV(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "import.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "```\n"+magic)
	example, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("docs/reference/import.md has no example of a CSV file")
	}
	b, err := Decode("", []byte(magic+example))
	if err != nil || len(b.Readings) != 2 || b.Baseline != "canal" || b.Readings[1].Window != 30*time.Second {
		t.Errorf("the example of docs/reference/import.md: %s", dump(b, err))
	}
}

// TestLinesBeforeARun decodes outputs that were copied with the prompt of the shell.
func TestLinesBeforeARun(t *testing.T) {
	for _, name := range []string{"outputs/testdata/hey/hey.txt", "iperf3/testdata/iperf3-text/tcp.txt", "netperf/testdata/netperf/keyval.txt", "ping/testdata/ping/ping.txt",
		"sockperf/testdata/sockperf/sp_pp_tcp.txt", "outputs/testdata/wrk/wrk_lat.txt"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		format := filepath.Base(filepath.Dir(name))
		batch, err := Decode(format, append([]byte("user@host:~$ a command\n"), b...))
		if err != nil || len(batch.Readings) != 1 {
			t.Errorf("%s: %d trials, %v", name, len(batch.Readings), err)
		}
	}
}
