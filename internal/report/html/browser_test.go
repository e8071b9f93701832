package html

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/cnibench/cnibench/internal/measure/sample"
	"github.com/cnibench/cnibench/internal/plan"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/reporttest"
	"github.com/cnibench/cnibench/internal/vocab/metric"
)

var screenshots = flag.String("screenshots", "", "keep the browser's pictures of the page in this directory")

func resultWarning(s string) sample.Warning { return sample.Warning{ID: s, Message: s} }

// browser is a headless Chromium driven by the W3C WebDriver protocol, without any network but the loopback.
type browser struct {
	t    *testing.T
	base string
}

var startedOn = regexp.MustCompile(`started successfully on port (\d+)`)

// open starts chromedriver and a session; the test is skipped where there is none.
func open(t *testing.T) *browser {
	t.Helper()
	driver, err := exec.LookPath("chromedriver")
	if err != nil {
		t.Skip("no chromedriver: the page is not tested in a browser")
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Skip("no chromium: the page is not tested in a browser")
	}
	// The browser writes to its directory until it is dead, so this is removed last, and what is left then is no fault.
	home, err := os.MkdirTemp("", "cnibench-browser")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	cmd := exec.CommandContext(t.Context(), driver, "--port=0")
	cmd.Env = append(os.Environ(), "TMPDIR="+home)        // a browser that is killed leaves its folders
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the browser's processes with it
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
	})
	lines := bufio.NewScanner(out)
	b := &browser{t: t}
	for b.base == "" && lines.Scan() {
		if m := startedOn.FindStringSubmatch(lines.Text()); m != nil {
			b.base = "http://127.0.0.1:" + m[1]
		}
	}
	if b.base == "" {
		t.Fatal("chromedriver does not say its port")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // until it ends
	args := []string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--hide-scrollbars", "--user-data-dir=" + home,
	}
	var session struct {
		ID string `json:"sessionId"`
	}
	b.call("POST", "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:chromeOptions": map[string]any{"args": args}, "goog:loggingPrefs": map[string]any{"browser": "ALL"},
	}}}, &session)
	b.base += "/session/" + session.ID
	t.Cleanup(func() { _ = b.try("DELETE", "", nil, nil) }) // the driver is killed next
	return b
}

// try sends one command and decodes the value of its answer into v.
func (b *browser) try(method, path string, body, v any) error {
	var in io.Reader
	if method == http.MethodPost {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, b.base+path, in)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var answer struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return errors.New(string(answer.Value))
	}
	if v == nil {
		return nil
	}
	return json.Unmarshal(answer.Value, v)
}

func (b *browser) call(method, path string, body, v any) {
	b.t.Helper()
	if err := b.try(method, path, body, v); err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// script runs code in the page, whose policy does not bind the driver.
func script[T any](b *browser, code string, args ...any) T {
	b.t.Helper()
	if args == nil {
		args = []any{}
	}
	var v T
	b.call("POST", "/execute/sync", map[string]any{"script": code, "args": args}, &v)
	return v
}

// devtools sends a command of Chromium's own protocol.
func (b *browser) devtools(cmd string, params map[string]any) {
	b.t.Helper()
	b.call("POST", "/goog/cdp/execute", map[string]any{"cmd": cmd, "params": params}, nil)
}

// size sets the window and what the reader prefers; nothing moves smoothly, so that what is clicked stands still.
func (b *browser) size(width, height int, theme string) {
	b.t.Helper()
	b.devtools("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
	b.devtools("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{
		{"name": "prefers-color-scheme", "value": theme}, {"name": "prefers-reduced-motion", "value": "reduce"},
	}})
}

func (b *browser) visit(page []byte) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "report.html")
	if err := os.WriteFile(file, page, 0o666); err != nil {
		b.t.Fatal(err)
	}
	b.call("POST", "/url", map[string]any{"url": "file://" + file}, nil)
}

// click clicks the first element of a selector as a reader would: it must be visible and not covered.
func (b *browser) click(selector string) {
	b.t.Helper()
	var element map[string]string
	b.call("POST", "/element", map[string]any{"using": "css selector", "value": selector}, &element)
	for _, id := range element {
		b.call("POST", "/element/"+id+"/click", map[string]any{}, nil)
	}
}

// press presses keys one after the other.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	var actions []map[string]string
	for _, k := range keys {
		actions = append(actions, map[string]string{"type": "keyDown", "value": k}, map[string]string{"type": "keyUp", "value": k})
	}
	b.call("POST", "/actions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "keyboard", "actions": actions}}}, nil)
}

