// Package html writes a report as one self-contained page. The page loads nothing from the network or from other files,
// and can be read without its script. With the script a reader can filter, sort, copy, and switch to dark colours.
//
// Render fills page.tmpl with a view of the document (view.go), the pictures of package figure as inline SVG, style.css
// and script.js. A result file is not trusted. Every text is escaped by html/template according to its place. No text
// of a file becomes an attribute name, an address, a style or a script. The page's Content-Security-Policy allows only its
// own script and style sheet, by their digests, and forbids loading. The table of all numbers and the small charts, which
// few readers open, are compressed (pack.go); the script builds them on demand.
package html

import (
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/figure"
	"github.com/cnibench/cnibench/internal/report/plot"
)

//go:embed page.tmpl
var pageText string

//go:embed style.css
var styleText string

//go:embed script.js
var scriptText string

var page = sync.OnceValue(func() *template.Template {
	anchor := func(heading string) string { return "list-" + figure.Slug(heading) } // the address of a list within the page
	return template.Must(template.New("page").Funcs(template.FuncMap{"groups": findingGroups, "anchor": anchor}).Parse(pageText))
})

// Render writes d as a page. The page has percentile curves only if the document is from a Collector with Detailed. It fails
// if a drawing or the page cannot be written.
func Render(w io.Writer, d report.Document) error {
	v, err := viewOf(d)
	if err != nil {
		return err
	}
	style := styleSheet()
	v.Style, v.Script = template.CSS(style), template.JS(scriptText)
	v.CSP = securityPolicy(style, scriptText)
	if err := page().Execute(w, v); err != nil {
		return fmt.Errorf("report as HTML: %w", err)
	}
	return nil
}

// securityPolicy returns the Content-Security-Policy, which allows only this style sheet, this script and images within the
// page.
func securityPolicy(style, script string) string {
	digest := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; style-src " + digest(style) + "; script-src " + digest(script) + "; img-src data:; base-uri 'none'; form-action 'none'"
}

// styleSheet returns the style sheet: the colours of both themes, the classes of drawings, the shades of cells, then
// styleText. A printed page has the light theme.
func styleSheet() string {
	var b strings.Builder
	b.WriteString(":root{color-scheme:light;" + plot.Variables(plot.Light) + "}")
	dark := "{color-scheme:dark;" + plot.Variables(plot.Dark) + "}"
	b.WriteString("@media screen and (prefers-color-scheme:dark){:root:not([data-theme=light])" + dark + "}")
	b.WriteString("@media screen{:root[data-theme=dark]" + dark + "}")
	b.WriteString(plot.Classes())
	for n := -plot.Levels; n <= plot.Levels; n++ {
		fmt.Fprintf(&b, ".h-%s{background:var(--%s)}", plot.Level(n), plot.Level(n))
	}
	fmt.Fprintf(&b, ".h-%s{background:var(--%s)}", plot.Neutral, plot.Neutral)
	b.WriteString("\n" + styleText)
	return b.String()
}
