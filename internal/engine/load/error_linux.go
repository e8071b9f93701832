package load

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/cnibench/cnibench/internal/control"
)

// Kinds of failure without a count of their own; kindTable has the others.
const (
	KindUsage     = "bad options"
	KindNoTraffic = control.KindNoTraffic
	KindCancelled = control.KindCancelled
)

// kind is a counted failure: an index into kindTable, so that a load thread can count without a map.
type kind int

const (
	refused kind = iota
	timedOut
	reset
	gone
	noRoute
	noPort
	inUse
	descriptors
	notAllowed
	memory
	tooLong
	notOffered
	unsupported
	protocol
	badStatus
	unanswered
	noName
	failedServer
	other
	kinds
)

// kindTable has the name and the errnos of each kind. The name is a key of Observation.Errors and a value of
// Error.Kind.
var kindTable = [kinds]struct {
	name   string
	errnos []syscall.Errno
}{
	refused:      {"connection refused", []syscall.Errno{syscall.ECONNREFUSED}},
	timedOut:     {"timeout", []syscall.Errno{syscall.ETIMEDOUT, syscall.EAGAIN, syscall.EINPROGRESS, syscall.EALREADY}},
	reset:        {"reset", []syscall.Errno{syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED}},
	gone:         {"peer gone", nil},
	noRoute:      {"no route", []syscall.Errno{syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN}},
	noPort:       {"no port", []syscall.Errno{syscall.EADDRNOTAVAIL}},
	inUse:        {"address in use", []syscall.Errno{syscall.EADDRINUSE}},
	descriptors:  {"descriptor limit", []syscall.Errno{syscall.EMFILE, syscall.ENFILE}},
	notAllowed:   {"not permitted", []syscall.Errno{syscall.EACCES, syscall.EPERM}},
	memory:       {"no memory", []syscall.Errno{syscall.ENOBUFS, syscall.ENOMEM}},
	tooLong:      {"message too long", []syscall.Errno{syscall.EMSGSIZE}},
	notOffered:   {"not offered", nil},
	unsupported:  {"unsupported", []syscall.Errno{syscall.ENOENT, syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT, syscall.ENOPROTOOPT, syscall.EOPNOTSUPP}},
	protocol:     {"protocol", nil},
	badStatus:    {"HTTP status", nil},
	unanswered:   {"unanswered", nil},
	noName:       {"no such name", nil},
	failedServer: {"name server failed", nil},
	other:        {"other", nil},
}

func (k kind) String() string { return kindTable[k].name }

// kindOfErrno returns the kind of failure of the errno of a failed call. It allocates nothing.
func kindOfErrno(e syscall.Errno) kind {
	for k := range kindTable {
		if slices.Contains(kindTable[k].errnos, e) {
			return kind(k)
		}
	}
	return other
}

// KindOf returns the name of the kind of the errno that err wraps, or "other" if it wraps none.
func KindOf(err error) string { return kindOfError(err).String() }

// Error is the failure of one side of a trial.
type Error struct {
	// Kind is one of the Kind constants, or a name in kindTable.
	Kind string
	// Op is the operation and its object: "connect 10.0.0.1:7000".
	Op string
	// Err is the cause.
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v (%s)", e.Op, e.Err, e.Kind) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// asError returns err as an Error of the operation op. It returns an err that is or wraps an Error as that Error.
func asError(op string, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return &Error{Kind: kindOfError(err).String(), Op: op, Err: err}
}

// kindOfError returns the kind of the errno that err wraps, or other if it wraps none.
func kindOfError(err error) kind {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return kindOfErrno(errno)
	}
	return other
}

func usageError(format string, args ...any) *Error {
	return &Error{Kind: KindUsage, Op: "prepare", Err: fmt.Errorf(format, args...)}
}