// unfold opens a place and waits for what the page builds in it.
func (b *browser) unfold(place, until string) {
	b.t.Helper()
	script[any](b, `document.querySelector(arguments[0]).open = true;
		return new Promise(done => { const look = () => document.querySelector(arguments[1]) ? done(null) : requestAnimationFrame(look); look(); })`, place, until)
}

func (b *browser) screenshot(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	var text string
	b.call("GET", "/screenshot", nil, &text)
	png, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o666)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// complaints are what the console says: of a script that failed, or of the policy that stopped something.
func (b *browser) complaints() []string {
	b.t.Helper()
	var entries []struct{ Level, Message string }
	b.call("POST", "/se/log", map[string]any{"type": "browser"}, &entries)
	var out []string
	for _, e := range entries {
		out = append(out, e.Level+": "+e.Message)
	}
	return out
}

// The page fits the window at three widths in both themes, loads nothing, and no script of it fails.
func TestBrowserFits(t *testing.T) {
	b := open(t)
	page := render(t, document(t, reporttest.NinePaths(5)))
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int{390, 1024, 1920} {
			b.size(width, 900, theme)
			b.visit(page)
			at := fmt.Sprintf("%s-%d", theme, width)
			if got := script[int](b, "return document.documentElement.scrollWidth"); got > width {
				t.Errorf("%s: the page is %d pixels wide", at, got)
			}
			if got := script[int](b, "return performance.getEntriesByType('resource').length"); got != 0 {
				t.Errorf("%s: %d resources were asked for", at, got)
			}
			if got := script[bool](b, "const r = document.querySelector('.answer').getBoundingClientRect(); return r.top > 0 && r.top < 640"); !got {
				t.Errorf("%s: the answer does not begin on the first screen: %v", at, script[float64](b, "return document.querySelector('.answer').getBoundingClientRect().top"))
			}
			dark := script[bool](b, "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(v => v < 60)")
			if dark != (theme == "dark") {
				t.Errorf("%s: dark is %v", at, dark)
			}
			// Text in charts stays readable where they are made smaller.
			if got := script[float64](b, "const s = document.querySelector('.need svg'); return 11 * s.getBoundingClientRect().width / s.viewBox.baseVal.width"); got < 8.5 {
				t.Errorf("%s: the small text of a chart is %.1f pixels high", at, got)
			}
			b.screenshot(at)
		}
	}
	if c := b.complaints(); len(c) > 0 {
		t.Errorf("the console says %q", c)
	}
}

// TestBrowserSweep: the page of a sweep fits a phone and a wide screen, the text of its charts stays readable, none of it is
// cut off, and no two texts of a chart lie over each other.
func TestBrowserSweep(t *testing.T) {
	b := open(t)
	page := render(t, document(t, reporttest.Growth()))
	for _, width := range []int{390, 1024, 1920} {
		b.size(width, 900, "light")
		b.visit(page)
		if got := script[int](b, "return document.documentElement.scrollWidth"); got > width {
			t.Errorf("%d: the page is %d pixels wide", width, got)
		}
		for _, fault := range script[[]string](b, `
			document.querySelectorAll('main details').forEach(d => d.open = true);
			const faults = [];
			const charts = [...document.querySelectorAll('#growth svg')].filter(s => s.getBoundingClientRect().width);
			if (!charts.length) faults.push('there is no curve');
			for (const s of charts) {
				const box = s.getBoundingClientRect();
				const scale = box.width / s.viewBox.baseVal.width;
				const texts = [...s.querySelectorAll('text')].map(e => {
					const said = e.textContent, r = e.getBoundingClientRect(), size = scale * parseFloat(e.getAttribute('font-size'));
					if (size < 9) faults.push(said + ' is ' + size.toFixed(1) + ' pixels high');
					if (r.left < box.left - 1 || r.right > box.right + 1 || r.bottom > box.bottom + 1) faults.push(said + ' is cut off');
					return [said, r];
				});
				texts.forEach(([x, a], i) => texts.slice(i + 1).forEach(([y, c]) => {
					if (Math.min(a.right, c.right) - Math.max(a.left, c.left) > 1 && Math.min(a.bottom, c.bottom) - Math.max(a.top, c.top) > 3) faults.push(x + ' lies over ' + y);
				}));
			}
			charts[0]?.scrollIntoView();
			return faults;`) {
			t.Errorf("%d: %s", width, fault)
		}
		b.screenshot(fmt.Sprintf("sweep-%d", width))
	}
}

