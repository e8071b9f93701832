package lab

import (
	"errors"

	"github.com/cnibench/cnibench/internal/kernel/bpf/attach"
)

// VerifierLog returns every line of the kernel's verifier where err is, or wraps, its refusal of a BPF program; otherwise
// "". The error itself has only the last of them.
func VerifierLog(err error) string {
	var refused *attach.RefusedError
	if errors.As(err, &refused) {
		return refused.Log
	}
	return ""
}

// VerifierLogs returns those of the profiles that do not stand for that reason, by name.
func (l *Lab) VerifierLogs() map[string]string {
	logs := map[string]string{}
	for _, i := range l.instances {
		if log := VerifierLog(i.Err); log != "" {
			logs[string(i.Name)] = log
		}
	}
	return logs
}
