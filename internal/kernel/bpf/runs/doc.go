// Package runs reads the kernel's own count of the runs of BPF programs, and of the time that they take (BPF_ENABLE_STATS).
// Counting costs each run two readings of the clock, so it belongs into a trial of its own.
package runs
