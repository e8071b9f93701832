// Package probe finds out what a machine can do and under which conditions it would measure, by trying.
//
// Three questions are answered:
//
//	IRQTime    is interrupt time outside the CPU clocks of tasks?    irq.go says how to judge it, irq_linux.go measures
//	Check      is a feature there that a profile needs?              feature.go is the list, try_*_linux.go tries
//	Collect    what are the recorded conditions of a run?            facts_linux.go
//
// Nothing is concluded from a kernel's version. A feature is tried in a throwaway network namespace, and the answer is
// one of three: yes, no with what is missing and the way out, or unknown with the reason. Trying may make the kernel
// load a module, as using the feature would; nothing else outside the throwaway namespace changes.
package probe
