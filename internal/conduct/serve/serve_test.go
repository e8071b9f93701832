package serve

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/conduct/run"
	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/report/openmetrics"
	"github.com/cnibench/cnibench/internal/report/reporttest"
)

// bake is a result file: that of r under this plan, begun so many hours after the first, with an end for the reason.
func bake(t *testing.T, r reporttest.Result, plan string, hour int, reason string) []byte {
	t.Helper()
	r.Header.Plan.Name = plan
	r.Header.Created = r.Header.Created.Add(time.Duration(hour) * time.Hour)
	name := filepath.Join(t.TempDir(), "r")
	w, err := result.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Header(r.Header); err != nil {
		t.Fatal(err)
	}
	trials := 0
	for _, rec := range r.Records {
		if rec.Type == result.TypeTrial {
			trials++
			if err := w.Append(rec); err != nil {
				t.Fatal(err)
			}
		}
	}
	if reason != "" {
		if err := w.Finish(result.End{Reason: reason, Trials: trials, WallNs: 1e9, WindowNs: 5e8}); err != nil {
			t.Fatal(err)
		}
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

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

func site(t *testing.T, paths ...string) *Site {
	t.Helper()
	s, err := New(t.Context(), paths)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// get asks s for a target as it stands, headers in turn.
func get(s http.Handler, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	u, err := url.Parse("http://x" + target)
	if err != nil {
		panic(err) // a mistake in a test
	}
	r.URL = u
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func metrics(t *testing.T, s *Site) string {
	t.Helper()
	w := get(s, "/metrics")
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func want(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("no %q in\n%.3000s", p, text)
		}
	}
}

func wantNot(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if strings.Contains(text, p) {
			t.Errorf("there is %q in\n%.3000s", p, text)
		}
	}
}

// The newest finished result of each plan is shown, without a time of its own, beside when it was measured.
func TestNewestOfSeries(t *testing.T) {
	dir := t.TempDir()
	small := reporttest.Small(5)
	for i := range small.Records {
		small.Records[i].Metrics = map[string]float64{"goodput": 8}
	}
	write(t, filepath.Join(dir, "a1.jsonl"), bake(t, small, "nightly", 0, run.Complete))
	for i := range small.Records {
		small.Records[i].Metrics = map[string]float64{"goodput": 80}
	}
	write(t, filepath.Join(dir, "a2.jsonl"), bake(t, small, "nightly", 24, run.Complete))
	write(t, filepath.Join(dir, "a3.jsonl"), bake(t, small, "nightly", 48, ""))
	write(t, filepath.Join(dir, "a4.jsonl"), bake(t, small, "nightly", 49, run.Interrupted))
	write(t, filepath.Join(dir, "b.jsonl"), bake(t, small, "weekly", 1, run.Complete))
	write(t, filepath.Join(dir, "notes.txt"), []byte("not a result"))
	text := metrics(t, site(t, dir))
	want(t, text,
		`cnibench_goodput_bytes_per_second{plan="nightly",environment="lab",profile="host",path="pod-to-pod/cross-node",workload="rr",kind="rr",stat="median"} 10`+"\n",
		fmt.Sprintf("cnibench_result_created_timestamp_seconds{plan=\"nightly\",environment=\"lab\"} %s\n", sampleNumber(small.Header.Created.Add(24*time.Hour).Unix())),
		fmt.Sprintf("cnibench_result_created_timestamp_seconds{plan=\"weekly\",environment=\"lab\"} %s\n", sampleNumber(small.Header.Created.Add(time.Hour).Unix())),
		`cnibench_result_up{file="a2.jsonl",plan="nightly",environment="lab"} 1`,
		`cnibench_result_files{state="finished"} 3`, `cnibench_result_files{state="interrupted"} 1`,
		`cnibench_result_files{state="unfinished"} 1`, `cnibench_result_files{state="unreadable"} 0`)
	wantNot(t, text, "a1.jsonl", "a3.jsonl", "a4.jsonl", "notes")
	for line := range strings.Lines(text) {
		if timed.MatchString(line) {
			t.Errorf("a sample has a time: %s", line)
		}
	}
}

// sampleNumber is n as samples have it.
func sampleNumber(n int64) string { return strconv.FormatFloat(float64(n), 'g', -1, 64) }

// timed is a sample with a time.
var timed = regexp.MustCompile(`^[^#].*\} \S+ \d+$`)

// A result that is broken in its middle gives way to the one before it, and is said to be down.
func TestBrokenGivesWay(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "old.jsonl"), bake(t, reporttest.Small(3), "p", 0, run.Complete))
	lines := bytes.SplitAfter(bake(t, reporttest.Small(3), "p", 5, run.Complete), []byte("\n"))
	lines[2] = []byte("{\"type\":\"trial\", nonsense\n")
	write(t, filepath.Join(dir, "new.jsonl"), bytes.Join(lines, nil))
	write(t, filepath.Join(dir, "other.jsonl"), []byte("<html>\n"))
	write(t, filepath.Join(dir, "void.jsonl"), nil)
	s := site(t, dir)
	want(t, get(s, "/").Body.String(), ">new.jsonl</a>", "is not a cnibench result file", "is empty")
	for range 2 { // the second time from the cache
		text := metrics(t, s)
		want(t, text, `cnibench_result_up{file="new.jsonl"} 0`, `cnibench_result_up{file="old.jsonl",plan="p",environment="lab"} 1`,
			`cnibench_result_up{file="other.jsonl"} 0`, `cnibench_result_up{file="void.jsonl"} 0`, `cnibench_result_files{state="unreadable"} 3`)
	}
	want(t, get(s, "/").Body.String(), "line 3 is no record")
	if w := get(s, "/report/new.jsonl"); w.Code != http.StatusInternalServerError {
		t.Errorf("the report of a broken result: %d", w.Code)
	}
	// Mended, it is shown without a restart.
	write(t, filepath.Join(dir, "new.jsonl"), bake(t, reporttest.Small(4), "p", 5, run.Complete))
	want(t, metrics(t, s), `cnibench_result_up{file="new.jsonl",plan="p",environment="lab"} 1`)
}

