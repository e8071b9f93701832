package load

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/cnibench/cnibench/internal/conduct/control"
)

// Kinds of failure, the keys of Observation.Errors and the values of Error.Kind.
const (
	KindRefused     = "connection refused"
	KindTimeout     = "timeout"
	KindReset       = "reset"
	KindGone        = "peer gone"
	KindNoRoute     = "no route"
	KindNoPort      = "no port"
	KindInUse       = "address in use"
	KindDescriptors = "descriptor limit"
	KindNotAllowed  = "not permitted"
	KindMemory      = "no memory"
	KindTooLong     = "message too long"
	KindNotOffered  = "not offered"
	KindUnsupported = "unsupported"
	KindUsage       = "bad options"
	KindProtocol    = "protocol"
	KindStatus      = "HTTP status"
	KindUnanswered  = "unanswered"
	KindNoTraffic   = control.KindNoTraffic
	KindCancelled   = "cancelled"
	KindOther       = "other"
)

// kind is a counted failure: an index into kindNames, so that a load thread can count without a map.
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
	other
	kinds
)

var kindNames = [kinds]string{
	KindRefused, KindTimeout, KindReset, KindGone, KindNoRoute, KindNoPort, KindInUse, KindDescriptors, KindNotAllowed,
	KindMemory, KindTooLong, KindNotOffered, KindUnsupported, KindProtocol, KindStatus, KindUnanswered, KindOther,
}

// classify returns the kind of failure of an errno.
func classify(e syscall.Errno) kind {
	switch e {
	case syscall.ECONNREFUSED:
		return refused
	case syscall.ETIMEDOUT, syscall.EAGAIN, syscall.EINPROGRESS, syscall.EALREADY:
		return timedOut
	case syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED:
		return reset
	case syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN:
		return noRoute
	case syscall.EADDRNOTAVAIL:
		return noPort
	case syscall.EADDRINUSE:
		return inUse
	case syscall.EMFILE, syscall.ENFILE:
		return descriptors
	case syscall.EACCES, syscall.EPERM:
		return notAllowed
	case syscall.ENOBUFS, syscall.ENOMEM:
		return memory
	case syscall.EMSGSIZE:
		return tooLong
	case syscall.ENOENT, syscall.EAFNOSUPPORT, syscall.EPROTONOSUPPORT, syscall.ENOPROTOOPT, syscall.EOPNOTSUPP:
		return unsupported
	}
	return other
}

// Error is the failure of one side of a trial.
type Error struct {
	// Kind is one of the Kind constants.
	Kind string
	// Op is the operation and its object: "connect 10.0.0.1:7000".
	Op string
	// Err is the cause.
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v (%s)", e.Op, e.Err, e.Kind) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// failure returns err as an Error of op; an Error passes unchanged.
func failure(op string, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return &Error{Kind: kindNames[kindOfError(err)], Op: op, Err: err}
}

// kindOfError returns the kind of failure of an error.
func kindOfError(err error) kind {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return classify(errno)
	}
	return other
}

func usage(format string, args ...any) *Error {
	return &Error{Kind: KindUsage, Op: "prepare", Err: fmt.Errorf(format, args...)}
}
