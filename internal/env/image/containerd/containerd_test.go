package containerd

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// daemon is a containerd that writes down what it is asked, and answers as a test wants.
type daemon struct {
	mu    sync.Mutex
	calls []call
	// answer (optional) returns the status and the message for a method; status "" is no status at all.
	answer func(method string) (status, text string)
	// unread makes it answer without waiting for the end of what is sent.
	unread bool
}

// call is one request: its method, the headers that matter, and its messages.
type call struct {
	method, namespace, lease string
	messages                 []fields
}

// fields are those of a message by number; nested messages are decoded by who knows of them.
type fields map[protowire.Number][]any

func decode(b []byte) (fields, error) {
	f := fields{}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		b = b[n:]
		switch kind {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return nil, protowire.ParseError(n)
			}
			f[number], b = append(f[number], int64(v)), b[n:]
		case protowire.BytesType:
			v, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return nil, protowire.ParseError(n)
			}
			f[number], b = append(f[number], string(v)), b[n:]
		default:
			return nil, errors.New("a wire type that nobody sends")
		}
	}
	return f, nil
}

func (f fields) text(n protowire.Number) string {
	if len(f[n]) == 0 {
		return ""
	}
	return f[n][0].(string)
}

func (f fields) number(n protowire.Number) int64 {
	if len(f[n]) == 0 {
		return 0
	}
	return f[n][0].(int64)
}