// A file may be looked at at any moment while it is written: byte by byte it is empty, cut, unfinished and then finished,
// and the page of what is there is served.
func TestWhileWritten(t *testing.T) {
	whole := bake(t, reporttest.Small(2), "p", 0, run.Complete)
	name := filepath.Join(t.TempDir(), "r.jsonl")
	write(t, name, nil)
	s := site(t, name)
	header := bytes.IndexByte(whole, '\n') + 1
	for n := 0; n <= len(whole); n += max(1, len(whole)/97) {
		write(t, name, whole[:n])
		text := metrics(t, s)
		state := unfinished
		if n < header {
			state = unreadable
		}
		if n < len(whole) {
			want(t, text, fmt.Sprintf("cnibench_result_files{state=%q} 1", state))
			wantNot(t, text, "cnibench_run_info")
		}
		code := http.StatusOK
		if n < header {
			code = http.StatusInternalServerError
		}
		if w := get(s, "/report/r.jsonl"); w.Code != code {
			t.Fatalf("%d of %d bytes: %d: %s", n, len(whole), w.Code, w.Body)
		}
	}
	write(t, name, whole)
	want(t, metrics(t, s), `cnibench_result_files{state="finished"} 1`, "cnibench_run_info")
}

// Nothing outside the paths can be reached, whatever the request is called, and neither by links.
func TestNothingOutside(t *testing.T) {
	top := t.TempDir()
	dir, out := filepath.Join(top, "in"), filepath.Join(top, "out")
	for _, d := range []string{dir, out, filepath.Join(dir, "sub.jsonl")} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	secret := bake(t, reporttest.Small(2), "secret", 0, run.Complete)
	write(t, filepath.Join(out, "secret.jsonl"), secret)
	write(t, filepath.Join(dir, ".hidden.jsonl"), secret)
	write(t, filepath.Join(dir, "good.jsonl"), bake(t, reporttest.Small(2), "good", 0, run.Complete))
	for link, target := range map[string]string{
		"abs.jsonl": filepath.Join(out, "secret.jsonl"), "rel.jsonl": "../out/secret.jsonl", "gone.jsonl": "nowhere",
		"loop.jsonl": "loop.jsonl", "passwd.jsonl": "/etc/passwd", "inside.jsonl": "good.jsonl",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	s := site(t, dir)
	text := metrics(t, s) + get(s, "/").Body.String()
	wantNot(t, text, "secret", "hidden", "root:")
	want(t, text, `cnibench_result_up{file="abs.jsonl"} 0`, `cnibench_result_up{file="sub.jsonl"} 0`)
	for _, bad := range []string{
		"../out/secret.jsonl", "..%2fout%2fsecret.jsonl", "%2e%2e/out/secret.jsonl", filepath.Join(out, "secret.jsonl"), "/etc/passwd",
		"abs.jsonl", "rel.jsonl", "passwd.jsonl", "loop.jsonl", "gone.jsonl", "sub.jsonl", ".hidden.jsonl", "good.jsonl/..", "good.jsonl%00",
		"", ".", "..", "2/good.jsonl", "good", "sub.jsonl/x",
	} {
		w := get(s, "/report/"+bad)
		if w.Code == http.StatusOK || strings.Contains(w.Body.String(), "pod-to-pod") || strings.Contains(w.Body.String(), "root:") {
			t.Errorf("%q: %d %.200s", bad, w.Code, w.Body)
		}
	}
	for _, ok := range []string{"good.jsonl", "inside.jsonl"} {
		if w := get(s, "/report/"+ok); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", ok, w.Code, w.Body)
		}
	}
}

