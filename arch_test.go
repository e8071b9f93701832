package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/cnibench/cnibench"

// rule forbids imports or calls in a part of the tree. ARCHITECTURE.md lists the same rules; the two change together.
type rule struct {
	name string
	why  string
	// in says which files the rule governs, by path relative to the module's root.
	in func(file string) bool
	// imports are import paths that are forbidden there; a trailing "/" or "..." forbids everything below.
	imports []string
	// calls are "package.Name" selectors that are forbidden there.
	calls []string
	// only maps a package's name to the names that are allowed there; the package's other names are forbidden.
	only map[string]*regexp.Regexp
	// breaks are selectors that only forbids, for the proof that the rule bites.
	breaks []string
}

func under(dirs ...string) func(string) bool {
	return func(file string) bool {
		for _, d := range dirs {
			if strings.HasPrefix(file, d+"/") {
				return true
			}
		}
		return false
	}
}

func outside(dirs ...string) func(string) bool {
	in := under(dirs...)
	return func(file string) bool { return !in(file) }
}

var linuxOnly = []string{"internal/kernel", "internal/engine", "internal/dataplane", "internal/env/lab"}

var rules = []rule{
	{
		name: "portable core",
		why:  "a laptop can drive a cluster, compare and render; cli reaches the lab through its _linux.go files only",
		in: func(f string) bool {
			return outside(linuxOnly...)(f) && !strings.HasSuffix(f, "_linux.go")
		},
		imports: []string{
			module + "/internal/kernel/", module + "/internal/engine/", module + "/internal/dataplane/", module + "/internal/env/lab/",
		},
	},
	{
		name: "one door to the kernel",
		why:  "one place to audit privilege, one place to handle EINTR, ENOBUFS and old kernels",
		in:   outside("internal/kernel"),
		imports: []string{
			"golang.org/x/sys/", "github.com/vishvananda/netlink/", "github.com/vishvananda/netns/",
			"github.com/google/nftables/", "github.com/mdlayher/netlink/", "github.com/mdlayher/genetlink/",
			"github.com/cilium/ebpf/",
		},
	},
	{
		name:   "errors and signals without a call",
		why:    "system calls belong to kernel; elsewhere, package syscall names error numbers and signals",
		in:     outside("internal/kernel", "internal/tool"),
		only:   map[string]*regexp.Regexp{"syscall": regexp.MustCompile(`^(E[A-Z0-9]+|Errno|SIG[A-Z0-9]+|Signal)$`)},
		breaks: []string{"syscall.Exec", "syscall.SOCK_STREAM", "syscall.SysProcAttr{}", "syscall.Kill", "syscall.RawConn.Read"},
	},
	{
		name:    "kubernetes only in kube",
		why:     "client-go is eight times the rest of the binary; a build with the lab alone stays possible",
		in:      outside("internal/env/kube", "internal/env/kind"),
		imports: []string{"k8s.io/"},
	},
	{
		name:    "exit, arguments, environment and logging only in cli",
		why:     "functions stay testable, and failures unwind and clean up",
		in:      outside("internal/cli", "internal/tool"),
		imports: []string{"flag", "log"},
		calls:   []string{"os.Exit", "os.Args", "os.Getenv", "os.LookupEnv"},
	},
	{
		name:  "nobody sleeps",
		why:   "a sleep is a guess at when something will be true; wait for the thing, with a context",
		in:    func(string) bool { return true },
		calls: []string{"time.Sleep", "time.After", "time.Tick"},
	},
	{
		name:    "environments stand alone",
		why:     "a third environment is a new package, not an edit; only cli knows more than one",
		in:      under("internal/env/lab", "internal/env/kube"),
		imports: []string{module + "/internal/conduct/run/", module + "/internal/cli/"},
	},
	{
		name:    "lab does not know kube",
		why:     "the same",
		in:      under("internal/env/lab"),
		imports: []string{module + "/internal/env/kube/"},
	},
	{
		name: "a number is decided once",
		why:  "renderers write a document and compute nothing; judgement does not know how it is shown",
		in: under("internal/judge/stat", "internal/judge/compare", "internal/report/text", "internal/report/markdown", "internal/report/html", "internal/report/spreadsheet",
			"internal/report/openmetrics", "internal/report/benchfmt", "internal/report/plot", "internal/report/figure",
			"internal/judge/findings", "internal/judge/itinerary"),
		imports: []string{
			module + "/internal/conduct/run/", module + "/internal/control/", "os",
		},
	},
	{
		name: "formats know documents",
		why:  "a subject of a report is its file and a line in report/pages.go; no format changes for it",
		in: under("internal/report/text", "internal/report/markdown", "internal/report/html",
			"internal/report/json", "internal/report/figure", "internal/report/plot"),
		imports: []string{
			module + "/internal/judge/check/", module + "/internal/judge/config/", module + "/internal/judge/explain/", module + "/internal/judge/fidelity/",
			module + "/internal/judge/findings/", module + "/internal/judge/growth/", module + "/internal/judge/impact/",
			module + "/internal/judge/itinerary/", module + "/internal/judge/stat/", module + "/internal/measure/",
		},
	},
	{
		name:    "stat knows numbers only",
		why:     "statistics that know where a number came from start to favour it",
		in:      under("internal/judge/stat"),
		imports: []string{module + "/internal/"},
	},
	{
		name:    "the meter is not the load",
		why:     "no logging and no shared locks where the load runs",
		in:      under("internal/engine/load", "internal/kernel/sock"),
		imports: []string{"log/slog", "fmt.Print"},
	},
	{
		name:    "vocabulary stands on the standard library",
		why:     "every package may use these words, so they may use nobody",
		in:      under("internal/vocab"),
		imports: []string{module + "/internal/", "github.com/", "golang.org/x/"},
	},
	{
		name: "no test hooks in the product",
		why:  "what only a test needs lives in a _test.go file or a *test package",
		in: func(f string) bool {
			return !strings.Contains(filepath.Dir(f), "test") && !under("internal/tool/golden")(f)
		},
		imports: []string{"testing", module + "/internal/tool/golden", "github.com/google/go-cmp/", "github.com/rogpeppe/go-internal/"},
	},
}

