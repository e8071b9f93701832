package httpwire

import "bytes"

// MaxHead bounds a head in bytes, start line, fields and the empty line together.
const MaxHead = 8 << 10

// Fault says how a head breaks the protocol, or what it wants that is not spoken here.
type Fault struct {
	// Status is what a server answers to such a request; it means nothing for a response.
	Status int
	// Reason is a clause that completes "the head ...".
	Reason string
}

func (f *Fault) Error() string { return "the head " + f.Reason }

// The faults there are.
var (
	ErrTooLong   = &Fault{431, "is longer than 8 KiB"}
	ErrStartLine = &Fault{400, "has a start line that is none of HTTP/1.1"}
	ErrVersion   = &Fault{505, "is of another version than HTTP/1.0 and HTTP/1.1"}
	ErrMethod    = &Fault{405, "has another method than GET and HEAD"}
	ErrField     = &Fault{400, "has a field line that breaks the grammar"}
	ErrHost      = &Fault{400, "has no Host field, or several"}
	ErrLength    = &Fault{400, "has a Content-Length that is no length, or several"}
	ErrCoding    = &Fault{501, "has a Transfer-Encoding, which is not spoken here"}
	ErrBody      = &Fault{413, "announces a body, which is not taken here"}
	ErrNoLength  = &Fault{400, "does not say how long the body is"}
	ErrInterim   = &Fault{400, "has a 1xx status, which was not asked for"}
)

// fields are what the field lines of a head say, as far as anybody here wants to know.
type fields struct {
	hosts     int
	length    int64 // -1: not said
	coded     bool
	closes    bool
	keepAlive bool
	backend   []byte
}

// scan reads the field lines of b up to the empty line. It returns how many bytes they are with the empty line, 0 if more
// are needed.
func (f *fields) scan(b []byte) (int, *Fault) {
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
		if fault := f.line(line); fault != nil {
			return 0, fault
		}
	}
}

// line reads one field line, without its end.
func (f *fields) line(line []byte) *Fault {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || !all(line[:colon], isToken) {
		return ErrField // a folded line and a space before the colon, too
	}
	name, value := line[:colon], trim(line[colon+1:])
	if !all(value, isText) {
		return ErrField
	}
	switch {
	case is(name, "content-length"):
		return f.contentLength(value)
	case is(name, "connection"):
		f.connection(value)
	case is(name, "x-backend"):
		f.backend = value
	case is(name, "transfer-encoding"):
		f.coded = true
	case is(name, "host"):
		f.hosts++
	}
	return nil
}

// contentLength takes a length that is said once, or twice alike.
func (f *fields) contentLength(value []byte) *Fault {
	const most = 18 // digits that an int64 always holds
	if len(value) == 0 || len(value) > most {
		return ErrLength
	}
	var n int64
	for _, c := range value {
		if c < '0' || c > '9' {
			return ErrLength
		}
		n = n*10 + int64(c-'0')
	}
	if f.length >= 0 && f.length != n {
		return ErrLength
	}
	f.length = n
	return nil
}

// connection reads the list of options of a Connection field.
func (f *fields) connection(value []byte) {
	for len(value) > 0 {
		option := value
		if comma := bytes.IndexByte(value, ','); comma >= 0 {
			option, value = value[:comma], value[comma+1:]
		} else {
			value = nil
		}
		option = trim(option)
		f.closes = f.closes || is(option, "close")
		f.keepAlive = f.keepAlive || is(option, "keep-alive")
	}
}

// is compares a name without regard to case; lower has no capitals.
func is(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// trim takes optional white space off both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// class is a set of bytes.
type class [256]bool

func all(b []byte, in *class) bool {
	for _, c := range b {
		if !in[c] {
			return false
		}
	}
	return true
}

var (
	// isToken has the characters of a method and of a field's name (RFC 9110 5.6.2), isVisible those of a request's
	// target, isText those of a field's value, with the bytes above ASCII (RFC 9110 5.5).
	isToken   = classOf(func(c byte) bool { return alphanumeric(c) || bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0 })
	isVisible = classOf(func(c byte) bool { return c > ' ' && c < 0x7f })
	isText    = classOf(func(c byte) bool { return c == '\t' || c >= ' ' && c != 0x7f })
)

func classOf(has func(byte) bool) *class {
	var set class
	for i := range set {
		set[i] = has(byte(i))
	}
	return &set
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
