// Command plainwords holds the product's texts to plain English: CONTRIBUTING.md has the rules.
//
//	go run ./internal/tool/plainwords [DIR ...]
//
// It reads every Go file that is not a test and not generated. A phrase of the list fails wherever it stands: in comments,
// in strings, in identifiers. A sentence that is too long fails in help texts and errors only.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// fault is one place that breaks a rule.
type fault struct {
	at   token.Position
	rule string
	text string
}

func main() {
	roots := os.Args[1:]
	if len(roots) == 0 {
		roots = []string{"main.go", "internal"}
	}
	var faults []fault
	for _, root := range roots {
		found, err := walk(root)
		if err != nil {
			fmt.Fprintln(os.Stderr, "plainwords:", err)
			os.Exit(2)
		}
		faults = append(faults, found...)
	}
	for _, f := range faults {
		fmt.Printf("%s: %s: %s\n", f.at, f.rule, f.text)
	}
	if len(faults) > 0 {
		fmt.Fprintf(os.Stderr, "%d places\n", len(faults))
		os.Exit(1)
	}
}

// walk reads the Go files under root.
func walk(root string) ([]fault, error) {
	var faults []fault
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "plainwords"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found, err := read(path, src)
		faults = append(faults, found...)
		return err
	})
	return faults, err
}

// read returns the faults of one file; a generated file has none.
func read(path string, src []byte) ([]fault, error) {
	if strings.HasPrefix(string(src), "// Code generated") {
		return nil, nil
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, src, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	r := reader{set: set, read: map[*ast.BasicLit]bool{}}
	for _, group := range f.Comments {
		r.phrases(group.Pos(), group.Text())
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			r.call(n)
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && slices.Contains(helpFields, key.Name) {
				r.long(n.Value, longHelp)
			}
		case *ast.BasicLit:
			if text, ok := literal(n); ok {
				r.phrases(n.Pos(), text)
			}
		}
		return true
	})
	return r.faults, nil
}

type reader struct {
	set    *token.FileSet
	faults []fault
	read   map[*ast.BasicLit]bool
}

// helpFields are the fields of a command or a setting that hold help.
var helpFields = []string{"Short", "Long", "Help"}

// errorCalls are the functions whose strings are errors or advice.
var errorCalls = []string{"fmt.Errorf", "errors.New", "advice.With"}

// call looks at the texts of a call that makes an error.
func (r *reader) call(n *ast.CallExpr) {
	sel, ok := n.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	if pkg, ok := sel.X.(*ast.Ident); !ok || !slices.Contains(errorCalls, pkg.Name+"."+sel.Sel.Name) {
		return
	}
	for _, arg := range n.Args {
		r.long(arg, longError)
	}
}

// long looks for sentences of more than maxWords words in the literals of e.
func (r *reader) long(e ast.Expr, rule string) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || r.read[lit] {
		return
	}
	r.read[lit] = true
	text, ok := literal(lit)
	if !ok {
		return
	}
	for _, s := range sentences(text) {
		if n := len(strings.Fields(s)); n > maxWords {
			r.add(lit.Pos(), rule, fmt.Sprintf("%d words: %s", n, s))
		}
	}
}

// phrases looks for the phrases of the list.
func (r *reader) phrases(at token.Pos, text string) {
	text = " " + strings.Join(strings.Fields(text), " ") + " "
	for _, p := range phrases {
		for _, found := range p.find(text) {
			r.add(at, p.name, found)
		}
	}
}

func (r *reader) add(at token.Pos, rule, text string) {
	r.faults = append(r.faults, fault{r.set.Position(at), rule, text})
}

// literal returns the text of a string literal.
func literal(n *ast.BasicLit) (string, bool) {
	if n.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(n.Value)
	return text, err == nil
}

// sentences cuts a text at full stops, semicolons, colons and blank or indented lines, which are examples or lists.
func sentences(text string) []string {
	var all []string
	var paragraph []string
	flush := func() {
		all = append(all, split(strings.Join(paragraph, " "))...)
		paragraph = nil
	}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			flush()
			continue
		}
		paragraph = append(paragraph, strings.TrimSpace(line))
	}
	flush()
	return all
}

// split cuts at ". ", "; " and ": ".
func split(text string) []string {
	return strings.FieldsFunc(strings.NewReplacer(". ", "\x00", "; ", "\x00", ": ", "\x00").Replace(text), func(r rune) bool { return r == 0 })
}
