package lab

import (
	"errors"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// VerifierLog returns the full log of the BPF verifier if err wraps the rejection of a program, otherwise "". The error
// itself has only the last line.
func VerifierLog(err error) string {
	var refused *attach.RefusedError
	if errors.As(err, &refused) {
		return refused.Log
	}
	return ""
}

// VerifierLogs returns the logs of all profiles whose programs the verifier rejected, by name.
func (l *Lab) VerifierLogs() map[string]string {
	logs := map[string]string{}
	for _, i := range l.instances {
		if log := VerifierLog(i.Err); log != "" {
			logs[string(i.Name)] = log
		}
	}
	return logs
}
