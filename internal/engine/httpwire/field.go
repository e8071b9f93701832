package httpwire

import (
	"bytes"
	"strconv"
	"strings"
)

// MaxHead bounds a head in bytes, start line, fields and the empty line together.
const MaxHead = 8 << 10

// Fault is an error of a head: it breaks the protocol, or needs an unsupported part of it.
type Fault struct {
	// Status is the HTTP status with which a server answers the fault. It has no meaning for a response.
	Status int
	// Reason is a clause that completes "the head ...".
	Reason string
}

func (f *Fault) Error() string { return "the head " + f.Reason }

// The faults of a head.
var (
	ErrTooLong   = &Fault{431, "is longer than 8 KiB"}
	ErrStartLine = &Fault{400, "has a start line that is not HTTP/1.1"}
	ErrVersion   = &Fault{505, "has a version other than HTTP/1.0 and HTTP/1.1"}
	ErrMethod    = &Fault{405, "has a method other than GET and HEAD"}
	ErrField     = &Fault{400, "has a field line that breaks the grammar"}
	ErrHost      = &Fault{400, "has no Host field, or several"}
	ErrLength    = &Fault{400, "has an invalid Content-Length, or several"}
	ErrCoding    = &Fault{501, "has a Transfer-Encoding, which is not supported"}
	ErrBody      = &Fault{413, "announces a body, which is not supported"}
	ErrNoLength  = &Fault{400, "does not give the length of the body"}
	ErrInterim   = &Fault{400, "has a 1xx status, which is not supported"}
)

// fields are the field lines of a head that matter here.
type fields struct {
	hosts     int
	length    int64 // -1 if absent
	coded     bool
	closes    bool
	keepAlive bool
	backend   []byte
}

// scanLines reads the field lines of b up to the empty line. It returns their length with the empty line, 0 if b is
// incomplete.
func (f *fields) scanLines(b []byte) (int, *Fault) {
	f.length = -1
	for at := 0; ; {
		end := bytes.IndexByte(b[at:], '\n')
		if end < 0 {
			return 0, nil
		}
		line, ok := bytes.CutSuffix(b[at:at+end], []byte{'\r'})
		at += end + 1
		if !ok {
			return 0, ErrField
		}
		if len(line) == 0 {
			return at, nil
		}
		if fault := f.parseLine(line); fault != nil {
			return 0, fault
		}
	}
}

// parseLine reads one field line, without its end.
func (f *fields) parseLine(line []byte) *Fault {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || !containsOnly(line[:colon], isToken) {
		return ErrField // a folded line and a space before the colon, too
	}
	name, value := line[:colon], trimOWS(line[colon+1:])
	if !containsOnly(value, isText) {
		return ErrField
	}
	switch {
	case equalFold(name, "content-length"):
		return f.parseContentLength(value)
	case equalFold(name, "connection"):
		f.parseConnection(value)
	case equalFold(name, "x-backend"):
		f.backend = value
	case equalFold(name, "transfer-encoding"):
		f.coded = true
	case equalFold(name, "host"):
		f.hosts++
	}
	return nil
}

// parseContentLength reads a length; repeated fields must agree.
func (f *fields) parseContentLength(value []byte) *Fault {
	n, err := strconv.ParseUint(string(value), 10, 63)
	if err != nil || f.length >= 0 && f.length != int64(n) {
		return ErrLength
	}
	f.length = int64(n)
	return nil
}

// parseConnection reads the list of options of a Connection field.
func (f *fields) parseConnection(value []byte) {
	for more := true; more; {
		var option []byte
		option, value, more = bytes.Cut(value, comma)
		option = trimOWS(option)
		f.closes = f.closes || equalFold(option, "close")
		f.keepAlive = f.keepAlive || equalFold(option, "keep-alive")
	}
}

// equalFold reports whether b is name, ignoring case. A non-ASCII letter that folds to ASCII does not match: it has more
// bytes.
func equalFold(b []byte, name string) bool {
	return len(b) == len(name) && strings.EqualFold(string(b), name)
}

// trimOWS removes optional white space from both ends.
func trimOWS(b []byte) []byte { return bytes.Trim(b, " \t") }

// class is a set of bytes.
type class [256]bool

func containsOnly(b []byte, in *class) bool {
	for _, c := range b {
		if !in[c] {
			return false
		}
	}
	return true
}

var (
	// isToken is the set of the bytes of a method and of a field name (RFC 9110 5.6.2). isVisible is the set of a
	// request target. isText is the set of a field value, which includes the bytes above ASCII (RFC 9110 5.5).
	isToken   = newClass(func(c byte) bool { return c > ' ' && c < 0x7f && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, rune(c)) })
	isVisible = newClass(func(c byte) bool { return c > ' ' && c < 0x7f })
	isText    = newClass(func(c byte) bool { return c == '\t' || c >= ' ' && c != 0x7f })
)

func newClass(has func(byte) bool) *class {
	var set class
	for i := range set {
		set[i] = has(byte(i))
	}
	return &set
}
