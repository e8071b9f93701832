package httpwire

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestReadRequest(t *testing.T) {
	const host = "Host: a\r\n\r\n"
	for name, c := range map[string]struct {
		in    string
		want  Request
		size  int // -1: all of it
		fault *Fault
	}{
		"get":              {"GET / HTTP/1.1\r\n" + host, Request{}, -1, nil},
		"head":             {"HEAD /any/path?q=1 HTTP/1.1\r\n" + host, Request{Head: true}, -1, nil},
		"close":            {"GET / HTTP/1.1\r\nconnection: Upgrade , CLOSE\r\n" + host, Request{Close: true}, -1, nil},
		"keep-alive":       {"GET / HTTP/1.1\r\nConnection: keep-alive\r\n" + host, Request{}, -1, nil},
		"old":              {"GET / HTTP/1.0\r\n\r\n", Request{Close: true}, -1, nil},
		"pipelined":        {"GET / HTTP/1.1\r\n" + host + "GET /2", Request{}, 27, nil},
		"empty line first": {"\r\nGET / HTTP/1.1\r\n" + host, Request{}, -1, nil},
		"no body":          {"GET / HTTP/1.1\r\nContent-Length: 0\r\n" + host, Request{}, -1, nil},
		"not whole":        {"GET / HTTP/1.1\r\nHost: a\r\n", Request{}, 0, nil},
		"nothing":          {"", Request{}, 0, nil},
		"half a line":      {"GE", Request{}, 0, nil},
		"post":             {"POST / HTTP/1.1\r\n" + host, Request{}, 0, ErrMethod},
		"body":             {"GET / HTTP/1.1\r\nContent-Length: 5\r\n" + host, Request{}, 0, ErrBody},
		"chunked":          {"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + host, Request{}, 0, ErrCoding},
		"no host":          {"GET / HTTP/1.1\r\n\r\n", Request{}, 0, ErrHost},
		"two hosts":        {"GET / HTTP/1.1\r\nHost: b\r\n" + host, Request{}, 0, ErrHost},
		"two lengths":      {"GET / HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 1\r\n" + host, Request{}, 0, ErrLength},
		"negative length":  {"GET / HTTP/1.1\r\nContent-Length: -1\r\n" + host, Request{}, 0, ErrLength},
		"long length":      {"GET / HTTP/1.1\r\nContent-Length: 9999999999999999999\r\n" + host, Request{}, 0, ErrLength},
		"bare line feed":   {"GET / HTTP/1.1\nHost: a\n\n", Request{}, 0, ErrStartLine},
		"folded":           {"GET / HTTP/1.1\r\nA: b\r\n c\r\n" + host, Request{}, 0, ErrField},
		"space in name":    {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", Request{}, 0, ErrField},
		"no colon":         {"GET / HTTP/1.1\r\nHost\r\n\r\n", Request{}, 0, ErrField},
		"control byte":     {"GET / HTTP/1.1\r\nA: \x00\r\n" + host, Request{}, 0, ErrField},
		"carriage return":  {"GET / HTTP/1.1\r\nA: b\rc\r\n" + host, Request{}, 0, ErrField},
		"space in target":  {"GET /a b HTTP/1.1\r\n" + host, Request{}, 0, ErrStartLine},
		"version":          {"GET / HTTP/2.0\r\n" + host, Request{}, 0, ErrVersion},
		"no version":       {"GET /\r\n", Request{}, 0, ErrStartLine},
		"tls":              {"\x16\x03\x01", Request{}, 0, ErrStartLine},
		"endless line":     {"GET /" + strings.Repeat("a", MaxHead), Request{}, 0, ErrTooLong},
		"endless head":     {"GET / HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", MaxHead/6), Request{}, 0, ErrTooLong},
		"too long at once": {"GET / HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", MaxHead/6) + host, Request{}, 0, ErrTooLong},
	} {
		got, size, fault := ReadRequest([]byte(c.in))
		if c.size < 0 {
			c.size = len(c.in)
		}
		if fault != c.fault || size != c.size || size > 0 && got != c.want {
			t.Errorf("%s: %+v, %d bytes, %v; want %+v, %d, %v", name, got, size, fault, c.want, c.size, c.fault)
		}
	}
}

func TestReadResponse(t *testing.T) {
	const none = "Content-Length: 0\r\n\r\n"
	for name, c := range map[string]struct {
		in    string
		want  Response
		fault *Fault
	}{
		"ok":              {"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nX-BACKEND:  pod-1 \r\n\r\n", Response{Status: 200, Length: 12, Backend: []byte("pod-1")}, nil},
		"no reason":       {"HTTP/1.1 200 \r\n" + none, Response{Status: 200}, nil},
		"no space":        {"HTTP/1.1 200\r\n" + none, Response{Status: 200}, nil},
		"close":           {"HTTP/1.1 503 No\r\nConnection: close\r\n" + none, Response{Status: 503, Close: true}, nil},
		"old":             {"HTTP/1.0 200 OK\r\n" + none, Response{Status: 200, Close: true}, nil},
		"old, kept alive": {"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n" + none, Response{Status: 200}, nil},
		"no content":      {"HTTP/1.1 204 No Content\r\n\r\n", Response{Status: 204}, nil},
		"same twice":      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + none, Response{Status: 200}, nil},
		"chunked":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Response{}, ErrCoding},
		"until close":     {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", Response{}, ErrNoLength},
		"two lengths":     {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n" + none, Response{}, ErrLength},
		"interim":         {"HTTP/1.1 100 Continue\r\n\r\n", Response{}, ErrInterim},
		"garbage":         {"220 mail.example", Response{}, ErrStartLine},
		"letters":         {"HTTP/1.1 2x0 OK\r\n", Response{}, ErrStartLine},
		"no code":         {"HTTP/1.1\r\n", Response{}, ErrStartLine},
		"version":         {"HTTP/3.1 200 OK\r\n", Response{}, ErrVersion},
		"field":           {"HTTP/1.1 200 OK\r\n: a\r\n\r\n", Response{}, ErrField},
		"endless":         {"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", MaxHead), Response{}, ErrTooLong},
	} {
		got, size, fault := ReadResponse([]byte(c.in))
		if fault != c.fault {
			t.Errorf("%s: %v, want %v", name, fault, c.fault)
			continue
		}
		if fault == nil && (size != len(c.in) || got.Status != c.want.Status || got.Length != c.want.Length ||
			got.Close != c.want.Close || string(got.Backend) != string(c.want.Backend)) {
			t.Errorf("%s: %+v, %d bytes; want %+v, %d", name, got, size, c.want, len(c.in))
		}
	}
}