// A browser that has the page is told so, and one that has an older one gets the new one.
func TestUnchanged(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.jsonl")
	write(t, name, bake(t, reporttest.Small(2), "p", 0, run.Complete))
	s := site(t, name)
	first := get(s, "/report/r.jsonl")
	tag := first.Header().Get("ETag")
	if again := get(s, "/report/r.jsonl", "If-None-Match", tag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("unchanged: %d", again.Code)
	}
	write(t, name, bake(t, reporttest.Small(3), "p", 0, run.Complete))
	if new := get(s, "/report/r.jsonl", "If-None-Match", tag); new.Code != http.StatusOK || new.Header().Get("ETag") == tag {
		t.Errorf("changed: %d", new.Code)
	}
}

// What is not a regular file is not waited for.
func TestPipe(t *testing.T) {
	mkfifo, err := exec.LookPath("mkfifo")
	if err != nil {
		t.Skip("mkfifo is missing")
	}
	dir := t.TempDir()
	if out, err := exec.Command(mkfifo, filepath.Join(dir, "pipe.jsonl")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want(t, metrics(t, site(t, dir)), `cnibench_result_up{file="pipe.jsonl"} 0`)
}

// Results of several paths are kept apart by the place of their path.
func TestPaths(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	write(t, filepath.Join(a, "r.jsonl"), bake(t, reporttest.Small(2), "one", 0, run.Complete))
	write(t, filepath.Join(b, "r.jsonl"), bake(t, reporttest.Small(2), "two", 0, run.Complete))
	s := site(t, a, b, filepath.Join(b, "r.jsonl"))
	page := get(s, "/").Body.String()
	want(t, page, `href="report/r.jsonl"`, `href="report/2/r.jsonl"`, `href="report/3/r.jsonl"`)
	want(t, get(s, "/report/r.jsonl").Body.String(), "one")
	want(t, get(s, "/report/2/r.jsonl").Body.String(), "two")
	if err := os.RemoveAll(b); err != nil {
		t.Fatal(err)
	}
	want(t, metrics(t, s), `cnibench_result_up{file="3/r.jsonl"} 0`, `plan="one"`)

	_, err := New(t.Context(), []string{a, filepath.Join(a, "x"), filepath.Join(a, "y")})
	if err == nil || !strings.Contains(err.Error(), "/x\"") || !strings.Contains(err.Error(), "/y\"") {
		t.Errorf("both paths that are missing are to be named: %v", err)
	}
}

// Names and texts of a stranger stay text.
func TestHostile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"<script>alert(1)<.jsonl", "a b?c#d%e.jsonl", "javascript:x.jsonl", "\x1b[2J.jsonl", "\"onload=x.jsonl", "\xff.jsonl"} {
		write(t, filepath.Join(dir, name), bake(t, reporttest.Hostile(), "evil <script>\"\n\\", 0, run.Complete))
	}
	s := site(t, dir)
	page := get(s, "/").Body.String()
	wantNot(t, page, "<script", "\x1b", `"javascript:`)
	links := regexp.MustCompile(`href="(report/[^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(links) != 6 {
		t.Fatalf("%d links in\n%s", len(links), page)
	}
	for _, l := range links {
		if w := get(s, "/"+l[1]); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", l[1], w.Code, w.Body)
		}
	}
	checkText(t, s)
}

// checkText has promtool read what s shows, if there is one.
func checkText(t *testing.T, s *Site) {
	t.Helper()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing (Debian: prometheus)")
	}
	cmd := exec.Command(promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(metrics(t, s))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// promtool has nothing to say against the exposition of several results.
func TestPromtool(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "nine.jsonl"), bake(t, reporttest.NinePaths(3), "nine", 0, run.Complete))
	write(t, filepath.Join(dir, "small.jsonl"), bake(t, reporttest.Small(5), "small", 0, run.Complete))
	write(t, filepath.Join(dir, "failed.jsonl"), bake(t, reporttest.AllFailed(), "failed", 0, run.Complete))
	write(t, filepath.Join(dir, "bad.jsonl"), []byte("x"))
	checkText(t, site(t, dir))
}

func TestNegotiate(t *testing.T) {
	const open, plain = openmetrics.OpenMetrics, openmetrics.Prometheus
	for accept, wanted := range map[string]openmetrics.Syntax{
		"":     plain,
		"*/*":  plain,
		"junk": plain,
		"text/html,application/xhtml+xml,*/*;q=0.8":                   plain,
		"application/openmetrics-text":                                open,
		"application/openmetrics-text; version=1.0.0":                 open,
		"application/openmetrics-text; version=2.0.0, text/plain":     plain,
		"application/openmetrics-text;q=0, text/plain;q=0.1":          plain,
		"application/openmetrics-text;q=0.3, text/plain;q=0.5":        plain,
		"application/openmetrics-text;q=NaN":                          plain,
		"application/openmetrics-text;q=-1":                           plain,
		strings.Repeat("a/b,", 1000) + "application/openmetrics-text": plain,
		// What Prometheus 2 and 3 say.
		"application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2":                                                                          open,
		"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2": open,
	} {
		if got := negotiate(accept); got != wanted {
			t.Errorf("%q: %v, want %v", accept, got, wanted)
		}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "r.jsonl"), bake(t, reporttest.Small(2), "p", 0, run.Complete))
	w := get(site(t, dir), "/metrics", "Accept", "application/openmetrics-text")
	want(t, w.Body.String(), "# TYPE cnibench_run info\n", "# UNIT cnibench_result_created_timestamp_seconds seconds\n", "\n# EOF\n")
	if ct := w.Header().Get("Content-Type"); !strings.HasPrefix(ct, "application/openmetrics-text; version=1.0.0") {
		t.Error(ct)
	}
}

// Only reading is answered.
func TestMethods(t *testing.T) {
	s := site(t, t.TempDir())
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "PURGE"} {
		for _, target := range []string{"/", "/metrics", "/report/x.jsonl", "/healthz"} {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(method, target, nil))
			if w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, target, w.Code)
			}
		}
	}
	for target, code := range map[string]int{"/healthz": 200, "/": 200, "/metrics": 200, "/x": 404, "/report/x": 404, "/metrics/x": 404} {
		if w := get(s, target); w.Code != code {
			t.Errorf("%s: %d, want %d", target, w.Code, code)
		}
	}
	want(t, get(s, "/").Body.String(), "There is no result yet")
}

// Many ask at once while files come, change and go.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	bodies := [][]byte{bake(t, reporttest.Small(2), "a", 0, run.Complete), bake(t, reporttest.Small(3), "b", 1, run.Complete)}
	for i := range 4 {
		write(t, filepath.Join(dir, fmt.Sprintf("%d.jsonl", i)), bodies[i%2])
	}
	s := site(t, dir)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for n := range 6 {
				target := []string{"/", "/metrics", "/report/1.jsonl", "/report/3.jsonl", "/healthz"}[(i+n)%5]
				if w := get(s, target); w.Code != http.StatusOK {
					t.Errorf("%s: %d %s", target, w.Code, w.Body)
				}
			}
		})
	}
	wait.Go(func() {
		for n := range 20 {
			write(t, filepath.Join(dir, "new.tmp"), bodies[n%2])
			if err := os.Rename(filepath.Join(dir, "new.tmp"), filepath.Join(dir, "0.jsonl")); err != nil {
				t.Error(err)
			}
		}
	})
	wait.Wait()
}

// The cache never holds more than its limit, and forgets what was used least recently.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	var files []file
	for i := range 5 {
		name := filepath.Join(dir, fmt.Sprint(i))
		write(t, name, []byte{1})
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file{name: name, info: info})
	}
	c := cache[int]{limit: 30}
	for i, f := range files[:3] {
		c.put(f, i, 10)
	}
	c.get(files[0])
	c.put(files[3], 3, 10)
	c.put(files[4], 4, 31)
	for i, kept := range []bool{true, false, true, true, false} {
		if v, ok := c.get(files[i]); ok != kept || ok && v != i {
			t.Errorf("%d: %v %v, want %v", i, v, ok, kept)
		}
	}
	c.put(files[0], 0, 25)
	if c.size != 25 || len(c.items) != 1 {
		t.Errorf("%d bytes in %d items", c.size, len(c.items))
	}
	write(t, files[0].name, []byte{1, 2})
	changed := files[0]
	changed.info, _ = os.Stat(changed.name)
	if _, ok := c.get(changed); ok {
		t.Error("a file that has changed comes from the cache")
	}
}

// Run listens, warns of an address that others reach, and ends in order when it is told to.
func TestRun(t *testing.T) {
	for listen, warns := range map[string]bool{"127.0.0.1:0": false, "localhost:0": false, "0.0.0.0:0": true, ":0": true} {
		ctx, cancel := context.WithCancel(t.Context())
		said := make(chan string, 10)
		ended := make(chan error, 1)
		go func() {
			ended <- Run(ctx, Options{Listen: listen, Paths: []string{t.TempDir()}, Say: func(f string, a ...any) { said <- fmt.Sprintf(f, a...) }})
		}()
		line, warned := "", false
		for !strings.HasPrefix(line, "results are at ") {
			select {
			case line = <-said:
				warned = warned || strings.Contains(line, "reachable")
			case err := <-ended:
				t.Fatalf("%s: %v", listen, err)
			}
		}
		url := regexp.MustCompile(`http://\S+/metrics`).FindString(line)
		r, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Body.Close() != nil || r.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("cnibench_result_files")) {
			t.Errorf("%s: %d %v %s", url, r.StatusCode, err, body)
		}
		if warned != warns {
			t.Errorf("%s: warned %v, want %v", listen, warned, warns)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", listen, err)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, listen := range []string{"nonsense", "127.0.0.1:99999", taken.Addr().String()} {
		err := Run(t.Context(), Options{Listen: listen, Paths: []string{t.TempDir()}, Say: func(string, ...any) { t.Error("it listens") }})
		if err == nil || !strings.Contains(err.Error(), listen) {
			t.Errorf("%s: %v", listen, err)
		}
	}
}

// FuzzEnding: whatever the end of a file is, it is taken for an end or not, and only a line that is one is taken.
func FuzzEnding(f *testing.F) {
	f.Add([]byte("{\"type\":\"end\",\"end\":{\"reason\":\"complete\"}}\n"))
	f.Add([]byte("x\n{\"type\":\"end\",\"end\":{\"reason\":\"complete\"}}"))
	f.Add([]byte("\n\n"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		opened, err := os.CreateTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(opened.Name())
		defer opened.Close()
		if _, err := opened.Write(b); err != nil {
			t.Fatal(err)
		}
		got, err := ending(opened, int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		if got != "" && (!bytes.HasSuffix(b, []byte("\n")) || !bytes.Contains(b, []byte("end"))) {
			t.Errorf("%q in %q", got, b)
		}
	})
}