// exempt names the calls that a rule allows, with the reason. An entry that no longer matches anything is a failure.
var exempt = map[string]string{
	"main.go os.Exit": "the shim",
	"main.go os.Args": "the shim",
	"internal/measure/result/lock_unix.go syscall.Flock":   "the file is also written on darwin, where kernel does not exist",
	"internal/measure/result/lock_unix.go syscall.LOCK_EX": "the same",
	"internal/measure/result/lock_unix.go syscall.LOCK_NB": "the same",
}

func TestArchitecture(t *testing.T) {
	used := map[string]bool{}
	for _, file := range sources(t) {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range violations(file, f) {
			key := file + " " + v.what
			if _, ok := exempt[key]; ok {
				used[key] = true
				continue
			}
			t.Errorf("%s: uses %s, against rule %q: %s", file, v.what, v.rule.name, v.rule.why)
		}
	}
	for key := range exempt {
		if !used[key] {
			t.Errorf("exemption %q is not needed any more", key)
		}
	}
}

// waiting names the functions whose subject is a length of time, with the reason.
var waiting = map[string]string{
	"trial_linux.go delayWarmUp":      "the word to start is on its way to the client",
	"hold.go holdPod":                 "a pod's main process lives until its deadline",
	"roll.go waitUntil":               "the steps of a roll follow a schedule",
	"run_linux.go awaitSettledCounts": "stragglers count until the drain time is over, by definition",
	"path_linux.go pause":             "paces datagrams",
	"facts_linux.go Idle":             "measures what the CPUs do for a while",
	"neighbour_linux.go burst":        "rests between bursts of work",
	"up_linux.go fail":                "gives the cause of a failure time to arrive before the failure is printed",
	"newpods_linux.go sleepUntil":     "new pods come at their intended times",
	"newpods.go runTrial":             "the same on a cluster",
}

