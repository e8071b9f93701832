package lab

import "github.com/cnibench/cnibench/internal/kernel/bpf/attach"

// VerifierLogs returns the logs of all profiles whose programs the BPF verifier rejected, by name. Instance.Err has only the
// last line.
func (l *Lab) VerifierLogs() map[string]string {
	logs := map[string]string{}
	for _, i := range l.instances {
		if log := attach.VerifierLog(i.Err); log != "" {
			logs[string(i.Name)] = log
		}
	}
	return logs
}
