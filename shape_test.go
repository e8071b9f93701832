package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Bounds of the shape of types and packages.
const (
	maxFields  = 12
	maxMethods = 40
	maxPlan    = 120 // of what internal/plan exports
)

// wide are the structs that may have more than maxFields fields, with their number. What is a kernel's or a file's own has
// to; the others are still there, and none may grow.
var wide = map[string]int{
	"internal/conduct/run conductor":        16,
	"internal/conduct/run search":           17,
	"internal/control Prepare":              16,
	"internal/dataplane Expectation":        15,
	"internal/engine/agent trial":           13,
	"internal/engine/load Trial":            16,
	"internal/engine/load worker":           19,
	"internal/engine/load yardstick":        13,
	"internal/env/kube Cluster":             18,
	"internal/env/kube Options":             15,
	"internal/env/kube/api Client":          18,
	"internal/env/kube/chart metadata":      14,
	"internal/env/kube/detect Verdict":      15,
	"internal/env/kube/recipe Options":      13,
	"internal/env/lab Instance":             15,
	"internal/env/lab addressing":           14,
	"internal/env/lab arrivals":             13,
	"internal/env/lab/selftest expectation": 17,
	"internal/external/adapter Reading":     15,
	"internal/external/outputs fortioDoc":   18,
	"internal/external/outputs httpReport":  18,
	"internal/external/iperf3 textRun":      20,
	"internal/external/outputs k8sRow":      27,
	"internal/external/netperf netperfRun":  13,
	"internal/external/sockperf sockRun":    13,
	"internal/judge/compare Analysis":       13,
	"internal/judge/config objects":         25,
	"internal/judge/explain Side":           23,
	"internal/judge/findings Claim":         13,
	"internal/judge/itinerary Itinerary":    17,
	"internal/judge/itinerary Step":         15,
	"internal/judge/stat Curve":             13,
	"internal/kernel/bpf/bpftest Packet":    14,
	"internal/kernel/bpf/calico Node":       13,
	"internal/kernel/bpf/cilium Options":    13,
	"internal/measure/journey Event":        14,
	"internal/measure/netstate State":       15,
	"internal/measure/outcome Conditions":   13,
	"internal/measure/result Record":        19,
	"internal/measure/sample HostDelta":     13,
	"internal/measure/sample Observation":   28,
	"internal/measure/sample Stacks":        19,
	"internal/plan Cluster":                 20,
	"internal/plan Lab":                     24,
	"internal/plan Plan":                    23,
	"internal/plan Setting":                 16,
	"internal/plan Traits":                  24,
	"internal/profile Profile":              16,
	"internal/report Need":                  13,
	"internal/report figureData":            13,
	"internal/report growthCurve":           17,
	"internal/report pairCell":              18,
	"internal/report runData":               14,
	"internal/tool/cluster component":       15,
}

// busy are the types that may have more than maxMethods methods, with their number. None may grow.
var busy = map[string]int{
	"internal/engine/load Trial":         63,
	"internal/env/kube Cluster":          75,
	"internal/env/kube/recipe Installer": 54,
	"internal/env/lab/selftest scene":    47,
	"internal/judge/config judge":        74,
	"internal/measure/outcome trial":     77,
	"internal/plan Plan":                 50,
	"internal/report builder":            73,
	"internal/tool/cluster cluster":      42,
}

// sameName are names that several packages still have.
var sameName = []string{"calico", "cilium"}

// kept are exported names without a user outside their package that are still there, by folder.
var kept = map[string][]string{}

// unheld are the folders whose exported names are not counted yet.
var unheld = []string{
	"internal/cli", "internal/engine", "internal/external", "internal/judge", "internal/kernel", "internal/report", "internal/tool", "internal/vocab",
	"e2e", "examples", "internal/env/kube/recipe",
}