// TestBrowserWideTable: on a phone a table of many profiles, such as the parts of an explanation, scrolls within itself, with
// the names of its rows in sight.
func TestBrowserWideTable(t *testing.T) {
	b := open(t)
	g := report.Grid{Title: "rr, pod-to-pod/cross-node: parts (µs/transaction)", Label: "part"}
	row := []string{}
	for i := range 12 {
		g.Columns, row = append(g.Columns, fmt.Sprintf("cilium-native-legacy-%d", i)), append(row, "12.3")
	}
	g.Add("softirq entry, backlog and receive", row...)
	d := document(t, reporttest.Small(1))
	d.Sections = append(d.Sections, report.Section{Heading: "Where the CPU time goes", Asked: true, Grids: []report.Grid{g}})
	b.size(390, 900, "light")
	b.visit(render(t, d))
	if got := script[int](b, "return document.documentElement.scrollWidth"); got > 390 {
		t.Errorf("the page is %d pixels wide", got)
	}
	seen := script[[3]float64](b, `
		const head = [...document.querySelectorAll('th[scope=row]')].find(h => h.textContent.includes('backlog'));
		const box = head.closest('.scroll');
		head.scrollIntoView();
		const before = head.getBoundingClientRect().left;
		box.scrollLeft = 400;
		return [box.scrollLeft, before, head.getBoundingClientRect().left];`)
	if seen[0] != 400 || seen[1] < 0 || seen[2] < 0 || seen[2] > seen[1]+1 {
		t.Errorf("scrolled by %v pixels, the name of the row moved from %v to %v", seen[0], seen[1], seen[2])
	}
	b.screenshot("wide-table")
}

// axe returns the source of axe-core, which finds what readers with other eyes or hands cannot use; the test is skipped where
// npm has not installed it.
func axe(t *testing.T) string {
	t.Helper()
	folders := []string{os.Getenv("NODE_PATH")}
	if root, err := exec.CommandContext(t.Context(), "npm", "root", "--global").Output(); err == nil {
		folders = append(folders, strings.TrimSpace(string(root)))
	}
	for _, f := range folders {
		if text, err := os.ReadFile(filepath.Join(f, "axe-core", "axe.min.js")); err == nil {
			return string(text)
		}
	}
	t.Skip("no axe-core (npm install --global axe-core): its rules are not tried on the page")
	return ""
}

// TestBrowserAccessible: axe-core finds nothing on the page, at three widths in both themes, with all of it open.
func TestBrowserAccessible(t *testing.T) {
	source := axe(t)
	b := open(t)
	b.call("POST", "/timeouts", map[string]any{"script": 300000}, nil)
	// The page of a full result has every shade and kind of cell; its table of all numbers has the cells of the small page's.
	all := reporttest.NinePaths(6)
	for _, r := range all.Records {
		if r.Profile == plan.VariantOf("canal") && r.Metrics != nil {
			r.Metrics[metric.ServiceDemand] *= 4
		}
	}
	small, full := render(t, document(t, reporttest.Small(5))), render(t, document(t, all))
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int{390, 1280, 1920, 1281} {
			b.size(width, 900, theme)
			if width == 1281 {
				b.visit(full)
				script[any](b, "document.querySelectorAll('main details:not(#table)').forEach(d => d.open = true)")
			} else {
				b.visit(small)
				b.unfold("#table", "#cells tbody td")
			}
			b.unfold(".samples", ".samples svg")
			for _, fault := range script[[]string](b, source+`; return axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }).then(
				found => found.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.length + ", as " + v.nodes[0].html.slice(0, 200)))`) {
				t.Errorf("%s, %d: %s", theme, width, fault)
			}
			if cut := script[[]string](b, `const w = document.documentElement.clientWidth;
				return [...document.querySelectorAll('.bar a')].filter(a => a.getBoundingClientRect().right > w).map(a => a.textContent)`); len(cut) > 0 {
				t.Errorf("%s, %d: the navigation is cut before %q", theme, width, cut)
			}
			b.screenshot(fmt.Sprintf("accessible-%s-%d", theme, width))
		}
	}
}