// TestPieces: a head that comes byte by byte is more to wait for until it is whole, whatever follows it.
func TestPieces(t *testing.T) {
	request := AppendRequest(nil, "10.0.0.1:80", true)
	for n := range request {
		if _, size, fault := ReadRequest(request[:n]); size != 0 || fault != nil {
			t.Errorf("the first %d bytes of a request: %d, %v", n, size, fault)
		}
	}
	response := AppendHead(nil, 200, "pod-1", 7, false)
	for n := range response {
		if _, size, fault := ReadResponse(response[:n]); size != 0 || fault != nil {
			t.Errorf("the first %d bytes of a response: %d, %v", n, size, fault)
		}
	}
}

// TestAsOthersReadIt: net/http reads what we write, and sees in it what we do.
func TestAsOthersReadIt(t *testing.T) {
	for _, closes := range []bool{false, true} {
		req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(AppendRequest(nil, "[::1]:80", closes))))
		if err != nil || req.Host != "[::1]:80" || req.Close != closes {
			t.Errorf("request, close %v: %+v, %v", closes, req, err)
		}
		head := AppendHead(nil, 200, "node-1/pod-2", 5, closes)
		res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(append(head, "hello"...))), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || string(body) != "hello" || res.Header.Get("X-Backend") != "node-1/pod-2" || res.Close != closes {
			t.Errorf("response, close %v: %+v %q %v", closes, res, body, err)
		}
		ours, size, fault := ReadResponse(head)
		if fault != nil || size != len(head) || ours.Close != closes || ours.Length != 5 || string(ours.Backend) != "node-1/pod-2" {
			t.Errorf("ours: %+v %d %v", ours, size, fault)
		}
	}
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"canal/node-1/pod-2": true, "a": true, strings.Repeat("x", MaxName): true,
		"": false, "a b": false, "a\r\nSet-Cookie: x": false, "é": false, strings.Repeat("x", MaxName+1): false,
	} {
		if ValidName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// TestNothingIsAllocated keeps the readers fit for the load threads.
func TestNothingIsAllocated(t *testing.T) {
	request, response := AppendRequest(nil, "a", false), AppendHead(nil, 200, "pod-1", 1024, false)
	if n := testing.AllocsPerRun(100, func() {
		if _, size, _ := ReadRequest(request); size == 0 {
			t.Error("the request was not read")
		}
		if _, size, _ := ReadResponse(response); size == 0 {
			t.Error("the response was not read")
		}
	}); n > 0 {
		t.Errorf("%v allocations for a request and a response", n)
	}
}

// FuzzRead: whatever comes is a head, a fault or a wish for more; and no more bytes make another head of a head.
func FuzzRead(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), []byte("GET"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX-Backend: b\r\n\r\nabc"), []byte("HTTP/1.1"))
	f.Add([]byte("\r\n\r\n"), []byte("\x00"))
	f.Fuzz(func(t *testing.T, b, more []byte) {
		both := append(bytes.Clone(b), more...)
		r, n, fault := ReadRequest(b)
		checkRead(t, b, n, fault)
		if r2, n2, fault2 := ReadRequest(both); (n > 0 || fault != nil) && (r != r2 || n != n2 || fault != fault2) {
			t.Errorf("request %q: %+v %d %v; with %q after it %+v %d %v", b, r, n, fault, more, r2, n2, fault2)
		}
		p, n, fault := ReadResponse(b)
		checkRead(t, b, n, fault)
		if p2, n2, fault2 := ReadResponse(both); (n > 0 || fault != nil) && (p.Status != p2.Status || p.Length != p2.Length || n != n2 || fault != fault2) {
			t.Errorf("response %q: %+v %d %v; with %q after it %+v %d %v", b, p, n, fault, more, p2, n2, fault2)
		}
		if n > 0 && fault == nil && p.Length < 0 {
			t.Errorf("%q: a body of %d bytes", b, p.Length)
		}
	})
}

func checkRead(t *testing.T, b []byte, n int, fault *Fault) {
	t.Helper()
	if n < 0 || n > len(b) || n > MaxHead+2 || n > 0 && fault != nil {
		t.Errorf("%q: a head of %d bytes, %v", b, n, fault)
	}
	if n == 0 && fault == nil && len(b) > MaxHead+2 {
		t.Errorf("more is wanted after %d bytes", len(b))
	}
	if n > 0 && !bytes.HasSuffix(b[:n], []byte("\r\n\r\n")) {
		t.Errorf("%q ends its head with %q", b, b[:n])
	}
}