// parsed are all Go files of the repository by their folder, tests too.
func parsed(t *testing.T) map[string]map[string]*ast.File {
	t.Helper()
	all := map[string]map[string]*ast.File{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			if err == nil && d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if all[dir] == nil {
			all[dir] = map[string]*ast.File{}
		}
		all[dir][path] = f
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// isProduct returns whether a file is one of the product: no test, nothing generated.
func isProduct(path string, f *ast.File) bool {
	return !strings.HasSuffix(path, "_test.go") && !ast.IsGenerated(f)
}

// TestShape bounds the fields of structs and the methods of types, and has one package for each name.
func TestShape(t *testing.T) {
	fields, methods, names := map[string]int{}, map[string]int{}, map[string][]string{}
	for dir, files := range parsed(t) {
		for path, f := range files {
			if !isProduct(path, f) {
				continue
			}
			if f.Name.Name != "main" && !slices.Contains(names[f.Name.Name], dir) {
				names[f.Name.Name] = append(names[f.Name.Name], dir)
			}
			measureShape(dir, f, fields, methods)
		}
	}
	within(t, "struct", "fields", fields, maxFields, wide)
	within(t, "type", "methods", methods, maxMethods, busy)
	for name, dirs := range names {
		if several := len(dirs) > 1; several != slices.Contains(sameName, name) {
			t.Errorf("package name %s: %q, among those that several packages still have: %v", name, dirs, !several)
		}
	}
}

// measureShape counts the fields of structs and the methods of types of one file.
func measureShape(dir string, f *ast.File, fields, methods map[string]int) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				methods[dir+" "+receiver(d.Recv.List[0].Type)]++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok {
					if st, ok := ts.Type.(*ast.StructType); ok {
						fields[dir+" "+ts.Name.Name] = countFields(st)
					}
				}
			}
		}
	}
}

// receiver returns the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// countFields returns the number of a struct's fields. An embedded type is one.
func countFields(s *ast.StructType) int {
	n := 0
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

// within reports what is over its bound, and exceptions that are not needed any more.
func within(t *testing.T, kind, of string, counts map[string]int, most int, except map[string]int) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n > max(most, except[name]) {
			t.Errorf("%s %s has %d %s, more than %d", kind, name, n, of, max(most, except[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(except)) {
		if counts[name] <= most {
			t.Errorf("%s %s has %d %s and needs no exception", kind, name, counts[name], of)
		}
	}
}

// TestExports finds exported names without a user outside their package.
func TestExports(t *testing.T) {
	all := parsed(t)
	exported, used := map[string][]string{}, map[string]bool{}
	for dir, files := range all {
		for path, f := range files {
			for name := range mentions(dir, f) {
				used[name] = true
			}
			if isProduct(path, f) && !slices.ContainsFunc(unheld, func(u string) bool { return under(u)(dir + "/") }) && dir != "." {
				exported[dir] = append(exported[dir], topLevel(f)...)
			}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(exported)) {
		for _, name := range exported[dir] {
			if has := used[dir+" "+name]; has == slices.Contains(kept[dir], name) {
				t.Errorf("%s: %s has users outside: %v, and is listed as one without: %v", dir, name, has, has)
			}
		}
		for _, name := range kept[dir] {
			if !slices.Contains(exported[dir], name) {
				t.Errorf("%s: %s is listed, and is not there", dir, name)
			}
		}
	}
	if n := len(exported["internal/plan"]); n > maxPlan {
		t.Errorf("internal/plan exports %d names, more than %d", n, maxPlan)
	}
}

// topLevel returns the exported names of a file.
func topLevel(f *ast.File) []string {
	var names []string
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						add(id)
					}
				}
			}
		}
	}
	return names
}

// mentions returns the names of other packages of the module that a file uses, as "folder name".
func mentions(dir string, f *ast.File) map[string]bool {
	at := map[string]string{}
	for _, spec := range f.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		folder, own := strings.CutPrefix(path, module+"/")
		if err != nil || !own || folder == dir && !strings.HasSuffix(f.Name.Name, "_test") {
			continue
		}
		name := folder[strings.LastIndex(folder, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		at[name] = folder
	}
	found := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && at[id.Name] != "" {
				found[at[id.Name]+" "+sel.Sel.Name] = true
			}
		}
		return true
	})
	return found
}

// TestShapeBites proves that the rules of this file find what they are for.
func TestShapeBites(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
import "`+module+`/internal/plan"
type T struct { A, B int; C string; plan.Plan }
func (t *T) M() {}
func (t T) N() plan.Case { return plan.Case{} }
const Outside, inside = 1, 2
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	fields, methods := map[string]int{}, map[string]int{}
	measureShape("d", f, fields, methods)
	if fields["d T"] != 4 || methods["d T"] != 2 {
		t.Errorf("%v, %v", fields, methods)
	}
	if got := topLevel(f); !slices.Equal(got, []string{"T", "Outside"}) {
		t.Errorf("exported %q", got)
	}
	if got := mentions("d", f); !maps.Equal(got, map[string]bool{"internal/plan Plan": true, "internal/plan Case": true}) {
		t.Errorf("mentions %v", got)
	}
	if got := mentions("internal/plan", f); len(got) > 0 {
		t.Errorf("a package uses itself: %v", got)
	}
}
