package pod

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/cnibench/cnibench/internal/env/kube"
)

const (
	// reportFile is what kubelet reads the last words of a container from.
	reportFile = "/dev/termination-log"
	// resolverFile is written by containerd when the CNI plugins have connected the pod, before its first process.
	resolverFile = "/etc/resolv.conf"
)

// ReportFirst sends one request to an address within limit, and leaves its report for kubelet. begin is when the program began.
func ReportFirst(ctx context.Context, begin time.Time, address string, limit time.Duration) error {
	report, err := json.Marshal(first(ctx, begin, address, limit))
	if err != nil {
		return err
	}
	return os.WriteFile(reportFile, report, 0o644)
}

// first sends the request.
func first(ctx context.Context, begin time.Time, address string, limit time.Duration) kube.First {
	r := kube.First{Begin: begin.UnixNano()}
	if file, err := os.Stat(resolverFile); err == nil {
		r.Network = file.ModTime().UnixNano()
	}
	end := time.Now().Add(limit)
	conn, err := (&net.Dialer{Deadline: end}).DialContext(ctx, "tcp", address)
	r.Connected = time.Now().UnixNano()
	if err == nil {
		defer conn.Close()
		err = exchange(conn, end)
		r.Answered = time.Now().UnixNano()
	}
	if err != nil {
		r.Kind, r.Failure = kindOf(err), err.Error()
	}
	return r
}

// exchange sends a byte and waits for one.
func exchange(conn net.Conn, end time.Time) error {
	if err := conn.SetDeadline(end); err != nil {
		return err
	}
	b := []byte{0}
	if _, err := conn.Write(b); err != nil {
		return err
	}
	_, err := conn.Read(b)
	return err
}

// kindOf returns the kind of a failure in the words of the engine.
func kindOf(err error) string {
	var slow net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF):
		return "reset"
	case errors.As(err, &slow) && slow.Timeout():
		return "timeout"
	}
	return "other"
}

// Clock writes the time in ns since 1970 for each byte of in.
func Clock(in io.Reader, w io.Writer) error {
	b := make([]byte, 1)
	for {
		if _, err := io.ReadFull(in, b); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := json.NewEncoder(w).Encode(time.Now().UnixNano()); err != nil {
			return err
		}
	}
}
