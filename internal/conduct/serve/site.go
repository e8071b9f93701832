package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnibench/cnibench/internal/measure/result"
	"github.com/cnibench/cnibench/internal/report"
	"github.com/cnibench/cnibench/internal/report/html"
	"github.com/cnibench/cnibench/internal/report/openmetrics"
	"github.com/cnibench/cnibench/internal/vocab/number"
)

// maxSeries is the most series that metrics show, the newest of them.
const maxSeries = 200

// cacheBytes bounds what is kept of rendered results, pageBytes the size of one page.
const (
	cacheBytes = 64 << 20
	pageBytes  = 32 << 20
)

// Site is the handler of all requests.
type Site struct {
	// ctx ends the reading of files.
	ctx     context.Context
	sources []source
	mux     *http.ServeMux
	// heads are those of the files that were there at the last look, by name.
	heads struct {
		sync.Mutex
		known map[string]known
	}
	// work is held by the one request that reads a file whole.
	work  chan struct{}
	pages cache[[]byte]
	lasts cache[*openmetrics.Series]
}

// known is a head, and the file that it is of.
type known struct {
	info fs.FileInfo
	head head
}

// seen is a file with its head.
type seen struct {
	file
	head
}

// New returns a site of paths, which stops reading when ctx is done. The error is made of *PathError.
func New(ctx context.Context, paths []string) (*Site, error) {
	list, err := sources(paths)
	if err != nil {
		return nil, err
	}
	s := &Site{ctx: ctx, sources: list, mux: http.NewServeMux(), work: make(chan struct{}, 1)}
	s.pages.limit, s.lasts.limit = cacheBytes, cacheBytes
	s.mux.HandleFunc("GET /{$}", s.index)
	s.mux.HandleFunc("GET /report/{name...}", s.report)
	s.mux.HandleFunc("GET /metrics", s.metrics)
	s.mux.HandleFunc("GET /healthz", healthy)
	return s, nil
}

// ServeHTTP answers r.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	s.mux.ServeHTTP(w, r)
}

func healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, "ok\n") // whoever hung up needs no answer
}

// metrics answers with the last results of each series.
func (s *Site) metrics(w http.ResponseWriter, r *http.Request) {
	var live openmetrics.Live
	err := s.alone(r.Context(), func() (err error) {
		live, err = s.live()
		return err
	})
	if err != nil {
		refuse(w, err)
		return
	}
	syntax := negotiate(strings.Join(r.Header.Values("Accept"), ","))
	var out bytes.Buffer
	if err := live.Write(&out, syntax); err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", syntax.ContentType())
	w.Header().Set("Vary", "Accept")
	w.Write(out.Bytes()) // whoever hung up needs no answer
}

// report answers with the page of a result.
func (s *Site) report(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	files := all(s.sources)
	i := slices.IndexFunc(files, func(f file) bool { return f.name == name })
	if i < 0 {
		http.Error(w, "there is no such result: / lists those that there are", http.StatusNotFound)
		return
	}
	var page []byte
	err := s.alone(r.Context(), func() (err error) {
		page, err = s.page(files[i])
		return err
	})
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("ETag", fmt.Sprintf("%q", fmt.Sprintf("%x-%x", files[i].info.Size(), files[i].info.ModTime().UnixNano())))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(page))
}

// errBusy is what a request hears that waited for another's reading until it gave up.
var errBusy = errors.New("another result is being read: try again")

func refuse(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if errors.Is(err, errBusy) || errors.Is(err, context.Canceled) {
		code = http.StatusServiceUnavailable
	}
	http.Error(w, number.Clean(err.Error()), code)
}