// TestBrowserBuildsOnDemand: what is packed is built when it is opened, as the filters say, and the CSV has each cell.
func TestBrowserBuildsOnDemand(t *testing.T) {
	b := open(t)
	b.size(1024, 900, "light")
	d := document(t, reporttest.NinePaths(5))
	b.visit(render(t, d))
	before := script[int](b, "return document.querySelectorAll('svg').length")
	b.click("#filters summary")
	b.click("#filters button[data-k=p]")
	b.unfold(".samples", ".samples svg")
	if after := script[int](b, "return document.querySelectorAll('svg').length"); after <= before {
		t.Errorf("%d drawings before, %d after", before, after)
	}
	if got := script[int](b, "return [...document.querySelectorAll('.samples [data-p=\"1\"]')].filter(e => e.checkVisibility()).length"); got != 0 {
		t.Errorf("the first profile is off, and %d parts of it were built", got)
	}
	b.unfold("#table", "#cells tbody td")
	if got := script[int](b, "return document.querySelectorAll('#cells tbody tr').length"); got != len(d.Analysis.Cells) {
		t.Errorf("%d rows for %d cells", got, len(d.Analysis.Cells))
	}
	if c := b.complaints(); len(c) > 0 {
		t.Errorf("the console says %q", c)
	}
}

// values are the values of a column of the table as it stands, null where there is none.
const values = `return [...document.querySelectorAll('#cells tbody tr')].map(r => {
	const c = r.cells[arguments[0]]; return c.dataset.v === undefined ? null : Number(c.dataset.v); })`

func TestBrowserSorts(t *testing.T) {
	b := open(t)
	b.size(1400, 900, "light")
	b.visit(render(t, document(t, reporttest.NinePaths(5))))
	b.unfold("#table", "#cells th button")
	before := script[[]*float64](b, values, 14)
	sorted := func(sign float64) {
		t.Helper()
		got := script[[]*float64](b, values, 14)
		if len(got) != len(before) || len(got) < 100 {
			t.Fatalf("%d rows of %d", len(got), len(before))
		}
		numbers := 0
		for i := 1; i < len(got); i++ {
			if got[i-1] == nil && got[i] != nil {
				t.Fatalf("row %d has a number below one that has none", i)
			}
			if got[i] != nil {
				numbers++
				if sign*(*got[i]-*got[i-1]) < 0 {
					t.Fatalf("row %d: %v after %v", i, *got[i], *got[i-1])
				}
			}
		}
		if numbers < 50 || numbers == len(got) {
			t.Fatalf("%d numbers in %d rows: the test needs both kinds", numbers, len(got))
		}
	}
	order := func() string { return script[string](b, "return document.querySelectorAll('#cells th')[14].ariaSort") }
	if got := order(); got != "none" {
		t.Errorf("aria-sort %q before", got)
	}
	script[any](b, "document.querySelectorAll('#cells th button')[14].focus()")
	b.press("\ue007") // Enter
	if got := order(); got != "ascending" {
		t.Errorf("aria-sort %q after Enter", got)
	}
	sorted(1)
	b.press(" ")
	if got := order(); got != "descending" {
		t.Errorf("aria-sort %q after the second press", got)
	}
	sorted(-1)
	b.click("#cells th:first-child button")
	names := script[[]string](b, "return [...document.querySelectorAll('#cells tbody tr')].map(r => r.cells[0].textContent)")
	for i := 1; i < len(names); i++ {
		if strings.Compare(names[i-1], names[i]) > 0 {
			t.Fatalf("%s before %s", names[i-1], names[i])
		}
	}
	if got := script[int](b, "return document.querySelectorAll('#cells th:not([aria-sort=none])').length"); got != 1 {
		t.Errorf("%d columns claim the order", got)
	}
}