func (f fields) nested(t *testing.T, n protowire.Number) fields {
	t.Helper()
	in, err := decode([]byte(f.text(n)))
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// labels are a map.
func (f fields) labels(t *testing.T, n protowire.Number) map[string]string {
	t.Helper()
	m := map[string]string{}
	for _, entry := range f[n] {
		e, err := decode([]byte(entry.(string)))
		if err != nil {
			t.Fatal(err)
		}
		m[e.text(1)] = e.text(2)
	}
	return m
}

func (d *daemon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := call{
		method:    strings.TrimPrefix(r.URL.Path, "/containerd.services."),
		namespace: r.Header.Get("Containerd-Namespace"), lease: r.Header.Get("Containerd-Lease"),
	}
	bad := r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/grpc" || r.Header.Get("Te") != "trailers" || r.ProtoMajor != 2
	if !d.unread {
		for {
			var head [5]byte
			if _, err := io.ReadFull(r.Body, head[:]); err != nil {
				bad = bad || !errors.Is(err, io.EOF)
				break
			}
			content := make([]byte, binary.BigEndian.Uint32(head[1:]))
			if _, err := io.ReadFull(r.Body, content); err != nil {
				bad = true
				break
			}
			m, err := decode(content)
			bad = bad || err != nil || head[0] != 0
			c.messages = append(c.messages, m)
		}
	}
	d.mu.Lock()
	d.calls = append(d.calls, c)
	d.mu.Unlock()
	if bad {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	status, text := "0", ""
	if d.answer != nil {
		status, text = d.answer(c.method)
	}
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
	if status == "0" {
		_, _ = w.Write(make([]byte, 5)) // an empty message
	}
	if status != "" {
		w.Header().Set("Grpc-Status", status)
		w.Header().Set("Grpc-Message", text)
	}
}

func (d *daemon) methods() string {
	var names []string
	for _, c := range d.calls {
		names = append(names, c.method)
	}
	return strings.Join(names, " ")
}

// serve starts the daemon and connects to it.
func serve(t *testing.T, d *daemon) *Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctrd") // short: the path of a socket has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: d, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	c, err := Dial(t.Context(), socket, "k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// blob is one of so many bytes.
func blob(name string, size int, refs ...string) Blob {
	content := bytes.Repeat([]byte{'x'}, size)
	return Blob{
		Descriptor: Descriptor{MediaType: "application/" + name, Digest: "sha256:" + name, Size: int64(size)}, Refs: refs,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
	}
}

func TestImport(t *testing.T) {
	d := &daemon{}
	c := serve(t, d)
	big := 2*chunk + 7
	err := c.Import(t.Context(), []Blob{blob("layer", big), blob("manifest", 3, "sha256:config", "sha256:layer")}, "a:1", "a@sha256:manifest")
	if err != nil {
		t.Fatal(err)
	}
	const want = "leases.v1.Leases/Create content.v1.Content/Write content.v1.Content/Write " +
		"images.v1.Images/Create images.v1.Images/Create leases.v1.Leases/Delete"
	if got := d.methods(); got != want {
		t.Fatalf("calls\n%s, want\n%s", got, want)
	}
	lease := d.calls[0].messages[0].text(1)
	if lease == "" || d.calls[5].messages[0].text(1) != lease {
		t.Errorf("lease %q, and %q given back", lease, d.calls[5].messages[0].text(1))
	}
	if d.calls[0].messages[0].labels(t, 3)["containerd.io/gc.expire"] == "" {
		t.Error("a lease that never ends")
	}
	for _, q := range d.calls[1:5] {
		if q.namespace != "k8s.io" || q.lease != lease {
			t.Errorf("%s in namespace %q with lease %q", q.method, q.namespace, q.lease)
		}
	}
	wantWrite(t, d.calls[1].messages, blob("layer", big))
	wantWrite(t, d.calls[2].messages, blob("manifest", 3, "sha256:config", "sha256:layer"))
	for k, name := range []string{"a:1", "a@sha256:manifest"} {
		image := d.calls[3+k].messages[0].nested(t, 1)
		target := image.nested(t, 3)
		if image.text(1) != name || target.text(1) != "application/manifest" || target.text(2) != "sha256:manifest" || target.number(3) != 3 {
			t.Errorf("image %v with target %v", image, target)
		}
	}
}

// wantWrite puts the messages of a write together again.
func wantWrite(t *testing.T, messages []fields, want Blob) {
	t.Helper()
	var size int64
	for k, m := range messages {
		last := k == len(messages)-1
		if (m.number(1) == actionCommit) != last || m.number(3) != want.Size || m.text(4) != want.Digest || m.number(5) != size {
			t.Errorf("message %d of %d: action %d, total %d, expected %s, offset %d", k+1, len(messages), m.number(1), m.number(3), m.text(4), m.number(5))
		}
		size += int64(len(m.text(6)))
	}
	if size != want.Size {
		t.Errorf("%d bytes of %d", size, want.Size)
	}
	labels := messages[len(messages)-1].labels(t, 7)
	if len(labels) != len(want.Refs) {
		t.Errorf("labels %v for %v", labels, want.Refs)
	}
	for k, ref := range want.Refs {
		if key := "containerd.io/gc.ref.content." + string(rune('0'+k)); labels[key] != ref {
			t.Errorf("label %s is %q, want %q", key, labels[key], ref)
		}
	}
}

// TestImportAgain: what is there is kept, gets the labels that keep what it names, and the name is moved.
func TestImportAgain(t *testing.T) {
	d := &daemon{answer: func(method string) (string, string) {
		if strings.HasSuffix(method, "/Write") || strings.HasSuffix(method, "Images/Create") {
			return "6", "it is there"
		}
		return "0", ""
	}}
	c := serve(t, d)
	if err := c.Import(t.Context(), []Blob{blob("layer", 9), blob("manifest", 3, "sha256:layer")}, "a:1"); err != nil {
		t.Fatal(err)
	}
	const want = "leases.v1.Leases/Create content.v1.Content/Write content.v1.Content/Write content.v1.Content/Update " +
		"images.v1.Images/Create images.v1.Images/Update leases.v1.Leases/Delete"
	if got := d.methods(); got != want {
		t.Fatalf("calls\n%s, want\n%s", got, want)
	}
	content := d.calls[3].messages[0]
	info := content.nested(t, 1)
	if info.text(1) != "sha256:manifest" || info.labels(t, 5)["containerd.io/gc.ref.content.0"] != "sha256:layer" ||
		content.nested(t, 2).text(1) != "labels.containerd.io/gc.ref.content.0" {
		t.Errorf("update of content: %v", content)
	}
	if mask := d.calls[5].messages[0].nested(t, 2).text(1); mask != "target" {
		t.Errorf("update of image: mask %q", mask)
	}
}

// TestFaults: each call in turn goes wrong; the error says it, and the lease is given back.
func TestFaults(t *testing.T) {
	blobs := []Blob{blob("layer", 3*chunk)}
	for method, want := range map[string]string{
		"leases.v1.Leases/Create":  "lease: containerd: no 100% way",
		"content.v1.Content/Write": "blob sha256:layer: containerd: no 100% way",
		"images.v1.Images/Create":  "image a:1: containerd: no 100% way",
		"leases.v1.Leases/Delete":  "containerd: no 100% way",
	} {
		d := &daemon{answer: func(m string) (string, string) {
			if m == method {
				return "13", "no 100%25 way"
			}
			return "0", ""
		}}
		err := serve(t, d).Import(t.Context(), blobs, "a:1")
		var s *Status
		if !errors.As(err, &s) || s.Code != 13 || err.Error() != want {
			t.Errorf("%s: %v, want %q", method, err, want)
		}
		if method != "leases.v1.Leases/Create" && !strings.HasSuffix(d.methods(), "leases.v1.Leases/Delete") {
			t.Errorf("%s: the lease is kept: %s", method, d.methods())
		}
	}
}

func TestStrangeAnswers(t *testing.T) {
	for status, want := range map[string]string{"": "without a status", "x": `gRPC status "x"`, "14": "gRPC status 14"} {
		d := &daemon{answer: func(string) (string, string) { return status, "" }}
		if err := serve(t, d).Import(t.Context(), []Blob{blob("a", 1)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("status %q: %v, want %q", status, err, want)
		}
	}
	// It has made up its mind before all is sent.
	d := &daemon{unread: true, answer: func(m string) (string, string) {
		if strings.HasSuffix(m, "/Write") {
			return "8", "disk is full"
		}
		return "0", ""
	}}
	if err := serve(t, d).Import(t.Context(), []Blob{blob("a", 20*chunk)}); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("%v", err)
	}
}

func TestBlobsThatCannotBeRead(t *testing.T) {
	broken := errors.New("broken disk")
	for name, open := range map[string]func() (io.ReadCloser, error){
		"open": func() (io.ReadCloser, error) { return nil, broken },
		"read": func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("some"), failing{broken})), nil
		},
	} {
		d := &daemon{}
		b := blob("a", 100)
		b.Open = open
		if err := serve(t, d).Import(t.Context(), []Blob{b}, "a:1"); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(d.methods(), "Images/") {
			t.Errorf("%s: an image was made all the same", name)
		}
	}
	if err := serve(t, &daemon{}).Import(t.Context(), nil, "a:1"); err == nil {
		t.Error("an image of no blobs was made")
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestInterrupted(t *testing.T) {
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	d := &daemon{answer: func(m string) (string, string) {
		if strings.HasSuffix(m, "/Write") {
			cancel(reason)
		}
		return "0", ""
	}}
	err := serve(t, d).Import(ctx, []Blob{blob("a", 1), blob("b", 1)}, "a:1")
	if !errors.Is(err, reason) && !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if !strings.HasSuffix(d.methods(), "leases.v1.Leases/Delete") {
		t.Errorf("the lease is kept: %s", d.methods())
	}
}

func TestNobodyListens(t *testing.T) {
	if _, err := Dial(t.Context(), filepath.Join(t.TempDir(), "none"), "k8s.io"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// FuzzMessage: what is written is read back the same by another's decoder.
func FuzzMessage(f *testing.F) {
	f.Add(int64(1), "x", []byte("y"), "k", "v")
	f.Add(int64(-1), "", []byte{}, "", "")
	f.Fuzz(func(t *testing.T, n int64, s string, b []byte, key, value string) {
		var m message
		m.number(1, n)
		m.text(2, s)
		m.bytes(300, b)
		m.labels(15, map[string]string{key: value})
		got, err := decode(m)
		if err != nil {
			t.Fatal(err)
		}
		if got.number(1) != n || got.text(2) != s || got.text(300) != string(b) || got.labels(t, 15)[key] != value {
			t.Errorf("%d %q %q %q=%q became %v", n, s, b, key, value, got)
		}
	})
}