// TestNobodyWaitsForTime finds sleeps in disguise: a function that makes a timer or a context with a time limit and then
// waits for that alone.
func TestNobodyWaitsForTime(t *testing.T) {
	used := map[string]bool{}
	for _, file := range sources(t) {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range sleepers(f) {
			key := filepath.Base(file) + " " + name
			if _, ok := waiting[key]; ok {
				used[key] = true
				continue
			}
			t.Errorf("%s: %s waits for time to pass; wait for the thing, with a context, or pace work by a ticker", file, name)
		}
	}
	for key := range waiting {
		if !used[key] {
			t.Errorf("exemption %q is not needed any more", key)
		}
	}
	for src, want := range map[string]int{
		"func f(c context.Context) { l, stop := context.WithTimeout(c, 1); defer stop(); <-l.Done() }":                            1,
		"func f() { t := time.NewTimer(1); <-t.C }":                                                                               1,
		"func f(c context.Context) { t := time.NewTimer(1); select { case <-t.C: case <-c.Done(): } }":                            1,
		"func f(c chan int) { t := time.NewTimer(1); select { case <-t.C: case <-c: } }":                                          0,
		"func f(c context.Context) { l, stop := context.WithTimeout(c, 1); defer stop(); select { case <-l.Done(): case <-x: } }": 0,
		"func f() { t := time.NewTicker(1); for range t.C { g() } }":                                                              0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+src, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := sleepers(f); len(got) != want {
			t.Errorf("%s: found %v, want %d", src, got, want)
		}
	}
}