func TestBrowserFilters(t *testing.T) {
	b := open(t)
	b.size(1024, 900, "light")
	b.visit(render(t, document(t, reporttest.NinePaths(5))))
	// shown counts what is on the page of profile canal: rows of tables, rows of charts; and the height of a chart.
	type state struct{ Rows, Groups, Others, Height int }
	look := func() state {
		return script[state](b, `
			const p = [...document.querySelectorAll('#filters button[data-k=p]')].find(x => x.textContent === 'canal').value;
			const shown = (s) => [...document.querySelectorAll(s)].filter(e => getComputedStyle(e).display !== 'none').length;
			return {Rows: shown('main tr[data-p="'+p+'"]'), Groups: shown('svg g[data-p="'+p+'"]'), Others: shown('main tr'),
				Height: document.querySelector('.need svg').viewBox.baseVal.height}`)
	}
	before := look()
	if before.Rows == 0 || before.Groups == 0 {
		t.Fatalf("nothing to filter: %+v", before)
	}
	b.click("#filters summary")
	b.click(`#filters button[data-k=p][value="` + script[string](b, "return [...document.querySelectorAll('#filters button[data-k=p]')].find(x => x.textContent === 'canal').value") + `"]`)
	after := look()
	if after.Rows != 0 || after.Groups != 0 || after.Others != before.Others-before.Rows || after.Height >= before.Height {
		t.Errorf("canal is off: %+v, before %+v", after, before)
	}
	if got := script[string](b, "return document.getElementById('status').textContent"); !regexp.MustCompile(`^\d+ of \d+ rows`).MatchString(got) || strings.HasPrefix(got, "0 ") {
		t.Errorf("status %q", got)
	}
	b.screenshot("filter")
	b.click("#all")
	if got := look(); got != before {
		t.Errorf("all are shown again: %+v, before %+v", got, before)
	}
	// A whole metric goes with its heading; a path with its column and its figures.
	b.click("#filters button[data-k=m]")
	if script[bool](b, "return document.getElementById('metric-1').checkVisibility()") {
		t.Error("the first metric is off and its heading is shown")
	}
	b.click("#all")
	b.click("#filters button[data-k=l]")
	if got := script[int](b, "return [...document.querySelectorAll('main [data-l=\"1\"]')].filter(e => e.checkVisibility()).length"); got != 0 {
		t.Errorf("the first path is off and %d parts of it are shown", got)
	}
	b.press("\ue00c") // Escape
	if script[bool](b, "return document.getElementById('filters').open") {
		t.Error("Escape does not close the filters")
	}
}

func TestBrowserThemeAndCopy(t *testing.T) {
	b := open(t)
	b.size(1024, 900, "light")
	b.visit(render(t, document(t, reporttest.Small(5))))
	paper := func() string { return script[string](b, "return getComputedStyle(document.body).backgroundColor") }
	light := paper()
	b.click("#theme")
	if paper() == light || script[string](b, "return document.getElementById('theme').ariaPressed") != "true" {
		t.Error("the page does not become dark")
	}
	b.call("POST", "/refresh", map[string]any{}, nil)
	if paper() == light {
		t.Error("the choice is forgotten")
	}
	b.devtools("Emulation.setEmulatedMedia", map[string]any{"media": "print"})
	if paper() != light {
		t.Error("paper is not white")
	}
	b.devtools("Emulation.setEmulatedMedia", map[string]any{"media": ""})
	b.size(1024, 900, "light")
	b.click("#theme")
	if paper() != light {
		t.Error("the page does not become light again")
	}
	b.click("#copy")
	if got := script[bool](b, `return new Promise(done => {
		const say = () => { const s = document.getElementById('copied').textContent; if (s) done(s.startsWith('Copied')); else requestAnimationFrame(say); };
		say(); })`); !got {
		t.Error("the CSV cannot be copied")
	}
}

// A page of hostile names runs nothing and breaks nothing; and were a script to get in, the policy would stop it.
func TestBrowserHostile(t *testing.T) {
	b := open(t)
	b.size(1024, 900, "light")
	b.visit(render(t, document(t, evil())))
	if c := b.complaints(); len(c) > 0 {
		t.Errorf("the console says %q", c)
	}
	if err := b.try("GET", "/alert/text", nil, nil); err == nil || !strings.Contains(err.Error(), "no such alert") {
		t.Errorf("an alert is open: %v", err)
	}
	if got := script[int](b, "return document.querySelectorAll('script, img, iframe, object').length"); got != 1 {
		t.Errorf("%d scripts and the like", got)
	}
	b.screenshot("hostile")
	ran := script[bool](b, `
		const s = document.createElement('script'); s.textContent = 'window.ran = true'; document.body.append(s);
		const d = document.createElement('div'); d.innerHTML = '<img src=x onerror="window.ran = true">'; document.body.append(d);
		return new Promise(done => d.firstChild.addEventListener('error', () => done(window.ran === true)))`)
	if ran {
		t.Error("an injected script ran")
	}
	if c := strings.Join(b.complaints(), " "); !strings.Contains(c, "Content Security Policy") {
		t.Errorf("the policy stopped nothing: %q", c)
	}
}
