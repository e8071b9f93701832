package httpwire

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
)

// Request is the part of a request that the server uses.
type Request struct {
	// Head means that the method is HEAD: the response has no body.
	Head bool
	// Close means that the client wants no other response on this connection.
	Close bool
}

// ReadRequest reads the head of a request from the beginning of b. size is the size of the head in bytes, 0 if more
// bytes are needed. fault is not nil if the head is invalid.
func ReadRequest(b []byte) (r Request, size int, fault *Fault) {
	// An empty line before a request is ignored (RFC 9112 2.2).
	skipped := 0
	if bytes.HasPrefix(b, crlf) {
		skipped, b = len(crlf), b[len(crlf):]
	}
	b = b[:min(len(b), MaxHead)]
	line, rest, fault := cutStartLine(b)
	if line == nil || fault != nil {
		if fault == nil && len(b) > 0 && b[0] != '\r' && !isToken[b[0]] {
			fault = ErrStartLine // not worth waiting for the rest
		}
		return r, 0, fault
	}
	one, fault := r.parseRequestLine(line)
	if fault != nil {
		return r, 0, fault
	}
	var f fields
	n, fault := f.scanLines(rest)
	switch {
	case fault != nil:
	case n == 0:
		return r, 0, tooLongFault(b)
	case one && f.hosts != 1 || f.hosts > 1:
		fault = ErrHost
	case f.coded:
		fault = ErrCoding
	case f.length > 0:
		fault = ErrBody
	}
	if fault != nil {
		return r, 0, fault
	}
	// A client of HTTP/1.0 gets one response for each connection, which is always right.
	r.Close = f.closes || !one
	return r, skipped + len(line) + len(crlf) + n, nil
}

// parseRequestLine reads a request line. one is true for HTTP/1.1 and false for HTTP/1.0.
func (r *Request) parseRequestLine(line []byte) (one bool, fault *Fault) {
	method, rest, ok := bytes.Cut(line, space)
	target, version, ok2 := bytes.Cut(rest, space)
	if !ok || !ok2 || len(method) == 0 || len(target) == 0 || !containsOnly(method, isToken) || !containsOnly(target, isVisible) {
		return false, ErrStartLine
	}
	if one, fault = parseVersion(version); fault != nil {
		return false, fault
	}
	r.Head = string(method) == "HEAD"
	if !r.Head && string(method) != "GET" {
		return false, ErrMethod
	}
	return one, nil
}

// Response is the part of a response that the client uses.
type Response struct {
	Status int
	// Length is the length of the body in bytes.
	Length int64
	// Close means that the server closes the connection after this response.
	Close bool
	// Backend is the value of X-Backend, a slice of the input; empty if absent.
	Backend []byte
}

// ReadResponse reads the head of a response to GET from the beginning of b. size is the size of the head in bytes, 0 if
// more bytes are needed. A response whose body is not delimited by a Content-Length is a fault.
func ReadResponse(b []byte) (r Response, size int, fault *Fault) {
	b = b[:min(len(b), MaxHead)]
	if n := min(len(b), len(protocol)); string(b[:n]) != protocol[:n] {
		return r, 0, ErrStartLine // not worth waiting for the rest
	}
	line, rest, fault := cutStartLine(b)
	if line == nil || fault != nil {
		return r, 0, fault
	}
	one, fault := r.parseStatusLine(line)
	if fault != nil {
		return r, 0, fault
	}
	var f fields
	n, fault := f.scanLines(rest)
	if fault != nil {
		return r, 0, fault
	}
	if n == 0 {
		return r, 0, tooLongFault(b)
	}
	r.Length, r.Backend = f.length, f.backend
	switch {
	case r.Status == http.StatusNoContent || r.Status == http.StatusNotModified:
		r.Length = 0
	case f.coded:
		return r, 0, ErrCoding
	case r.Length < 0:
		return r, 0, ErrNoLength
	}
	r.Close = f.closes || !one && !f.keepAlive
	return r, len(line) + len(crlf) + n, nil
}

// parseStatusLine reads a status line. one is true for HTTP/1.1 and false for HTTP/1.0. It accepts a line without the
// space before an empty reason, because some servers leave it out.
func (r *Response) parseStatusLine(line []byte) (one bool, fault *Fault) {
	version, rest, ok := bytes.Cut(line, space)
	code, reason, _ := bytes.Cut(rest, space)
	if !ok || len(code) != 3 || !containsOnly(reason, isText) {
		return false, ErrStartLine
	}
	status, err := strconv.ParseUint(string(code), 10, 0)
	if err != nil {
		return false, ErrStartLine
	}
	r.Status = int(status)
	if one, fault = parseVersion(version); fault != nil {
		return false, fault
	}
	if r.Status < 200 {
		return false, ErrInterim
	}
	return one, nil
}

const protocol = "HTTP/"

var (
	crlf  = []byte("\r\n")
	space = []byte(" ")
	comma = []byte(",")
)

// cutStartLine returns the first line of b without its end, and the bytes after it. line is nil if the first line is
// incomplete.
func cutStartLine(b []byte) (line, rest []byte, fault *Fault) {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return nil, nil, tooLongFault(b)
	}
	line, ok := bytes.CutSuffix(b[:end], []byte{'\r'})
	if !ok {
		return nil, nil, ErrStartLine
	}
	return line, b[end+1:], nil
}

func parseVersion(b []byte) (one bool, fault *Fault) {
	switch string(b) {
	case "HTTP/1.1":
		return true, nil
	case "HTTP/1.0":
		return false, nil
	}
	if bytes.HasPrefix(b, []byte(protocol)) {
		return false, ErrVersion
	}
	return false, ErrStartLine
}

// tooLongFault returns ErrTooLong if the incomplete head b has MaxHead bytes already, otherwise nil.
func tooLongFault(b []byte) *Fault {
	if len(b) >= MaxHead {
		return ErrTooLong
	}
	return nil
}

// MaxName bounds the name of a backend in bytes.
const MaxName = 128

// ValidName reports whether a name is valid in a field: visible ASCII, 1 to MaxName bytes.
func ValidName(s string) bool {
	return len(s) >= 1 && len(s) <= MaxName && containsOnly([]byte(s), isVisible)
}

// AppendRequest appends a GET for the root of host. closes asks the server to close the connection after its response.
func AppendRequest(b []byte, host string, closes bool) []byte {
	b = fmt.Appendf(b, "GET / HTTP/1.1\r\nHost: %s\r\n", host)
	return appendEnd(b, closes)
}

// AppendHead appends the head of a response with a body of length bytes. name is the name of the backend, omitted if
// empty.
func AppendHead(b []byte, status int, name string, length int, closes bool) []byte {
	b = fmt.Appendf(b, "HTTP/1.1 %d %s\r\nContent-Length: %d\r\n", status, http.StatusText(status), length)
	if length > 0 {
		b = append(b, "Content-Type: application/octet-stream\r\n"...)
	}
	if name != "" {
		b = fmt.Appendf(b, "X-Backend: %s\r\n", name)
	}
	return appendEnd(b, closes)
}

func appendEnd(b []byte, closes bool) []byte {
	if closes {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, crlf...)
}