// sleepers returns the functions of f that wait for time alone.
func sleepers(f *ast.File) []string {
	var names []string
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		clocks := map[string]bool{}
		found := false
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if call, ok := n.Rhs[0].(*ast.CallExpr); ok && makesClock(call) {
					if id, ok := n.Lhs[0].(*ast.Ident); ok {
						clocks[id.Name] = true
					}
				}
			case *ast.SelectStmt:
				waits := 0
				for _, c := range n.Body.List {
					if c := c.(*ast.CommClause); c.Comm == nil || !waitsForClock(c.Comm, clocks) && !waitsForDone(c.Comm) {
						waits++
					}
				}
				found = found || waits == 0
				return true
			case *ast.ExprStmt:
				found = found || waitsForClock(n, clocks) && !inSelect(fn.Body, n)
			}
			return true
		})
		if found {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

// inSelect returns whether the statement is the communication of a select's case.
func inSelect(body *ast.BlockStmt, stmt ast.Stmt) bool {
	in := false
	ast.Inspect(body, func(n ast.Node) bool {
		if c, ok := n.(*ast.CommClause); ok && c.Comm == stmt {
			in = true
		}
		return !in
	})
	return in
}

// makesClock returns whether a call makes something that fires after a time.
func makesClock(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && slices.Contains([]string{"time.NewTimer", "context.WithTimeout", "context.WithDeadline"}, pkg.Name+"."+sel.Sel.Name)
}

// waitsForClock returns whether stmt receives from clock.C or clock.Done() and drops what it gets.
func waitsForClock(stmt ast.Stmt, clocks map[string]bool) bool {
	sel := received(stmt)
	if sel == nil {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && clocks[id.Name]
}

// waitsForDone returns whether stmt receives from some Done().
func waitsForDone(stmt ast.Stmt) bool {
	sel := received(stmt)
	return sel != nil && sel.Sel.Name == "Done"
}

// received returns x.C or x.Done of a statement <-x.C or <-x.Done().
func received(stmt ast.Stmt) *ast.SelectorExpr {
	e, ok := stmt.(*ast.ExprStmt)
	if !ok {
		return nil
	}
	u, ok := e.X.(*ast.UnaryExpr)
	if !ok || u.Op != token.ARROW {
		return nil
	}
	x := u.X
	if call, ok := x.(*ast.CallExpr); ok {
		x = call.Fun
	}
	sel, _ := x.(*ast.SelectorExpr)
	return sel
}

// TestRulesBite proves that each rule can fail: a file that breaks it, at a place that it governs, is caught.
func TestRulesBite(t *testing.T) {
	places := []string{"internal/conduct/run/x.go", "internal/env/lab/x.go", "internal/judge/stat/x.go", "internal/engine/load/x.go", "internal/vocab/number/x.go", "internal/env/kube/x.go", "internal/report/text/x.go"}
	for _, r := range rules {
		var sources []string
		for _, path := range r.imports {
			sources = append(sources, "package x\nimport _ "+strconv.Quote(strings.TrimSuffix(path, "/")))
		}
		for _, call := range slices.Concat(r.calls, r.breaks) {
			pkg, _, _ := strings.Cut(call, ".")
			sources = append(sources, "package x\nimport "+strconv.Quote(pkg)+"\nvar _ = "+call)
		}
		for _, src := range sources {
			f, err := parser.ParseFile(token.NewFileSet(), "x.go", src, 0)
			if err != nil {
				t.Fatal(err)
			}
			caught := false
			for _, place := range places {
				for _, v := range violations(place, f) {
					caught = caught || v.rule.name == r.name
				}
			}
			if !caught {
				t.Errorf("rule %q does not catch:\n%s", r.name, src)
			}
		}
	}
}

// TestErrorsAndSignalsAllowed proves that the rule for package syscall leaves error numbers and signals alone.
func TestErrorsAndSignalsAllowed(t *testing.T) {
	const src = `package x
import "syscall"
var _ = []any{syscall.EINTR, syscall.E2BIG, syscall.Errno(1), syscall.SIGTERM, syscall.Signal(1)}`
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations("internal/engine/load/x.go", f) {
		t.Errorf("rule %q forbids %s", v.rule.name, v.what)
	}
}

// floors are the folders of internal from the ground up. A package imports its own floor and those below. Its floor is the
// last that its path begins with. What ends in "/" is the folders in a folder, without the package of the folder itself.
var floors = []string{
	"vocab/", "profile", "plan", "measure", "kernel/", "external", "control", "engine/", "dataplane",
	"profile/", // how the lab imitates the profiles of the catalogue: a family is one folder
	"judge/", "report", "env", "conduct/", "cli", "tool/",
	"judge/stat", // on the ground: it knows numbers only, by a rule of its own
}

// floorOf returns the floor of a package below internal, -1 if it has none.
func floorOf(pkg string) int {
	floor := -1
	for i, f := range floors {
		if pkg == f || strings.HasPrefix(pkg, strings.TrimSuffix(f, "/")+"/") {
			floor = i
		}
	}
	if floor == len(floors)-1 {
		return 0
	}
	return floor
}

// climbs returns whether a package imports one of a floor above its own, or one of the two has no floor.
func climbs(pkg, imported string) bool {
	from, to := floorOf(pkg), floorOf(imported)
	return from < 0 || to < 0 || to > from
}

// TestDirection keeps every import on its floor or downwards, so that the folders have one order.
func TestDirection(t *testing.T) {
	const root = module + "/internal/"
	for _, file := range sources(t) {
		pkg, ok := strings.CutPrefix(filepath.Dir(file), "internal/")
		if !ok {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if imported, own := strings.CutPrefix(path, root); err == nil && own && climbs(pkg, imported) {
				t.Errorf("%s: imports %s, which is on a floor above it (see floors)", file, imported)
			}
		}
	}
	for pair, want := range map[[2]string]bool{
		{"vocab/each", "plan"}: true, {"plan", "profile"}: false, {"profile", "plan"}: true, {"profile/calico", "dataplane"}: false,
		{"dataplane/policy", "profile/calico"}: true, {"plan", "profile/calico"}: true, {"measure/outcome", "judge/stat"}: false,
		{"measure/outcome", "judge/compare"}: true, {"control", "conduct/run"}: true, {"env", "conduct/run"}: true, {"env/lab", "control"}: false,
		{"judge/stat", "measure/sample"}: true, {"report", "cli"}: true, {"attic", "vocab/each"}: true,
	} {
		if got := climbs(pair[0], pair[1]); got != want {
			t.Errorf("%s imports %s: climbs is %v, want %v", pair[0], pair[1], got, want)
		}
	}
}

type violation struct {
	rule rule
	what string
}

func violations(file string, f *ast.File) []violation {
	var found []violation
	for _, r := range rules {
		if !r.in(file) {
			continue
		}
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err == nil && forbidden(r.imports, path) {
				found = append(found, violation{r, path})
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			id, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			c := id.Name + "." + sel.Sel.Name
			allowed := r.only[id.Name]
			if slices.Contains(r.calls, c) || allowed != nil && !allowed.MatchString(sel.Sel.Name) {
				found = append(found, violation{r, c})
			}
			return true
		})
	}
	return found
}

func forbidden(list []string, path string) bool {
	for _, bad := range list {
		if path == strings.TrimSuffix(bad, "/") || strings.HasSuffix(bad, "/") && strings.HasPrefix(path, bad) {
			return true
		}
	}
	return false
}

// sources returns every Go file of the product: no tests, nothing generated.
func sources(t *testing.T) []string {
	var files []string
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found %d source files; the walk is broken", len(files))
	}
	return files
}