// alone calls do when no other request reads a file whole.
func (s *Site) alone(ctx context.Context, do func() error) error {
	select {
	case s.work <- struct{}{}:
	case <-ctx.Done():
		return errBusy
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	defer func() { <-s.work }()
	return do()
}

// look returns the files that are there now, with their heads.
func (s *Site) look() []seen {
	s.heads.Lock()
	defer s.heads.Unlock()
	now := map[string]known{}
	var list []seen
	for _, f := range all(s.sources) {
		k, ok := s.heads.known[f.name]
		if !ok || !same(k.info, f.info) {
			k = known{f.info, readHead(f)}
		}
		now[f.name] = k
		list = append(list, seen{f, k.head})
	}
	s.heads.known = now
	return list
}

// spoil notes that f, whose head is sound, cannot be read.
func (s *Site) spoil(f file, err error) {
	s.heads.Lock()
	defer s.heads.Unlock()
	if k := s.heads.known[f.name]; same(k.info, f.info) {
		s.heads.known[f.name] = known{f.info, broken(err)}
	}
}

// live gathers what metrics show: of each series the newest finished result that can be read.
func (s *Site) live() (openmetrics.Live, error) {
	files := s.look()
	slices.SortStableFunc(files, newestFirst)
	var out openmetrics.Live
	shown := map[series]bool{}
	for i := range files {
		f := &files[i]
		if f.State == finished && !shown[f.series()] && len(shown) < maxSeries {
			last, err := s.last(f.file)
			switch {
			case s.ctx.Err() != nil:
				return out, s.ctx.Err()
			case err != nil:
				s.spoil(f.file, err)
				f.head = broken(err)
			default:
				shown[f.series()] = true
				out.Files = append(out.Files, openmetrics.File{Name: f.name, Series: last})
			}
		}
		if f.State == unreadable {
			out.Files = append(out.Files, openmetrics.File{Name: f.name})
		}
	}
	slices.SortFunc(out.Files, func(a, b openmetrics.File) int { return strings.Compare(a.Name, b.Name) })
	for _, state := range states {
		n := 0
		for _, f := range files {
			if f.State == state {
				n++
			}
		}
		out.States = append(out.States, openmetrics.State{Name: state, Files: n})
	}
	return out, nil
}

// newestFirst orders by when the runs began, then by when the files were written.
func newestFirst(a, b seen) int {
	if c := b.Created.Compare(a.Created); c != 0 {
		return c
	}
	return b.written().Compare(a.written())
}

// written is when the file was written last.
func (f file) written() time.Time {
	if f.info == nil {
		return time.Time{}
	}
	return f.info.ModTime()
}

// last returns what metrics show of f.
func (s *Site) last(f file) (*openmetrics.Series, error) {
	if v, ok := s.lasts.get(f); ok {
		return v, nil
	}
	d, err := s.document(f, false)
	if err != nil {
		return nil, err
	}
	v, err := openmetrics.NewSeries(d)
	if err == nil {
		s.lasts.put(f, v, v.Size())
	}
	return v, err
}

// page returns the report of f.
func (s *Site) page(f file) ([]byte, error) {
	if v, ok := s.pages.get(f); ok {
		return v, nil
	}
	d, err := s.document(f, true)
	if err != nil {
		return nil, err
	}
	out := &bounded{limit: pageBytes}
	if err := html.Render(out, d); err != nil {
		return nil, err
	}
	s.pages.put(f, out.Bytes(), out.Len())
	return out.Bytes(), nil
}

// bounded is a buffer that refuses more than limit bytes.
type bounded struct {
	bytes.Buffer
	limit int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.limit {
		return 0, fmt.Errorf("the page would have more than %d bytes: cnibench report -f html writes it to a file", b.limit)
	}
	return b.Buffer.Write(p)
}

// document reads f, with the details that pictures need if detailed.
func (s *Site) document(f file, detailed bool) (report.Document, error) {
	opened, info, err := f.open()
	if err != nil {
		return report.Document{}, fmt.Errorf("result %q: %w", f.name, err)
	}
	defer opened.Close() // it was only read
	if info.Size() > maxSize {
		return report.Document{}, fmt.Errorf("result %q has %d bytes, more than the %d that are served: cnibench report reads it", f.name, info.Size(), maxSize)
	}
	// What is appended from now on is of the next look.
	r, err := result.NewReader(io.LimitReader(opened, info.Size()), f.name)
	if err != nil {
		return report.Document{}, err
	}
	if !detailed {
		r.Slim()
	}
	var in report.Collector
	var more report.Gather
	err = r.Each(func(rec *result.Record) error {
		if detailed {
			more.Add(*rec)
		}
		return errors.Join(s.ctx.Err(), in.Add(rec))
	})
	if err != nil {
		return report.Document{}, err
	}
	d, err := in.Build(r.Header(), report.Options{})
	if err == nil && detailed {
		d.Details = more.Details()
	}
	return d, err
}
