package result

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnibench/cnibench/internal/measure/facts"
	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/vocab/advice"
)

func testPlan() plan.Plan {
	p := plan.Default()
	p.Duration, p.Seed = time.Second, 5
	return p
}

func testRecord(rep int) Record {
	p := testPlan()
	h := sample.NewHistogram()
	h.Record(1000)
	return Record{
		Trial:  plan.Trial{Case: p.Cases()[rep], Repetition: rep},
		Status: OK, Started: time.Unix(int64(rep), 0).UTC(), WallNs: 2, WindowNs: 1,
		Metrics: map[string]float64{"goodput": float64(rep)},
		Client:  &sample.Observation{Side: "client", ElapsedNs: 1, RTT: h},
	}
}

// write makes a file with n trials and an end, and returns its bytes.
func write(t *testing.T, name string, n int) []byte {
	t.Helper()
	w, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Header(Header{Plan: testPlan(), Facts: facts.Facts{"kernel": "6"}}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := w.Append(testRecord(i + 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Finish(End{Reason: "complete", Trials: n}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.jsonl")
	write(t, name, 3)
	c, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if c.Header.Schema != Schema || c.Header.Facts["kernel"] != "6" || c.Warning != "" || len(c.Records) != 4 {
		t.Errorf("got %+v", c)
	}
	if err := c.Header.SamePlan(testPlan()); err != nil {
		t.Error(err)
	}
	want := testRecord(2)
	want.Type, want.Client = TypeTrial, nil
	if d := cmp.Diff(want, c.Records[1], cmpopts.EquateComparable(plan.Variant{})); d != "" {
		t.Error(d)
	}
	if e := c.Records[3]; e.Type != TypeEnd || e.End.Reason != "complete" || e.End.Trials != 3 {
		t.Errorf("the end is %+v", e)
	}
}

func TestReaderKeepsObservations(t *testing.T) {
	b := write(t, filepath.Join(t.TempDir(), "r.jsonl"), 1)
	r, err := NewReader(bytes.NewReader(b), "r")
	if err != nil {
		t.Fatal(err)
	}
	rec, err := r.Next()
	if err != nil || rec.Client == nil || rec.Client.RTT.Count() != 1 {
		t.Errorf("got %+v, %v", rec.Client, err)
	}
}

// TestCutAnywhere cuts a file at every byte: whatever was whole is kept, what was not is said and left out, and a
// resumed file reads as if it had never been cut.
func TestCutAnywhere(t *testing.T) {
	dir := t.TempDir()
	whole := write(t, filepath.Join(dir, "whole"), 2)
	head := bytes.IndexByte(whole, '\n') + 1
	for cut := head; cut <= len(whole); cut++ {
		name := filepath.Join(dir, "cut")
		if err := os.WriteFile(name, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(whole[:cut], []byte("\n")) - 1
		partial := whole[cut-1] != '\n'
		res, err := OpenResume(name)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if len(res.Records) != lines || (res.Warning != "") != partial {
			t.Fatalf("cut at %d: got %d records and warning %q, want %d", cut, len(res.Records), res.Warning, lines)
		}
		if partial && !strings.Contains(res.Warning, fmt.Sprintf("line %d is cut short at byte %d", lines+2, bytes.LastIndexByte(whole[:cut], '\n')+1)) {
			t.Fatalf("cut at %d: warning %q", cut, res.Warning)
		}
		if err := errors.Join(res.Append(testRecord(9)), res.Close()); err != nil {
			t.Fatal(err)
		}
		c, err := Load(name)
		if err != nil || c.Warning != "" || len(c.Records) != lines+1 || c.Records[lines].Repetition != 9 {
			t.Fatalf("cut at %d and resumed: got %d records, %q, %v", cut, len(c.Records), c.Warning, err)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	whole := string(write(t, filepath.Join(t.TempDir(), "r"), 2))
	head, rest, _ := strings.Cut(whole, "\n")
	for name, tt := range map[string]struct{ src, want string }{
		"empty":         {"", `result file "r" is empty`},
		"cut header":    {head[:50], "is cut within its header"},
		"text":          {"hello\n", "is not a cnibench result file"},
		"other json":    {`{"a": 1}` + "\n", "is not a cnibench result file"},
		"version":       {strings.Replace(whole, "result/v1", "result/v2", 1), `has the schema "cnibench.result/v2", and this version reads "cnibench.result/v1"`},
		"header types":  {`{"schema":"cnibench.result/v1","plan":7}` + "\n", "has a header that cannot be read"},
		"garbage":       {head + "\ngarbage\n" + rest, "line 2 is not a record: it is not JSON"},
		"empty line":    {head + "\n\n" + rest, "line 2 is not a record"},
		"type":          {head + "\n" + `{"type":"x"}` + "\n", `line 2: unknown type "x"`},
		"joined":        {whole + whole, "line 5: it has no type; a header here means that two result files were joined"},
		"nothing":       {head + "\n{}\n", "line 2: it has no type"},
		"status":        {head + "\n" + `{"type":"trial","status":"fine"}` + "\n", `line 2: unknown status "fine"`},
		"which":         {head + "\n" + `{"type":"trial","status":"ok"}` + "\n", "line 2: it does not name its trial"},
		"path":          {strings.Replace(whole, "\"type\":\"trial\",\"profile\":\"raw~twin\",\"path\":\"host-to-host/cross-node\"", "\"type\":\"trial\",\"profile\":\"raw~twin\",\"path\":\"x\"", 1), `unknown path "x"`},
		"why":           {head + "\n" + `{"type":"trial","status":"failed","profile":"a","path":"pod-to-self","workload":"rr","repetition":1}` + "\n", "it failed and has no error"},
		"end":           {head + "\n" + `{"type":"end"}` + "\n", "its end has no contents"},
		"bad histogram": {strings.Replace(whole, `"rtt":"HIST`, `"rtt":"XXXX`, 1), "line 2 is not a record: decode histogram"},
	} {
		r, err := NewReader(strings.NewReader(tt.src), "r")
		for err == nil {
			_, err = r.Next()
		}
		if err == io.EOF || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", name, err, tt.want)
		}
	}
	_, err := NewReader(strings.NewReader(strings.Replace(whole, "result/v1", "result/v2", 1)), "r")
	if advice.Of(err) == "" {
		t.Error("another schema version comes without a hint")
	}
}

// endless is a line without an end.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.n += len(p)
	return len(p), nil
}

func TestLineIsBounded(t *testing.T) {
	e := &endless{}
	_, err := NewReader(e, "r")
	if err == nil || !strings.Contains(err.Error(), "line 1 is longer than") {
		t.Errorf("got %v", err)
	}
	if e.n > maxLine+1<<20 {
		t.Errorf("read %d bytes before giving up", e.n)
	}
}

// TestEach reads as Load does, one record at a time, and stops where it is told to.
func TestEach(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.jsonl")
	write(t, name, 3)
	want, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	scan := func(do func(*Record) error) error {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() // it was only read
		r, err := NewReader(f, name)
		if err != nil {
			t.Fatal(err)
		}
		r.Slim()
		return r.Each(do)
	}
	var got []Record
	err = scan(func(rec *Record) error {
		got = append(got, *rec)
		return nil
	})
	if d := cmp.Diff(want.Records, got, cmpopts.EquateComparable(plan.Variant{})); d != "" || err != nil {
		t.Error(d, err)
	}
	enough := errors.New("enough")
	if err := scan(func(*Record) error { return enough }); !errors.Is(err, enough) || !strings.Contains(err.Error(), "line 2: enough") {
		t.Errorf("got %v", err)
	}
	if _, err := Load(name + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestReaderMemory reads lines that are longer than all its memory together, one after the other.
func TestReaderMemory(t *testing.T) {
	const lines, length = 60, 1 << 20
	head := `{"schema":"cnibench.result/v1"}` + "\n"
	fat := `{"type":"trial","profile":"x","path":"host-to-host/cross-node","workload":"rr","repetition":1,"status":"ok",` +
		`"metrics":{"goodput":1},"client":{"side":"` + strings.Repeat("x", length) + `"}}` + "\n"
	src := []io.Reader{strings.NewReader(head)}
	for range lines {
		src = append(src, strings.NewReader(fat))
	}
	r, err := NewReader(io.MultiReader(src...), "r")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, values := 0, 0.0
	r.Slim()
	if err := r.Each(func(rec *Record) error {
		n++
		values += rec.Metrics["goodput"]
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n != lines || values != lines {
		t.Errorf("%d records, sum %g", n, values)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 20*length {
		t.Errorf("%d lines of %d bytes allocated %d bytes", lines, length, got)
	}
}

// TestSlimKeepsHowPodsWereMade: what comparisons of new pods need is read without their distributions.
func TestSlimKeepsHowPodsWereMade(t *testing.T) {
	for pods, want := range map[string]sample.Pods{
		`{"timeout_ns":5000000000,"attached":"by plugins","first":"not a histogram"}`: {TimeoutNs: 5e9, Attached: sample.AttachedByPlugins},
		`{"waits":{"device":1}}`: {}, // an earlier version
	} {
		text := `{"schema":"cnibench.result/v1"}` + "\n" + `{"type":"trial","profile":"p","path":"pod-to-pod/cross-node","workload":"ttfr","repetition":1,"status":"ok",` +
			`"metrics":{"error_rate":0},"client":{"side":"client","pods":` + pods + `}}` + "\n"
		r, err := NewReader(strings.NewReader(text), "r")
		if err != nil {
			t.Fatal(err)
		}
		r.Slim()
		n := 0
		err = r.Each(func(rec *Record) error {
			n++
			if rec.Client == nil || rec.Client.Pods == nil || !reflect.DeepEqual(*rec.Client.Pods, want) {
				t.Errorf("%s: %+v", pods, rec.Client)
			}
			return nil
		})
		if err != nil || n != 1 {
			t.Errorf("%d records: %v", n, err)
		}
	}
}

func TestCreateIsExclusive(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r")
	w, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(name); !errors.Is(err, os.ErrExist) || advice.Of(err) == "" {
		t.Errorf("second Create: %v", err)
	}
	if _, err := OpenResume(name); err == nil || !strings.Contains(err.Error(), "is being written by another cnibench") {
		t.Errorf("OpenResume beside a writer: %v", err)
	}
	if _, err := Replace(name); err == nil {
		t.Error("a file that is being written was replaced")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Errorf("a file without a header was left: %v", err)
	}
	if _, err := OpenResume(name); err == nil || !strings.Contains(err.Error(), "nothing to resume") {
		t.Errorf("OpenResume of nothing: %v", err)
	}
}

// TestReplaceKeepsUntilTheHeader closes files before and after their header: a run that cannot begin deletes no result.
func TestReplaceKeepsUntilTheHeader(t *testing.T) {
	replace := func(name string) *Writer {
		w, err := Replace(name)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	name, missing := filepath.Join(t.TempDir(), "r"), filepath.Join(t.TempDir(), "r")
	old := write(t, name, 3)
	if err := replace(name).Close(); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(name); err != nil || !bytes.Equal(now, old) {
		t.Errorf("a file that was not replaced has %d bytes instead of %d: %v", len(now), len(old), err)
	}
	w := replace(name)
	if err := errors.Join(w.Header(Header{Plan: testPlan()}), w.Close()); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(name); err != nil || bytes.Count(now, []byte("\n")) != 1 {
		t.Errorf("a replaced file has more than its header: %s: %v", now, err)
	}
	if err := replace(missing).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(missing); !os.IsNotExist(err) {
		t.Errorf("Replace left a file without a header: %v", err)
	}
	if _, err := Replace(os.DevNull); err == nil {
		t.Error("a device was replaced")
	}
}

func TestResumeWantsAValidPlan(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r")
	if err := os.WriteFile(name, []byte(`{"schema":"cnibench.result/v1"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenResume(name); err == nil || !strings.Contains(err.Error(), "has a plan that is not valid") {
		t.Errorf("got %v", err)
	}
}

func TestSamePlan(t *testing.T) {
	p := testPlan()
	p.Seed, p.Repetitions = 6, 99
	err := Header{Plan: testPlan()}.SamePlan(p)
	if err == nil || !strings.Contains(err.Error(), "differs from the one in the result file in: repetitions, seed") {
		t.Errorf("got %v", err)
	}
}

// disk is a file on a disk with room for a number of bytes.
type disk struct {
	bytes.Buffer
	room    int
	syncErr error
}

func (d *disk) Write(p []byte) (int, error) {
	if left := d.room - d.Len(); len(p) > left {
		d.Buffer.Write(p[:left])
		return left, syscall.ENOSPC
	}
	return d.Buffer.Write(p)
}

func (d *disk) Sync() error               { return d.syncErr }
func (d *disk) Truncate(size int64) error { d.Buffer.Truncate(int(size)); return nil }
func (d *disk) Close() error              { return nil }

// TestFullDisk fills the disk at every possible byte: the error says so, and the file ends with a whole line.
func TestFullDisk(t *testing.T) {
	whole := write(t, filepath.Join(t.TempDir(), "r"), 2)
	head := bytes.IndexByte(whole, '\n') + 1
	for room := head; room < len(whole); room += 7 {
		d := &disk{room: room}
		w := NewWriter(d, "r")
		err := w.Header(Header{Plan: testPlan(), Facts: facts.Facts{"kernel": "6"}})
		for i := 1; err == nil; i++ {
			err = w.Append(testRecord(i))
		}
		if !errors.Is(err, syscall.ENOSPC) || advice.Of(err) == "" {
			t.Fatalf("room %d: got %v", room, err)
		}
		if again := w.Append(testRecord(1)); !errors.Is(again, syscall.ENOSPC) {
			t.Fatalf("room %d: a broken writer goes on: %v", room, again)
		}
		if b := d.Bytes(); len(b) < head || b[len(b)-1] != '\n' {
			t.Fatalf("room %d: the file does not end with a whole line", room)
		}
	}
}

func TestFailedSync(t *testing.T) {
	d := &disk{room: 1 << 20}
	w := NewWriter(d, "r")
	if err := w.Header(Header{Plan: testPlan()}); err != nil {
		t.Fatal(err)
	}
	size := d.Len()
	d.syncErr = syscall.EIO
	if err := w.Append(testRecord(1)); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v", err)
	}
	if d.Len() != size {
		t.Error("a line that could not be synced was kept")
	}
}

// FuzzReader reads any bytes as a whole file, and again as what follows a header that is right: mutations seldom leave
// one so.
func FuzzReader(f *testing.F) {
	dir := f.TempDir()
	w, err := Create(filepath.Join(dir, "seed"))
	if err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(w.Header(Header{Plan: testPlan()}), w.Append(testRecord(1)), w.Finish(End{}), w.Close()); err != nil {
		f.Fatal(err)
	}
	seed, err := os.ReadFile(filepath.Join(dir, "seed"))
	if err != nil {
		f.Fatal(err)
	}
	head := []byte(`{"schema":"` + Schema + `"}` + "\n")
	f.Add(seed)
	f.Add(seed[:len(seed)-20])
	f.Add(seed[bytes.IndexByte(seed, '\n')+1:])
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"type":"trial","profile":"x","path":"host-to-host/cross-node","workload":"rr","repetition":1,"status":"ok","metrics":{"goodput":1e9}}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		readAll(t, b, false)
		behind := append(slices.Clone(head), b...)
		whole, slim := readAll(t, behind, false), readAll(t, behind, true)
		if slim < whole {
			t.Fatalf("%d records with observations, %d without", whole, slim)
		}
	})
}

// readAll reads b to its end or its first fault, and returns how many records it has before that.
func readAll(t *testing.T, b []byte, slim bool) (n int) {
	r, err := NewReader(bytes.NewReader(b), "r")
	if err != nil {
		return 0
	}
	if slim {
		r.Slim()
	}
	for {
		rec, err := r.Next()
		if err != nil {
			if r.Offset() > int64(len(b)) {
				t.Fatal("the offset is beyond the end")
			}
			return n
		}
		n++
		if rec.Type == TypeTrial && rec.Key() == "" {
			t.Fatal("a trial without a key")
		}
	}
}

func TestAnEmptyFileIsTakenOver(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.jsonl")
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenResume(name); err == nil || !strings.Contains(err.Error(), "killed at its start") {
		t.Errorf("resuming an empty file: %v", err)
	}
	w, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(name); err == nil {
		t.Error("two writers at one file")
	}
	if err := w.Header(Header{}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(name); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file with a header was taken over: %v", err)
	}
}
