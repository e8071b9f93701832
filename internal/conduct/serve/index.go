package serve

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cnibench/cnibench/internal/vocab/number"
)

// maxRows is the most results that the index shows, the newest of them.
const maxRows = 1000

//go:embed index.tmpl
var indexText string

//go:embed index.css
var indexStyle string

var indexPage = template.Must(template.New("index").Parse(indexText))

// indexPolicy lets the page use its own style sheet and load nothing.
var indexPolicy = func() string {
	sum := sha256.Sum256([]byte(indexStyle))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

// row is a result in the index.
type row struct {
	head
	Name, URL, Began string
}

// index answers with the list of results.
func (s *Site) index(w http.ResponseWriter, _ *http.Request) {
	files := s.look()
	slices.SortStableFunc(files, newestFirst)
	var rows []row
	for _, f := range files[:min(len(files), maxRows)] {
		q := row{head: f.head, Name: number.Clean(f.name)}
		if f.State != unreadable {
			q.URL = address(f.name)
		}
		if !f.Created.IsZero() {
			q.Began = f.Created.UTC().Format(time.RFC3339)
		}
		rows = append(rows, q)
	}
	var out bytes.Buffer
	err := indexPage.Execute(&out, map[string]any{
		"Style": template.CSS(indexStyle), "Rows": rows, "All": len(files), "More": len(files) - len(rows),
	})
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", indexPolicy)
	w.Write(out.Bytes()) // whoever hung up needs no answer
}

// address is where the report of the result called name is, from the index.
func address(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "report/" + strings.Join(parts, "/")
}