// TestPackageDocs asks for one package comment in every package.
func TestPackageDocs(t *testing.T) {
	documented := map[string]int{}
	for _, file := range sources(t) {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(file)
		documented[dir] += 0
		if f.Doc != nil {
			documented[dir]++
		}
	}
	for dir, n := range documented {
		if n != 1 {
			t.Errorf("%s has %d package comments, want 1", dir, n)
		}
	}
}

// budget of a function and a file, in lines.
const (
	maxFunction = 100
	maxFile     = 600
	maxParams   = 5
)

// signatures names the functions whose parameters are another library's, with the reason.
var signatures = map[string]string{
	"internal/env/kube/api/mapper.go Patch": "client-go's fakes have it so",
}

// TestBudget keeps functions, files and signatures small enough to be read.
func TestBudget(t *testing.T) {
	for _, file := range sources(t) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(src, []byte("// Code generated")) {
			continue
		}
		if n := bytes.Count(src, []byte("\n")); n > maxFile {
			t.Errorf("%s has %d lines, more than %d: it has two subjects", file, n, maxFile)
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1; n > maxFunction {
				t.Errorf("%s: %s has %d lines, more than %d", file, fn.Name.Name, n, maxFunction)
			}
			if n := fn.Type.Params.NumFields(); n > maxParams && signatures[file+" "+fn.Name.Name] == "" {
				t.Errorf("%s: %s has %d parameters, more than %d", file, fn.Name.Name, n, maxParams)
			}
		}
	}
}

// TestFormatted makes gofmt a test.
func TestFormatted(t *testing.T) {
	out, err := exec.Command("gofmt", "-l", "main.go", "arch_test.go", "internal").CombinedOutput()
	if err != nil {
		t.Fatalf("gofmt: %v\n%s", err, out)
	}
	if len(out) > 0 {
		t.Errorf("not formatted:\n%s", out)
	}
}

// TestPatterns compiles the regular expressions that the product compiles on first use.
func TestPatterns(t *testing.T) {
	compiled := 0
	for _, file := range sources(t) {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			fn, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || fn.Sel.Name != "New" {
				return true
			}
			if from, ok := fn.X.(*ast.Ident); !ok || from.Name != "pattern" {
				return true
			}
			text, err := constant(call.Args[0])
			if err != nil {
				t.Errorf("%s: a pattern is not a constant: %v", file, err)
				return true
			}
			if _, err := regexp.Compile(text); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			compiled++
			return true
		})
	}
	if compiled < 40 {
		t.Errorf("%d patterns found", compiled)
	}
}

// constant returns the value of a literal, or of literals that are added, constants being x.
func constant(e ast.Expr) (string, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(e.Value)
	case *ast.Ident:
		return "x", nil // a part with a name of its own
	case *ast.BinaryExpr:
		a, err := constant(e.X)
		if err != nil {
			return "", err
		}
		b, err := constant(e.Y)
		return a + b, err
	}
	return "", fmt.Errorf("%T", e)
}
